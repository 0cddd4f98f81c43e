"""A conversation with an agent in a terminal: lines in, what it does and says out."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from openclaw_lab.agent.agent import Agent
from openclaw_lab.agent.commands import END, Commands
from openclaw_lab.agent.shell import shell
from openclaw_lab.agent.turn import Step
from openclaw_lab.agent.view import view_file
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import LabError, TaskError, excerpt

_SHOWN = 200
Write = Callable[[str], object]


def chat(
    config: LabConfig,
    environment: Mapping[str, str],
    *,
    message: Sequence[str] = (),
    model: str = "echo",
    cassette: Path | None = None,
    cassette_only: bool = False,
    session: Path | None = None,
    plugin: Sequence[str] = (),
    skills: Sequence[str] = (),
    knowledge: Path | None = None,
    root: Sequence[Path] = (),
    allow: Sequence[str] = (),
    host: str = "",
) -> int:
    """The command `chat`: one message, or what is typed; 1 when the one message could not be answered."""
    if message and not " ".join(message).strip():
        raise TaskError("chat", "an empty message", "a message", "without one, what is typed is answered")
    tools = [view_file(root)] if root else []
    tools += [shell(allow)] if allow else []
    with contextlib.ExitStack() as closing:
        opened = None
        if knowledge is not None:
            from openclaw_lab.knowhub.service import KnowHub

            opened = closing.enter_context(KnowHub.open(knowledge, embedder=config.knowhub.embedder))
        agent = Agent(
            model,
            tools=tools,
            plugins=plugin,
            skills=skills,
            memory=opened,
            host=host,
            config=config,
            session=session,
            cassette=cassette,
            cassette_only=cassette_only,
            environment=environment,
        )
        for report in agent.plugin_reports:
            if report.fault:
                print(report, file=sys.stderr)
        for problem in agent.skill_problems:
            print(f"[skill] {problem}", file=sys.stderr)
        if message:
            return min(converse(agent, [" ".join(message)]), 1)
        converse(agent, typed(), stream=model != "echo")
        return 0


def converse(agent: Agent, lines: Iterable[str], write: Write = print, *, stream: bool = False) -> int:
    """Answer line by line; commands begin with a slash. How many lines failed: each is told, and it goes on."""
    commands, failed = Commands(agent), 0
    for line in lines:
        if not line.strip():
            continue
        if line.strip().lower() in END:
            break
        try:
            answer = commands.answer(line)
            if answer is None:
                _turn(commands.agent, line.strip(), write, stream)
            else:
                write(answer)
        except LabError as error:
            failed += 1
            write(f"error: {error}")
    for each in {id(one): one for one in (commands.agent, agent)}.values():
        each.close()
    return failed


def _turn(agent: Agent, message: str, write: Write, stream: bool) -> None:
    told: list[str] = []

    def delta(piece: str) -> None:
        told.append(piece)
        print(piece, end="", flush=True)

    turn = agent.run(message, on_step=lambda step: _show(step, write), on_delta=delta if stream else None)
    for each in turn.injections:
        if each.injection is not None:
            write(f"  (put in front of your message: {each.injection.kind}, by {each.plugin or 'a hook'})")
    for each in turn.errors:
        write(f"  (plugin {each.plugin}: {each.error})")
    if "".join(told).endswith(turn.text) and told:
        write("")
    else:
        write(f"agent: {turn.text}")
    if turn.stop_reason != "stop":
        write(f"  (stopped: {turn.stop_reason})")


def _show(step: Step, write: Write) -> None:
    if step.kind == "model" and step.tools:
        write(f"agent uses [{', '.join(step.tools)}]")
    elif step.kind == "tool":
        write(f"  {'failed: ' if step.failed else '→ '}{excerpt(step.text, _SHOWN)}")


def typed() -> Iterator[str]:
    """What is typed, with a prompt on a terminal; ends at the end of the input."""
    asks = sys.stdin.isatty()
    while True:
        if asks:
            print("you: ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        yield line
