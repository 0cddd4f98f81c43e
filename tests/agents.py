"""Agents for tests: a tool, a scripted model, conversations, and what hooks they must fire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from openclaw_lab.agent.agent import Agent
from openclaw_lab.agent.models import calls
from openclaw_lab.agent.reply import Reply, Request

HOSTS = ("seed", "openclaw-2026.3", "openclaw-2026.9")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def adding(request: Request) -> Reply:
    """Calls `add` once a turn, then answers."""
    if request.last.role == "tool":
        return Reply(f"the sum is {request.last.text}")
    return calls(("add", {"a": 2, "b": 3}))


def agent(model: object = adding, tools: Sequence[Callable[..., Any]] = (add,), **options: Any) -> Agent:
    """An agent with the tool `add`."""
    return Agent(model, tools=tools, **options)


def talk(made: Agent, turns: int = 20, text: str = "say {}") -> list[Any]:
    """So many turns."""
    return [made.run(text.format(number)) for number in range(1, turns + 1)]
