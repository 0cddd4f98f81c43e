"""The value that an extractor gives: one memory that a conversation teaches."""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_lab.growth.entry import MemoryType


@dataclass(frozen=True, slots=True)
class ExtractedMemory:
    """One thing worth keeping: where it belongs, what it says, the messages that say so, and the rule that found it.

    `name` is that of what it is about when only one can be true ("": its own). `correction`: it takes the place of
    something said before.
    """

    type: MemoryType
    category: str
    name: str
    content: str
    importance: int = 3
    evidence: tuple[int, ...] = ()
    correction: bool = False
    why: str = ""
