"""What a detector says of a text: values, without the detectors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hit:
    """One reason: `matched` as the detector read it, found at `text[start:end]` (code points)."""

    rule: str
    type: str
    start: int
    end: int
    matched: str


@dataclass(frozen=True, slots=True)
class Detection:
    """What a detector says of one text: score from 0 to 1, flagged or not, and why."""

    score: float
    flagged: bool
    hits: tuple[Hit, ...] = ()

    @property
    def reason(self) -> str:
        """One line: which rules hit on which words."""
        return "; ".join(f"{hit.rule}: {hit.matched!r}" for hit in self.hits) or "no rule hit"
