"""Rows of a file, of the Hub or of a notebook in, a Dataset of Samples out: checked row by row, hashed.

    load_dataset("injection/mini")              bundled
    load_dataset("my.csv")                      .jsonl .json .csv .tsv (also .gz) .parquet, transcripts, or a folder
    load_dataset("hf:owner/name")               a repository of the Hugging Face Hub, see `hub`
    load_dataset(frame), load_dataset(rows)     a DataFrame, a list of dicts, a Dataset of Hugging Face
    load_dataset(frame, columns={"text": "prompt", "label": "kind"}, labels={"jailbreak": 1, "benign": 0})

A bad row is an error that says file, line, found and expected; with `on_error="skip"` the rest loads and the bad rows
are counted. `preview` says which columns to name.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from openclaw_lab.errors import DataError, DataWarning, excerpt
from openclaw_lab.experiments.columns import Columns
from openclaw_lab.experiments.corpus import (
    Corpus,
    catalogue_beside,
    corpus_beside,
    corpus_of,
    is_catalogue,
    without_corpora,
)
from openclaw_lab.experiments.formats import RowFormat, format_of, is_session
from openclaw_lab.experiments.guess import suggestion
from openclaw_lab.experiments.hub import HUB, fetched
from openclaw_lab.experiments.picks import Picks
from openclaw_lab.experiments.reading import ALONE, SUFFIXES, Rows, head, holds_list, read_rows
from openclaw_lab.experiments.samples import Dataset, Sample, from_sessions, sample_of
from openclaw_lab.experiments.sources import Part, parts_of
from openclaw_lab.files import bundled
from openclaw_lab.knobs import nearest
from openclaw_lab.messages import Session

__all__ = [
    "Dataset",
    "Sample",
    "as_dataset",
    "bundled_names",
    "bundled_path",
    "data_files",
    "from_sessions",
    "load_dataset",
    "parts_in",
]

OnError = Literal["raise", "skip"]
_STORE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
_LINES = (".jsonl", ".jsonl.gz")
_BESIDE = {"retrieval": corpus_beside, "skills": catalogue_beside}  # what the rows of a format are asked of
_CORPUS_FOLDERS = ("knowledge",)  # what the queries of another folder are asked of
_EXPECTED = "a Dataset, a name or path, a DataFrame, a list of rows, or a list of Sessions"


@dataclass(frozen=True)
class _Reader:
    """How rows are read: their columns, whether they must have a label; what is wrong with them."""

    columns: Columns
    labelled: bool
    problems: list[DataError] = field(default_factory=list)

    def part(self, part: Part) -> tuple[RowFormat | None, list[Sample]]:
        """The samples of a part, and their format; None where there is no row."""
        row_format: RowFormat | None = None
        samples: list[Sample] = []
        places: dict[str, str] = {}
        for where, row in self._rows(part):
            row_format = row_format or self._format(where, row)
            try:
                sample = sample_of(row_format, where, row, part.name, stem=part.stem, labelled=self.labelled)
                if sample.id in places:
                    found = f"the id {sample.id!r} again, first at {places[sample.id]}"
                    raise DataError(where, found, "one id a row")
                places[sample.id] = where
                samples.append(sample)
            except DataError as error:
                self.problems.append(error)
        return row_format, samples

    def _rows(self, part: Part) -> Rows:
        """The rows of a part under our names."""
        for number, (where, row) in enumerate(part.rows(self.problems)):
            if number == 0:
                self.columns.checked(where, row)
            if part.fields:
                row = {**part.fields, **row}
            try:
                renamed = self.columns.row(where, row)
            except DataError as error:
                self.problems.append(error)
            else:
                if renamed is not None:
                    yield where, renamed

    def _format(self, where: str, row: Any) -> RowFormat:
        try:
            return format_of(where, row, self.columns.fields)
        except DataError as error:
            raise error.advised(suggestion(row)) if not self.columns else error from None


def load_dataset(
    source: object,
    *,
    columns: object = None,
    labels: object = None,
    labelled: bool = True,
    corpus: object = None,
    encoding: str = "",
    mirror: str | Path = "",
    on_error: OnError = "raise",
) -> Dataset:
    """Load labelled data: a bundled name ("injection/mini"), a file, a folder, `hf:owner/name`, or rows in memory.

    The format is told by the rows themselves. `columns` says which of your columns is which field, `labels` what your
    label values mean (see `columns`; `preview` proposes both). `labelled=False` takes rows without a label, to be
    labelled. `corpus` is what queries are asked of, or the skills that messages are matched to, where it does not stand
    in a file beside. `encoding` is that of text files that are not UTF-8. The network is touched for `hf:` alone, and
    not at all where `mirror` names a folder that holds `owner/name`.
    """
    if on_error not in ("raise", "skip"):
        raise DataError("on_error", on_error, "raise or skip")
    if not isinstance(labelled, bool):
        raise DataError("labelled", labelled, "True or False")
    reader = _Reader(Columns.of(columns, labels), labelled)
    name, path, parts = parts_in(source, encoding=encoding, mirror=mirror, as_rows=bool(reader.columns))
    if path is not None and not parts:
        return _load_sessions(path, name, on_error)
    if not reader.columns and (path is None or _ends(path, *ALONE)) and (sessions := _sessions_of(parts)):
        return from_sessions(sessions, name)
    data = _load(reader, name, path, parts, corpus)
    reader.columns.check_used()
    if reader.problems and on_error == "raise":
        raise reader.problems[0].advised('or leave bad rows out: on_error="skip", --skip-bad')
    if reader.problems:
        said = f"{path or name}: {len(reader.problems)} bad rows left out, first: {reader.problems[0]}"
        warnings.warn(said, DataWarning, stacklevel=2)
    return data


def parts_in(
    source: object, *, encoding: str = "", mirror: str | Path = "", as_rows: bool = False
) -> tuple[str, Path | None, list[Part]]:
    """The name of a source, its path where it is a file or folder here, and its parts.

    Transcripts have no parts, unless somebody says what their columns are (`as_rows`).
    """
    if isinstance(source, str) and source.startswith(HUB):
        repository = fetched(source, mirror)
        parts = [_of_file(each.path, encoding, each.split, each.fields) for each in repository.files]
        return source, None, parts
    if isinstance(source, str | Path):
        path = _find(source)
        if not as_rows and _holds_sessions(path):
            return str(source), path, []
        files = data_files(path) if path.is_dir() else [path]
        return str(source), path, [_of_file(file, encoding) for file in files]
    if isinstance(source, Dataset):
        raise DataError("load_dataset", "a Dataset", _EXPECTED[len("a Dataset, ") :], "it is loaded already")
    parts = parts_of(source) or []
    if not parts:
        raise DataError("load_dataset", _described(source), _EXPECTED[len("a Dataset, ") :])
    return parts[0].name if len(parts) == 1 else "+".join(part.name for part in parts), None, parts


def as_dataset(data: object) -> Dataset:
    """What an experiment was handed, as a Dataset: one already, a name or path, rows in memory, or Sessions."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, Session):
        return from_sessions([data])
    if isinstance(data, Sequence) and data and all(isinstance(each, Session) for each in data):
        return from_sessions(data)
    if isinstance(data, str | Path) or parts_of(data):
        return load_dataset(data)
    raise DataError("data", _described(data), _EXPECTED)


