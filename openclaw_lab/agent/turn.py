"""What came of one user message: Turn, and the Steps that led there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from openclaw_lab.agent.hosting import Fired, as_trace
from openclaw_lab.agent.prompt import framed
from openclaw_lab.messages import Message, ToolCall, Usage
from openclaw_lab.plugins.hooks import Firing, HookEvent, Trace
from openclaw_lab.text import count_tokens


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that an agent did: a model call (what it said, which tools it asked for) or a tool's result."""

    kind: Literal["model", "tool"]
    text: str
    tools: tuple[str, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """The answer to one user message and how it came about.

    `messages` begin with the user's. `stop_reason`: `stop`, or why it ended early: `steps` (too many model calls),
    `loop` (the same call again and again), or the provider's own word, such as `length`. `usage` and `cost` (US
    dollars) are sums over the calls; `cost` is None when any call's is not known.
    """

    text: str
    messages: tuple[Message, ...] = field(repr=False)
    injections: tuple[Firing, ...] = field(repr=False)
    calls: int
    usage: Usage
    cost: float | None
    stop_reason: str
    fired: tuple[HookEvent | Fired, ...] = field(repr=False, compare=False)
    firings: tuple[Firing, ...] = field(repr=False, compare=False)
    history: Sequence[Message] = field(repr=False, compare=False)

    @property
    def trace(self) -> Trace:
        """Every hook event of the turn, and every handler's answer."""
        return as_trace(self.fired, self.firings, self.history)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Every call of a tool, in order."""
        return tuple(call for message in self.messages for call in message.tool_calls)

    @property
    def injected_tokens(self) -> int:
        """Tokens of the text that plugins injected, frames included, each once."""
        texts = (framed(each.injection, each.plugin) for each in self.injections if each.injection)
        return sum(map(count_tokens, texts))

    @property
    def errors(self) -> list[Firing]:
        """Handlers of plugins that raised; they were skipped."""
        return [each for each in self.firings if each.error]

    def __str__(self) -> str:
        return self.text
