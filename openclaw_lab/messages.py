"""The values a conversation is made of: Message, ToolCall, Session, Span and what a person labelled in them.

Everything is frozen. No reading of files here (that is `transcripts`), no decisions about hosts (that is `agent.host`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = get_args(Role)
OpportunityKind = Literal["recovery", "new_resource", "feedback", "task_end"]
OPPORTUNITY_KINDS: tuple[OpportunityKind, ...] = get_args(OpportunityKind)
Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool by the model. `arguments` is a mapping, or the raw string when it was not valid JSON."""

    id: str | None
    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the provider reported for one model call."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `content` is text, or blocks (`{"type": "text", "text": …}`, thinking, images) as recorded.

    A tool result has role `tool`; `failed` is what the host said about it (None: it said nothing).
    `stop_reason` is the host's own word (`stop`, `toolUse`, `aborted`, `error`).
    """

    role: Role
    content: str | tuple[Block, ...] = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    failed: bool | None = None
    timestamp: float | None = None
    usage: Usage | None = None
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """What a reader sees: the text blocks, joined by line breaks; thinking and images left out."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(str(block.get("text", "")) for block in self.content if block.get("type") == "text")


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text: `text[start:end]`, offsets in code points."""

    start: int
    end: int
    type: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A moment at which something worth remembering became known: the message `index` that made it one."""

    index: int
    kind: OpportunityKind
    note: str = ""


@dataclass(frozen=True, slots=True)
class ContextCut:
    """A place where the host dropped earlier context: before message `at`, by compaction or by a reset."""

    at: int
    kind: Literal["compaction", "reset"]
    tokens_before: int | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One recorded conversation, in the order in which it stays in the model's context.

    `opportunities` are a person's labels, or None when nobody labelled the session (an empty tuple says: looked at,
    nothing worth remembering). `source` says where it came from; `fields` keeps what else the record held.
    """

    id: str
    messages: tuple[Message, ...]
    source: str = ""
    opportunities: tuple[Opportunity, ...] | None = None
    cuts: tuple[ContextCut, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return f"Session({self.id!r}, {len(self.messages)} messages)"


def as_text(messages: Sequence[Message]) -> str:
    """A conversation as plain lines `role: text`, for a look at it."""
    lines = []
    for message in messages:
        calls = "".join(f" [{call.name}]" for call in message.tool_calls)
        lines.append(f"{message.role}{calls}: {message.text}")
    return "\n".join(lines)
