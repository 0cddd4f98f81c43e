"""A text in, a Detection out: a score, whether it is flagged, and every rule that hit with its place.

This is the seed document's detector, verdict for verdict. It does not block, escape or change anything.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from openclaw_lab.config import InjectionConfig
from openclaw_lab.errors import ConfigError
from openclaw_lab.rules import Rule, js_collapse, load_rules

_RULES = Path(__file__).with_name("rules")


@dataclass(frozen=True, slots=True)
class Hit:
    """One rule that matched: `text[start:end]` of the text that was looked at (white space collapsed)."""

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


@functools.cache
def _rules(detector: str) -> tuple[Rule, ...]:
    return load_rules(_RULES / f"{detector}.json")


class Detector:
    """The detector of an InjectionConfig."""

    def __init__(self, config: InjectionConfig | None = None) -> None:
        if config is not None and not isinstance(config, InjectionConfig):
            raise ConfigError("Detector", f"a {type(config).__name__}", "config.injection of a LabConfig")
        self._config = config or InjectionConfig()
        self._rules = _rules(self._config.detector)

    def detect(self, text: str) -> Detection:
        """Look at one text. The score is 1 when any rule hits and 0 when none does."""
        looked_at = js_collapse(text)
        found = ((rule, rule.compiled.search(looked_at)) for rule in self._rules)
        hits = tuple(Hit(rule.id, rule.type, *match.span(), match.group()) for rule, match in found if match)
        score = 1.0 if hits else 0.0
        return Detection(score, score >= self._config.threshold, hits)
