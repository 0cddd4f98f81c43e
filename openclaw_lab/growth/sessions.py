"""A conversation in, its three layers at their addresses out; and how far a conversation was read before."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import replace

from openclaw_lab.growth.entry import MemoryEntry, keywords_of, uri_of
from openclaw_lab.growth.journal import Journal
from openclaw_lab.growth.keeping import Keeping
from openclaw_lab.growth.summary import parts_of_raw, summary_of, transcript_of
from openclaw_lab.messages import Message

_WORDS = 12
# Hexadecimal digits that stand for a message.
_MARK = 16


class Reading:
    """How far each conversation of an agent was read: for its memories, and for its layers."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def start(self, session: str, read: Sequence[Message]) -> int:
        """The first message that is new: the one after those that the conversation began with when it was read.

        What was taken back is not new, and neither is what stands before it; after a reset everything is.
        """
        before = self._journal.seen(session)[1] if session else ""
        known = [before[at : at + _MARK] for at in range(0, len(before), _MARK)]
        pairs = zip(known, map(_mark, read), strict=False)
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))

    def mark(self, session: str, read: Sequence[Message]) -> None:
        """Everything of a conversation was read."""
        self._journal.mark(session, len(read), "".join(map(_mark, read)))

    def follow(self, session: str, parent: str) -> None:
        """A conversation goes on from another one: what was read of that one is not new in this one."""
        self._journal.mark(session, *self._journal.seen(parent))


def keep_layers(
    keeping: Keeping, agent_id: str, session: str, read: Sequence[Message], start: int, kept: Sequence[MemoryEntry]
) -> None:
    """Put the layers of a conversation in place: the raw text of its new messages, a summary and keywords of all."""
    layers = {f"raw/{name}": text for name, text in parts_of_raw(read, start)}
    layers["summary"] = summary_of(read, kept)
    spoken = [each for each in read if each.role in ("user", "assistant")]
    layers["keywords"] = " ".join(keywords_of(transcript_of(spoken), _WORDS)) or "-"
    for layer, text in layers.items():
        keeping.put(uri_of(agent_id, "session", session, layer), text, session)


def joined(uri: str, parts: Sequence[MemoryEntry]) -> MemoryEntry:
    """The parts of a conversation's raw text as one memory, in their order."""
    ordered = sorted(parts, key=lambda each: [int(n) for n in each.uri.rpartition("/")[2].split("-")])
    return replace(ordered[0], uri=uri, content="\n".join(each.content for each in ordered))


def _mark(message: Message) -> str:
    """What tells a message from another one."""
    said = json.dumps([message.role, message.text], ensure_ascii=False)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
