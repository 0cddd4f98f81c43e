"""A text in, the rules out that could find something in it or in any part of it, without running a pattern."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from openclaw_lab.rules.gate import CLASSES
from openclaw_lab.rules.relaxed import escaped, relaxed_form
from openclaw_lab.rules.rule import Rule
from openclaw_lab.rules.sieve import Sieve, Sought

# Literals that are rarer than this are looked for on their own. A letter counts 1, a sign that prose is full of half,
# any other character 2.
_RARE = 2
# Words that half of all messages of agents hold: it costs less to look for what needs them at once.
_COMMON = frozenset({"key", "token", "secret", "user", "login", "auth"})
# So many characters of a number, so many digits in a row: fewer stand in most messages.
_NUMBER, _DIGITS = 7, 3


class Candidates:
    """Which of some rules could find something in a text."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self._sieve = Sieve([_sought(rule) for rule in self.rules])

    def of(self, text: str) -> tuple[Rule, ...]:
        """The rules that could find something in a text, in order."""
        found = self._sieve.of(text.encode("utf-8", "surrogatepass"))
        return tuple([self.rules[number] for number in found]) if found else ()


def _sought(rule: Rule) -> Sought:
    """What a rule needs: a rare literal, a long number, or both."""
    needs = []
    gate = rule.gate
    if gate:
        sizes = dict(gate.runs)
        if sizes.get("number", 0) >= _NUMBER:
            needs.append(_run("number", sizes["number"]))
            if sizes.get("digits", 0) >= _DIGITS:
                needs.append(_run("digits", sizes["digits"]))
        if gate.literals and min(map(_rareness, gate.literals)) >= _RARE and _COMMON.isdisjoint(gate.literals):
            needs.append("|".join(escaped(literal, gate.ignore_case) for literal in gate.literals))
    # Rules for numbers come up together, and so do rules for words.
    numeric = gate is not None and "number" in dict(gate.runs)
    return Sought(tuple(needs), functools.partial(relaxed_form, rule.compiled), kind=numeric)


def _rareness(literal: str) -> float:
    return sum(0.5 if char in " .,:/-_" else 1 if char.isalnum() and char.isascii() else 2 for char in literal)


def _run(name: str, size: int) -> str:
    members = "".join(f"\\x{code:02x}" for code in CLASSES[name][0])
    return f"[{members}]{{{size}}}"
