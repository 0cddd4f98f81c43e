"""A JSON text in, its strings out with their keys and places, so that they can be changed where they stand.

A number comes out too where its key says that it is a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from openclaw_lab.redaction.keys import number_name
from openclaw_lab.redaction.spans import Found

_TOKEN = re.compile(r'[{}\[\]:,]|"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*')
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
BLANK = " \t\n\r"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A string that is a value: what it says, the key it stands under, and where its inside stands in the text.

    `number`: a number that its key tells, and the name of what it is.
    """

    text: str
    key: str
    start: int
    raw: str
    number: str = ""

    def placed(self, spans: Iterable[Found]) -> Iterator[Found]:
        """Finds in what the string says, in order, as finds in the JSON text, which writes some as escapes."""
        places = _Places(self.raw)
        for each in spans:
            start, end = self.start + places.of(each.start), self.start + places.of(each.end)
            yield replace(each, start=start, end=end, replacement=self._written(each.replacement))

    def _written(self, replacement: str) -> str:
        """The placeholder of a number has quotes; they are escaped in JSON within a string."""
        if self.number or '"' not in replacement:
            return replacement
        return replacement.replace("\\", "\\\\").replace('"', '\\"')


class _Places:
    """Where the characters of a string stand between its quotes; asked for in order."""

    def __init__(self, raw: str) -> None:
        self._escapes = _ESCAPE.finditer(raw)
        self._extra = 0  # characters that escapes before the next one took more than what they mean
        self._next = next(self._escapes, None)

    def of(self, index: int) -> int:
        """The place of one character."""
        while self._next is not None and self._next.start() - self._extra < index:
            self._extra += len(self._next.group()) - 1
            self._next = next(self._escapes, None)
        return index + self._extra


def is_json(text: str) -> bool:
    """Whether a text is an object or a list in JSON."""
    inner = text.strip(BLANK)
    if inner[:1] + inner[-1:] not in ("{}", "[]"):
        return False
    try:
        json.loads(inner, parse_int=str, parse_float=str, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return True


def json_number(value: int | float) -> str:
    """A number as JSON writes it; one of thousands of digits only as long as that."""
    if not isinstance(value, int):
        return float.__repr__(value)
    digits = value.bit_length() * 3 // 10  # about
    return f"1e{digits}" if digits > 600 else int.__repr__(value)


def refuse(constant: str) -> None:
    """`NaN` and `Infinity` are no JSON, though Python reads them."""
    raise ValueError(constant)


def leaves(text: str, key: str = "") -> Iterator[Leaf]:
    """The strings of a valid JSON text that are no keys, and the numbers that are secrets by their keys.

    `key`: what the text itself stands under.
    """
    keys: list[str] = []  # of the open objects and lists (the key of the list)
    lists: list[bool] = []
    expects_key = False
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "{[":
            keys.append("" if token == "{" else keys[-1] if keys else key)
            lists.append(token == "[")
            expects_key = token == "{"
        elif token in "}]":
            keys.pop()
            lists.pop()
            expects_key = False
        elif token == ",":
            expects_key = not lists[-1]
        elif token == ":":
            expects_key = False
        elif expects_key:
            keys[-1] = _said(token)
        elif token[0] == '"':
            yield Leaf(_said(token), keys[-1], match.start() + 1, token[1:-1])
        elif name := number_name(keys[-1], token):
            yield Leaf(token, keys[-1], match.start(), token, name)


def _said(token: str) -> str:
    """What a string in JSON says."""
    return str(json.loads(token)) if "\\" in token else token[1:-1]
