"""The verbs of a Redactor over one conversation: numbered placeholders stay the same for the same secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from openclaw_lab.messages import Message
from openclaw_lab.redaction.given import no_text, texts_of
from openclaw_lab.redaction.json_text import json_number
from openclaw_lab.redaction.numbering import KeyMap, Numbers, restore
from openclaw_lab.redaction.spans import Found, Redaction, replaced
from openclaw_lab.redaction.stream import Stream
from openclaw_lab.redaction.structured import redacted_message, redacted_value

if TYPE_CHECKING:
    from openclaw_lab.redaction.redactor import Redactor


class Conversation:
    """One conversation's redactor; `Redactor.conversation()` makes it."""

    def __init__(self, redactor: Redactor, keys: Mapping[str, str] | None = None) -> None:
        self._redactor = redactor
        self._numbers = Numbers(keys)

    def __repr__(self) -> str:
        return f"Conversation({self.keys!r})"

    @property
    def keys(self) -> KeyMap:
        """What the placeholders stand for, so far; empty where they have no numbers."""
        return KeyMap(self._numbers.pairs)

    def restore(self, text: str) -> str:
        """A text of this conversation with its secrets put back."""
        return restore(text, self._numbers.pairs)

    def redact(self, text: str) -> Redaction:
        """Remove what is found."""
        if not isinstance(text, str):
            raise no_text("redact", text)
        return self._finished(text, self._redactor.plain(text))

    def redact_many(self, texts: Iterable[str]) -> list[Redaction]:
        """`redact` for each text, in order."""
        texts = texts_of("redact_many", texts)
        plain = self._redactor.plain_many(texts)
        if not self._redactor.numbered:
            return plain
        return [self._finished(text, each) for text, each in zip(texts, plain, strict=True)]

    def redact_value(self, value: Any) -> Any:
        """A JSON-like value with its strings redacted, and numbers whose keys tell of a secret; all else stays."""
        return redacted_value(value, self._leaf)

    def redact_message(self, message: Message | Mapping[str, Any]) -> Any:
        """A message of the same kind, its text, blocks, tool calls and results redacted."""
        return redacted_message(message, self._leaf)

    def stream(self) -> Stream:
        """A redactor for one text of this conversation that comes in pieces."""
        return Stream(self._redactor, self._written)

    def _finished(self, text: str, plain: Redaction) -> Redaction:
        if not self._redactor.numbered or not plain.spans:
            return plain
        spans = self._numbers.numbered(text, plain.spans)
        return Redaction(replaced(text, spans), spans)

    def _written(self, text: str, spans: tuple[Found, ...]) -> str:
        """A text with its spans replaced."""
        return replaced(text, self._numbers.numbered(text, spans) if self._redactor.numbered else spans)

    def _leaf(self, value: str | int | float, key: str) -> Any:
        """A string or a number that stands under a key, redacted."""
        if isinstance(value, str):
            return self._finished(value, self._redactor.plain(value, key)).text
        number = json_number(value)
        made = self._finished(number, self._redactor.number(number, key))
        return made.text.strip('"') if made.spans else value
