"""A value made of objects, lists and strings in, the same without secrets out; its form stays.

Only values change: strings, and numbers whose keys say that they are secrets, which become strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from openclaw_lab.messages import Message, ToolCall

Leaf = Callable[[str | int | float, str], Any]  # a string or a number, and its key -> the same without secrets
# What lies deeper, or contains itself, is not kept: nobody looked into it.
MAX_DEPTH = 100
UNSEEN = "[REDACTED]"
# What hosts join messages and calls by, and what a provider signed: no text, and of no use once changed.
_KEPT = frozenset({
    "role", "type", "id", "name", "tool_call_id", "tool_use_id", "toolCallId", "toolName", "call_id", "model",
    "signature", "thinkingSignature", "stop_reason", "stopReason", "media_type", "mimeType", "timestamp",
})  # fmt: skip
# What a model wrote for a tool, or a tool answered as an object: values of any kind, no part of the message's form.
_FREE = frozenset({"input", "arguments", "args", "parameters", "output", "result"})


def redacted_value(value: Any, leaf: Leaf, key: str = "") -> Any:
    """A JSON-like value without secrets; what is in a list stands under the list's key."""
    return _value(value, leaf, key, ())


def redacted_message(message: Message | Mapping[str, Any], leaf: Leaf) -> Any:
    """A Message, or an object as hosts write them: its form, ids and names stay."""
    if not isinstance(message, Message):
        return _block(message, leaf, "", ())
    content = message.content
    return replace(
        message,
        content=leaf(content, "")
        if isinstance(content, str)
        else tuple(_block(each, leaf, "", ()) for each in content),
        tool_calls=tuple(_call(each, leaf) for each in message.tool_calls),
    )


def _call(call: ToolCall, leaf: Leaf) -> ToolCall:
    if isinstance(call.arguments, str):
        return replace(call, arguments=leaf(call.arguments, ""))
    return replace(call, arguments=redacted_value(call.arguments, leaf))


def _value(value: Any, leaf: Leaf, key: str, above: tuple[int, ...]) -> Any:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return leaf(value, key)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if len(above) >= MAX_DEPTH or id(value) in above:
        return UNSEEN
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return {name: _value(each, leaf, str(name), above) for name, each in value.items()}
    return (
        type(value)(_value(each, leaf, key, above) for each in value)
        if type(value) in (list, tuple)
        else [_value(each, leaf, key, above) for each in value]
    )


def _block(value: Any, leaf: Leaf, key: str, above: tuple[int, ...]) -> Any:
    """A message, or a part of it whose form is known."""
    if isinstance(value, str):
        return value if key in _KEPT or value.startswith("data:") else leaf(value, key)
    if key in _FREE or not isinstance(value, Mapping | list | tuple):
        return _value(value, leaf, key, above)
    if len(above) >= MAX_DEPTH or id(value) in above:
        return UNSEEN
    above = (*above, id(value))
    if not isinstance(value, Mapping):
        return [_block(each, leaf, key, above) for each in value]
    picture = "data" in value and any(name in value for name in ("mimeType", "media_type"))
    return {
        name: each if picture and name == "data" else _block(each, leaf, str(name), above)
        for name, each in value.items()
    }
