"""The label of a message of the skills format: which skills it calls for, and which it must not pick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openclaw_lab.errors import DataError


@dataclass(frozen=True, slots=True)
class Picks:
    """`wanted`: the skills to pick, none when empty. `unwanted`: near misses that somebody judged; None: not judged.

    `complete`: every other skill is a wrong one. A label with near misses speaks of the named skills only, unless the
    row says `"complete": true`.
    """

    wanted: tuple[str, ...]
    unwanted: tuple[str, ...] | None = None
    complete: bool = True

    @property
    def named(self) -> tuple[str, ...]:
        """Every skill that the label names."""
        return (*self.wanted, *(self.unwanted or ()))

    @property
    def summary(self) -> str:
        """In a word, for counts."""
        return "none" if not self.wanted else "one skill" if len(self.wanted) == 1 else "several skills"

    def __str__(self) -> str:
        refused = f", not {' '.join(self.unwanted)}" if self.unwanted else ""
        return (" ".join(self.wanted) or "none") + refused


def read_picks(where: str, row: Mapping[str, Any]) -> Picks:
    """The label of a row."""
    wanted = _names(where, row, "skills")
    unwanted = None if row.get("not_skills") is None else _names(where, row, "not_skills")
    both = set(wanted) & set(unwanted or ())
    if both:
        raise DataError(f"{where} not_skills", f"{min(both)!r}, which stands in skills too", "one or the other")
    complete = row.get("complete", unwanted is None)
    if not isinstance(complete, bool):
        raise DataError(f"{where} complete", complete, "true or false")
    return Picks(wanted, unwanted, complete)


def _names(where: str, row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = row[name]
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(dict.fromkeys(value))
    raise DataError(f"{where} {name}", value, "a list of skill names (empty: none)")
