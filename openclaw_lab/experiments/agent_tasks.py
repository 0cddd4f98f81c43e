"""A row of an agent task in, an AgentTask out: what the user says, the scripted tools, what is worth saving.

A task says what a person wrote down about it; who solves it (a model, or the simulated agent of `live`) is not known
here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from openclaw_lab.errors import DataError

Calls = tuple[tuple[str, Mapping[str, Any]], ...]


@dataclass(frozen=True, slots=True)
class Scripted:
    """One answer of a scripted tool: given when every argument in `when` is found in the call's."""

    when: Mapping[str, str]
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ScriptedTool:
    """A tool whose answers are written down; the first that fits is given."""

    name: str
    description: str
    arguments: tuple[str, ...]
    answers: tuple[Scripted, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What the simulated agent does in one turn: calls, then an answer."""

    calls: Calls
    answer: str


@dataclass(frozen=True, slots=True)
class TaskTurn:
    """One user message; what the simulated agent does, and what it does when it has found the knowledge."""

    message: str
    plain: Part
    informed: Part


@dataclass(frozen=True, slots=True)
class Worth:
    """Something worth saving: known from turn `turn` (from 1) on; a save is right when it has all of `terms`.

    A term may offer alternatives: `pnpm|PNPM`. `text` is what a good agent would save.
    """

    turn: int
    terms: tuple[str, ...]
    text: str

    def said_in(self, saved: str) -> bool:
        """Whether a saved text says it."""
        return all(has_term(saved, term) for term in self.terms)


@dataclass(frozen=True, slots=True)
class AgentTask:
    """One task. `query`: what a good agent would search for; `knowledge`: what there is to be found."""

    turns: tuple[TaskTurn, ...]
    tools: tuple[ScriptedTool, ...]
    knowledge: tuple[tuple[str, str], ...]
    query: str
    worth: tuple[Worth, ...]
    success: tuple[str, ...]
    needless: str

    def solved_by(self, answers: str) -> bool:
        """Whether what the agent said to the user says what it had to."""
        return all(has_term(answers, term) for term in self.success)

    def __str__(self) -> str:
        return f"{len(self.turns)} turns, {len(self.worth)} worth saving"


def has_term(text: str, term: str) -> bool:
    """Whether a text has a term, or one of its alternatives; upper and lower case alike, spaces as they come."""
    folded = re.sub(r"\s+", " ", text.casefold())
    return any(each.casefold() in folded for each in term.split("|"))


def read_task(where: str, row: Mapping[str, Any]) -> AgentTask:
    """The task of a row; a DataError names what is missing or wrong."""
    try:
        turns = tuple(_turn(each) for each in row["turns"])
        tools = tuple(_tool(name, each) for name, each in row["tools"].items())
        knowledge = tuple((str(each["task"]), str(each["content"])) for each in row.get("knowledge", ()))
        worth = tuple(
            Worth(int(each["turn"]), tuple(map(str, each["terms"])), str(each["text"])) for each in row.get("worth", ())
        )
        task = AgentTask(
            turns, tools, knowledge, str(row["query"]), worth, tuple(map(str, row["success"])), str(row["needless"])
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        found = f"no field {error}" if isinstance(error, KeyError) else f"a field of another kind ({error})"
        raise DataError(where, found, "turns, tools, query, success, needless as datasets/README.md has them") from None
    _check(where, task)
    return task


def _turn(row: Mapping[str, Any]) -> TaskTurn:
    plain = Part(_calls(row.get("calls", ())), str(row["answer"]))
    informed = row.get("informed")
    return TaskTurn(
        str(row["message"]), plain, Part(_calls(informed["calls"]), informed["answer"]) if informed else plain
    )


def _calls(rows: Any) -> Calls:
    return tuple((str(name), dict(arguments)) for name, arguments in rows)


def _tool(name: str, row: Mapping[str, Any]) -> ScriptedTool:
    answers = tuple(
        Scripted(dict(each.get("when", {})), str(each["text"]), bool(each.get("failed", False)))
        for each in row["answers"]
    )
    return ScriptedTool(name, str(row["description"]), tuple(map(str, row["arguments"])), answers)


def _check(where: str, task: AgentTask) -> None:
    """What a simulated agent calls must be there, and what it would save must count as right."""
    if not task.turns:
        raise DataError(where, "no turns", "at least one")
    known = {tool.name: tool.arguments for tool in task.tools}
    for turn in task.turns:
        for name, arguments in (*turn.plain.calls, *turn.informed.calls):
            if name not in known or set(arguments) - set(known[name]):
                raise DataError(where, f"a call of {name}({', '.join(arguments)})", f"one of the tools {known}")
    for each in task.worth:
        if not each.said_in(each.text) or not 1 <= each.turn <= len(task.turns):
            raise DataError(where, f"worth {each.text!r}", "a text with all its terms, and a turn of the task")
        if each.said_in(task.needless):
            raise DataError(where, f"needless {task.needless!r}", "a text that is not worth saving")
