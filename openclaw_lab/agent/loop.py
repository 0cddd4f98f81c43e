"""One user message in, a Turn out: model -> tools -> model, until the model answers or a limit ends it.

The loop is a generator. It yields Steps, for whoever looks on, and Asks, whose answer it wants sent back: whoever
drives it may wait for that answer in its own way (see `driving`), so that there is one loop for sync and async.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from openclaw_lab.agent.hosting import Hosting
from openclaw_lab.agent.models import Model, as_reply
from openclaw_lab.agent.prompt import framed
from openclaw_lab.agent.reply import Reply, Request
from openclaw_lab.agent.session import SessionLog
from openclaw_lab.agent.tools import Toolbox, failure, result_of
from openclaw_lab.agent.turn import Step, Turn
from openclaw_lab.errors import LabError, excerpt
from openclaw_lab.messages import Message, ToolCall, Usage
from openclaw_lab.plugins.hooks import Firing
from openclaw_lab.plugins.tool import ToolContext, ToolResult
from openclaw_lab.text import whole_text

Ask = Callable[[], Any]
Delta = Callable[[str], None]
Loop = Generator[Ask | Step, Any, Turn]

_REPEATED = "This very call was made before; the result is the same. Use it, or do something else."


@dataclass(frozen=True, slots=True)
class Setup:
    """What stays the same from turn to turn. `system` makes the system prompt for a user message."""

    model: Model
    system: Callable[[str], str]
    max_steps: int = 20
    max_repeats: int = 3
    agent_id: str = "main"


class TurnLoop:
    """One turn under way."""

    def __init__(
        self, setup: Setup, toolbox: Toolbox, log: SessionLog, hosting: Hosting, on_delta: Delta | None
    ) -> None:
        self._setup, self._toolbox, self._log, self._hosting, self._on_delta = setup, toolbox, log, hosting, on_delta
        self._since = len(hosting.fired), len(hosting.firings)
        self._begin = self._user = log.length
        self._system = ""
        self._turn_texts: dict[int, str] = {}
        self._injections: list[Firing] = []
        self._calls = 0
        self._used = [0, 0, 0, 0]
        self._cost: float | None = 0.0
        self._made: dict[tuple[str, str], int] = {}
        self._ids: set[str] = set()

    def work(self, message: str) -> Loop:
        """The turn, as a generator."""
        message = whole_text(message)
        # First: when it cannot be made, nothing has happened yet. Asked for: it may look into a memory.
        self._system = yield lambda: self._setup.system(message)
        self._hosting.begin()
        self._user = self._log.append(Message("user", message))
        try:
            reply = yield from self._steps()
        except BaseException as error:
            self._broken(error)
            raise
        self._hosting.emit("agent_end", self._log.length)
        self._log.sync()
        return self._finish(*reply)

    def _steps(self) -> Generator[Ask | Step, Any, tuple[str, str]]:
        """Model, tools, model, …; the last text and why it ended."""
        while True:
            reply = yield from self._model_call()
            if not reply.tool_calls:
                return reply.text, "stop" if reply.stop in ("stop", "tool_calls", "toolUse") else reply.stop
            calls = self._said(reply)
            yield Step("model", reply.text, tuple(call.name for call in calls))
            again = yield from self._tool_calls(calls)
            if again:
                return reply.text, "loop"
            if self._calls >= self._setup.max_steps:
                return reply.text, "steps"

    # --- the model ---

    def _model_call(self) -> Generator[Ask | Step, Any, Reply]:
        self._calls += 1
        log, at = self._log, self._log.length
        found = self._hosting.model_call(at, first=self._calls == 1)
        injected = self._injected(found)
        request = Request(
            self._system, log.messages, log.start, at, injected, self._toolbox.offered, self._calls, self._on_delta
        )
        answer = yield lambda: self._setup.model(request)
        reply = answer if type(answer) is Reply else as_reply(answer)
        self._count(reply)
        if not reply.tool_calls:
            log.append(Message("assistant", reply.text, usage=reply.usage, stop_reason=reply.stop))
            yield Step("model", reply.text)
        return reply

    def _injected(self, found: list[Firing]) -> Mapping[int, str]:
        """The texts in front of user messages, for this call: as long as the host lets them live."""
        lives = self._hosting.host.text_lives
        if not found:
            return self._log.injected if lives == "history" else self._turn_texts if lives == "turn" else {}
        self._injections += found
        text = "\n\n".join(framed(each.injection, each.plugin) for each in found if each.injection)
        for each in found:
            if each.injection:
                self._log.note("injection", {"plugin": each.plugin, "kind": each.injection.kind, "call": self._calls})
        if lives == "history":
            self._log.inject(self._user, text)
            return self._log.injected
        if lives == "turn":
            before = self._turn_texts.get(self._user)
            self._turn_texts = {self._user: f"{before}\n\n{text}" if before else text}
            return self._turn_texts
        return {self._user: text}

    def _count(self, reply: Reply) -> None:
        used = reply.usage
        if used is not None:
            totals = self._used
            totals[0] += used.input
            totals[1] += used.output
            totals[2] += used.cache_read
            totals[3] += used.cache_write
        self._cost = None if self._cost is None or reply.cost is None else self._cost + reply.cost

    # --- tools ---

    def _said(self, reply: Reply) -> tuple[ToolCall, ...]:
        """The model's calls, each with an id of its own, and its message in the session."""
        calls = tuple(self._with_id(each) for each in reply.tool_calls)
        self._log.append(Message("assistant", reply.text, calls, usage=reply.usage, stop_reason="toolUse"))
        return calls

    def _with_id(self, call: ToolCall) -> ToolCall:
        own = call.id
        if not own or own in self._ids:
            own = f"call_{self._log.length}_{len(self._ids)}"
            call = ToolCall(own, call.name, call.arguments)
        self._ids.add(own)
        return call

    def _tool_calls(self, calls: tuple[ToolCall, ...]) -> Generator[Ask | Step, Any, bool]:
        """Run the calls of one answer, in order; whether the model goes round in circles."""
        at, hosting, circling = self._log.length, self._hosting, False
        allowed = [hosting.tool_call(call, at) for call in calls]
        for call, (made, refused) in zip(calls, allowed, strict=True):
            times = self._times(call)
            circling = circling or times > self._setup.max_repeats + 1
            result = ToolResult(refused or _REPEATED, failed=True)
            if not refused and times <= self._setup.max_repeats:
                result = yield from self._result(made)
            self._log.append(Message("tool", result.text, tool_call_id=call.id, name=call.name, failed=result.failed))
            hosting.emit("after_tool_call", self._log.length)
            yield Step("tool", result.text, (call.name,), result.failed)
        return circling

    def _times(self, call: ToolCall) -> int:
        key = call.name, str(call.arguments)
        times = self._made[key] = self._made.get(key, 0) + 1
        return times

    def _result(self, call: ToolCall) -> Generator[Ask | Step, Any, ToolResult]:
        context = ToolContext(self._log.id, self._setup.agent_id, call.id or "", self._on_delta)
        try:
            given = yield lambda: self._toolbox.call(call, context)
        except Exception as error:  # an `async` tool's fault, which comes when it is waited for
            return failure(call.name, error)
        return given if type(given) is ToolResult else result_of(call.name, given)

    # --- the end ---

    def _finish(self, text: str, reason: str) -> Turn:
        fired, firings = self._since
        hosting = self._hosting
        return Turn(
            text,
            tuple(self._log.messages[self._begin :]),
            tuple(self._injections),
            self._calls,
            Usage(*self._used),
            self._cost,
            reason,
            tuple(hosting.fired[fired:]),
            tuple(hosting.firings[firings:]),
            self._log.messages,
        )

    def _broken(self, error: BaseException) -> None:
        """The turn ends here: calls without a result get one, and the session says what happened."""
        log = self._log
        reason = "error" if isinstance(error, Exception) else "aborted"
        if self._calls:
            log.end_cut(reason)
        said = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
        log.note(reason, {"said": excerpt(said, 300)})
        if self._calls:
            self._hosting.emit("agent_end", log.length)
        log.sync()
