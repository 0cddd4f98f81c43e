"""The extension contract: a closed set of hooks, the event each handler gets, and the bus that calls handlers.

A handler is `handler(event) -> Injection | Verdict | None`; only the hooks in PROMPT_HOOKS may answer with an
Injection, and only before_tool_call with a Verdict. A handler that raises is recorded in the trace and skipped, as the
real host does; the others still run.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from openclaw_lab.errors import HookError, excerpt
from openclaw_lab.knobs import nearest
from openclaw_lab.messages import Message, ToolCall

if TYPE_CHECKING:
    import pandas as pd

HookName = Literal[
    "session_start",  # a session begins, or begins again after a reset
    "before_agent_start",  # an agent run begins; gone from newer hosts
    "before_prompt_build",  # a prompt is about to be built: once a model call or once a run, as the host has it
    "model_call_started",  # a model call begins; observing only
    "before_tool_call",  # a tool is about to be called
    "after_tool_call",  # a tool's result has come
    "agent_end",  # an agent run is over
    "before_compaction",  # the host is about to drop earlier context
    "after_compaction",  # it has; only a live session fires it, since a recording does not say
    "session_end",  # a session is over, or is reset
]
HOOKS: tuple[HookName, ...] = get_args(HookName)
PROMPT_HOOKS = frozenset({"before_agent_start", "before_prompt_build"})
TOOL_HOOK: HookName = "before_tool_call"


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One firing of a hook. `run` and `call` count from 1; `at` is the number of messages recorded so far; `tool` is
    the call that before_tool_call is about.

    `history` is the whole recording and `visible` says whether the host hands the messages so far to this hook.
    """

    hook: HookName
    session_id: str
    run: int
    call: int
    at: int
    history: Sequence[Message] = field(repr=False, compare=False)
    visible: bool = True
    tool: ToolCall | None = None

    @property
    def messages(self) -> Sequence[Message]:
        """The messages so far, oldest first; empty where the host hands none over."""
        return self.history[: self.at] if self.visible else ()


@dataclass(frozen=True, slots=True)
class Injection:
    """Text that a handler puts in front of the user's message, and what it is for (`start`, `reminder`, …)."""

    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a handler says of a tool call: that it is not made, and why, or that it is made with other arguments."""

    block: bool = False
    reason: str = ""
    arguments: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """From what a host takes: `block`, `blockReason`, `params`; a HookError for anything else."""
        if answer.get("requireApproval"):
            raise HookError(TOOL_HOOK, "requireApproval", "block or params: nobody is here to approve a call")
        block, reason, arguments = answer.get("block", False), answer.get("blockReason", ""), answer.get("params")
        unknown = sorted(set(map(str, answer)) - {"block", "blockReason", "params", "requireApproval"})
        typed = isinstance(block, bool) and isinstance(reason, str) and isinstance(arguments, Mapping | None)
        if unknown or not typed:
            found = ", ".join(unknown) or ", ".join(f"{k}: a {type(v).__name__}" for k, v in answer.items())
            raise HookError(TOOL_HOOK, found, "block (true or false), blockReason (text), params (an object)")
        return cls(block, reason, arguments)


_ERROR = 200  # characters of an error that a trace keeps
Handler = Callable[[HookEvent], Injection | Verdict | None]


@dataclass(frozen=True, slots=True)
class Firing:
    """One line of a trace: the event, who handled it, what came back, or the error in one line."""

    event: HookEvent
    plugin: str
    injection: Injection | None = None
    error: str = ""
    verdict: Verdict | None = None


class HookBus:
    """Handlers by hook, called in order of priority (higher first), then of registration."""

    def __init__(self) -> None:
        self._handlers: dict[HookName, list[tuple[float, str, Handler]]] = {name: [] for name in HOOKS}

    def on(self, hook: str, handler: Handler, *, plugin: str = "", priority: float = 0) -> None:
        """Register a handler; an unknown hook name is an error that names the nearest right one."""
        if hook not in HOOKS:
            raise HookError(f"hook {hook!r}", expected="a known hook", todo=nearest(str(hook), HOOKS))
        if not callable(handler):
            raise HookError(f"hook {hook}", f"a {type(handler).__name__}", "a function that takes the event")
        if not isinstance(priority, int | float) or priority != priority:
            raise HookError(f"hook {hook}: priority", str(priority), "a number")
        handlers = self._handlers[hook]
        handlers.append((priority, plugin, handler))
        handlers.sort(key=lambda entry: -entry[0])

    def off(self, plugin: str) -> None:
        """Take out every handler of a plugin."""
        for hook, handlers in self._handlers.items():
            self._handlers[hook] = [entry for entry in handlers if entry[1] != plugin]

    def listens(self, hook: HookName) -> bool:
        """Whether anybody has a handler for a hook."""
        return bool(self._handlers[hook])

    def emit(self, event: HookEvent) -> list[Firing]:
        """Call every handler of the event's hook; one Firing each, none when nobody listens."""
        return [_fire(event, plugin, handler) for _, plugin, handler in tuple(self._handlers[event.hook])]


