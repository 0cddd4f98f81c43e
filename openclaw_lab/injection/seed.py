"""The seed document's detector, verdict for verdict: six patterns over the text with its white space collapsed."""

from __future__ import annotations

import functools
from pathlib import Path

from openclaw_lab.injection.verdict import Hit
from openclaw_lab.rules.pattern import JS_WORDS, js_collapse
from openclaw_lab.rules.rule import Rule, load_rules


@functools.cache
def _rules() -> tuple[Rule, ...]:
    return load_rules(Path(__file__).with_name("rules") / "seed.json")


def seed_score(text: str) -> tuple[float, tuple[Hit, ...]]:
    """1 when any pattern hits, else 0."""
    looked_at = js_collapse(text)
    found = [(rule, match) for rule in _rules() if (match := rule.compiled.search(looked_at))]
    if not found:
        return 0.0, ()
    places = _places(text)
    return 1.0, tuple(
        Hit(rule.id, rule.type, places[match.start()], places[match.end() - 1] + 1, match.group())
        for rule, match in found
    )


def _places(text: str) -> list[int]:
    """Where in the text each character of the collapsed text begins."""
    places: list[int] = []
    for word in JS_WORDS.finditer(text):
        if places:
            places.append(word.start() - 1)  # the blank before it
        places.extend(range(*word.span()))
    return places
