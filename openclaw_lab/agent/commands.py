"""A line of a terminal in, what a slash command answers out; a line that is no command is a message for the agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from openclaw_lab.agent.agent import Agent
from openclaw_lab.errors import TaskError, excerpt
from openclaw_lab.knobs import nearest

_SHOWN = 60
# What ends a conversation.
END = ("/quit", "/exit")
# What asks to keep something, said as a message: 「记住…」, "remember this: …".
_REMEMBER = ("记住：", "记住:", "记住，", "请记住", "remember this:", "remember that ", "remember:")


class Commands:
    """The slash commands of one terminal; `agent` is the one that is talked to now, which a fork changes."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._known: dict[str, tuple[Callable[[str], str], str]] = {
            "/skills": (self._skills, "the skills and whether they can be used"),
            "/steps": (self._steps, "the turns so far"),
            "/rollback": (self._rollback, "N: take back the last N turns (1)"),
            "/fork": (self._fork, "[FILE]: go on in a copy of the session"),
            "/remember": (self._remember, "TEXT: keep something for later conversations"),
            "/compact": (self._compact, "let a summary stand for all but the last two turns"),
            "/help": (self._help, "this list"),
        }

    def answer(self, line: str) -> str | None:
        """What a command answers; None for a line that is a message. Errors are one line each."""
        name, _, rest = line.strip().partition(" ")
        name = name.lower() if name.lower() in self._known else name
        if not name.startswith("/") or "/" in name[1:]:
            wish = _wish(line) if self.agent.remembers else ""
            return self._remember(wish) if wish else None
        if name not in self._known:
            raise TaskError(
                f"command {name}", expected="a known command", todo=nearest(name.lower(), [*self._known, *END])
            )
        return self._known[name][0](rest.strip())

    def _skills(self, _: str) -> str:
        return self.agent.skills()

    def _steps(self, _: str) -> str:
        lines = [
            f"{number:3}. {excerpt(text, _SHOWN)}" + (f" [{', '.join(tools)}]" if tools else "")
            for number, text, tools in self.agent.steps()
        ]
        return "\n".join(lines) if lines else "No turns yet."

    def _rollback(self, rest: str) -> str:
        if rest and not rest.isdecimal():
            raise TaskError("/rollback", rest, "a number of turns")
        turns = int(rest or 1)
        taken = self.agent.rollback(turns)
        return f"Took back {turns} turn{'s' if turns > 1 else ''} ({len(taken)} messages)."

    def _fork(self, rest: str) -> str:
        if rest and Path(rest).expanduser().is_dir():
            raise TaskError("/fork", f"{rest}, a folder", "a file", f"/fork {Path(rest) / 'session.jsonl'}")
        self.agent = self.agent.fork(session=Path(rest) if rest else None)
        return f"Now in session {self.agent.session.id}{f', logged to {rest}' if rest else ''}."

    def _remember(self, rest: str) -> str:
        if rest and not self.agent.remembers:
            todo = "start with: openclaw-lab chat --knowledge FOLDER; in Python, give Agent(memory=…)"
            raise TaskError("/remember", "no memory", "a knowledge base", todo)
        return self.agent.remember(rest)

    def _compact(self, _: str) -> str:
        summary = self.agent.compact()
        return f"The summary that stands for the earlier turns:\n{summary}" if summary else "Nothing to leave out yet."

    def _help(self, _: str) -> str:
        listed = [*((name, said) for name, (_, said) in self._known.items()), ("/quit", "end; /exit does the same")]
        return "\n".join(f"{name:10} {said}" for name, said in listed)


def _wish(line: str) -> str:
    """What a message asks to remember; empty when it asks nothing of the kind."""
    said = line.strip()
    for opening in _REMEMBER:
        if said.lower().startswith(opening):
            return said[len(opening) :].strip(" ：:，,")
    return ""
