"""What an experiment works on: a Sample is one row with its label, a Dataset many of one format; nothing is read."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from openclaw_lab.errors import DataError, excerpt
from openclaw_lab.experiments.corpus import Corpus
from openclaw_lab.experiments.formats import RowFormat, missing
from openclaw_lab.experiments.memories import Memories
from openclaw_lab.experiments.picks import Picks
from openclaw_lab.experiments.secrets import Secrets, masked
from openclaw_lab.knobs import nearest
from openclaw_lab.messages import Session

if TYPE_CHECKING:
    import pandas as pd


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

    @functools.cached_property
    def fingerprint(self) -> str:
        """Names everything that is known of the samples, whatever the data is called: what figures are kept by."""
        digest = hashlib.sha256()
        for sample in self.samples:
            about = (sample.id, sample.input, sample.label, sample.dataset, sample.lang, sample.kind, sample.group)
            digest.update(repr((about, sorted(sample.fields.items(), key=str))).encode("utf-8", "surrogatepass"))
        for name, corpus in self.corpora.items():
            digest.update(repr((name, corpus.documents)).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

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


def sample_of(
    row_format: RowFormat, where: str, row: Mapping[str, Any], dataset: str, *, stem: str = "", labelled: bool = True
) -> Sample:
    """The Sample of a row that stands at `where` (`file:line`), checked.

    A row without an id is called `stem:line` (`stem` is the name of the dataset where none is given). With
    `labelled=False` a row may lack its label, and has the label None then.
    """
    given, label = row_format.read(where, row) if labelled else row_format.read_some(where, row)
    known = {key: "" if missing(row.get(key)) else str(row[key]) for key in ("lang", "kind", "group")}
    if isinstance(label, Picks) and not known["group"] and not missing(row.get("repo")):
        known["group"] = str(row["repo"])  # one author's skills and messages
    line = where.rpartition(":")[2]
    row_id = f"{stem or dataset}:{line}" if missing(row.get("id")) else str(row["id"])
    return Sample(row_id, given, label, dataset, **known, fields=dict(row))


def from_sessions(sessions: Iterable[Session], name: str = "sessions") -> Dataset:
    """A Dataset of sessions already loaded; the labels are the sessions' own opportunities."""
    samples = [
        Sample(each.id, each, each.opportunities, Path(each.source).name, str(each.fields.get("lang", "")))
        for each in sessions
    ]
    return Dataset(name, "sessions", tuple(samples))
