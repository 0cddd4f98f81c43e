"""The values of a tool: Tool, what it is called with (ToolContext), what it gives (ToolResult)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Who calls a tool: the session, the agent, the id of the call, and where partial output may be written."""

    session_id: str = ""
    agent_id: str = "main"
    call_id: str = ""
    on_delta: Callable[[str], None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gives: text for the model, whether it failed, and details for programs."""

    text: str
    failed: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


Answer = str | ToolResult
# What model providers take as the name of a tool, in words, and what to do about another one.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
TOOL_NAME = "letters, digits, _ and -, at most 64"
NAMED_OTHERWISE = (
    "model providers take no others: give it a name of A to Z, such as get_weather; describe it in Chinese"
)
Run = Callable[[Mapping[str, Any], ToolContext], Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool; `parameters` is a JSON Schema of type object, `plugin` is who registered it (empty: built in)."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Run = field(compare=False, repr=False)
    plugin: str = ""


def is_tool_name(name: object) -> bool:
    """Whether model providers take it as the name of a tool."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None
