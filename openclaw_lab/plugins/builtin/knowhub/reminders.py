"""The KnowHub plugin's reminders: hook events in, start texts and reminders out.

`KnowHubHooks` holds the state of one session. It reads only what the host hands it, so what a replay measures is what
a live host would see.
"""

from __future__ import annotations

from collections import OrderedDict

from openclaw_lab.config import ReminderConfig
from openclaw_lab.plugins.hooks import HookBus, HookEvent, Injection
from openclaw_lab.reminders.policy import ReminderPolicy, Step
from openclaw_lab.reminders.texts import TextKind, joined
from openclaw_lab.reminders.tracker import SessionTracker

PLUGIN_ID = "knowhub"


class StepReader:
    """Turns the hook events of one session into the Steps that a reminder policy takes."""

    HOOKS = ("before_prompt_build", "after_tool_call", "agent_end", "session_end")

    def __init__(self, *, with_tokens: bool = True) -> None:
        self.tracker = SessionTracker(with_tokens=with_tokens)

    def read(self, event: HookEvent) -> list[Step]:
        """The steps that this event makes known, in order; at most the last one is a `prompt`."""
        steps = self._catch_up(event)
        if event.hook == "before_prompt_build":
            steps.append(self.tracker.prompt())
        elif event.hook == "agent_end":
            steps += self.tracker.run_end()
        elif event.hook == "session_end":
            steps.append(self.tracker.session_end())
        return steps

    def _catch_up(self, event: HookEvent) -> list[Step]:
        steps: list[Step] = []
        for index in range(self.tracker.seen, event.at):
            steps += self.tracker.see(event.history[index])
        return steps


class KnowHubHooks:
    """Start text and reminders for one session."""

    def __init__(self, config: ReminderConfig) -> None:
        self._config = config
        self._reader = StepReader(with_tokens=config.policy == "token_gap")
        self._policy = ReminderPolicy(config)
        self._start_due = starts(config)
        self._has_start_hook = False

    def register(self, bus: HookBus) -> None:
        """Put the handlers on a bus."""
        bus.on("before_agent_start", self.before_agent_start, plugin=PLUGIN_ID)
        for hook in StepReader.HOOKS:
            bus.on(hook, self.observe, plugin=PLUGIN_ID)

    def before_agent_start(self, event: HookEvent) -> Injection | None:
        """The start text, on hosts that have a start hook."""
        self._has_start_hook = True
        self._reminded(event)
        if not self._start_due:
            return None
        self._start_due = self._config.start == "run"
        return self._injection("start")

    def observe(self, event: HookEvent) -> Injection | None:
        """Counters; and at a prompt build the start text (on hosts without a start hook) and the reminder."""
        reminded = self._reminded(event)
        if event.hook == "session_end":
            self._start_due = starts(self._config)
        if event.hook != "before_prompt_build":
            return None
        starting = self._start_due and not self._has_start_hook
        if starting:
            self._start_due = False
        kinds: list[TextKind] = ["start"] * starting
        kinds += ["reminder"] * reminded
        return self._injection(*kinds) if kinds else None

    def _reminded(self, event: HookEvent) -> bool:
        answers = [self._policy.step(step) for step in self._reader.read(event)]
        return any(answers)

    def _injection(self, *kinds: TextKind) -> Injection:
        return Injection(joined(kinds, self._config, self._reader.tracker.spoken or "en"), kinds[-1])


def starts(config: ReminderConfig) -> bool:
    """Whether a session gets a start text at all."""
    return config.policy != "off" and config.start != "off"


class SessionReminders:
    """The reminders of every session that is open: one KnowHubHooks each, the least recently used forgotten."""

    MOST = 1_000

    def __init__(self, config: ReminderConfig) -> None:
        self._config = config
        self._sessions: OrderedDict[str, KnowHubHooks] = OrderedDict()

    def before_agent_start(self, event: HookEvent) -> Injection | None:
        """The start text, where the host has a hook for it."""
        return self._of(event).before_agent_start(event)

    def observe(self, event: HookEvent) -> Injection | None:
        """What every other hook of `StepReader.HOOKS` gets."""
        return self._of(event).observe(event)

    def _of(self, event: HookEvent) -> KnowHubHooks:
        found = self._sessions.pop(event.session_id, None) or KnowHubHooks(self._config)
        self._sessions[event.session_id] = found
        if len(self._sessions) > self.MOST:
            self._sessions.popitem(last=False)
        return found
