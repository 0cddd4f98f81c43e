"""What is new in a conversation in, redacted, sent to be mined for knowledge: on a thread, so that no turn waits.

Only the tail that was not sent yet goes out; what could not be sent goes with the next one. A fault is logged.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openclaw_lab.config import LabConfig
from openclaw_lab.messages import Message
from openclaw_lab.plugins.builtin.knowhub.settings import Bases
from openclaw_lab.plugins.hooks import HookEvent

if TYPE_CHECKING:
    from openclaw_lab.redaction.redactor import Redactor

_ROLES = {"user", "assistant", "tool"}


@dataclass(frozen=True, slots=True)
class _Tail:
    """Messages that are to be sent: those from `first` to before `end` of their session."""

    first: int
    end: int
    messages: tuple[Message, ...]


class Uploads:
    """One plugin's uploads, for every session."""

    def __init__(self, bases: Bases, config: LabConfig, agent_id: str, logger: logging.Logger) -> None:
        self._bases, self._config, self._agent_id, self._log = bases, config, agent_id, logger
        self._redactor: Redactor | None = None
        self._seen: dict[str, tuple[Sequence[Message], int]] = {}
        self._handed: dict[str, int] = {}  # how many messages of a session the thread was given
        self._waiting: dict[str, _Tail] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = self._ending = False

    def observe(self, event: HookEvent) -> None:
        """Remember what the host shows; at the hook that sends, hand the new tail to the thread.

        Where that hook shows no messages (a compaction, on OpenClaw), the last that were seen are sent.
        """
        name = _session(event.session_id)
        if event.visible:
            self._seen[name] = (event.history, event.at)
        if event.hook == self._config.extraction.trigger and name in self._seen:
            history, at = self._seen[name]
            with self._changed:
                self._hand_over(name, history, at)
        if event.hook == "session_end":
            self._seen.pop(name, None)

    def _hand_over(self, name: str, history: Sequence[Message], at: int) -> None:
        waiting = self._waiting.pop(name, None)
        # After a rollback there are fewer messages than were sent.
        first = min(waiting.first if waiting else self._handed.get(name, 0), at)
        self._handed[name] = at
        if at > first:
            self._waiting[name] = _Tail(first, at, tuple(history[first:at]))
            self._begin()

    def _take_back(self, name: str, tail: _Tail) -> None:
        """What could not be sent goes with what waits behind it, or with the next tail."""
        waiting = self._waiting.get(name)
        if waiting is None:
            self._handed[name] = min(self._handed[name], tail.first)
        elif waiting.first == tail.end:
            self._waiting[name] = _Tail(tail.first, waiting.end, tail.messages + waiting.messages)

    def _begin(self) -> None:
        if self._thread is None and not self._ending:
            self._thread = threading.Thread(target=self._work, name="knowhub-uploads", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._ending:
                        self._thread = None
                        return
                    self._changed.wait()
                name = next(iter(self._waiting))
                tail = self._waiting.pop(name)
                self._busy = True
            failed = False
            try:
                self._log.info("knowhub: extracted %d experiences", self._send(name, tail))
            except Exception as error:  # whatever it is, the agent goes on
                failed = True
                self._log.warning("knowhub: extraction failed: %s", error)
            with self._changed:
                if failed:
                    self._take_back(name, tail)
                self._busy = False
                self._changed.notify_all()

    def _send(self, name: str, tail: _Tail) -> int:
        from openclaw_lab.redaction.redactor import Redactor

        if self._redactor is None:
            self._redactor = Redactor(self._config.redaction)
        clean = self._redactor.conversation()
        messages = [plain(clean.redact_message(each)) for each in tail.messages if each.role in _ROLES]
        if not messages:
            return 0
        saved = self._bases.of(self._agent_id).extract(
            messages,
            agent_id=self._agent_id,
            session_key=name,
            submitted_by=self._config.knowhub.submitted_by,
        )
        return sum(each.action == "created" for each in saved)

    def flush(self, limit: float) -> bool:
        """Wait until all is sent (or has failed); whether that was so within `limit` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, limit)

    def start(self) -> None:
        """Take uploads (again)."""
        with self._changed:
            self._ending = False

    def stop(self) -> None:
        """Send what waits, then end the thread."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        thread = self._thread
        if thread is not None:
            thread.join()


def plain(message: Message) -> Mapping[str, Any]:
    """A message as an object that `/api/extract` takes; pictures and thinking stay here."""
    made: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        made["tool_calls"] = [
            {"id": each.id, "name": each.name, "arguments": each.arguments} for each in message.tool_calls
        ]
    for name in ("tool_call_id", "name", "failed"):
        if (value := getattr(message, name)) is not None:
            made["is_error" if name == "failed" else name] = value
    return made


def _session(session_id: str) -> str:
    """The session's own id: a rollback adds `~` and a number, and it is the same conversation still."""
    name, _, number = session_id.rpartition("~")
    return name if name and number.isdigit() else session_id
