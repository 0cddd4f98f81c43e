"""A live session's hook events in the order and number of its host, and what plugins answer to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from openclaw_lab.agent.host import HostProfile
from openclaw_lab.agent.session import SessionLog
from openclaw_lab.messages import Message, ToolCall
from openclaw_lab.plugins.hooks import Firing, HookBus, HookEvent, HookName, Trace

# A hook that fired while nobody listened: hook, session, run, call, at, visible, tool. Kept as plain values, which cost
# the garbage collector of a long session next to nothing.
Fired = tuple[HookName, str, int, int, int, bool, ToolCall | None]


class Hosting:
    """Fires hooks for one session; counts runs and calls as a replay of the recorded session does.

    Without `access` the hooks that the host keeps from plugins without the permission reach nobody. After a rollback
    plugins see a session of another id, so that none goes on counting from messages that are gone.
    """

    def __init__(self, host: HostProfile, buses: Sequence[HookBus], log: SessionLog, *, access: bool = True) -> None:
        self.host, self.log = host, log
        self.fired: list[HookEvent | Fired] = []
        self.firings: list[Firing] = []
        self._buses = tuple(buses)
        self._hidden = frozenset() if access else host.gated
        self._begun = False
        self.follow()

    def follow(self) -> None:
        """Count from what the session holds now: at the start, and after a rollback."""
        log = self.log
        self.run, self.call = _answered(log), log.calls
        self.session_id = f"{log.id}~{log.revision}" if log.revision else log.id

    def emit(self, hook: HookName, at: int, *, visible: bool = True, tool: ToolCall | None = None) -> list[Firing]:
        """Fire one hook; what came back."""
        if hook in self._hidden:
            return []
        listening = [bus for bus in self._buses if bus.listens(hook)]
        if not listening:
            self.fired.append((hook, self.session_id, self.run, self.call, at, visible, tool))
            return []
        event = HookEvent(hook, self.session_id, self.run, self.call, at, self.log.messages, visible, tool)
        self.fired.append(event)
        answers = [firing for bus in listening for firing in bus.emit(event)]
        self.firings += answers
        return answers

    def begin(self) -> None:
        """The session starts, unless it has."""
        if not self._begun:
            self._begun = True
            if self.host.session_hooks:
                self.emit("session_start", self.log.length)

    def model_call(self, at: int, *, first: bool) -> list[Firing]:
        """The hooks before a model call, and what they inject into its prompt."""
        host, found = self.host, []
        self.call += 1
        if first:
            self.run += 1
            if host.start_hook:
                found += self.emit("before_agent_start", at)
        if first or host.prompt_hook == "llm_call":
            found += self.emit("before_prompt_build", at)
        if host.call_hook:
            self.emit("model_call_started", at)
        return [each for each in found if each.injection is not None and each.injection.text]

    def tool_call(self, call: ToolCall, at: int) -> tuple[ToolCall, str]:
        """The hook before a tool is called: the call as plugins left it, and why it is not made (empty: it is).

        A handler that fails refuses, as on the host.
        """
        for each in self.emit("before_tool_call", at, tool=call):
            by = f"plugin {each.plugin}" if each.plugin else "a hook"
            if each.error:
                return call, f"{by} was to look at the call and failed: {each.error}"
            if each.verdict is not None and each.verdict.block:
                return call, f"{by} refused the call{f': {each.verdict.reason}' if each.verdict.reason else ''}"
            if each.verdict is not None and each.verdict.arguments is not None:
                call = replace(call, arguments=dict(each.verdict.arguments))
        return call, ""

    def compaction(self, at: int) -> None:
        """Context is about to be dropped."""
        self.emit("before_compaction", at, visible=self.host.compaction_messages)

    def compacted(self, at: int) -> None:
        """It is dropped."""
        self.emit("after_compaction", at)

    def end(self) -> None:
        """The session is over."""
        if self._begun:
            self._begun = False
            if self.host.session_hooks:
                self.emit("session_end", self.log.length)

    def trace(self) -> Trace:
        """What happened so far."""
        return as_trace(self.fired, self.firings, self.log.messages)


def as_trace(fired: Sequence[HookEvent | Fired], firings: Sequence[Firing], history: Sequence[Message]) -> Trace:
    """Events as they are; those that nobody listened to are made of what was noted of them."""
    events = tuple(each if isinstance(each, HookEvent) else _event(each, history) for each in fired)
    return Trace(events, tuple(firings))


def _event(fired: Fired, history: Sequence[Message]) -> HookEvent:
    hook, session_id, run, call, at, visible, tool = fired
    return HookEvent(hook, session_id, run, call, at, history, visible, tool)


def _answered(log: SessionLog) -> int:
    """Turns that a model was called for: one that was never answered is no run."""
    messages, ends = log.messages, [*log.turns[1:], log.length]
    return sum(
        any(messages[index].role == "assistant" for index in range(start, end))
        for start, end in zip(log.turns, ends, strict=False)
    )
