"""The seed document's detector, verdict for verdict: six patterns over the text with its white space collapsed."""

from __future__ import annotations

import functools
from pathlib import Path

from openclaw_lab.injection.verdict import Hit
from openclaw_lab.rules.pattern import js_collapse
from openclaw_lab.rules.rule import Rule, load_rules


@functools.cache
def _rules() -> tuple[Rule, ...]:
    return load_rules(Path(__file__).with_name("rules") / "seed.json")


def seed_score(text: str) -> tuple[float, tuple[Hit, ...]]:
    """1 when any pattern hits, else 0; offsets are those of the collapsed text."""
    looked_at = js_collapse(text)
    found = ((rule, rule.compiled.search(looked_at)) for rule in _rules())
    hits = tuple(Hit(rule.id, rule.type, *match.span(), match.group()) for rule, match in found if match)
    return (1.0 if hits else 0.0), hits
