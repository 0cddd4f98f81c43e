"""A dialogue with what it teaches in, the conversation and its label out: the row format `extraction`, checked.

`{"messages": [{"role", "content", …}], "memories": [{"type", "text", "evidence": [indexes], "stated"?}]}`, and if there
are any `"secrets"` that no memory may hold and `"forbidden"` texts of injected instructions. `fact` is a word for
`knowledge`; a memory with `"stated": false` was not said in so many words and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openclaw_lab.errors import DataError, LabError
from openclaw_lab.knowhub.extract import message_of
from openclaw_lab.messages import Session

TYPES = ("preference", "knowledge", "experience")
_NAMES = {"fact": "knowledge"}


@dataclass(frozen=True, slots=True)
class Gold:
    """One memory that a dialogue teaches, and the messages that say so."""

    type: str
    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Memories:
    """What a dialogue teaches (nothing, when empty), and what must not be kept of it."""

    gold: tuple[Gold, ...] = ()
    secrets: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """In a word, to count by."""
        return f"{len(self.gold)} memories" if len(self.gold) != 1 else "1 memory"

    def __str__(self) -> str:
        return ", ".join(each.type for each in self.gold) or "nothing"

    def __repr__(self) -> str:  # secrets are not shown, and count in a hash of the data all the same
        return f"Memories({self.gold!r}, {len(self.secrets)} secrets, {self.forbidden!r})"


def read_dialogue(where: str, row: Mapping[str, Any]) -> Session:
    """The conversation of a row."""
    messages = row["messages"]
    if not isinstance(messages, list | tuple) or not messages:
        raise DataError(f"{where} messages", f"a {type(messages).__name__}", "a list of messages, at least one")
    try:
        read = tuple(message_of(each, f"{where} messages[{number}]") for number, each in enumerate(messages))
    except DataError:
        raise
    except LabError as error:
        raise DataError(f"{where} messages", str(error)) from None
    return Session(str(row.get("id", "")), read)


def read_memories(where: str, row: Mapping[str, Any]) -> Memories:
    """The label of a row."""
    given = row["memories"]
    if not isinstance(given, list | tuple):
        raise DataError(f"{where} memories", f"a {type(given).__name__}", "a list of memories (empty: nothing to keep)")
    count = len(row["messages"])
    gold = tuple(
        _gold(f"{where} memories[{number}]", each, count)
        for number, each in enumerate(given)
        if not (isinstance(each, Mapping) and each.get("stated") is False)
    )
    return Memories(gold, _texts(where, row, "secrets"), _texts(where, row, "forbidden"))


def _gold(where: str, given: object, count: int) -> Gold:
    if not isinstance(given, Mapping):
        raise DataError(where, f"a {type(given).__name__}", "an object with type, text and evidence")
    kind, text, evidence = (given.get(name) for name in ("type", "text", "evidence"))
    named = _NAMES.get(str(kind), kind)
    if named not in TYPES:
        raise DataError(f"{where} type", kind, f"one of {', '.join([*TYPES, *_NAMES])}")
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{where} text", "no text" if not text else f"a {type(text).__name__}", "a text")
    if not isinstance(evidence, list | tuple) or not all(type(each) is int and 0 <= each < count for each in evidence):
        raise DataError(f"{where} evidence", evidence, f"a list of indexes of messages, 0 to {count - 1}")
    return Gold(str(named), text, tuple(evidence))


def _texts(where: str, row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = row.get(name) or ()
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) and each for each in given):
        raise DataError(f"{where} {name}", f"a {type(given).__name__}", "a list of texts")  # never what it holds
    return tuple(given)
