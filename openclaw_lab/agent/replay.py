"""A recorded session in, the hook events out that a host would have fired; and those events run through a bus.

A run is what answers one user turn: it starts with a user message (several in a row, unanswered in between, are one
turn), and every assistant message in it is one model call. A turn that was never answered fires nothing, since no
prompt is recorded for it. The recording is what really happened: text injected in a replay does not change it.
"""

from __future__ import annotations

from collections.abc import Iterator

from openclaw_lab.agent.host import HostProfile, host_profile
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import HookError
from openclaw_lab.messages import ContextCut, Message, Session, ToolCall
from openclaw_lab.plugins.builtin.knowhub.plugin import KnowHubHooks
from openclaw_lab.plugins.hooks import HookBus, HookEvent, HookName, Trace


def replay(session: Session, config: LabConfig, *, conversation_access: bool = True) -> Trace:
    """Run the KnowHub plugin's hooks over a recorded session, on the host that the config names."""
    if not hasattr(session, "cuts"):
        found = f"a {type(session).__name__}"
        raise HookError("replay", found, "a Session and a LabConfig", "a Dataset's sample holds its session in .input")
    if not isinstance(config, LabConfig):
        raise HookError("replay: config", f"a {type(config).__name__}", "a LabConfig")
    bus = HookBus()
    KnowHubHooks(config.reminders).register(bus)
    return replay_on(session, host_profile(config.reminders.host), bus, conversation_access=conversation_access)


def replay_on(session: Session, host: HostProfile, bus: HookBus, *, conversation_access: bool = True) -> Trace:
    """Walk the session as `host` would have run it and call the bus's handlers; the trace says what fired when.

    Without `conversation_access` the gated hooks of the host reach no handler, as for an installed plugin that lacks
    the permission.
    """
    events = tuple(hook_events(session, host, conversation_access=conversation_access))
    firings = [firing for event in events for firing in bus.emit(event)]
    return Trace(events, tuple(firings))


def hook_events(session: Session, host: HostProfile, *, conversation_access: bool = True) -> Iterator[HookEvent]:
    """The events of a session under a host, in order, without any handler."""
    hidden = frozenset() if conversation_access else host.gated
    return (event for event in _Walk(session, host).events() if event.hook not in hidden)


class _Walk:
    """One pass over the messages; holds where the walk is."""

    def __init__(self, session: Session, host: HostProfile) -> None:
        self._session, self._host = session, host
        self._cuts: dict[int, list[ContextCut]] = {}
        for cut in session.cuts:
            self._cuts.setdefault(cut.at, []).append(cut)
        self._at = self._run = self._call = 0
        self._running = False

    def events(self) -> Iterator[HookEvent]:
        yield from self._session_hook("session_start")
        previous = None
        for message in self._session.messages:
            if message.role == "user" and previous != "user":
                yield from self._end_run()
            yield from self._cut()  # what was dropped before a user's turn was dropped between runs
            yield from self._message(message)
            if message.role != "system":
                previous = message.role
            self._at += 1
        yield from self._end_run()
        yield from self._cut()
        yield from self._session_hook("session_end")

    def _message(self, message: Message) -> Iterator[HookEvent]:
        if message.role == "assistant":
            yield from self._model_call()
            for call in message.tool_calls:
                yield self._event("before_tool_call", at=self._at + 1, tool=call)
        elif message.role == "tool":
            yield self._event("after_tool_call", at=self._at + 1)

    def _model_call(self) -> Iterator[HookEvent]:
        self._call += 1
        first = not self._running
        if first:
            self._run, self._running = self._run + 1, True
            if self._host.start_hook:
                yield self._event("before_agent_start")
        if first or self._host.prompt_hook == "llm_call":
            yield self._event("before_prompt_build")
        if self._host.call_hook:
            yield self._event("model_call_started")

    def _end_run(self) -> Iterator[HookEvent]:
        if self._running:
            self._running = False
            yield self._event("agent_end")

    def _cut(self) -> Iterator[HookEvent]:
        for cut in self._cuts.get(self._at, ()):
            if cut.kind == "compaction":
                yield self._event("before_compaction", visible=self._host.compaction_messages)
            else:
                yield from self._end_run()
                yield from self._session_hook("session_end")
                yield from self._session_hook("session_start")

    def _session_hook(self, hook: HookName) -> Iterator[HookEvent]:
        if self._host.session_hooks:
            yield self._event(hook)

    def _event(
        self, hook: HookName, *, at: int | None = None, visible: bool = True, tool: ToolCall | None = None
    ) -> HookEvent:
        session = self._session
        where = self._at if at is None else at
        return HookEvent(hook, session.id, self._run, self._call, where, session.messages, visible, tool)
