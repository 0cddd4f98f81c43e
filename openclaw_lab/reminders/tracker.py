"""Messages and run boundaries of one session in, Steps for a reminder policy out.

The same tracker serves a live plugin and a replay; it looks only at what has happened so far.
"""

from __future__ import annotations

import json

from openclaw_lab.messages import Message, ToolCall
from openclaw_lab.reminders.opportunities import OpportunityFinder
from openclaw_lab.reminders.policy import Step, StepKind
from openclaw_lab.text import Language, count_tokens, language

SAVE_TOOL = "kb_save"
TOOL_SEARCH = "tool_call"  # `{"id": "kb_save", "args": {…}}`, where the host hides plugins' tools behind a search


class SessionTracker:
    """Counters of one session. `with_tokens=False` leaves `Step.tokens` at 0, for policies that do not read it."""

    def __init__(self, *, with_tokens: bool = True) -> None:
        self.calls = self.turns = self.tokens = self.seen = 0
        self.spoken: Language | None = None
        self._with_tokens = with_tokens
        self._finder = OpportunityFinder()
        self._after_user = False

    def see(self, message: Message) -> list[Step]:
        """The next message of the session, in order."""
        steps = [self._step("event", found.kind) for found in self._finder.see(message)]
        if message.role == "user":
            self._see_user(message)
        elif message.role == "assistant":
            self.calls += 1
        elif message.role == "tool" and _saves(self._finder.last_call) and not self._finder.last_failed:
            steps.append(self._step("save"))
        self._after_user = message.role == "user" or (self._after_user and message.role == "system")
        if self._with_tokens:
            self.tokens += message_tokens(message)
        self.seen += 1
        return steps

    def prompt(self) -> Step:
        """A prompt is being built, for a model call that is not among the messages yet."""
        return Step("prompt", self.calls + 1, self.turns, self.tokens, self.seen)

    def run_end(self) -> list[Step]:
        """The agent's run is over."""
        found = [self._step("event", each.kind) for each in self._finder.run_end()]
        return [*found, self._step("run_end")]

    def session_end(self) -> Step:
        """The session is over, or was reset."""
        return self._step("session_end")

    def _see_user(self, message: Message) -> None:
        # Messages that follow one another without an answer belong to one turn.
        if not self._after_user:
            self.turns += 1
        if text := message.text:
            self.spoken = language(text)

    def _step(self, kind: StepKind, event: object = None) -> Step:
        return Step(kind, self.calls, self.turns, self.tokens, self.seen, event)  # type: ignore[arg-type]


def _saves(call: ToolCall | None) -> bool:
    """Whether a call saves knowledge: by the tool's own name, or through OpenClaw's Tool Search (`tool_call`)."""
    if call is None or call.name != TOOL_SEARCH or isinstance(call.arguments, str):
        return call is not None and call.name == SAVE_TOOL
    return SAVE_TOOL in str(call.arguments.get("id", "")).split(":")


def message_tokens(message: Message) -> int:
    """Tokens of a message's text and tool calls."""
    total = count_tokens(message.text)
    for call in message.tool_calls:
        given = call.arguments
        arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
        total += count_tokens(call.name) + count_tokens(arguments)
    return total
