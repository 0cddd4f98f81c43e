"""Messages and tools in, the OpenAI form that models are asked in out; and a recorded answer back to a Reply.

Nothing here decides what a prompt holds (that is `prompt`), and nothing asks a model (that is `models`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from openclaw_lab.agent.reply import Reply
from openclaw_lab.errors import DataError
from openclaw_lab.messages import Message, ToolCall, Usage
from openclaw_lab.plugins.tool import Tool
from openclaw_lab.transcripts.lines import read_object


def message_out(message: Message) -> dict[str, Any]:
    """One message in the OpenAI form."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": message.text}
    out: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        out["tool_calls"] = [
            {"id": call.id or "", "type": "function", "function": {"name": call.name, "arguments": _text(call)}}
            for call in message.tool_calls
        ]
    return out


def tool_out(tool: Tool) -> dict[str, Any]:
    """One tool in the OpenAI form."""
    described = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": described}


def payload(messages: Iterable[Message], tools: Iterable[Tool]) -> dict[str, Any]:
    """What makes one request the same as another."""
    return {"messages": [message_out(each) for each in messages], "tools": [tool_out(each) for each in tools]}


def reply_row(reply: Reply) -> dict[str, Any]:
    """A Reply as the plain values that a cassette keeps."""
    calls = [{"id": call.id, "name": call.name, "arguments": _text(call)} for call in reply.tool_calls]
    used = reply.usage
    usage = {"input": used.input, "output": used.output, "cache_read": used.cache_read} if used else None
    return {"text": reply.text, "calls": calls, "stop": reply.stop, "usage": usage, "cost": reply.cost}


def reply_of(row: Mapping[str, Any]) -> Reply:
    """The Reply of such values; DataError for values that are none."""
    try:
        calls = tuple(
            ToolCall(each["id"], str(each["name"]), arguments_of(each["arguments"])) for each in row.get("calls", ())
        )
        usage = Usage(**row["usage"]) if row.get("usage") else None
        return Reply(str(row["text"]), calls, usage, row.get("cost"), str(row.get("stop", "stop")))
    except (KeyError, TypeError) as error:
        raise DataError("a recorded answer", f"{type(error).__name__}: {error}", "text, calls, usage, cost") from None


def arguments_of(given: object) -> Mapping[str, Any] | str:
    """Arguments as a mapping; as the text that they are when that is no JSON object."""
    if isinstance(given, Mapping):
        return given
    if not isinstance(given, str):
        return json.dumps(given, ensure_ascii=False, default=str)
    if not given.strip():
        return {}
    try:
        return read_object(given)
    except DataError:
        return given


def _text(call: ToolCall) -> str:
    given = call.arguments
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
