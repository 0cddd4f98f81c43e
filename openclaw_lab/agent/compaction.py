"""What of a session may be dropped from the context, and the summary that stands for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from openclaw_lab.agent.session import SessionLog
from openclaw_lab.messages import Message

Summarise = Callable[[Sequence[Message], str], str]

_LINE, _LINES = 160, 60


def split_at(log: SessionLog, keep: int) -> int:
    """The first message of the last `keep` turns: calls and their results are never parted."""
    if keep < 1:
        return log.length
    return log.turns[-keep] if len(log.turns) > keep else 0


def digest(messages: Sequence[Message], before: str) -> str:
    """A summary without a model: the first line of what was asked and answered, and which tools were called."""
    lines = before.splitlines()
    for message in messages:
        first = next((line.strip() for line in message.text.splitlines() if line.strip()), "")
        if message.role == "tool":
            continue
        called = ", ".join(call.name for call in message.tool_calls)
        said = first if len(first) <= _LINE else f"{first[: _LINE - 1]}…"
        if said or called:
            lines.append(" ".join(filter(None, (f"{message.role}:", said, f"[{called}]" if called else ""))))
    left = len(lines) - _LINES
    return "\n".join([f"… {left} earlier lines left out …", *lines[left:]] if left > 0 else lines)
