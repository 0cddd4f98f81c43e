"""A text in pieces in, the redacted text in pieces out: joined, it is what `redact` makes of the whole.

How it knows what is settled. Each rule can match only around a literal (or a run of digits) that its gate names, and
reaches a known number of characters before and after it. Around every such literal lies a place where the rule could
match; places that overlap make one block. What lies between blocks, whatever comes later, takes part in no match, nor
does any match look at both sides of it: a text may be cut there, and its parts redacted one by one. So the stream holds
back only

    the last characters, as many as a rule can begin before a literal that has not come yet,
    the block that these lie in, from its start, and
    what may become a placeholder or a JSON text, of which only the whole shows how it must be read.

With rules of bounded width that is bounded too. A rule that has no gate or no bound, a recogniser, the seed's preset
(whose rules read what the others wrote): each of them may need the whole text, which is then held until the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from openclaw_lab.errors import DataError
from openclaw_lab.redaction.given import no_text
from openclaw_lab.redaction.json_text import BLANK, refuse
from openclaw_lab.redaction.reading import begun, held_back, seams
from openclaw_lab.redaction.settle import places
from openclaw_lab.redaction.spans import Found

if TYPE_CHECKING:
    from openclaw_lab.redaction.redactor import Redactor
    from openclaw_lab.rules.rule import Rule

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=refuse)
_CUT = 12  # at the end of a piece, so many characters may be half of a number or a word of JSON
_STEP = 32  # characters that must come before what is held is looked at again
_PLACEHOLDER = 96  # characters of the longest placeholder


class Stream:
    """Redacts one text that comes in pieces: `feed` each, then `close`."""

    def __init__(self, redactor: Redactor, write: Callable[[str, tuple[Found, ...]], str]) -> None:
        self._redactor, self._write = redactor, write
        self._held = ""
        self._tried = 0  # characters held when nothing was settled last
        self._plain = False  # known to be no JSON
        self._closed = False
        self._lag = redactor.lag

    def feed(self, chunk: str) -> str:
        """The next piece; what is settled by now comes back. After `close` it is a DataError."""
        if not isinstance(chunk, str):
            raise no_text("stream.feed", chunk)
        if self._closed:
            raise DataError("stream.feed", "a piece after close", "no more pieces", "begin another with .stream()")
        self._held += chunk
        if self._lag is None or len(self._held) < self._tried:
            return ""
        if not self._plain and _may_be_json(self._held):
            return self._wait()
        self._plain = True
        cut = self._cut()
        if not cut:
            return self._wait()
        text, self._held = self._held[:cut], self._held[cut:]
        self._wait()
        return self._write(text, self._redactor.settled(text))

    def close(self) -> str:
        """The end of the text: the rest comes back; nothing more when asked again."""
        if self._closed:
            return ""
        self._closed = True
        text, self._held = self._held, ""
        if not self._plain:
            return self._write(text, self._redactor.plain(text).spans)
        return self._write(text, self._redactor.settled(text))

    def _wait(self) -> str:
        """Nothing yet; what is held is looked at again when there is more of it, which bounds the work."""
        self._tried = len(self._held) + max(_STEP, len(self._held) // 10)
        return ""

    def _cut(self) -> int:
        """Where the text can be cut, as late as possible."""
        text, size = self._held, len(self._held)
        cut = held_back(text, self._lag or 0)
        bracket = text.rfind("[", max(0, size - _PLACEHOLDER))
        if bracket >= 0 and "]" not in text[bracket:]:
            cut = min(cut, bracket)
        spaces = [wall.span() for wall in self._redactor.walls.finditer(text)] if "[" in text else []
        for rule in self._redactor.rules:
            spaces += places(rule, text, more_to_come=True)
        if second := begun(text):
            spaces += seams(text)
            for rule in self._redactor.rules:
                spaces += second.spaces(places(rule, second.text, more_to_come=True))
        return max(0, _outside(spaces, cut))


def _outside(spaces: list[tuple[int, int]], cut: int) -> int:
    """The last place up to `cut` that lies within none of the spaces."""
    for start, end in sorted(spaces, reverse=True):
        if start < cut < end:
            cut = start
    return cut


def lag_of(rules: tuple[Rule, ...]) -> int | None:
    """How many characters before its end a text is open: a literal that comes next may belong to a match there."""
    lag = 0
    for rule in rules:
        if rule.gate is None or rule.gate.before is None:
            return None
        longest = max([rule.gate.digits, *map(len, rule.gate.literals)])
        lag = max(lag, rule.gate.before + longest)
    return lag


def _may_be_json(text: str) -> bool:
    """Whether a beginning can still become a JSON text."""
    inner = text.lstrip(BLANK)
    if inner[:1] not in ("", "{", "["):
        return False
    try:
        end = _DECODER.raw_decode(inner)[1]
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string") or error.pos >= len(inner) - _CUT
    except (ValueError, RecursionError):
        return False
    return not inner[end:].strip(BLANK)
