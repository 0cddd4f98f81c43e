"""Texts in, the rules out that could find something in each: told by Hyperscan, which reads all patterns at once.

Optional (`pip install 'openclaw-lab[fast]'`). It decides nothing: what it names is searched by the same `re` patterns
as without it, and it runs patterns that find at least what those can find (see `relaxed`), so the result is the same.
Making its database takes seconds: worth it from some megabytes on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from openclaw_lab.errors import MissingExtra
from openclaw_lab.redaction.candidates import Gates
from openclaw_lab.rules.relaxed import relaxed
from openclaw_lab.rules.rule import Rule
from openclaw_lab.rules.tree import parsed


class HyperscanGates:
    """As `Gates`, for many texts at once."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        try:
            import hyperscan
        except ImportError:
            raise MissingExtra("redaction engine hyperscan", "hyperscan", "fast") from None
        self._gates = Gates(rules)
        patterns = {number: _pattern(rule) for number, rule in enumerate(rules)}
        known = {number: pattern for number, pattern in patterns.items() if pattern}
        try:
            self._database = _database(hyperscan, known)
        except hyperscan.error:  # it refuses some as too large: those rules are tried on every text
            known = {number: pattern for number, pattern in known.items() if _compiles(hyperscan, pattern)}
            self._database = _database(hyperscan, known)
        self._always = sum(1 << number for number in patterns if number not in known)

    def of(self, text: str) -> tuple[Rule, ...]:
        """The rules that could find something in a text, in order."""
        return self.of_many([text])[0]

    def of_many(self, texts: Sequence[str]) -> list[tuple[Rule, ...]]:
        """The rules for each text; all are read in one go, with a line break after each."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = list(accumulate(len(each) + 1 for each in encoded))
        found = [self._always] * len(texts)

        def see(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found[bisect_left(ends, end)] |= 1 << number

        if self._database is not None:
            self._database.scan(b"\n".join(encoded), match_event_handler=see)
        return [self._gates.named(bits) for bits in found]


def _pattern(rule: Rule) -> str:
    """What Hyperscan looks for; with the border before it where the rule has no word that is rare."""
    literals = rule.gate.literals if rule.gate else ()
    return relaxed(parsed(rule.compiled), border=min(map(len, literals), default=0) < 2)


def _compiles(hyperscan: Any, pattern: str) -> bool:
    try:
        _database(hyperscan, {0: pattern})
    except hyperscan.error:
        return False
    return True


def _database(hyperscan: Any, known: Mapping[int, str]) -> Any:
    if not known:
        return None
    database = hyperscan.Database()
    database.compile(
        expressions=[pattern.encode() for pattern in known.values()],
        ids=list(known),
        flags=[hyperscan.HS_FLAG_DOTALL | hyperscan.HS_FLAG_MULTILINE] * len(known),
    )
    return database