def _answers(firings: Sequence[Firing]) -> tuple[str, str]:
    """What came back for one event, kinds and errors, and the texts, of all handlers that answered."""
    kinds = [firing.injection.kind if firing.injection else firing.error for firing in firings]
    texts = [firing.injection.text for firing in firings if firing.injection]
    return "; ".join(kinds), "\n\n".join(texts)


def _fire(event: HookEvent, plugin: str, handler: Handler) -> Firing:
    try:
        answer: object = handler(event)
        if answer is None:
            return Firing(event, plugin)
        if isinstance(answer, Verdict) and event.hook == TOOL_HOOK:
            return Firing(event, plugin, verdict=answer)
        if inspect.iscoroutine(answer):
            answer.close()  # else Python complains later that nobody awaited it
        builds = event.hook in PROMPT_HOOKS
        if not builds or not isinstance(answer, Injection) or not (type(answer.text) is type(answer.kind) is str):
            wanted = "an Injection of text, or None" if builds else "no answer to a hook that builds no prompt"
            raise HookError(f"{plugin or 'a handler'} on {event.hook}", answer, wanted)
        return Firing(event, plugin, answer)
    except Exception as error:  # a plugin's fault must not stop the others: the host skips the handler too
        return Firing(event, plugin, error=excerpt(f"{type(error).__name__}: {error}", _ERROR))


@dataclass(frozen=True)
class Trace:
    """What happened, in order: every hook event, and every handler's answer."""

    events: tuple[HookEvent, ...]
    firings: tuple[Firing, ...]

    @property
    def counts(self) -> dict[HookName, int]:
        """How often each hook fired; hooks that never did are listed with 0."""
        found = Counter(event.hook for event in self.events)
        return {name: found[name] for name in HOOKS}

    @property
    def injections(self) -> list[Firing]:
        """The firings that put text into a prompt."""
        return [firing for firing in self.firings if firing.injection and firing.injection.text]

    @property
    def errors(self) -> list[Firing]:
        """The firings whose handler raised, or answered what it must not."""
        return [firing for firing in self.firings if firing.error]

    @property
    def frame(self) -> pd.DataFrame:
        """One row a hook event: run, call, message, hook, answer (each kind or error that came back), text."""
        import pandas as pd

        answers: dict[int, list[Firing]] = {}
        for firing in self.firings:
            if firing.injection or firing.error:
                answers.setdefault(id(firing.event), []).append(firing)
        rows = [[e.run, e.call, e.at, e.hook, *_answers(answers.get(id(e), []))] for e in self.events]
        return pd.DataFrame(rows, columns=["run", "call", "message", "hook", "answer", "text"])

    def __str__(self) -> str:
        return self.frame.drop(columns="text").to_string(index=False)
