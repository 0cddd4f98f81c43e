"""What became of each plugin, one line each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Report:
    """One plugin: loaded, ready (only read) or disabled, and why.

    `fault` says that it is its own fault and no wish of the user's.
    """

    id: str
    status: Literal["loaded", "ready", "disabled"]
    source: str = ""
    reason: str = ""
    fault: bool = False
    tools: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.status == "disabled":
            return f"[plugin:{self.id}] disabled: {self.reason}"
        parts = [f"tools: {', '.join(self.tools) or 'none'}"]
        if self.services:
            parts.append(f"services: {', '.join(self.services)}")
        notes = f"; {'; '.join(self.notes)}" if self.notes else ""
        return f"[plugin:{self.id}] {self.status} ({'; '.join(parts)}){notes}"


def as_lines(reports: Iterable[Report]) -> str:
    """The lines of several."""
    return "\n".join(map(str, reports))
