"""Hook events and messages as JSON, for a plugin in another process; `transcripts.fields` reads the messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from openclaw_lab.messages import Message, ToolCall
from openclaw_lab.plugins.hooks import HookEvent
from openclaw_lab.transcripts.fields import message_from

_RENAMED = {"failed": "is_error"}


def message_out(message: Message) -> dict[str, Any]:
    """A message as an object, without what it does not say."""
    content = message.content if isinstance(message.content, str) else [dict(each) for each in message.content]
    made: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        made["tool_calls"] = [asdict(each) for each in message.tool_calls]
    if message.usage:
        made["usage"] = asdict(message.usage)
    for name in ("tool_call_id", "name", "failed", "timestamp", "stop_reason"):
        if (value := getattr(message, name)) is not None:
            made[_RENAMED.get(name, name)] = value
    return made


class EventsOut:
    """Events as objects; of a session's messages only those that were not written yet."""

    def __init__(self) -> None:
        self._written: dict[str, int] = {}

    def written(self, event: HookEvent) -> dict[str, Any]:
        """One event. What the host does not show with it is not written either."""
        end = event.at if event.visible else 0
        first = min(self._written.get(event.session_id, 0), end) if event.visible else 0
        if event.visible:
            self._written[event.session_id] = end
        if event.hook == "session_end":
            self._written.pop(event.session_id, None)
        return {
            "hook": event.hook,
            "session": event.session_id,
            "run": event.run,
            "call": event.call,
            "at": event.at,
            "visible": event.visible,
            "first": first,
            "tool": None if event.tool is None else asdict(event.tool),
            "messages": [message_out(each) for each in event.history[first:end]],
        }


class EventsIn:
    """The other way round; keeps the messages of every session that is open."""

    def __init__(self) -> None:
        self._histories: dict[str, list[Message]] = {}

    def read(self, written: Mapping[str, Any]) -> HookEvent:
        """The event."""
        name, visible = str(written["session"]), bool(written["visible"])
        history = self._histories.setdefault(name, [])
        if visible:
            history[int(written["first"]) :] = [message_from(each, "message") for each in written["messages"]]
        if written["hook"] == "session_end":
            self._histories.pop(name, None)
        tool = ToolCall(**written["tool"]) if written.get("tool") else None
        return HookEvent(
            written["hook"], name, int(written["run"]), int(written["call"]), int(written["at"]), history, visible, tool
        )
