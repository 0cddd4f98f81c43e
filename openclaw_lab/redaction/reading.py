"""A text in, the same as a reader sees it out: no invisible characters within words, full-width signs as ASCII.

`１３８…`, `138\\u200b1234…` and `138–1234–5678` are numbers like any other. Only a text with such characters has
a second reading; rules are searched in both, and what is found in it has its place in the text. Look-alike letters and
all that injection detection undoes besides are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from openclaw_lab.redaction.spans import Found
from openclaw_lab.rules.rule import Rule

_WIDE = "\uff03-\uff06\uff0a\uff0b\uff0d\uff0e\uff10-\uff19\uff1d\uff20-\uff3a\uff3f\uff41-\uff5a"
# Soft hyphen, joiners, marks of direction, zero-width spaces, byte order mark, variation selectors.
_UNSEEN = "\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
_SPACES = "\u00a0\u2002-\u200a\u202f\u205f\u3000"
_DASHES = "\u00b7\u2010-\u2015\u2212"
_DIGITS = "0-9\uff10-\uff19"
_WORD = " -~\u3001-\u9fff\uac00-\ud7af\uff01-\uff5e"  # not what emoji are made of, nor letters that need joiners
_HIDDEN = re.compile(
    f"[{_WIDE}]|(?<=[{_WORD}])[{_UNSEEN}]+(?=[{_WORD}])|(?<=[{_DIGITS}])[{_SPACES}{_DASHES}](?=[{_DIGITS}])"
)
_ODD = re.compile(f"[{_WIDE}{_UNSEEN}{_SPACES}{_DASHES}]")  # told in a glance: most texts hold none
_INVISIBLE = re.compile(f"[{_UNSEEN}]+")
# What is read by its neighbours: a stream does not part them.
_JOINED = re.compile(f"[{_UNSEEN}{_SPACES}{_DASHES}]+")
_FOLDED = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_FOLDED |= {ord(char): 0x20 for char in "\u00a0\u202f\u205f\u3000"} | dict.fromkeys(range(0x2002, 0x200B), 0x20)
_FOLDED |= dict.fromkeys([0xB7, *range(0x2010, 0x2016), 0x2212], 0x2D)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text is read as, and for each character of that its place in the text."""

    text: str
    places: list[int]
    size: int

    def placed(self, found: Iterable[Found]) -> Iterator[Found]:
        """Finds in the reading as finds in the text."""
        for each in found:
            yield replace(each, start=self.places[each.start], end=self.places[each.end - 1] + 1)

    def spaces(self, spaces: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Intervals of the reading, which may reach over its ends, as intervals of the text."""
        count = len(self.places)
        for start, end in spaces:
            low = self.places[max(0, start)] if start < count else self.size
            yield low, self.places[end - 1] + 1 if 0 < end <= count else self.size + 1


def reading(text: str) -> Reading | None:
    """A text's second reading; None where it reads as it stands."""
    if text.isascii() or not _ODD.search(text) or not _HIDDEN.search(text):
        return None
    parts: list[str] = []
    places: list[int] = []
    at = 0
    for match in _HIDDEN.finditer(text):
        start, end = match.span()
        shown = "" if _INVISIBLE.fullmatch(match[0]) else match[0].translate(_FOLDED)
        parts += [text[at:start], shown]
        places += [*range(at, start), *range(start, start + len(shown))]
        at = end
    return Reading("".join([*parts, text[at:]]), [*places, *range(at, len(text))], len(text))


# --- for a text that comes in pieces --------------------------------------------------------------------------------


def begun(text: str) -> Reading | None:
    """The second reading of the beginning of a text; what the next character may change at its end is left out."""
    if text.isascii():
        return None
    for last in _JOINED.finditer(text):
        if last.end() == len(text):
            return _cut_short(text, last.start())
    return reading(text)


def _cut_short(text: str, size: int) -> Reading:
    short = reading(text[:size])
    return Reading(short.text if short else text[:size], short.places if short else [*range(size)], len(text))


def seams(text: str) -> Iterator[tuple[int, int]]:
    """Intervals within which a text may not be cut: characters that are read by their neighbours, with these."""
    if not text.isascii():
        for match in _JOINED.finditer(text):
            yield match.start() - 1, match.end() + 1


def held_back(text: str, count: int) -> int:
    """The place before the last so many characters that can be seen."""
    if text.isascii() or not _INVISIBLE.search(text):
        return len(text) - count
    seen = [place for place, char in enumerate(text) if not _INVISIBLE.match(char)]
    return seen[-count] if 0 < count <= len(seen) else 0 if count else len(text)


# --- which rules matter -----------------------------------------------------------------------------------------------


class _Names(Protocol):
    """What says which rules could find something in a text."""

    def of(self, text: str) -> tuple[Rule, ...]: ...


class BothReadings:
    """The rules that could find something in a text or in its second reading."""

    def __init__(self, names: _Names) -> None:
        self._of = names.of

    def of(self, text: str) -> tuple[Rule, ...]:
        """Those of the text first."""
        found = self._of(text)
        if text.isascii() or not (second := reading(text)):
            return found
        return (*found, *(rule for rule in self._of(second.text) if rule not in found))
