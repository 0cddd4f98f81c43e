"""A row of labelled text in, its Secrets out, checked; what a secret says is shown masked unless somebody asks for it.

`{"text", "spans": [{"start", "end", "type", "value"?}], "partial"?}`: offsets count code points, `text[start:end]` is
the value. With `"partial": true` only one type was labelled, so that what is removed beside the spans may be right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from openclaw_lab.errors import DataError
from openclaw_lab.messages import Span

_YES, _NO = ("true", "1", "1.0"), ("", "none", "nan", "false", "0", "0.0")
_SPANS = "a list of objects with start, end and type (empty: nothing to redact)"


class Placed(Protocol):
    """Anything that stands somewhere in a text and has a type."""

    @property
    def start(self) -> int:
        """The first character."""

    @property
    def end(self) -> int:
        """One beyond the last character."""

    @property
    def type(self) -> str:
        """What it is."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """All labelled spans of a text, without what they say; `complete` is False where only one type was labelled."""

    spans: tuple[Span, ...] = ()
    complete: bool = True

    def __str__(self) -> str:
        """The types, for a reader."""
        return ", ".join(dict.fromkeys(span.type for span in self.spans)) or "nothing"

    @property
    def summary(self) -> str:
        """In a word, to count by."""
        return "secrets" if self.spans else "nothing to redact" if self.complete else "nothing of one type"


def read_secrets(where: str, row: Mapping[str, Any]) -> Secrets:
    """The labels of a row with the fields `text` and `spans`; a DataError names the span and shows no secret."""
    text, spans = row["text"], row["spans"]
    if isinstance(spans, str):  # a cell of a CSV
        try:
            spans = json.loads(spans)
        except (ValueError, RecursionError):
            raise DataError(f"{where} spans", "text that is no JSON", _SPANS) from None
    if not isinstance(spans, list | tuple):
        raise DataError(f"{where} spans", "no value" if spans is None else f"a {type(spans).__name__}", _SPANS)
    read = tuple(_secret(f"{where} spans[{number}]", text, each) for number, each in enumerate(spans))
    return Secrets(read, not _flag(f"{where} partial", row.get("partial")))


def _secret(where: str, text: str, span: object) -> Span:
    if not isinstance(span, Mapping):
        raise DataError(where, f"a {type(span).__name__}", "an object with start, end and type")
    for name in ("start", "end"):
        if type(span.get(name)) is not int:
            raise DataError(f"{where} {name}", _kind(span.get(name)), "a whole number")
    start, end, kind, value = span["start"], span["end"], span.get("type"), span.get("value")
    if not 0 <= start < end <= len(text):
        within = f"a span of at least one character within 0:{len(text)}"
        raise DataError(where, f"{start}:{end}", within, "offsets count code points of the text")
    if not isinstance(kind, str) or not kind.strip():
        raise DataError(f"{where} type", _kind(kind), "the name of what it is")
    if value is not None and value != text[start:end]:
        wanted = mask(value, "value") if isinstance(value, str) else _kind(value)
        found = mask(text[start:end], f"at {start}:{end}")
        raise DataError(
            f"{where} value", wanted, f"what stands there, {found}", "offsets count code points of the text"
        )
    return Span(start, end, kind)


def _kind(value: object) -> str:
    """What a value is, without showing it; a number may be seen."""
    if isinstance(value, int | float):
        return str(value)
    return "no value" if value is None else f"a {type(value).__name__}"


def _flag(where: str, value: object) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return False
    written = str(value).strip().lower()
    if written not in (*_YES, *_NO):
        raise DataError(where, value, "true or false")
    return written in _YES


# --- shown --------------------------------------------------------------------------------------------------------


def mask(value: str, kind: str) -> str:
    """A secret as it may be shown: its first characters (two; fewer of a short one), its length and its type."""
    return f"{value[: min(2, len(value) // 4)]}…({len(value)} {kind})"


def masked(text: str, spans: Iterable[Placed]) -> str:
    """A text with its spans masked; those that overlap become one, with the first one's type."""
    parts, at = [], 0
    for start, end, kind in _joined(spans):
        parts += [text[at:start], f"‹{mask(text[start:end], kind)}›"]
        at = end
    return "".join([*parts, text[at:]])


def _joined(spans: Iterable[Placed]) -> list[tuple[int, int, str]]:
    joined: list[tuple[int, int, str]] = []
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if joined and span.start < joined[-1][1]:
            start, end, kind = joined[-1]
            joined[-1] = start, max(end, span.end), kind
        else:
            joined.append((span.start, span.end, span.type))
    return joined
