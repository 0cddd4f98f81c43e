"""An agent's session: messages in memory, and an append-only log of one JSON record a line that it is read back from.

The records are those of OpenClaw's transcripts, so that `load_sessions` reads a log as it reads a host's. Nothing is
ever taken out of a log: a rollback is a record that says from where it goes on. Secrets are redacted on the way in.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_lab.agent.records import Recorded, message_record, read_log, stamp
from openclaw_lab.errors import DataError, TaskError
from openclaw_lab.messages import ContextCut, Message, Session

Redact = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary that stands for the messages before `start`; made when there were `at` messages."""

    at: int
    start: int
    summary: str
    tokens_before: int


class SessionLog:
    """The messages of one session, and its log when there is one.

    `messages` is replaced, never shortened, by a rollback: whoever holds it keeps what they had. `injected` are texts
    that stay in front of user messages, on hosts where they do.
    """

    def __init__(
        self,
        id: str,
        path: Path | None = None,
        *,
        redact: Redact | None = None,
        clock: Callable[[], float] = time.time,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        self.id, self.path, self.revision = id, path, 0
        self.messages: list[Message] = []
        self.turns: list[int] = []
        self.injected: dict[int, str] = {}
        self.compactions: list[Compaction] = []
        self.calls = self.size = 0
        self._redact, self._clock = redact, clock
        self._parents: list[str | None] = []
        self._head: str | None = None
        self._count = 0
        self._file = None if path is None else _LogFile(path)
        if self._file is not None and not self._file.size:
            self._write({"type": "session", "version": 3, "id": id, "timestamp": stamp(clock()), **(fields or {})})

    @classmethod
    def resume(cls, path: Path, *, redact: Redact | None = None, clock: Callable[[], float] = time.time) -> SessionLog:
        """The session of a log that is there, to go on with; a turn that was cut short is ended first."""
        recorded = read_log(path)
        log = cls(recorded.id, path, redact=redact, clock=clock)
        log._take(recorded)
        if log.messages and (log.messages[-1].role != "assistant" or log.messages[-1].tool_calls):
            log.note("aborted", {"said": "cut short: the log ends within a turn"})
            log.end_cut("aborted")
        return log

    @property
    def start(self) -> int:
        """The first message that is still in the context."""
        return self.compactions[-1].start if self.compactions else 0

    @property
    def summary(self) -> str:
        """What stands for the messages before it."""
        return self.compactions[-1].summary if self.compactions else ""

    # --- growing ---

    def end_cut(self, reason: str) -> None:
        """End a turn that was cut short: calls without a result get one, and the model's part ends with the reason."""
        begin = self.turns[-1] if self.turns else 0
        answered = {each.tool_call_id for each in self.messages[begin:] if each.role == "tool"}
        for call in [call for message in self.messages[begin:] for call in message.tool_calls]:
            if call.id not in answered:
                self.append(Message("tool", "interrupted", tool_call_id=call.id, name=call.name, failed=True))
        if self.messages[-1].role != "assistant":
            self.append(Message("assistant", "", stop_reason=reason))

    def append(self, message: Message) -> int:
        """Add a message; its index."""
        index = len(self.messages)
        self.messages.append(message)
        self._parents.append(self._head)
        if message.role == "assistant":
            self.calls += 1
        elif message.role == "user" and (not index or self.messages[index - 1].role != "user"):
            self.turns.append(index)
        self.size += tokens_of(message)
        if self._file is not None:
            kept = self._redact(message) if self._redact else message
            self._entry("message", {"message": message_record(kept)})
        return index

    def inject(self, index: int, text: str) -> None:
        """Put a text in front of a user message for good: every later copy that goes out has it."""
        before = self.injected.get(index)
        self.injected[index] = f"{before}\n\n{text}" if before else text
        self.size += _size(text)
        if self._file is not None:
            kept = self._redact(text) if self._redact else text
            self._entry("custom", {"customType": "openclaw-lab:injected", "data": {"index": index, "text": kept}})

    def compact(self, start: int, summary: str) -> Compaction:
        """From here on a summary stands for the messages before `start`."""
        made = Compaction(len(self.messages), start, summary, self.size)
        self.compactions.append(made)
        self._measure()
        if self._file is not None:
            kept = self._redact(summary) if self._redact else summary
            fields = {"summary": kept, "start": start, "tokensBefore": made.tokens_before}
            self._entry("compaction", {**fields, "firstKeptEntryId": self._child(start)})
        return made

    def rollback(self, turns: int = 1) -> tuple[Message, ...]:
        """Take back the last `turns` user turns; what was taken back."""
        if turns < 1 or turns > len(self.turns):
            raise TaskError("rollback", turns, f"1 to {len(self.turns)} turns" if self.turns else "a turn to take back")
        at = self.turns[-turns]
        taken = tuple(self.messages[at:])
        target = self._parents[at]
        self._cut(at)
        self._head = target
        self._entry("leaf", {"targetId": target, "appendParentId": None}, moves=False)
        return taken

    def _cut(self, at: int) -> None:
        self.messages, self._parents = self.messages[:at], self._parents[:at]
        self.turns = [each for each in self.turns if each < at]
        self.injected = {index: text for index, text in self.injected.items() if index < at}
        self.compactions = [each for each in self.compactions if each.at <= at]
        self.calls = sum(each.role == "assistant" for each in self.messages)
        self._measure()
        self.revision += 1

    def _measure(self) -> None:
        kept = [text for index, text in self.injected.items() if index >= self.start]
        texts = sum(map(_size, (self.summary, *kept)))
        self.size = texts + sum(map(tokens_of, self.messages[self.start :]))

    def fork(self, id: str, path: Path | None = None) -> SessionLog:
        """A session of its own that begins with the messages of this one."""
        if path is not None and path.exists():
            raise DataError(str(path), "a file that is there", "a new one", "name another")
        made = SessionLog(
            id, path, redact=self._redact, clock=self._clock, fields={"parentSession": self.id, "forkedAt": self.length}
        )
        waiting = list(self.compactions)
        for index, message in enumerate(self.messages):
            while waiting and waiting[0].at <= index:
                made.compact(waiting[0].start, waiting.pop(0).summary)
            made.append(message)
            if index in self.injected:
                made.inject(index, self.injected[index])
        for each in waiting:
            made.compact(each.start, each.summary)
        made.sync()
        return made

    # --- reading ---

    @property
    def length(self) -> int:
        """How many messages there are."""
        return len(self.messages)

    def as_session(self) -> Session:
        """A value that does not change any more."""
        cuts = tuple(ContextCut(each.at, "compaction", each.tokens_before) for each in self.compactions)
        return Session(self.id, tuple(self.messages), str(self.path or ""), cuts=cuts)

    # --- the file ---

    def note(self, kind: str, values: Mapping[str, Any]) -> None:
        """Write down something that is no message, such as what a hook injected; it changes nothing."""
        if self._file is not None:
            redact = self._redact or (lambda value: value)
            kept = {name: redact(value) if isinstance(value, str) else value for name, value in values.items()}
            self._entry("custom", {"customType": f"openclaw-lab:{kind}", "data": kept})

    def sync(self) -> None:
        """Wait until what was written is on the disk."""
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _entry(self, kind: str, fields: Mapping[str, Any], *, moves: bool = True) -> None:
        self._count += 1
        own = f"e{self._count}"
        if self._file is not None:
            when = stamp(self._clock())
            self._write({"type": kind, "id": own, "parentId": self._head, "timestamp": when, **fields})
        if moves:
            self._head = own

    def _write(self, record: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")))

    def _child(self, index: int) -> str | None:
        """The entry of a message: the one after its parent, where nothing but messages was written in between."""
        return self._parents[index + 1] if index + 1 < len(self._parents) else self._head

    def _take(self, recorded: Recorded) -> None:
        """What a log held, without writing it again."""
        file, self._file = self._file, None
        compactions = list(recorded.compactions)
        for index, (message, parent) in enumerate(zip(recorded.messages, recorded.parents, strict=True)):
            while compactions and compactions[0][0] <= index:
                self._compacted(*compactions.pop(0)[1:])
            self._head = parent
            self.append(message)
            self._parents[index] = parent
        for each in compactions:
            self._compacted(*each[1:])
        self.injected = dict(recorded.injected)
        self._measure()
        self._file, self._head, self._count, self.revision = file, recorded.head, recorded.count, recorded.rollbacks

    def _compacted(self, start: int, summary: str, tokens_before: int) -> None:
        self.compactions[-1] = dataclasses.replace(self.compact(start, summary), tokens_before=tokens_before)


def tokens_of(message: Message) -> int:
    """About how many tokens a message takes: a third of its bytes. For deciding when to compact, not for reports."""
    size = _size(message.text)
    for call in message.tool_calls:
        size += (len(call.name) + len(str(call.arguments))) // 3
    return size + 4


def _size(text: str) -> int:
    return (len(text) if text.isascii() else len(text.encode("utf-8", "replace"))) // 3


class _LogFile:
    """A file that only grows; refuses to when somebody else has written to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            self.size = os.fstat(self._handle).st_size
            if self.size and os.pread(self._handle, 1, self.size - 1) != b"\n":
                self._put(b"\n")  # the last line was torn by a crash: it stays, on a line of its own
        except OSError as error:
            raise self._failed(error) from None

    def append(self, line: str) -> None:
        """Write one line."""
        try:
            if os.fstat(self._handle).st_size != self.size:
                todo = "close the other agent, or resume from the file again"
                raise DataError(str(self.path), "lines of another writer", "one agent a session", todo)
            self._put(line.encode("utf-8", "replace") + b"\n")
        except OSError as error:
            raise self._failed(error) from None

    def _put(self, data: bytes) -> None:
        while data:
            written = os.write(self._handle, data)
            self.size, data = self.size + written, data[written:]

    def sync(self) -> None:
        """Wait for the disk."""
        try:
            os.fsync(self._handle)
        except OSError as error:
            raise self._failed(error) from None

    def close(self) -> None:
        """Let go of the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            self.close()

    def _failed(self, error: OSError) -> DataError:
        return DataError(str(self.path), error.strerror, "a file that can be written", "check the path and the disk")
