"""An agent on a task, live: tools that answer by script, a knowledge base that notes what is searched and saved.

Any model can be run. `SimulatedAgent` stands in for one: it does what the task's author wrote down, and searches and
saves as likely as the behaviour model says, by draws that are the same under every setting. Its figures are simulated.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from openclaw_lab.agent.agent import Agent
from openclaw_lab.agent.models import calls
from openclaw_lab.agent.prompt import framed
from openclaw_lab.agent.reminding import Reminding
from openclaw_lab.agent.reply import Reply, Request
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import LabError, excerpt
from openclaw_lab.experiments.agent_tasks import AgentTask, ScriptedTool, Worth, has_term
from openclaw_lab.injection.prompt import Known, format_safe_experiences
from openclaw_lab.messages import Usage
from openclaw_lab.plugins.hooks import Firing
from openclaw_lab.plugins.tool import Tool, ToolContext, ToolResult
from openclaw_lab.reminders.behaviour import Behaviour
from openclaw_lab.text import count_tokens, language, words

_SEARCH = "Search the team's knowledge base: a complex task, unsure which tool to use, repeated failures."
_SAVE = "Save knowledge: after using a resource, after user feedback, after a finding on the way."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one task. `right`: how many of the `worth` things worth saving were saved; `needless`: saves of
    nothing new. `tokens` are those of all model calls, `reminder_tokens` those of injected text in them. `seconds`:
    how long the answers of a live model took, when they were asked for. `reason` says what went wrong, `error` why a
    task has no result.
    """

    searches: int = 0
    saves: int = 0
    right: int = 0
    worth: int = 0
    needless: int = 0
    solved: bool = False
    calls: int = 0
    reminders: int = 0
    reminder_tokens: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    reason: str = ""
    error: str = ""


def run_task(task_id: str, task: AgentTask, config: LabConfig, model: object, **options: Any) -> Outcome:
    """Run an agent through a task's turns, with the reminders of the config on its host.

    `model` is what Agent takes, or a PerTask.
    """
    desk = Desk(task, config)
    made = model.make(task_id, task) if isinstance(model, PerTask) else model
    agent = Agent(
        made, tools=desk.tools, plugins=[Reminding(config.reminders)], config=config, id=f"task-{task_id}", **options
    )
    try:
        turns = [agent.run(turn.message) for turn in task.turns]
    except LabError as error:
        return Outcome(error=str(error))
    costs = [turn.cost for turn in turns]
    answers = "\n".join(turn.text for turn in turns)
    used = [turn.usage for turn in turns]
    return Outcome(
        searches=desk.searches,
        saves=len(desk.saved),
        right=desk.right,
        worth=len(task.worth),
        needless=desk.needless,
        solved=task.solved_by(answers),
        calls=sum(turn.calls for turn in turns),
        reminders=sum(_reminders(turn.injections) for turn in turns),
        reminder_tokens=_paid(agent, [(turn.injections, turn.calls) for turn in turns]),
        tokens=sum(each.input + each.output + each.cache_read for each in used),
        cost=None if None in costs else sum(each for each in costs if each is not None),
        reason=_reason(task, desk, answers),
    )


def _reason(task: AgentTask, desk: Desk, answers: str) -> str:
    """What went wrong, in words; empty when nothing did."""
    parts = [f"not saved: {excerpt(each.text)}" for each in task.worth if not desk.has_saved(each)]
    parts += [f"saved needlessly: {excerpt(text.partition(chr(10))[2])}" for text in desk.needless_texts]
    unsaid = [each for each in task.success if not has_term(answers, each)]
    return "; ".join([*parts, *([f"the answer does not say: {', '.join(unsaid)}"] if unsaid else [])])


@dataclass(frozen=True, slots=True)
class PerTask:
    """A model that is made for each task, such as the simulated agent."""

    make: Callable[[str, AgentTask], object]


def _reminders(injections: tuple[Firing, ...]) -> int:
    return sum(each.injection is not None and each.injection.kind == "reminder" for each in injections)


def _paid(agent: Agent, turns: list[tuple[tuple[Firing, ...], int]]) -> int:
    """Tokens of injected text, with every later call that has it in its prompt."""
    lives, total, kept = agent.host.text_lives, 0, 0
    for injections, made in turns:
        total += kept * made  # what earlier turns left in the history
        for each in injections:
            if each.injection is None:
                continue
            size = _tokens(framed(each.injection, each.plugin))
            total += size * (1 if lives == "call" else made)
            kept += size if lives == "history" else 0
    return total


# --- the tools ----------------------------------------------------------------------------------------------------


