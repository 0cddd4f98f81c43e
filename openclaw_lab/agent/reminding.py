"""The KnowHub plugin's start text and reminders on a live agent, without the rest of the plugin.

Each session has counters of its own. A session that was forked or taken back begins with those that its messages lead
to: they are gone through first, as the host would have run them.
"""

from __future__ import annotations

from openclaw_lab.agent.host import HostProfile, host_profile
from openclaw_lab.agent.replay import hook_events
from openclaw_lab.config import ReminderConfig
from openclaw_lab.messages import Session
from openclaw_lab.plugins.builtin.knowhub.plugin import PLUGIN_ID, KnowHubHooks, StepReader
from openclaw_lab.plugins.hooks import HookBus, HookEvent, Injection


class Reminding:
    """Hand it to an agent among its plugins: `Agent(plugins=[Reminding(config.reminders)])`."""

    def __init__(self, config: ReminderConfig, host: HostProfile | None = None) -> None:
        self._config, self._host = config, host or host_profile(config.host)
        self._sessions: dict[str, KnowHubHooks] = {}

    def register(self, bus: HookBus) -> None:
        """Put the handlers on a bus."""
        bus.on("before_agent_start", self._starting, plugin=PLUGIN_ID)
        for hook in StepReader.HOOKS:
            bus.on(hook, self._observing, plugin=PLUGIN_ID)

    def _starting(self, event: HookEvent) -> Injection | None:
        return self._of(event).before_agent_start(event)

    def _observing(self, event: HookEvent) -> Injection | None:
        return self._of(event).observe(event)

    def _of(self, event: HookEvent) -> KnowHubHooks:
        known = self._sessions.get(event.session_id)
        if known is None:
            known = self._sessions[event.session_id] = KnowHubHooks(self._config)
            self._catch_up(known, event)
        return known

    def _catch_up(self, hooks: KnowHubHooks, event: HookEvent) -> None:
        """Go through the turns before the one under way."""
        before = event.at
        while before and event.history[before - 1].role == "user":
            before -= 1
        if not before:
            return
        past = Session(event.session_id, tuple(event.history[:before]))
        for each in hook_events(past, self._host):
            if each.hook == "before_agent_start":
                hooks.before_agent_start(each)
            elif each.hook in StepReader.HOOKS and each.hook != "session_end":
                hooks.observe(each)
