"""A text in, the same text without secrets out: every rule of a file finds and replaces, one rule after the other.

These are the seed document's nine replacements, result for result. It does not report where it replaced what.
"""

from __future__ import annotations

import functools
from pathlib import Path

from openclaw_lab.rules import Rule, load_rules

_RULES = Path(__file__).with_name("rules")


@functools.cache
def _rules() -> tuple[Rule, ...]:
    return load_rules(_RULES / "seed.json")


def redact(text: str) -> str:
    """Replace what the rules find; a later rule reads what an earlier one left."""
    for rule in _rules():
        text = rule.compiled.sub(functools.partial(_replaced, rule.replacement), text)
    return text


def _replaced(replacement: str, _: object) -> str:
    return replacement
