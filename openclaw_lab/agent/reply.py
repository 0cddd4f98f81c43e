"""What a model is asked and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from openclaw_lab.messages import Message, ToolCall, Usage
from openclaw_lab.plugins.tool import Tool

_NOTHING: Mapping[int, str] = {}


@dataclass(frozen=True, slots=True)
class Request:
    """What one model call is made with.

    It is a view of the session, not a copy: `history[start:end]` are the messages still in the context, and `injected`
    names the texts put in front of user messages, in the outgoing copy only. `messages` makes that copy, when asked.
    """

    system: str
    history: Sequence[Message] = field(repr=False)
    start: int
    end: int
    injected: Mapping[int, str] = field(default_factory=lambda: _NOTHING, repr=False)
    tools: tuple[Tool, ...] = field(default=(), repr=False)
    call: int = 1
    on_delta: Callable[[str], None] | None = field(default=None, repr=False, compare=False)

    @property
    def messages(self) -> list[Message]:
        """What goes out: the system prompt, then the messages with what was injected."""
        out = [Message("system", self.system)] if self.system else []
        for index in range(self.start, self.end):
            message = self.history[index]
            if message.stop_reason in ("error", "aborted") and not message.tool_calls:
                continue  # a call that gave nothing: providers refuse an empty answer
            added = self.injected.get(index)
            out.append(Message(message.role, f"{added}\n\n{message.text}") if added else message)
        return out

    @property
    def last(self) -> Message:
        """The newest message: the user's, or a tool's result."""
        return self.history[self.end - 1]

    @property
    def front(self) -> str:
        """What was put in front of the newest user message; empty when nothing was."""
        return self.injected.get(self._user, "")

    @property
    def prompt(self) -> str:
        """The newest user message as the model sees it, with what was put in front of it."""
        text = self.history[self._user].text
        return f"{self.front}\n\n{text}" if self.front else text

    @property
    def _user(self) -> int:
        at = self.end - 1
        while at > self.start and self.history[at].role != "user":
            at -= 1
        return at


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer. `cost` is in US dollars, None where it is not known; `stop` is the provider's word."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    stop: str = "stop"
