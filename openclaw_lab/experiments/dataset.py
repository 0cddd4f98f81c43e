"""Rows of a file in, a Dataset of Samples out: checked row by row, hashed, with what was left out.

    load_dataset("injection/mini")          bundled
    load_dataset("my.csv")                  .jsonl .jsonl.gz .csv .parquet, OpenClaw transcripts and stores, or a folder

A bad row is an error that says file, line, found and expected; with `on_error="skip"` the rest loads and the bad rows
are counted.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from openclaw_lab.errors import DataError, DataWarning, excerpt
from openclaw_lab.experiments.corpus import Corpus, catalogue_beside, corpus_beside, is_catalogue, without_corpora
from openclaw_lab.experiments.formats import RowFormat, format_of, is_session, missing
from openclaw_lab.experiments.memories import Memories
from openclaw_lab.experiments.picks import Picks
from openclaw_lab.experiments.reading import head, read_rows
from openclaw_lab.experiments.secrets import Secrets, masked
from openclaw_lab.files import bundled
from openclaw_lab.knobs import nearest
from openclaw_lab.messages import Session

if TYPE_CHECKING:
    import pandas as pd

OnError = Literal["raise", "skip"]
_TEXT_SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".parquet")
_STORE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
_BESIDE = {"retrieval": corpus_beside, "skills": catalogue_beside}  # what the rows of a format are asked of
_CORPUS_FOLDERS = ("knowledge",)  # what the queries of another folder are asked of


@dataclass(frozen=True, slots=True)
class Sample:
    """One row: what goes in, what is known of it. `label` is None where nobody labelled it.

    `dataset` is the file's name, for slices; samples with the same `group` share a source or a template.
    """

    id: str
    input: Any
    label: Any = None
    dataset: str = ""
    lang: str = ""
    kind: str = ""
    group: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Dataset(Sequence[Sample]):
    """Samples of one format, with where they came from and the hash of their content.

    `corpora` holds what queries are asked of, by the name of the query file (a sample's `dataset`).
    """

    name: str
    format: str
    samples: tuple[Sample, ...]
    problems: tuple[DataError, ...] = ()
    corpora: Mapping[str, Corpus] = field(default_factory=dict, repr=False)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Dataset: ...
    def __getitem__(self, index: int | slice) -> Sample | Dataset:
        if isinstance(index, slice):
            return self._with(self.samples[index])
        return self.samples[index]

    def __len__(self) -> int:
        return len(self.samples)

    def where(self, **wanted: object) -> Dataset:
        """The samples whose attribute or field has the value (or one of the values) given."""
        for name in wanted:
            self.check_known(name)
        kept = tuple(
            sample for sample in self.samples if all(_is(sample, name, value) for name, value in wanted.items())
        )
        return self._with(kept)

    def values(self, name: str) -> list[str]:
        """The value of an attribute (`dataset`, `lang`, `kind`, `group`) or field of every sample, as text."""
        self.check_known(name)
        return [str(_get(sample, name, "")) for sample in self.samples]

    def check_known(self, name: str) -> None:
        """Refuse a name that is neither an attribute of a sample nor a field of any."""
        fields = {each: None for sample in self.samples for each in sample.fields}
        if name not in Sample.__slots__ and name not in fields and self.samples:
            known = list(dict.fromkeys([*Sample.__slots__[:-1], *map(str, fields)]))
            raise DataError(f"{self.name} {name!r}", expected="a field of the data", todo=nearest(name, known))

    @functools.cached_property
    def hash(self) -> str:
        """Sixteen hex digits that name the content: inputs, labels and corpora, in order (ids may come from a name)."""
        digest = hashlib.sha256()
        for sample in self.samples:
            content = sample.input.messages if isinstance(sample.input, Session) else sample.input
            digest.update(repr((content, sample.label)).encode("utf-8", "surrogatepass"))
        for corpus in self.corpora.values():
            digest.update(repr(corpus.documents).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:16]

    @property
    def frame(self) -> pd.DataFrame:
        """One row a sample, for a look at the data."""
        import pandas as pd

        columns = ("id", "dataset", "lang", "kind", "label", "input")
        return pd.DataFrame([[getattr(sample, name) for name in columns] for sample in self.samples], columns=columns)

    def summary(self) -> list[str]:
        """Counts by dataset, language, kind and label, a line each; what has one value only is left out."""
        lines = []
        for name in ("dataset", "lang", "kind", "label"):
            counts = Counter(_value(getattr(sample, name)) for sample in self.samples)
            if len(counts) > 1:
                lines.append(f"{name}: " + ", ".join(f"{value} {count}" for value, count in sorted(counts.items())))
        return lines

    def excerpt(self, sample: Sample) -> str:
        """A sample in one short line; labelled secrets are masked."""
        if isinstance(sample.input, Session):
            first = next((message.text for message in sample.input.messages if message.role == "user"), "")
            label = f"[{sample.label}] " if isinstance(sample.label, Memories) else ""
            return f"{label}{len(sample.input.messages)} messages, starts with {excerpt(first, 60)!r}"
        if isinstance(sample.label, Secrets):
            return f"[{sample.label}] {excerpt(masked(sample.input, sample.label.spans), 100)}"
        label = " ".join(sample.label) or "none" if isinstance(sample.label, tuple) else sample.label
        return f"[{label}] {excerpt(sample.input, 100)}"

    def __str__(self) -> str:
        left_out = f", {len(self.problems)} bad rows left out" if self.problems else ""
        what = self.format if self.format == "sessions" else f"{self.format} rows"
        return f"{self.name}: {len(self)} {what}{left_out} (hash {self.hash})"

    def __repr__(self) -> str:
        return f"<Dataset {self}>"

    def _with(self, samples: tuple[Sample, ...]) -> Dataset:
        return replace(self, samples=samples)


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return "labelled"
    if isinstance(value, Secrets | Picks | Memories):
        return value.summary
    return "none" if value in (None, "") else str(value)


def _get(sample: Sample, name: str, default: object = None) -> object:
    return getattr(sample, name) if name in Sample.__slots__ else sample.fields.get(name, default)


def _is(sample: Sample, name: str, value: object) -> bool:
    found = _get(sample, name)
    return found in value if isinstance(value, list | tuple | set) else found == value


def load_dataset(source: str | Path, *, on_error: OnError = "raise") -> Dataset:
    """Load a bundled name ("injection/mini"), a file or a folder; the format is told by the rows themselves."""
    if on_error not in ("raise", "skip"):
        raise DataError("on_error", on_error, "raise or skip")
    path = _find(source)
    if _holds_sessions(path):
        return _load_sessions(path, str(source), on_error)
    files = data_files(path) if path.is_dir() else [path]
    problems: list[DataError] = []
    samples: list[Sample] = []
    formats: dict[str, Path] = {}
    corpora: dict[str, Corpus] = {}
    for file in files:
        row_format, rows = _read_file(file, problems)
        formats.setdefault(row_format.name, file)
        if row_format.name in _BESIDE and rows:
            corpora[rows[0].dataset] = _checked(_BESIDE[row_format.name](file), rows)
        samples += rows
    if problems and on_error == "raise":
        raise problems[0].advised('or leave bad rows out: on_error="skip", --skip-bad')
    if len(formats) > 1:
        (first, one), (second, other) = list(formats.items())[:2]
        raise DataError(
            str(path), f"{first} rows in {one.name} and {second} rows in {other.name}", "one format a folder"
        )
    if problems:
        warnings.warn(f"{path}: {len(problems)} bad rows left out, first: {problems[0]}", DataWarning, stacklevel=2)
    return Dataset(str(source), next(iter(formats)), _unique_ids(samples, path), tuple(problems), corpora)


def as_dataset(data: object) -> Dataset:
    """What an experiment was handed, as a Dataset: one already, a name or path, or a list of Sessions."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, str | Path):
        return load_dataset(data)
    if isinstance(data, Session):
        return from_sessions([data])
    if isinstance(data, Sequence) and data and all(isinstance(each, Session) for each in data):
        return from_sessions(data)
    raise DataError("data", data, "a Dataset, a name or path, or a list of Sessions")


def from_sessions(sessions: Iterable[Session], name: str = "sessions") -> Dataset:
    """A Dataset of sessions already loaded; the labels are the sessions' own opportunities."""
    samples = [
        Sample(each.id, each, each.opportunities, Path(each.source).name, str(each.fields.get("lang", "")))
        for each in sessions
    ]
    return Dataset(name, "sessions", tuple(samples))


def bundled_names() -> list[str]:
    """The bundled datasets, as `task/name`."""
    root = bundled("datasets")
    paths = (path.relative_to(root) for path in root.glob("*/*.jsonl") if path.parent.name not in _CORPUS_FOLDERS)
    names = (path.with_suffix("").as_posix() for path in paths if not is_catalogue(path))
    return sorted(name.removesuffix("_queries").replace("/queries_", "/") for name in names)


def data_files(folder: Path) -> list[Path]:
    """The data files of a folder, sorted; an error when there is none."""
    files = without_corpora(
        sorted(path for path in folder.iterdir() if _ends(path, *_TEXT_SUFFIXES) and path.is_file())
    )
    if not files:
        raise DataError(str(folder), "a folder without data files", f"files ending in {', '.join(_TEXT_SUFFIXES)}")
    return files


def _find(source: str | Path) -> Path:
    try:
        path = Path(source).expanduser()
        if str(source) and path.exists():
            return path
    except (OSError, RuntimeError) as error:  # a name too long for the system, a folder closed to us, ~nobody
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise DataError(excerpt(str(source)), reason, "the path of a file or folder") from None
    folder, slash, last = str(source).rpartition("/")
    for name in (f"{source}.jsonl", f"{source}_queries.jsonl", f"{folder}{slash}queries_{last}.jsonl"):
        if (inside := bundled("datasets") / name).is_file():
            return inside
    if str(source).startswith("hf:"):
        raise DataError(str(source), expected="a local file or folder", todo="download it first, then give its path")
    raise DataError(
        str(source), expected="an existing file, a folder or a bundled name", todo=nearest(str(source), bundled_names())
    )


# --- rows -----------------------------------------------------------------------------------------------------------


def _checked(corpus: Corpus, samples: Sequence[Sample]) -> Corpus:
    """The corpus, when it holds everything that the queries call relevant."""
    for sample in samples:
        skills = isinstance(sample.label, Picks)
        for each in sample.label.named if skills else sample.label:
            if each not in corpus.row_of:
                what = ("skill", "a name in the catalogue") if skills else ("relevant", "the id of a document")
                raise DataError(f"{sample.dataset} {sample.id}", f"{what[0]} {each!r}", what[1])
    return corpus


def _read_file(path: Path, problems: list[DataError]) -> tuple[RowFormat, list[Sample]]:
    row_format: RowFormat | None = None
    samples: list[Sample] = []
    places: dict[str, str] = {}
    for where, row in read_rows(path, problems):
        if row_format is None:
            row_format = format_of(where, row)
        try:
            sample = _sample(row_format, where, row, path)
            if sample.id in places:
                raise DataError(where, f"the id {sample.id!r} again, first at {places[sample.id]}", "one id a row")
            places[sample.id] = where
            samples.append(sample)
        except DataError as error:
            problems.append(error)
    if row_format is None:
        if problems:
            raise problems[0]
        raise DataError(str(path), "an empty file", "one row a line")
    return row_format, samples


def _sample(row_format: RowFormat, where: str, row: Mapping[str, Any], path: Path) -> Sample:
    given, label = row_format.read(where, row)
    name = path.name.removesuffix(".gz").rpartition(".")[0]
    known = {key: "" if missing(row.get(key)) else str(row[key]) for key in ("lang", "kind", "group")}
    if isinstance(label, Picks) and not known["group"] and not missing(row.get("repo")):
        known["group"] = str(row["repo"])  # one author's skills and messages
    line = where.rpartition(":")[2]
    row_id = f"{name}:{line}" if missing(row.get("id")) else str(row["id"])
    return Sample(row_id, given, label, name, **known, fields=dict(row))


def _unique_ids(samples: list[Sample], path: Path) -> tuple[Sample, ...]:
    """An id that several files use gets the file's name in front."""
    everywhere = Counter(sample.id for sample in samples)
    unique = tuple(
        sample if everywhere[sample.id] == 1 else replace(sample, id=f"{sample.dataset}/{sample.id}")
        for sample in samples
    )
    for row_id, count in Counter(sample.id for sample in unique).items():
        if count > 1:  # a.csv beside a.jsonl
            raise DataError(str(path), f"the id {row_id!r} in {count} files of one name", "one id a row")
    return unique


# --- sessions -----------------------------------------------------------------------------------------------------


def _holds_sessions(path: Path) -> bool:
    """Whether a path is read by the transcript loader: a store, or JSON lines that are messages or OpenClaw records."""
    if path.is_dir():
        files = (each for each in sorted(path.rglob("*")) if _ends(each, *_TEXT_SUFFIXES, *_STORE_SUFFIXES))
        telling = (each for each in files if not _ends(each, ".jsonl", ".jsonl.gz") or any(head(each)))
        first = next(telling, None)
        return first is not None and _holds_sessions(first)
    if _ends(path, *_STORE_SUFFIXES):
        return True
    return _ends(path, ".jsonl", ".jsonl.gz") and any(is_session(row) for row in head(path))


def _ends(path: Path, *suffixes: str) -> bool:
    return path.name.lower().endswith(suffixes)


def _load_sessions(path: Path, name: str, on_error: OnError) -> Dataset:
    from openclaw_lab.transcripts import load_sessions

    sessions = load_sessions(path, on_error=on_error)
    problems = [DataError(f"{each.file}:{each.line}", each.why) for each in sessions.report.problems]
    loaded = from_sessions(sessions, name)
    return Dataset(name, "sessions", loaded.samples, tuple(problems))
