"""Host profiles: which hooks a host fires when, what it hands over, and how long injected text lives.

The two OpenClaw profiles describe behaviour that was observed by running those versions; "seed" is what the seed
document assumes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from openclaw_lab.config import ReminderConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.knobs import nearest
from openclaw_lab.plugins.hooks import HookName


@dataclass(frozen=True, slots=True)
class HostProfile:
    """One host.

    `prompt_hook`: before_prompt_build fires once a model call or once a user turn.
    `text_lives`: injected text is in the prompt of that call only, of every call of the turn, or of every later call.
    `gated`: hooks that an installed plugin gets only with `hooks.allowConversationAccess: true`.
    """

    name: str
    start_hook: bool
    prompt_hook: Literal["llm_call", "user_turn"]
    text_lives: Literal["call", "turn", "history"]
    session_hooks: bool
    call_hook: bool
    compaction_messages: bool
    gated: frozenset[HookName] = frozenset()


PROFILES: dict[str, HostProfile] = {
    profile.name: profile
    for profile in (
        HostProfile(
            "seed",
            start_hook=True,
            prompt_hook="llm_call",
            text_lives="call",
            session_hooks=False,
            call_hook=False,
            compaction_messages=True,
        ),
        HostProfile(
            "openclaw-2026.3",
            start_hook=True,
            prompt_hook="user_turn",
            text_lives="history",
            session_hooks=True,
            call_hook=False,
            compaction_messages=False,
        ),
        HostProfile(
            "openclaw-2026.9",
            start_hook=False,
            prompt_hook="user_turn",
            text_lives="turn",
            session_hooks=True,
            call_hook=True,
            compaction_messages=False,
            gated=frozenset({"before_prompt_build", "agent_end"}),
        ),
    )
}


def host_profile(name: str) -> HostProfile:
    """The profile of that name, or an error that names the nearest one."""
    if name not in PROFILES:
        raise TaskError(f"host {name!r}", expected="a known host", todo=nearest(name, PROFILES))
    return PROFILES[name]


def silent_hosts(reminders: ReminderConfig) -> tuple[str, ...]:
    """The hosts on which a setting that reminds can never do so.

    Where the prompt hook comes once a run and the counters start again with every run, they never pass 1.
    """
    needed = {
        "interval": reminders.interval,
        "since_save": max(reminders.since_save, reminders.since_reminder),
        "event": reminders.min_gap,
    }.get(reminders.policy, 0)
    stuck = needed > 1 and reminders.scope == "run"
    return tuple(name for name, profile in PROFILES.items() if stuck and profile.prompt_hook == "user_turn")
