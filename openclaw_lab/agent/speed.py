"""What a turn costs beside the model: CPU seconds of a turn with one tool call and a model that does nothing."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from openclaw_lab.agent.agent import Agent
from openclaw_lab.agent.models import calls
from openclaw_lab.agent.reminding import Reminding
from openclaw_lab.agent.reply import Reply, Request
from openclaw_lab.config import LabConfig
from openclaw_lab.plugins.api import PluginApi
from openclaw_lab.plugins.entry import define_plugin_entry

_CALL, _DONE = calls(("note", {"text": "x"})), Reply("done")


def noop(request: Request) -> Reply:
    """A model that calls the tool, then answers; it does not even look at the messages."""
    return _DONE if request.last.role == "tool" else _CALL


def note(text: str) -> str:
    """A tool that does nothing."""
    return "noted"


def _noted(api: PluginApi) -> None:
    api.register_tool(note)
    api.on("before_prompt_build", lambda event: None)
    api.on("agent_end", lambda event: None)


def turn_costs(turns: int = 2_000) -> list[tuple[str, float]]:
    """Seconds a turn: bare, late in a long session, with a plugin from outside, with reminders, with a log on disk."""
    with tempfile.TemporaryDirectory() as folder:
        config = LabConfig()
        bare = Agent(noop, tools=[note])
        first = _each(bare, turns)
        _each(bare, 4 * turns, 1)
        late = _each(bare, turns)
        plugged = _each(Agent(noop, plugins=[define_plugin_entry(id="noted", register=_noted)]), turns)
        reminded = _each(Agent(noop, tools=[note], plugins=[Reminding(config.reminders)]), turns)
        with Agent(noop, tools=[note], session=Path(folder) / "log.jsonl") as logged:
            written = _each(logged, min(turns, 200))
    return [
        ("a turn with a tool call, model that does nothing", first),
        (f"the same after {7 * turns:,} turns of the session", late),
        ("the same, the tool and two hooks those of a plugin", plugged),
        ("the same, with reminders", reminded),
        ("the same, logged with secrets redacted", written),
    ]


def _each(agent: Agent, turns: int, runs: int = 3) -> float:
    """The least CPU time a turn, of a few runs."""
    agent.run("warm up")
    return min(_cpu(lambda: _run(agent, turns)) for _ in range(runs)) / turns


def _run(agent: Agent, turns: int) -> None:
    for _ in range(turns):
        agent.run("note it")


def _cpu(work: Callable[[], object]) -> float:
    gc.collect()
    begin = time.process_time()
    work()
    return time.process_time() - begin
