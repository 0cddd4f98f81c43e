"""A recorded message in, a Message out: one parser and one table of names for every format that is read.

A field with a wrong type that carries the conversation (role, content, tool calls) is a DataError whose `where` is the
field; one that only describes it (timestamp, usage, ids) is left out.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.messages import Block, Message, Role, ToolCall, Usage
from openclaw_lab.transcripts.lines import read_object

ROLE_NAMES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
    "toolResult": "tool",
}
# Message field -> how it is spelt in our rows and by OpenAI, then by OpenClaw.
_SPELLINGS = {
    "tool_call_id": ("tool_call_id", "toolCallId"),
    "name": ("name", "toolName"),
    "failed": ("is_error", "isError"),
    "stop_reason": ("stop_reason", "stopReason"),
}
_USAGE_SPELLINGS = {
    "input": ("input",),
    "output": ("output", "completion_tokens"),
    "cache_read": ("cache_read", "cacheRead"),
    "cache_write": ("cache_write", "cacheWrite"),
}
# A number of seconds this large would be the year 5138; as milliseconds it is 1973.
_MILLISECONDS = 1e11


def message_from(record: object, where: str, timestamp: object = None) -> Message:
    """A message of any format; `timestamp`, when it can be read, wins over the message's own.

    Raises DataError for a role, content or tool call that is not one.
    """
    if not isinstance(record, Mapping):
        raise _wrong(where, record, "an object with role and content")
    role = record.get("role")
    if not isinstance(role, str) or role not in ROLE_NAMES:
        raise _wrong(f"{where}.role", role, ", ".join(ROLE_NAMES))
    content, calls = content_from(record.get("content"), f"{where}.content")
    when = epoch(timestamp)
    failed = _spelt(record, "failed")
    return Message(
        role=ROLE_NAMES[role],
        content=content,
        tool_calls=(*calls, *_calls_from(record, where)),
        tool_call_id=_text(_spelt(record, "tool_call_id")),
        name=_word(_spelt(record, "name")),
        failed=failed if isinstance(failed, bool) else None,
        timestamp=epoch(record.get("timestamp")) if when is None else when,
        usage=usage_from(record.get("usage")),
        stop_reason=_word(_spelt(record, "stop_reason")),
    )


def content_from(value: object, where: str) -> tuple[str | tuple[Block, ...], tuple[ToolCall, ...]]:
    """Content as text or blocks, and the tool calls that stood among the blocks. A single text block is its text."""
    if value is None:
        return "", ()
    if isinstance(value, str):
        return value, ()
    if not isinstance(value, list):
        raise _wrong(where, value, "text, or a list of blocks")
    blocks: list[Block] = []
    calls: list[ToolCall] = []
    for index, item in enumerate(value):
        block = _block(item, f"{where}[{index}]")
        if block.get("type") == "toolCall":
            calls.append(_call_from(block, f"{where}[{index}]"))
        else:
            blocks.append(block)
    return _plain(blocks), tuple(calls)


def usage_from(value: object) -> Usage | None:
    """Tokens, whatever their spelling; None when none is given.

    OpenAI's `prompt_tokens` include those read from the cache, `Usage.input` does not.
    """
    if not isinstance(value, Mapping):
        return None
    found = {name: _tokens(value, keys) for name, keys in _USAGE_SPELLINGS.items()}
    prompt = _whole(value.get("prompt_tokens"))
    if prompt is not None and found["input"] is None:
        details = value.get("prompt_tokens_details")
        cached = _whole(details.get("cached_tokens")) if isinstance(details, Mapping) else None
        found["cache_read"] = cached = min(cached or 0, prompt)
        found["input"] = prompt - cached
    if all(number is None for number in found.values()):
        return None
    return Usage(**{name: number or 0 for name, number in found.items()})


def epoch(value: object) -> float | None:
    """Seconds since 1970 from an ISO date (UTC when it names no zone) or a number of seconds or milliseconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.strip())
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    return number / 1000 if abs(number) >= _MILLISECONDS else number


def identifier(value: object) -> str | None:
    """An id that may be recorded as text or as a whole number; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 10**100 else None
    return value if isinstance(value, str) and value else None


def kind_of(value: object) -> str:
    """What a JSON value is, in words; a short text is shown itself, for error messages."""
    if isinstance(value, str):
        return repr(value[:60])
    for types, name in _KINDS:
        if isinstance(value, types):
            return name
    return type(value).__name__


_KINDS: tuple[tuple[Any, str], ...] = (
    (type(None), "nothing"),
    (bool, "true or false"),
    ((int, float), "a number"),
    ((list, tuple), "a list"),
    (Mapping, "an object"),
)


def _wrong(where: str, value: object, expected: str) -> DataError:
    return DataError(where, kind_of(value), expected)


def _block(item: object, where: str) -> Block:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if not isinstance(item, Mapping):
        raise _wrong(where, item, "a block")
    if item.get("type") == "text" and not isinstance(item.get("text"), str):
        raise _wrong(f"{where}.text", item.get("text"), "text")
    return item


def _plain(blocks: list[Block]) -> str | tuple[Block, ...]:
    if not blocks:
        return ""
    if len(blocks) == 1 and blocks[0].get("type") == "text":
        return str(blocks[0]["text"])
    return tuple(blocks)


def _calls_from(record: Mapping[str, Any], where: str) -> list[ToolCall]:
    listed = record.get("tool_calls")
    if listed is None:
        old = record.get("function_call")
        return [_call_from(old, f"{where}.function_call")] if isinstance(old, Mapping) else []
    if not isinstance(listed, list):
        raise _wrong(f"{where}.tool_calls", listed, "a list of calls")
    return [_call_from(item, f"{where}.tool_calls[{index}]") for index, item in enumerate(listed)]


def _call_from(item: object, where: str) -> ToolCall:
    """A call as a block, as a flat object, or wrapped in OpenAI's `function`."""
    if not isinstance(item, Mapping):
        raise _wrong(where, item, "a call with name and arguments")
    inner = item.get("function", item)
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str):
        raise _wrong(f"{where}.name", name, "the tool's name")
    return ToolCall(_text(item.get("id")), sys.intern(name), _arguments(inner.get("arguments")))


def _arguments(value: object) -> Mapping[str, Any] | str:
    """The arguments as a mapping; as text when they are anything else."""
    if value is None or value == "":
        return {}
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        return read_object(value)
    except DataError:
        return value


def _spelt(record: Mapping[str, Any], field: str) -> object:
    ours, theirs = _SPELLINGS[field]
    return record[ours] if ours in record else record.get(theirs)


def _tokens(usage: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    return next((number for key in keys if (number := _whole(usage.get(key))) is not None), None)


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**63:
        return None
    return int(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _word(value: object) -> str | None:
    """As `_text`, for the few words that come back in every message: one copy of each is kept."""
    return sys.intern(value) if isinstance(value, str) else None
