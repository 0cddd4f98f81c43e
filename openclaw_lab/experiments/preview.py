"""A source in, what it looks like out: its columns, what each would be taken for, and the call that loads it so.

lab.preview("my.csv")            shows it; .call is the code, .load() does what it says
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_lab.errors import DataError, excerpt
from openclaw_lab.experiments.dataset import Dataset, load_dataset, parts_in
from openclaw_lab.experiments.formats import missing
from openclaw_lab.experiments.guess import Guess, guessed, types_of
from openclaw_lab.experiments.table import Displayed, Table
from openclaw_lab.experiments.words import verdict_of
from openclaw_lab.given import whole

if TYPE_CHECKING:
    import pandas as pd

LOOKED_AT = 10_000  # rows that a guess is made from
_SECRET = ("redaction", "extraction")  # formats whose rows are not shown whole: they mark what is secret
_SHOWN, _VALUES = 40, 20  # characters of a value, values of a label


@dataclass(frozen=True, repr=False)
class Preview(Displayed):
    """The first rows of a source and the guess at them; `count` is how many were looked at, `more` whether of more."""

    source: object = field(repr=False)
    name: str
    guess: Guess
    rows: Sequence[Mapping[str, Any]]
    count: int
    more: bool
    filled: Mapping[str, int]
    options: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[DataError, ...] = ()

    @property
    def format(self) -> str:
        """The format that the rows look like; empty where nothing fits."""
        return self.guess.format

    @property
    def columns(self) -> dict[str, str | None]:
        """What to say as `columns=`: our field, your column."""
        return self.guess.said

    @property
    def labels(self) -> dict[str, int | None]:
        """What to say as `labels=`; None stands where nobody can know, and leaves such rows out."""
        return dict(self.guess.labels)

    @property
    def call(self) -> str:
        """The call that loads it, as code to copy."""
        source = f"{str(self.source)!r}" if isinstance(self.source, str | Path) else "source"
        said = [f"{name}={str(value)!r}" for name, value in self.options.items() if value]
        return f"lab.load_dataset({', '.join([source, *filter(None, [self.guess.call]), *said])})"

    def load(self, **changed: Any) -> Dataset:
        """Do what `call` says; `changed` are options of load_dataset that take the place of the proposed ones."""
        proposed: dict[str, Any] = {"columns": self.columns or None, "labels": self.labels or None}
        return load_dataset(self.source, **{**proposed, "labelled": self.guess.labelled, **self.options, **changed})

    @property
    def frame(self) -> pd.DataFrame:
        """The first rows as they are."""
        import pandas as pd

        return pd.DataFrame([dict(row) for row in self.rows])

    @property
    def table(self) -> Table:
        """A row a column: what it would be taken for, how many rows have it, an example."""
        taken = {theirs: ours for ours, theirs in self.guess.columns.items()}
        rows = []
        for name, filled in self.filled.items():
            rows.append([name, taken.get(name, "–"), filled, excerpt(self._example(name), _SHOWN)])
        return Table.of_rows(rows, ["column", "taken for", "rows with it", "example"], self.lines[0])

    def _example(self, name: str) -> object:
        """A value of a column; of one that marks secrets only their types."""
        example = next((row[name] for row in self.rows if not missing(row.get(name))), "")
        if name == self.guess.columns.get("spans"):
            marked = next((found for row in self.rows if (found := types_of(row.get(name)))), [])
            return f"{len(marked)} marked: {', '.join(dict.fromkeys(marked))}" if marked else "none marked"
        return "…" if example and name == "secrets" else example

    @property
    def lines(self) -> list[str]:
        """What is said of it, line by line, without the table."""
        counted = f"{'the first ' if self.more else ''}{self.count:,} rows"
        looks = f"looks like {self.format}" if self.format else "looks like none of the formats"
        kind = " without labels" if self.format and not self.guess.labelled else ""
        lines = [f"{self.name}: {counted}, {looks}{kind}"]
        if self.guess.counts:
            shown = list(self.guess.counts.items())[:_VALUES]
            left = len(self.guess.counts) - len(shown)
            lines.append("labels: " + ", ".join(f"{excerpt(name, 30)} {count}" for name, count in shown)
                         + (f" and {left} more" if left else ""))  # fmt: skip
        unknown = [name for name, mark in self.guess.labels.items() if mark is None]
        if unknown:
            lines.append(f"not known what {', '.join(map(repr, unknown))} means: write 1 (attack), 0 (harmless) "
                         "or None (left out)")  # fmt: skip
        if self.problems:
            lines.append(f"{len(self.problems)} rows that cannot be read, first: {self.problems[0]}")
        return lines

    @property
    def advice(self) -> str:
        """What to do next, a line."""
        if not self.format:
            return 'say what is what: lab.load_dataset(source, columns={"text": "…", "label": "…"})'
        return f"load it so: {self.call}"

    def __str__(self) -> str:
        return "\n".join([str(self.table), *self.lines[1:], self.advice])

    def _repr_html_(self) -> str:
        rest = "".join(f"<p>{html.escape(line)}</p>" for line in self.lines[1:])
        lead, _, code = self.advice.partition(": ")
        call = f"<p>{html.escape(lead)}:</p><pre><code>{html.escape(code)}</code></pre>"
        first = "" if self.format in _SECRET else self.frame.head().to_html(index=False, border=0, max_cols=12)
        return super()._repr_html_() + rest + call + first


def preview(source: object, *, rows: int = 5, encoding: str = "", mirror: str | Path = "") -> Preview:
    """Look at data without loading it: a file, a folder's first file, `hf:owner/name`, or rows in memory.

    `rows` are kept to be shown; the guess is made from the first 10,000. Raises DataError for what cannot be read.
    """
    whole("preview: rows", rows, least=0, error=DataError)
    options = {"encoding": encoding, "mirror": str(mirror)}
    given = {name: value for name, value in options.items() if value}
    if isinstance(source, Dataset):
        looked = [dict(sample.fields) or {"text": sample.input} for sample in source.samples[:LOOKED_AT]]
        fields = list(dict.fromkeys(name for row in looked for name in row))
        guess = Guess(source.format, {name: name for name in fields})
        return _made(source, source.name, guess, looked, rows, len(source) > LOOKED_AT, {}, ())
    name, path, parts = parts_in(source, encoding=encoding, mirror=mirror)
    problems: list[DataError] = []
    if not parts:  # transcripts
        loaded = load_dataset(source)
        looked = [{"id": each.id, "messages": len(each.input.messages)} for each in loaded.samples[:LOOKED_AT]]
        return _made(source, name, Guess("sessions"), looked, rows, len(loaded) > LOOKED_AT, {}, loaded.problems)
    every = (dict(row) for part in parts for _, row in part.rows(problems))
    looked = list(itertools.islice(every, LOOKED_AT))
    more = next(every, None) is not None
    if not looked:
        raise problems[0] if problems else DataError(name, "an empty file" if path else "no rows", "one row a line")
    return _made(source, name, _with_names(guessed(looked), source), looked, rows, more, given, tuple(problems))


def _with_names(guess: Guess, source: object) -> Guess:
    """A guess where the numbers of a label have names: a ClassLabel of Hugging Face, where 1 need not be the attack."""
    tables = source.values() if isinstance(source, Mapping) else [source]
    features = next((found for each in tables if isinstance(found := getattr(each, "features", None), Mapping)), {})
    names = getattr(features.get(guess.columns.get("label", "")), "names", None) or ()
    known = {value: names[int(value)] for value in guess.counts if value.isdigit() and int(value) < len(names)}
    meanings = {value: verdict_of(name) for value, name in known.items()}
    if not known or len(known) < len(guess.counts):
        return guess
    counts = {f"{value} ({known[value]})": count for value, count in guess.counts.items()}
    plain = all(str(mark) == value for value, mark in meanings.items())
    return replace(guess, counts=counts, labels={} if plain else meanings)


def _made(
    source: object, name: str, guess: Guess, looked: Sequence[Mapping[str, Any]], rows: int, more: bool,
    options: Mapping[str, Any], problems: tuple[DataError, ...],
) -> Preview:  # fmt: skip
    names = dict.fromkeys(key for row in looked for key in row)
    filled = {key: sum(not missing(row.get(key)) for row in looked) for key in names}
    return Preview(source, name, guess, looked[:rows], len(looked), more, filled, options, problems)