def _described(data: object) -> object:
    return "None" if data is None else data if isinstance(data, int | list | dict) else f"a {type(data).__name__}"


def bundled_names() -> list[str]:
    """The bundled datasets, as `task/name`."""
    root = bundled("datasets")
    paths = (path.relative_to(root) for path in root.glob("*/*.jsonl") if path.parent.name not in _CORPUS_FOLDERS)
    names = (path.with_suffix("").as_posix() for path in paths if not is_catalogue(path))
    return sorted(name.removesuffix("_queries").replace("/queries_", "/") for name in names)


def bundled_path(name: str) -> Path:
    """The file of a bundled dataset; an error that names the nearest one where there is none."""
    folder, slash, last = name.rpartition("/")
    for each in (f"{name}.jsonl", f"{name}_queries.jsonl", f"{folder}{slash}queries_{last}.jsonl"):
        try:
            if (inside := bundled("datasets") / each).is_file():
                return inside
        except (OSError, ValueError):
            break
    todo = nearest(name, bundled_names())
    raise DataError(name, expected="an existing file, a folder or a bundled name", todo=todo)


def data_files(folder: Path) -> list[Path]:
    """The data files of a folder, sorted; an error when there is none. Lists in JSON count where nothing else is."""
    inside = sorted(path for path in folder.iterdir() if path.is_file())
    files = [path for path in inside if _ends(path, *SUFFIXES)]
    files = files or [path for path in inside if _ends(path, *ALONE) and holds_list(path)]
    if not files:
        raise DataError(str(folder), "a folder without data files", f"files ending in {', '.join((*SUFFIXES, *ALONE))}")
    return without_corpora(files)


def _find(source: str | Path) -> Path:
    try:
        path = Path(source).expanduser()
        if str(source) and path.exists():
            return path
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, a folder closed to us, ~nobody
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise DataError(excerpt(str(source)), reason, "the path of a file or folder") from None
    return bundled_path(str(source))


# --- rows -----------------------------------------------------------------------------------------------------------


def _of_file(path: Path, encoding: str, split: str = "", fields: Any = None) -> Part:
    stem = path.name.removesuffix(".gz").rpartition(".")[0]

    def rows(problems: list[DataError]) -> Any:
        return read_rows(path, problems, encoding)

    return Part(split or stem, rows, stem, fields, path)


