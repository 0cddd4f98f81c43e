"""The records of a session's log: a message in, its record out; and a log's records back to what they say.

As in OpenClaw's transcripts, records hang on one another by id and parentId, and a `leaf` says where it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.messages import Message
from openclaw_lab.transcripts.fields import message_from
from openclaw_lab.transcripts.lines import read_records
from openclaw_lab.transcripts.report import Tally


def stamp(seconds: float) -> str:
    """A time as the records have it: UTC, to the millisecond."""
    try:
        when = datetime.fromtimestamp(round(seconds, 3), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise DataError("clock", str(seconds), "seconds since 1970") from None
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def message_record(message: Message) -> dict[str, Any]:
    """A message as OpenClaw records it."""
    if message.role == "tool":
        return {
            "role": "toolResult", "toolCallId": message.tool_call_id, "toolName": message.name,
            "content": [{"type": "text", "text": message.text}], "isError": bool(message.failed),
        }  # fmt: skip
    if message.role != "assistant":
        return {"role": message.role, "content": message.text}
    content: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    content += [
        {"type": "toolCall", "id": call.id, "name": call.name, "arguments": _plain(call.arguments)}
        for call in message.tool_calls
    ]
    made: dict[str, Any] = {"role": "assistant", "content": content, "stopReason": message.stop_reason}
    if message.usage is not None:
        used = message.usage
        made["usage"] = {
            "input": used.input, "output": used.output, "cacheRead": used.cache_read, "cacheWrite": used.cache_write,
        }  # fmt: skip
    return made


def _plain(arguments: Mapping[str, Any] | str) -> Any:
    return arguments if isinstance(arguments, str) else dict(arguments)


@dataclass
class Recorded:
    """What a log says: the messages of the branch that it goes on from, and what belongs to them."""

    id: str = ""
    messages: list[Message] = field(default_factory=list)
    parents: list[str | None] = field(default_factory=list)
    injected: dict[int, str] = field(default_factory=dict)
    compactions: list[tuple[int, int, str, int]] = field(default_factory=list)
    head: str | None = None
    count: int = 0
    rollbacks: int = 0


def read_log(path: Path) -> Recorded:
    """Read a log; a torn or damaged line costs that line. DataError for a file that is no log of an agent."""
    tally = Tally("skip")
    found = Recorded()
    for _, record in read_records(path, tally):
        kind = record.get("type")
        if kind == "session" and not found.id:
            found.id = str(record.get("id") or path.stem)
        elif found.id:
            _take(found, record)
    if not found.id:
        raise DataError(str(path), "no session header", "the log of an agent", "name a new file for a new session")
    return found


def _take(found: Recorded, record: Mapping[str, Any]) -> None:
    kind, own = record.get("type"), record.get("id")
    if isinstance(own, str) and own[1:].isdigit():
        found.count = max(found.count, int(own[1:]))
    if kind == "leaf":
        _go_back(found, record.get("targetId"))
        return
    try:
        if kind == "message":
            message = message_from(record["message"], "message")
            found.parents.append(found.head)
            found.messages.append(message)
        elif kind == "compaction":
            summary, start = str(record["summary"]), int(record["start"])
            found.compactions.append((len(found.messages), start, summary, int(record["tokensBefore"])))
        elif kind == "custom" and record.get("customType") == "openclaw-lab:injected":
            found.injected[int(record["data"]["index"])] = str(record["data"]["text"])
    except (DataError, KeyError, TypeError, ValueError):
        return
    if isinstance(own, str):
        found.head = own


def _go_back(found: Recorded, target: object) -> None:
    """Drop the messages after a record: those that hang on it, and all that came then."""
    at = next((index for index, parent in enumerate(found.parents) if parent == target), len(found.messages))
    del found.messages[at:], found.parents[at:]
    found.compactions = [each for each in found.compactions if each[0] <= at]
    found.injected = {index: text for index, text in found.injected.items() if index < at}
    found.head = target if isinstance(target, str) else None
    found.rollbacks += 1
