"""Agent: a model, tools, plugins, skills, a host in; `run("…")` gives a Turn; its session can be taken back, forked.

The loop itself is in `loop`, what a host does in `hosting`; here the parts are put together once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from openclaw_lab.agent import given
from openclaw_lab.agent.compaction import Summarise, digest, split_at
from openclaw_lab.agent.driving import adrive, drive, stepped
from openclaw_lab.agent.extensions import Extensions, PluginConfig
from openclaw_lab.agent.host import HostProfile
from openclaw_lab.agent.hosting import Hosting
from openclaw_lab.agent.learning import Learning
from openclaw_lab.agent.loop import Delta, Setup, TurnLoop
from openclaw_lab.agent.memory import SAVE, recall_of, remember_of
from openclaw_lab.agent.models import model_of
from openclaw_lab.agent.prompt import BASE, memory_section, summary_section, system_prompt
from openclaw_lab.agent.session import Compaction, SessionLog
from openclaw_lab.agent.tools import Toolbox
from openclaw_lab.agent.turn import Step, Turn
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import ConfigError, TaskError
from openclaw_lab.given import check, named_texts, path_of, whole
from openclaw_lab.messages import Message, Session
from openclaw_lab.plugins.hooks import Trace
from openclaw_lab.plugins.report import Report
from openclaw_lab.plugins.tool import Tool
from openclaw_lab.text import whole_text

if TYPE_CHECKING:
    from openclaw_lab.agent.skilled import SkillMode

# Turns that a compaction leaves as they are.
_KEPT = 2


class Agent:
    """An agent on a host, with one session.

    `model`: `echo`, `litellm:provider/model` (with `model_options`, such as api_base), a list of answers, or a callable
    `(request) -> Reply | str`; with `cassette` its answers are recorded and found again, with `cassette_only` it is
    never asked. `plugins`: folders, names of built-in ones (`knowhub` takes this agent's config and memory), Plugins,
    or objects with `register(bus)`; `plugin_config`, `environment`: what they are given (see `load_plugins`). `tools`:
    Tools or annotated functions. `skills`: folders, or a SkillRegistry; `skill_mode`: `match` puts the instructions of
    the skills that a message picks into the prompt, `list` names all of them, as OpenClaw 2026.9 does. `memory`: a
    KnowHub, a GrowthMemory, or a callable `(message) -> text or experiences`. `config`: a LabConfig, or a preset's
    name. `host`: a profile's name or one of your own; the config's by default. `session`: a file that the session is
    logged to, and resumed from when it is there.
    """

    def __init__(
        self,
        model: object = "echo",
        *,
        plugins: Iterable[object] = (),
        skills: object = (),
        tools: Iterable[Tool | Callable[..., Any]] = (),
        memory: object = None,
        host: str | HostProfile = "",
        config: LabConfig | str | None = None,
        base: str = BASE,
        session: str | Path | None = None,
        id: str = "",
        agent_id: str = "main",
        cassette: str | Path | None = None,
        cassette_only: bool = False,
        model_options: Mapping[str, Any] | None = None,
        max_steps: int = 20,
        max_repeats: int = 3,
        context_tokens: int = 100_000,
        summarise: Summarise = digest,
        conversation_access: bool = True,
        skill_mode: SkillMode = "match",
        plugin_config: PluginConfig = None,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if skill_mode not in ("match", "list"):
            raise ConfigError("skill_mode", skill_mode, "match or list")
        self.config = given.config_of(config)
        self.host = given.host_of(host, self.config)
        check(
            base=(base, str, "a text"), id=(id, str, "a name"), agent_id=(agent_id, str, "a name"),
            summarise=(summarise, callable, "a function of messages and the summary before"),
            clock=(clock, callable, "a function that gives seconds"),
            model_options=({} if model_options is None else model_options, Mapping, "options by name"),
            cassette_only=(cassette_only, bool, "true or false"),
            conversation_access=(conversation_access, bool, "true or false"),
        )  # fmt: skip
        environment = named_texts("environment", environment)
        steps, repeats = whole("max_steps", max_steps), whole("max_repeats", max_repeats)
        self._context_tokens, self._summarise = whole("context_tokens", context_tokens), summarise
        session, cassette = path_of("session", session), path_of("cassette", cassette)
        self._access, self._clock = conversation_access, clock
        self.extensions = Extensions(
            plugins, skills, tools, self.config, plugin_config, environment, skill_mode, memory
        )
        self._memory = memory
        self._learning = Learning.of(memory, self.config, self.host, conversation_access)
        self._recall, self._remember = recall_of(memory, self.config), remember_of(memory, self.config)
        self._base = base
        self._toolbox = Toolbox(self.extensions.tools)
        found = model_of(model, cassette=cassette, cassette_only=cassette_only, options=model_options)
        self._setup = Setup(found, self._system, steps, repeats, agent_id)
        self._busy, self._forked, self._closed = threading.Lock(), False, False
        self._attach(self._opened(session, id))

    def _opened(self, path: Path | None, id: str) -> SessionLog:
        redact = _redact(self.config) if path is not None else None
        if path is not None and path.exists() and path.stat().st_size:
            return SessionLog.resume(path, redact=redact, clock=self._clock)
        return SessionLog(
            id or uuid.uuid4().hex[:12], path, redact=redact, clock=self._clock, fields={"host": self.host.name}
        )

    def _attach(self, log: SessionLog) -> None:
        self._log = log
        self._hosting = Hosting(self.host, self.extensions.buses, log, access=self._access)

    # --- turns ---

    def run(
        self, message: str, *, on_step: Callable[[Step], object] | None = None, on_delta: Delta | None = None
    ) -> Turn:
        """Answer one user message. `on_step` sees each model call and tool result, `on_delta` text as it comes."""
        _lookers(on_step, on_delta)
        with self._turn(message, on_delta) as loop:
            turn = drive(loop.work(message), on_step)
            self._learn()
            return turn

    async def arun(
        self, message: str, *, on_step: Callable[[Step], object] | None = None, on_delta: Delta | None = None
    ) -> Turn:
        """As `run`, without blocking the event loop: plain models and tools run in a thread."""
        _lookers(on_step, on_delta)
        with self._turn(message, on_delta) as loop:
            turn = await adrive(loop.work(message), on_step)
            await asyncio.to_thread(self._learn)
            return turn

    def step(self, message: str) -> Iterator[Step | Turn]:
        """As `run`, one thing at a time: each Step as it is done, and the Turn at the end."""
        with self._turn(message, None) as loop:
            turn = yield from stepped(loop.work(message))
            self._learn()  # before the last yield: whoever has the Turn need not come back
            yield turn

    @contextmanager
    def _turn(self, message: str, on_delta: Delta | None) -> Iterator[TurnLoop]:
        if not isinstance(message, str) or not message.strip():
            raise TaskError("agent", "an empty message" if isinstance(message, str) else message, "a text")
        if self._closed:
            raise TaskError("agent", "a turn after close()", "an agent that is open", "make another one")
        if not self._busy.acquire(blocking=False):
            raise TaskError("agent", "a turn while another one is under way", "one at a time", "fork() for a second")
        try:
            if self._log.size > self._context_tokens:
                self._compact(_KEPT)
            self._toolbox = self._toolbox.followed(self.extensions.tools)
            yield TurnLoop(self._setup, self._toolbox, self._log, self._hosting, on_delta)
        finally:
            self._busy.release()

    def _learn(self) -> None:
        if self._learning is not None:
            self._learning.after_turn(self._log)

    def _system(self, message: str) -> str:
        """base + memory + skills + what stands for earlier messages."""
        recall = self._recall if self._learning is None else self._learning.recall(self._log)
        sections = (
            memory_section(recall, message, self.config),
            self.extensions.skill_section(message),
            summary_section(self._log.summary),
        )
        return system_prompt(self._base, sections)

    # --- the session ---

    @property
    def session(self) -> Session:
        """The conversation so far."""
        return self._log.as_session()

    @property
    def messages(self) -> Sequence[Message]:
        """Its messages."""
        return self._log.messages

    @property
    def trace(self) -> Trace:
        """Every hook event since the agent was made, and every plugin's answer."""
        return self._hosting.trace()

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools offered to the model, by name."""
        return self._toolbox.tools

    @property
    def plugin_reports(self) -> tuple[Report, ...]:
        """What became of each plugin: loaded, or disabled and why."""
        return tuple(report for each in self.extensions.plugins for report in each.reports)

    @property
    def skill_problems(self) -> tuple[str, ...]:
        """One line for each skill file that is not used, and each folder without skills."""
        return self.extensions.skill_problems

    @property
    def compactions(self) -> Sequence[Compaction]:
        """What was dropped from the context, oldest first."""
        return self._log.compactions

    def turns_from(self, index: int) -> int:
        """How many turns start at a message or after it."""
        index = given.count("turns_from", index)
        return sum(each >= index for each in self._log.turns)

    def steps(self) -> list[tuple[int, str, tuple[str, ...]]]:
        """The turns that `rollback` can take back: number, the user's message, the tools that were called."""
        log = self._log
        ends = [*log.turns[1:], log.length]
        return [
            (number, log.messages[start].text, tuple(c.name for m in log.messages[start:end] for c in m.tool_calls))
            for number, (start, end) in enumerate(zip(log.turns, ends, strict=False), start=1)
        ]

    def rollback(self, turns: int = 1) -> tuple[Message, ...]:
        """Take back the last user turns; what was taken back. What tools did, and what was learned, stays."""
        turns = given.count("rollback", turns)
        with self._alone():
            taken = self._log.rollback(turns)
            self._log.sync()
            self._hosting.follow()
            return taken

    def fork(self, *, session: str | Path | None = None, id: str = "", model: object = None) -> Self:
        """An agent that goes on from here on its own: same model (or another one), tools, plugins and host."""
        path = path_of("fork: session", session)
        check(id=(id, str, "a name"))
        with self._alone():
            log = self._log.fork(id or f"{self._log.id}-{uuid.uuid4().hex[:6]}", path)
            if self._learning is not None:
                self._learning.forked(log, self._log)
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._busy, made._forked, made._closed = threading.Lock(), True, False
        changes: dict[str, Any] = {"system": made._system}
        if model is not None:
            changes["model"] = model_of(model)
        made._setup = dataclasses.replace(self._setup, **changes)
        made._attach(log)
        return made

    def compact(self, keep: int = _KEPT) -> str:
        """Let a summary stand for all but the last `keep` turns; the summary, empty when there was nothing to drop."""
        keep = given.count("compact", keep)
        if keep < 0:
            raise TaskError("compact", keep, "0 or more turns to keep")
        with self._alone():
            return self._compact(keep)

    def _compact(self, keep: int) -> str:
        log = self._log
        start = split_at(log, keep)
        if start <= log.start:
            return ""
        self._hosting.begin()
        if self._learning is not None:
            self._learning.before_compaction(log)
        self._hosting.compaction(log.length)
        summary = self._summarise(log.messages[log.start : start], log.summary)
        if not isinstance(summary, str):
            raise TaskError("summarise", f"a {type(summary).__name__} from it", "a function that gives a text")
        log.compact(start, summary)
        self._hosting.compacted(log.length)
        return summary

    @property
    def learning(self) -> Learning | None:
        """What the growth memory was taught, and what went wrong; None without one."""
        return self._learning

    @property
    def remembers(self) -> bool:
        """Whether there is anything to remember with."""
        return self._memory is not None or SAVE in self._toolbox.tools

    def remember(self, text: str) -> str:
        """Keep something for later conversations; what became of it. Needs a memory, or a plugin's kb_save."""
        if not isinstance(text, str):
            raise TaskError("remember", f"a {type(text).__name__}", "a text")
        return self._remember(whole_text(text), self._toolbox)

    def skills(self) -> str:
        """The skills and whether they can be used, as the command /skills prints them."""
        return self.extensions.skill_status()

    def close(self) -> None:
        """End the session: hooks, the log, and the plugins' services; a fork leaves those to the agent it is of."""
        self._closed = True
        self._hosting.end()
        if self._learning is not None:
            self._learning.close(self._log)
        if not self._forked:
            self.extensions.stop()
        self._log.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self._closed:
            raise TaskError("agent", "a change after close()", "an agent that is open", "make another one")
        if not self._busy.acquire(blocking=False):
            raise TaskError("agent", "a change while a turn is under way", "the end of the turn first")
        try:
            yield
        finally:
            self._busy.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Agent({self._log.id!r}, {self.host.name}, {len(self._log.turns)} turns)"


def _lookers(on_step: object, on_delta: object) -> None:
    for name, function in (("on_step", on_step), ("on_delta", on_delta)):
        if function is not None and not callable(function):
            raise TaskError(name, f"a {type(function).__name__}", "a function of what comes")


def _redact(config: LabConfig) -> Callable[[Any], Any]:
    """What takes secrets out of a message or a text on its way into a log: the full rules, whatever the preset is."""
    from openclaw_lab.redaction.redactor import Redactor

    redactor = Redactor(dataclasses.replace(config.redaction, preset="strict"))
    return lambda value: redactor.redact(value).text if isinstance(value, str) else redactor.redact_message(value)
