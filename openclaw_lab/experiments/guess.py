"""The first rows of a source in, a guess at what they are out: the format, the columns, what the label values mean.

A guess is for a person to look at; see `preview`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.experiments.annotations import types_in
from openclaw_lab.experiments.columns import written
from openclaw_lab.experiments.formats import FORMATS, is_session, missing
from openclaw_lab.experiments.words import COLUMNS, COMMON, candidates, looks_like_spans, verdict_of

Row = Mapping[str, Any]
_LABELS = 12  # of so many different values a column is still a label
_NEEDED = {each.name: each.needed for each in FORMATS}


@dataclass(frozen=True)
class Guess:
    """What rows look like. `format` is empty where nothing fits; `columns` and `labels` are what to say.

    `labels` has None for values whose meaning is not known. `counts` are the label's values, or the types of spans.
    """

    format: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, int | None] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    labelled: bool = True
    foreign: bool = False  # spans stand as another tool writes them
    none: tuple[str, ...] = ()  # columns that are called as a field of ours and are none

    @property
    def is_plain(self) -> bool:
        """Whether the rows can be loaded as they are."""
        return bool(self.format) and not self.said and not self.labels and self.labelled

    @property
    def said(self) -> dict[str, str | None]:
        """The columns that have to be named: those that are not called as ours, and those that are and are none."""
        different: dict[str, str | None] = {ours: theirs for ours, theirs in self.columns.items() if ours != theirs}
        different |= dict.fromkeys(self.none)
        return {**different, "spans": self.columns["spans"]} if self.foreign else different

    @property
    def call(self) -> str:
        """The arguments of load_dataset, as code; empty where none are needed."""
        parts = [f"columns={self.said!r}"] if self.said else []
        parts += [f"labels={dict(self.labels)!r}"] if self.labels else []
        parts += [] if self.labelled else ["labelled=False"]
        return ", ".join(parts)


def guessed(rows: Sequence[Row]) -> Guess:
    """A guess at rows, from all that are given."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return Guess()
    if rows and is_session(rows[0]):
        return Guess("sessions")
    for kind, needed in _NEEDED.items():
        if set(needed) <= set(names) and kind not in COLUMNS:
            return Guess(kind, {name: name for name in needed})
    for kind in _ordered(names):
        columns = _columns(kind, names, rows)
        if columns is not None:
            more = {ours: each for ours, each in _common(names).items() if each not in columns.values()}
            found = _with_labels(kind, {**columns, **more}, rows)
            return replace(found, none=tuple(_repeated(names, rows)) if "id" not in found.columns else ())
    texts = [each for each in candidates(COLUMNS["injection"]["text"], names) if _is_text(each, rows)]
    if texts:
        none = tuple(name for name in ("label", *_repeated(names, rows)) if name in names)
        return Guess("injection", {"text": texts[0]}, labelled=False, none=none)
    return Guess()


def _ordered(names: Iterable[str]) -> list[str]:
    """The formats, those first whose fields stand there by our own names."""
    there = set(names)
    return sorted(COLUMNS, key=lambda kind: -len(set(_NEEDED[kind]) & there) // len(_NEEDED[kind]))


def _columns(kind: str, names: Sequence[str], rows: Sequence[Row]) -> dict[str, str] | None:
    """A column for each field of a format; None where one has none that fits."""
    found: dict[str, str] = {}
    for ours, words in reversed(list(COLUMNS[kind].items())):  # the label first: texts are everywhere
        fitting = [each for each in candidates(words, names) if each not in found.values()]
        fitting = [each for each in fitting if _fits(ours, each, rows)]
        if not fitting:
            return None
        found[ours] = ours if ours in fitting else fitting[0]
    return {ours: found[ours] for ours in COLUMNS[kind]}


def _fits(ours: str, name: str, rows: Sequence[Row]) -> bool:
    values = [row[name] for row in rows if not missing(row.get(name))]
    if not values:
        return False
    if ours == "label":
        known = {written(value) for value in values if isinstance(value, str | int | float)}
        plain = all(isinstance(value, str | int | float) for value in values)
        return plain and len(known) <= _LABELS and any(verdict_of(value, name) is not None for value in known)
    if ours == "spans":
        return all(map(looks_like_spans, values)) and any(types_of(each) for each in values)
    if ours in ("relevant", "skills", "messages", "memories"):
        return all(isinstance(value, list | tuple) for value in values)
    return _is_text(name, rows)


def _is_text(name: str, rows: Sequence[Row]) -> bool:
    values = [row[name] for row in rows if not missing(row.get(name))]
    return bool(values) and all(isinstance(value, str) for value in values)


def _common(names: Sequence[str]) -> dict[str, str]:
    found = {ours: candidates(words, names) for ours, words in COMMON.items()}
    return {ours: each[0] if ours not in each else ours for ours, each in found.items() if each}


def _with_labels(kind: str, columns: dict[str, str], rows: Sequence[Row]) -> Guess:
    columns = {ours: each for ours, each in columns.items() if ours != "id" or _is_key(each, rows)}
    if kind == "redaction":
        spans = [row.get(columns["spans"]) for row in rows]
        counts = Counter(each for value in spans for each in types_of(value))
        return Guess(kind, columns, {}, counts, foreign=not _are_ours(spans))
    if kind != "injection":
        return Guess(kind, columns)
    column = columns["label"]
    counts = Counter(written(row[column]) for row in rows if not missing(row.get(column)))
    meanings = {value: verdict_of(value, column) for value in counts}
    plain = all(_OURS.get(each) == mark for each, mark in meanings.items())
    return Guess(kind, columns, {} if plain else meanings, counts)


# Values that are read as they are.
_OURS = {"0": 0, "1": 1, "true": 1, "false": 0}


def _repeated(names: Iterable[str], rows: Sequence[Row]) -> list[str]:
    """The column `id`, where it does not tell rows apart."""
    return [name for name in names if name == "id" and not _is_key(name, rows)]


def _is_key(name: str, rows: Sequence[Row]) -> bool:
    """Whether a column tells rows apart."""
    values = [str(row[name]) for row in rows if not missing(row.get(name))]
    return len(set(values)) == len(values)


def types_of(spans: object) -> list[str]:
    """The types of marked places; none where a value is no such thing."""
    try:
        return types_in("", spans)
    except DataError:
        return []


def _are_ours(values: Iterable[object]) -> bool:
    """Whether spans stand as `{start, end, type}`."""
    listed = (each for value in values if isinstance(value, list | tuple) for each in value)
    plain = all(isinstance(value, list | tuple) or missing(value) for value in values)
    return plain and all(isinstance(each, Mapping) and {"start", "end", "type"} <= each.keys() for each in listed)


def suggestion(row: Row) -> str:
    """What to say to load a row, as an advice; empty where nothing can be guessed."""
    guess = guessed([row])
    return f"try {guess.call}; lab.preview(…) shows more" if guess.format and guess.call else ""