def _load(reader: _Reader, name: str, path: Path | None, parts: Sequence[Part], corpus: object) -> Dataset:
    samples: list[Sample] = []
    formats: dict[str, str] = {}
    corpora: dict[str, Corpus] = {}
    given = None if corpus is None else _corpus(corpus)
    for part in parts:
        before = len(reader.problems)
        row_format, rows = reader.part(part)
        if row_format is None:
            raise _nothing(reader.problems[before:], part, reader.columns)
        formats.setdefault(row_format.name, part.path.name if part.path else part.name)
        if row_format.name in _BESIDE and rows:
            corpora[part.name] = _checked(given or _beside(row_format.name, part), rows)
        samples += rows
    if len(formats) > 1:
        (first, one), (second, other) = list(formats.items())[:2]
        found = f"{first} rows in {one} and {second} rows in {other}"
        raise reader.problems[0] if reader.problems else DataError(str(path or name), found, "one format a folder")
    ids = _unique_ids(samples, str(path or name))
    return Dataset(name, next(iter(formats)), ids, tuple(reader.problems), corpora)


def _nothing(problems: Sequence[DataError], part: Part, columns: Columns) -> DataError:
    """Why a part has no samples at all."""
    if problems:
        return problems[0]
    if None in columns.labels.values():
        return DataError(str(part.path or part.name), "no row that labels= keeps", "at least one")
    return DataError(str(part.path or part.name), "an empty file" if part.path else "no rows", "one row a line")


def _beside(name: str, part: Part) -> Corpus:
    if part.path is not None:
        try:
            return _BESIDE[name](part.path)
        except DataError as error:
            raise error.advised("or name them: corpus=…") from None
    what = "skills, corpus=[{'name', 'description'}, …]" if name == "skills" else "a corpus, corpus=[{'id', 'text'}, …]"
    raise DataError(part.name, f"{name} rows alone", what, "a list of rows, a DataFrame or a path")


def _corpus(given: object) -> Corpus:
    """The documents that queries are asked of: a file's, or rows in memory."""
    _, _, parts = parts_in(given)
    problems: list[DataError] = []
    return corpus_of((row for part in parts for row in part.rows(problems)), problems, "corpus")


def _checked(corpus: Corpus, samples: Sequence[Sample]) -> Corpus:
    """The corpus, when it holds everything that the queries call relevant."""
    for sample in samples:
        skills = isinstance(sample.label, Picks)
        for each in sample.label.named if skills else sample.label or ():
            if each not in corpus.row_of:
                what = ("skill", "a name in the catalogue") if skills else ("relevant", "the id of a document")
                raise DataError(f"{sample.dataset} {sample.id}", f"{what[0]} {each!r}", what[1])
    return corpus


def _unique_ids(samples: list[Sample], source: str) -> tuple[Sample, ...]:
    """An id that several parts use gets the part's name in front."""
    everywhere = Counter(sample.id for sample in samples)
    if len(everywhere) == len(samples):
        return tuple(samples)
    unique = tuple(
        sample if everywhere[sample.id] == 1 else replace(sample, id=f"{sample.dataset}/{sample.id}")
        for sample in samples
    )
    for row_id, count in Counter(sample.id for sample in unique).items():
        if count > 1:  # a.csv beside a.jsonl
            raise DataError(source, f"the id {row_id!r} in {count} files of one name", "one id a row")
    return unique


# --- sessions -----------------------------------------------------------------------------------------------------


def _holds_sessions(path: Path) -> bool:
    """Whether a path is read by the transcript loader: a store, or JSON lines that are messages or OpenClaw records."""
    if path.is_dir():
        files = (each for each in sorted(path.rglob("*")) if _ends(each, *SUFFIXES, *_STORE_SUFFIXES))
        telling = (each for each in files if not _ends(each, *_LINES) or any(head(each)))
        first = next(telling, None)
        return first is not None and _holds_sessions(first)
    if _ends(path, *_STORE_SUFFIXES):
        return True
    return _ends(path, *_LINES) and any(is_session(row) for row in head(path))


def _ends(path: Path, *suffixes: str) -> bool:
    return path.name.lower().endswith(suffixes)


def _load_sessions(path: Path, name: str, on_error: OnError) -> Dataset:
    from openclaw_lab.transcripts import load_sessions

    sessions = load_sessions(path, on_error=on_error)
    problems = [DataError(f"{each.file}:{each.line}", each.why) for each in sessions.report.problems]
    loaded = from_sessions(sessions, name)
    return Dataset(name, "sessions", loaded.samples, tuple(problems))


def _sessions_of(parts: Sequence[Part]) -> list[Session]:
    """The conversations that rows in memory, or in a JSON file, are; none where they are something else."""
    from openclaw_lab.transcripts import session_from_row

    first = next((row for _, row in parts[0].rows([])), None)
    if first is None or "messages" not in first or not is_session(first):
        return []
    problems: list[DataError] = []
    found: list[Session] = []
    for part in parts:
        for where, row in part.rows(problems):
            try:
                found.append(session_from_row(row, where.replace(str(part.path), part.name), part.name))
            except DataError as error:
                raise DataError(f"{where} {error.where}", error.found, error.expected, error.todo) from None
    if problems:
        raise problems[0]
    return found
