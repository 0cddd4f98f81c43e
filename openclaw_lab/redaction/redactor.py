"""A text in, a Redaction out: the text without its secrets, and where each of them was.

Every rule finds all it can in the text as it is; overlaps are resolved; then everything is replaced at once.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from openclaw_lab.config import RedactionConfig
from openclaw_lab.rules.rule import Rule, load_rules
from openclaw_lab.rules.validators import VALIDATORS

_RULES = Path(__file__).with_name("rules")


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that was removed: `text[start:end]` of the text as it came in (code points), and what replaced it."""

    start: int
    end: int
    type: str
    rule: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Redaction:
    """The text without its secrets, and what was removed, in order."""

    text: str
    spans: tuple[Found, ...] = ()


@functools.cache
def preset_rules(preset: str) -> tuple[Rule, ...]:
    """The rules of a preset, in order; none for `relaxed`."""
    return () if preset == "relaxed" else load_rules(_RULES / f"{preset}.json")


class Redactor:
    """The redactor of a RedactionConfig."""

    def __init__(self, config: RedactionConfig | None = None) -> None:
        self._config = config or RedactionConfig()
        self._rules = preset_rules(self._config.preset)

    def redact(self, text: str) -> Redaction:
        """Remove what the rules find."""
        if self._config.preset == "seed":
            return Redaction(redact(text))
        spans = resolve(found for rule in self._rules for found in find(rule, text))
        return Redaction(replace(text, spans), spans)


def find(rule: Rule, text: str) -> Iterable[Found]:
    """All that one rule finds in a text: its first group where that took part, else the whole match."""
    for match in rule.compiled.finditer(text):
        group = 1 if match.re.groups and match.start(1) >= 0 else 0
        start, end = match.span(group)
        if not rule.validator or VALIDATORS[rule.validator](text[start:end]):
            yield Found(start, end, rule.type, rule.id, rule.replacement)


def resolve(found: Iterable[Found]) -> tuple[Found, ...]:
    """No two overlap: the one that begins first stays, of two that begin together the longer."""
    kept: list[Found] = []
    for each in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
    return tuple(kept)


def replace(text: str, spans: Iterable[Found]) -> str:
    """The text with each span's replacement in its place."""
    parts, at = [], 0
    for each in spans:
        parts += [text[at : each.start], each.replacement]
        at = each.end
    return "".join([*parts, text[at:]])


def redact(text: str) -> str:
    """The seed document's nine replacements, result for result: a later rule reads what an earlier one left."""
    for rule in preset_rules("seed"):
        text = rule.compiled.sub(functools.partial(_replaced, rule.replacement), text)
    return text


def _replaced(replacement: str, _: object) -> str:
    return replacement
