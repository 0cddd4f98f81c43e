"""OpenClaw's transcript records in, one Session for each transcript out; the same for JSONL lines and SQLite rows.

Follows the branch that the host would continue. Does not read files, and does not expand compaction summaries.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from openclaw_lab.errors import DataError
from openclaw_lab.messages import ContextCut, Message, Session
from openclaw_lab.transcripts.fields import ROLE_NAMES, identifier, kind_of, message_from
from openclaw_lab.transcripts.lines import Record
from openclaw_lab.transcripts.report import Sessions, Tally

NEWEST_VERSION = 4
_NOTHING = -1
# The record types whose append moves the head of the branch; others (a plugin's own) only link.
_SETTINGS = frozenset({"custom", "label", "model_change", "thinking_level_change", "session_info"})
_MOVES_HEAD = _SETTINGS | {"message", "compaction", "reset", "branch_summary", "custom_message"}
_TYPES = _MOVES_HEAD | {"session", "leaf"}


def is_transcript_record(record: Record) -> bool:
    """Whether a record looks like OpenClaw's: a header, a wrapped message, or a known type with its link."""
    kind = record.get("type")
    if not isinstance(kind, str) or kind not in _TYPES or "role" in record:
        return False
    if kind == "message":
        return isinstance(record.get("message"), dict)
    return kind == "session" or "parentId" in record


def read_transcripts(records: Iterable[tuple[int, Record]], file: str, stem: str, tally: Tally) -> Sessions:
    """The sessions of one JSONL file: one, or several when whole files were joined.

    A file whose header is damaged gets its id from the file name, `stem`.
    """
    current: Transcript | None = None
    for number, record in records:
        if record.get("type") == "session":
            header = _header(record, file, number, stem, tally)
            if current is not None and current.id == header.id:
                continue
            if current is not None:
                yield current.finish()
            current = header
            continue
        if current is None:
            current = Transcript(stem, file, tally)
            tally.lost(file, number, DataError("no session header before this", todo="the id is the file's name"))
        current.add(number, record)
    if current is not None:
        yield current.finish()


def _header(record: Record, file: str, number: int, stem: str, tally: Tally) -> Transcript:
    session_id = identifier(record.get("id"))
    if session_id is None:
        found = kind_of(record.get("id"))
        tally.lost(file, number, DataError("header id", found, "the session's id", "the id is the file's name"))
    version = record.get("version")
    if isinstance(version, (int, float)) and version > NEWEST_VERSION:
        newest = f"at most {NEWEST_VERSION}"
        tally.lost(file, number, DataError("header version", version, newest, f"read as version {NEWEST_VERSION}"))
    return Transcript(session_id or stem, file, tally, record)


@dataclass(frozen=True, slots=True)
class _Cut:
    kind: Literal["compaction", "reset"]
    tokens_before: int | None


class Transcript:
    """The records of one session while they are read: a tree by id and parentId, of which one branch is active.

    Parents are kept as positions, not as ids, so that a text of many short messages stays about as large as its file.
    """

    def __init__(self, session_id: str, source: str, tally: Tally, header: Record | None = None) -> None:
        self.id = session_id
        self._source, self._tally = source, tally
        self._fields = {key: value for key, value in (header or {}).items() if key not in ("type", "id")}
        self._nodes: dict[str, int] = {}
        self._parents = array("q")
        self._contents: list[Message | _Cut | None] = []
        # Parents that were not there yet: lost, or further down, as a rewritten branch has them.
        self._late: dict[int, str] = {}
        self._head = _NOTHING

    def add(self, line: int, record: Record) -> None:
        """Take one record. One that cannot be read is noted; it still links its neighbours."""
        kind = record.get("type")
        try:
            if not isinstance(kind, str):
                raise DataError("type", kind_of(kind), "a record type")
            self._link(kind, record)
            self._contents[-1] = self._content(kind, record)
        except DataError as error:
            self._tally.lost(self._source, line, error)

    def add_header(self, record: Record) -> None:
        """Take the header of a session whose id is known from elsewhere."""
        self._fields.update((key, value) for key, value in record.items() if key not in ("type", "id"))

    def finish(self) -> Session:
        """The session along the active branch."""
        messages: list[Message] = []
        cuts: list[ContextCut] = []
        for node in self._branch():
            content = self._contents[node]
            if isinstance(content, Message):
                messages.append(content)
            elif content is not None:
                cuts.append(ContextCut(len(messages), content.kind, content.tokens_before))
        self._tally.off_branch += sum(isinstance(item, Message) for item in self._contents) - len(messages)
        return Session(self.id, tuple(messages), self._source, cuts=tuple(cuts), fields=self._fields)

    def _content(self, kind: str, record: Record) -> Message | _Cut | None:
        if kind == "message":
            return self._message(record)
        if kind == "compaction":
            tokens = record.get("tokensBefore")
            return _Cut("compaction", tokens if type(tokens) is int else None)
        if kind == "reset":
            return _Cut("reset", None)
        if kind != "leaf":
            self._tally.skip(kind)
        return None

    def _message(self, record: Record) -> Message | None:
        message = record.get("message")
        role = message.get("role") if isinstance(message, dict) else None
        if isinstance(role, str) and role not in ROLE_NAMES:
            self._tally.skip(f"message:{role}")
            return None
        return message_from(message, "message", record.get("timestamp"))

    # --- the tree ---

    def _link(self, kind: str, record: Record) -> None:
        node = len(self._contents)
        self._parents.append(self._parent(node, record))
        self._contents.append(None)
        if kind == "leaf":
            self._move_head(node, record)
        elif kind in _MOVES_HEAD and record.get("appendMode") != "side":
            self._head = node
        own = record.get("id")
        if isinstance(own, str):
            self._nodes[own] = node

    def _parent(self, node: int, record: Record) -> int:
        """Where a record hangs. When its parent's line was lost, or it names none: at the head so far."""
        parent = record.get("parentId", self)
        if parent is None:
            return _NOTHING
        if not isinstance(parent, str):
            return self._head
        if parent not in self._nodes:
            self._late[node] = parent
            return self._head
        return self._nodes[parent]

    def _move_head(self, node: int, record: Record) -> None:
        """A `leaf` record selects the record to go on from; one that names nothing known changes nothing."""
        target = record.get("targetId", self)
        if target is None:
            self._head = _NOTHING
        elif isinstance(target, str) and target in self._nodes:
            self._head = self._nodes[target]
        self._late.pop(node, None)
        self._parents[node] = self._head

    def _branch(self) -> list[int]:
        """Positions from the root to the head."""
        path: list[int] = []
        seen = bytearray(len(self._contents))
        node = self._head
        while node != _NOTHING and not seen[node]:
            seen[node] = 1
            path.append(node)
            late = self._nodes.get(self._late[node], node) if node in self._late else node
            node = self._parents[node] if seen[late] else late
        self._nodes.clear()
        return path[::-1]
