"""What was found in a text: a Found; no two of them overlap once they are resolved; and the text without them.

Where finds share a character they become one, which covers them all, so that nothing of a secret is left beside
another. It bears the name of the longest; of equally long ones, of the first to begin, then of the first rule.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from openclaw_lab.rules.rule import Rule
from openclaw_lab.rules.tree import parsed, prefix
from openclaw_lab.rules.validators import VALIDATORS


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that was removed: `text[start:end]` of the text as it came in (code points), and what replaced it."""

    start: int
    end: int
    type: str
    rule: str
    replacement: str

    def shifted(self, by: int) -> Found:
        """The same so many characters further on."""
        return Found(self.start + by, self.end + by, self.type, self.rule, self.replacement) if by else self


@dataclass(frozen=True, slots=True)
class Redaction:
    """The text without its secrets, and what was removed, in order."""

    text: str
    spans: tuple[Found, ...] = ()


def find(rule: Rule, text: str) -> Iterator[Found]:
    """All that one rule finds in a text: its first group where that took part, else the whole match."""
    check = VALIDATORS[rule.validator] if rule.validator else None
    for match in _matches(rule.compiled, text):
        start, end = match.span(1 if match.re.groups and match.start(1) >= 0 else 0)
        if start < end and (check is None or check(text[start:end])):
            yield Found(start, end, rule.type, rule.id, rule.replacement)


def _matches(compiled: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As `finditer`, which tries every place where a pattern asks first what stands before it."""
    prefix = _prefix(compiled)
    if not prefix:
        yield from compiled.finditer(text)
        return
    at = text.find(prefix)
    while at >= 0:
        match = compiled.match(text, at)
        if match:
            yield match
        at = text.find(prefix, max(match.end() if match else 0, at + 1))


@functools.lru_cache(maxsize=4096)
def _prefix(compiled: re.Pattern[str]) -> str:
    """What each match begins with."""
    return prefix(parsed(compiled))


def resolve(found: Iterable[Found]) -> tuple[Found, ...]:
    """Finds without overlaps, in order; `found` comes in the order of the rules."""
    kept: list[Found] = []
    longest = 0
    for each in sorted(found, key=lambda one: (one.start, one.start - one.end)):
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
            longest = each.end - each.start
            continue
        start, end = kept[-1].start, max(kept[-1].end, each.end)
        name = kept[-1] if each.end - each.start <= longest else each
        longest = max(longest, each.end - each.start)
        kept[-1] = replace(name, start=start, end=end)
    return tuple(kept)


def replaced(text: str, spans: Iterable[Found]) -> str:
    """The text with each span's replacement in its place."""
    parts, at = [], 0
    for each in spans:
        parts += [text[at : each.start], each.replacement]
        at = each.end
    return "".join([*parts, text[at:]])
