"""A row in, which format it has and what it says: the text that goes in, and the label, checked.

What a row of each format looks like stands in FORMATS; files are read in `reading`, made into samples in `dataset`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from openclaw_lab.errors import DataError, excerpt
from openclaw_lab.experiments.agent_tasks import read_task
from openclaw_lab.experiments.memories import read_dialogue, read_memories
from openclaw_lab.experiments.picks import read_picks
from openclaw_lab.experiments.secrets import read_secrets

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How a row of one kind is told and read: the fields that must be there, the text's, the label's; the label."""

    name: str
    needed: tuple[str, ...]
    text: str
    label: str
    read_label: Callable[[str, Row], object]
    read_input: Callable[[str, Row], object] | None = None  # where it is no text

    def read(self, where: str, row: Row) -> tuple[object, object]:
        """What goes in, a text mostly, and the label of a row; a DataError names the field that is wrong."""
        for name in self.needed:
            if name not in row:
                raise DataError(where, f"no field {name!r}", f"the fields {', '.join(self.needed)}")
        if self.read_input is not None:
            return self.read_input(where, row), self.read_label(where, row)
        return self._text(where, row), self.read_label(where, row)

    def read_some(self, where: str, row: Row) -> tuple[object, object]:
        """As `read`, of a row that may not be labelled: the label of one that says nothing of it is None."""
        if not missing(row.get(self.label)):
            return self.read(where, row)
        if self.text not in row:
            raise DataError(where, f"no field {self.text!r}", f"the field {self.text}")
        return (self.read_input(where, row) if self.read_input else self._text(where, row)), None

    def _text(self, where: str, row: Row) -> str:
        text = row[self.text]
        if not isinstance(text, str):
            found = "no value" if missing(text) else text
            raise DataError(f"{where} {self.text}", found, "a string")
        return text


def _verdict(where: str, row: Row) -> int:
    """1 for an attack, 0 for harmless, from what JSON and CSV give."""
    value = row["label"]
    if isinstance(value, str):
        value = _WRITTEN.get(value.strip().lower(), value)
    if isinstance(value, int | float) and value in (0, 1):
        return int(value)
    todo = f"say what it means, for example labels={{{excerpt(value, 40)!r}: 1}}" if isinstance(value, str) else ""
    nothing = missing(value)
    raise DataError(f"{where} label", "no value" if nothing else value, _VERDICT, "" if nothing else todo)


# Verdicts as a CSV has them, and what is expected.
_WRITTEN = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
_VERDICT = "1 (attack) or 0 (harmless)"


def _relevant(where: str, row: Row) -> tuple[str, ...]:
    """The ids of the documents that answer a query; none when nothing does."""
    value = row["relevant"]
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(dict.fromkeys(value))
    raise DataError(f"{where} relevant", value, "a list of ids (empty: nothing answers the query)")


FORMATS: tuple[RowFormat, ...] = (
    RowFormat("injection", ("text", "label"), "text", "label", _verdict),
    RowFormat("redaction", ("text", "spans"), "text", "spans", read_secrets),
    RowFormat("retrieval", ("query", "relevant"), "query", "relevant", _relevant),
    RowFormat("skills", ("message", "skills"), "message", "skills", read_picks),
    RowFormat("agent_tasks", ("task", "turns"), "task", "turns", read_task),
    RowFormat("extraction", ("messages", "memories"), "messages", "memories", read_memories, read_dialogue),
)


def missing(value: object) -> bool:
    """Whether a field says nothing: null, an empty cell, a missing value of Parquet."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def is_session(row: Row) -> bool:
    """Whether a row is a session, a message or an OpenClaw record; labelled rows may have a `role` or `type` too."""
    if "messages" in row:
        return "memories" not in row
    if any(set(each.needed) <= row.keys() for each in FORMATS):
        return False
    return "role" in row or row.get("type") in ("session", "message")


def format_of(where: str, row: Row, said: Iterable[str] = ()) -> RowFormat:
    """The format of a row; the nearest one when a field is missing.

    `said` are the fields that somebody named: where they are all that a format needs, it is that one.
    """
    named = set(said)
    for each in FORMATS:
        if set(each.needed) <= named:
            return each
    if is_session(row):
        raise DataError(where, "a session", _in_words(False), "put sessions in a .jsonl file or folder of their own")
    best = max(FORMATS, key=lambda each: (len(set(each.needed) & row.keys()), len(set(each.needed) & named)))
    if not set(best.needed) & row.keys():
        raise DataError(where, f"the fields {', '.join(map(str, list(row)[:8])) or 'none'}", _in_words())
    return best


def fields_known() -> list[str]:
    """Every field that a format reads, and those that all have."""
    needed = (name for each in FORMATS for name in each.needed)
    return list(dict.fromkeys([*needed, "id", "lang", "kind", "group", "partial", "not_skills", "source"]))


def _in_words(sessions: bool = True) -> str:
    return " or ".join([*(" and ".join(each.needed) for each in FORMATS), *(["messages"] if sessions else [])])
