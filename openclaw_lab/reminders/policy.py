"""Step after step of a session in, "remind now" or not out. Knows counters, not messages, hooks or hosts.

One policy object serves one session. The counters in a Step run from the start of the session and never go back;
what starts again with a run or after a reminder is the policy's own baseline.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from openclaw_lab.config import ReminderConfig
from openclaw_lab.messages import OpportunityKind

StepKind = Literal["prompt", "save", "event", "run_end", "session_end"]


class Step(NamedTuple):
    """One thing that a policy gets to know.

    `prompt`: a prompt is being built, the only step that may be answered with a reminder. `save`: the agent saved
    knowledge. `event`: something worth remembering (`event` says what kind). `run_end`, `session_end`: as named.
    `calls` and `turns` include the model call and the user turn under way; `tokens` are those of the conversation so
    far; `at` is the number of messages so far.
    """

    kind: StepKind
    calls: int
    turns: int
    tokens: int
    at: int
    event: OpportunityKind | None = None


class ReminderPolicy:
    """The reminder rule of a ReminderConfig with its state for one session."""

    def __init__(self, config: ReminderConfig) -> None:
        self._due = {
            "off": _never,
            "interval": ReminderPolicy._interval_due,
            "since_save": ReminderPolicy._since_save_due,
            "token_gap": ReminderPolicy._token_gap_due,
            "event": ReminderPolicy._event_due,
        }[config.policy]
        self._config = config
        self._by_calls = config.unit == "llm_call"
        self._by_run = config.scope == "run"
        self._events = frozenset(config.events)
        self._restart(0, 0)

    def step(self, step: Step) -> bool:
        """Take one step; True only for a `prompt` step that must carry a reminder."""
        kind = step.kind
        if kind == "prompt":
            count = step.calls if self._by_calls else step.turns
            if not self._due(self, count, step.tokens):
                return False
            self._last_reminder, self._reminder_tokens, self._pending = count, step.tokens, False
            return True
        count = step.calls if self._by_calls else step.turns
        if kind == "event":
            self._pending = self._pending or step.event in self._events
        elif kind == "save":
            self._last_save, self._save_tokens, self._pending = count, step.tokens, False
        elif kind == "session_end" or self._by_run:
            self._restart(count, step.tokens)
        return False

    def _restart(self, count: int, tokens: int) -> None:
        """Counters start here. The run just ended is counted, so the next one begins at 1."""
        self._last_reminder = self._last_save = count
        self._reminder_tokens = self._save_tokens = tokens
        self._pending = False

    def _interval_due(self, count: int, tokens: int) -> bool:
        return count - self._last_reminder >= self._config.interval

    def _since_save_due(self, count: int, tokens: int) -> bool:
        since_save, since_reminder = count - self._last_save, count - self._last_reminder
        return since_save >= self._config.since_save and since_reminder >= self._config.since_reminder

    def _token_gap_due(self, count: int, tokens: int) -> bool:
        return tokens - max(self._reminder_tokens, self._save_tokens) >= self._config.token_gap

    def _event_due(self, count: int, tokens: int) -> bool:
        return self._pending and count - self._last_reminder >= self._config.min_gap


def _never(policy: ReminderPolicy, count: int, tokens: int) -> bool:
    return False