class Desk:
    """The tools of one task, and the knowledge base's three, with what was done with them."""

    def __init__(self, task: AgentTask, config: LabConfig) -> None:
        self._task, self._config = task, config
        self.searches = 0
        self.saved: list[str] = []
        scripted = [_scripted(each) for each in task.tools]
        self.tools = [
            *scripted,
            Tool("kb_search", _SEARCH, _schema("query"), self._search),
            Tool("kb_save", _SAVE, _schema("task", "content"), self._save),
        ]

    @property
    def right(self) -> int:
        """How many of the things worth saving were saved."""
        return sum(map(self.has_saved, self._task.worth))

    def has_saved(self, worth: Worth) -> bool:
        """Whether one of them was saved."""
        return any(worth.said_in(text) for text in self.saved)

    @property
    def needless(self) -> int:
        """How many saves say nothing worth saving, or only what an earlier one said."""
        return len(self.needless_texts)

    @property
    def needless_texts(self) -> list[str]:
        """What those saves say."""
        found: set[int] = set()
        needless = []
        for text in self.saved:
            new = {number for number, each in enumerate(self._task.worth) if each.said_in(text)} - found
            found |= new
            needless += [] if new else [text]
        return needless

    def _search(self, arguments: Mapping[str, Any], _: ToolContext) -> ToolResult:
        self.searches += 1
        asked = set(words(str(arguments["query"])))
        hits = [
            Known(str(number), about, "", content)
            for number, (about, content) in enumerate(self._task.knowledge)
            if asked & set(words(about))
        ]
        if not hits:
            return ToolResult("nothing found")
        spoken = language(self._task.turns[0].message)
        return ToolResult(_safe(tuple(hits), self._config, spoken))

    def _save(self, arguments: Mapping[str, Any], _: ToolContext) -> ToolResult:
        self.saved.append(f"{arguments['task']}\n{arguments['content']}")
        return ToolResult("saved")


@functools.lru_cache(maxsize=256)
def _safe(hits: tuple[Known, ...], config: LabConfig, spoken: str) -> str:
    return format_safe_experiences(hits, config.injection, spoken)


def _scripted(tool: ScriptedTool) -> Tool:
    def run(arguments: Mapping[str, Any], _: ToolContext) -> ToolResult:
        for answer in tool.answers:
            if all(part in str(arguments.get(name, "")) for name, part in answer.when.items()):
                return ToolResult(answer.text, answer.failed)
        return ToolResult("no such thing", failed=True)

    return Tool(tool.name, tool.description, _schema(*tool.arguments), run)


def _schema(*names: str) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


# --- the simulated agent ------------------------------------------------------------------------------------------


class SimulatedAgent:
    """Does what a task's author wrote down. Whether it searches first, and saves what is worth saving, is drawn.

    The chance is the behaviour model's `p_save` at the turns since it last saw a start text or a reminder. A thing that
    is not saved when it becomes known gets another draw with every new reminder. With nothing to save, a reminder makes
    it save something needless with `needless` times that chance: an assumption without a source.
    """

    def __init__(self, task_id: str, task: AgentTask, behaviour: Behaviour, needless: float = 0.15) -> None:
        self._id, self._task, self._behaviour, self._needless = task_id, task, behaviour, needless
        self._turn = self._reminded = self._done = 0
        self._last: int | None = None
        self._informed = self._new = self._decided = False
        self._pending: list[int] = []
        self._plan: list[Reply] = []
        self._front = ""

    def __call__(self, request: Request) -> Reply:
        """The next thing that it does."""
        reply = self._next(request)
        size = sum(_tokens(each.text) for each in request.messages)
        output = _tokens(reply.text) + sum(_tokens(str(each.arguments)) + 1 for each in reply.tool_calls)
        return Reply(reply.text, reply.tool_calls, Usage(size, output), None, reply.stop)

    def _next(self, request: Request) -> Reply:
        if request.last.role == "user":
            self._begin()
        self._look(request)
        if request.last.role == "user" and self._turn == 1 and self._drawn("search", 0, 1.0):
            return calls(("kb_search", {"query": self._task.query}))
        if request.last.name == "kb_search" and request.last.text.startswith("<"):
            self._informed = True
        part = self._task.turns[self._turn - 1]
        chosen = part.informed if self._informed else part.plain
        if self._done < len(chosen.calls):
            self._done += 1
            return calls(chosen.calls[self._done - 1])
        if not self._decided:
            self._decided = True
            self._plan = self._saves()
        return self._plan.pop(0) if self._plan else Reply(chosen.answer)

    def _begin(self) -> None:
        self._turn += 1
        self._done = self._reminded = 0
        self._decided = self._new = False
        self._pending += [number for number, each in enumerate(self._task.worth) if each.turn == self._turn]

    def _look(self, request: Request) -> None:
        """Notice a start text or a reminder that was not there at the call before."""
        front = request.front
        if front is not self._front and ('kind="reminder"' in front or 'kind="start"' in front):
            self._reminded += 1
            self._new, self._last = True, self._turn
        self._front = front

    def _saves(self) -> list[Reply]:
        """What it saves now: what has just become known, and after a reminder what it had not saved before."""
        made = []
        for number in tuple(self._pending):
            worth = self._task.worth[number]
            if (worth.turn == self._turn or self._new) and self._drawn("save", number, 1.0):
                self._pending.remove(number)
                made.append(calls(("kb_save", {"task": self._task.query, "content": worth.text})))
        if not made and self._new and self._turn > 1 and self._drawn("needless", 0, self._needless):
            made.append(calls(("kb_save", {"task": self._task.query, "content": self._task.needless})))
        return made

    def _drawn(self, what: str, number: int, share: float) -> bool:
        gap = np.array([np.inf if self._last is None else float(self._turn - self._last)])
        extra = np.array([float(max(self._reminded - 1, 0))])
        chance = float(self._behaviour.p_save(gap, extra, np.zeros(1))[0]) * share
        text = f"{self._id}\0{what}\0{number}\0{self._turn}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64 < chance


@functools.lru_cache(maxsize=20_000)
def _tokens(text: str) -> int:
    return count_tokens(text)
