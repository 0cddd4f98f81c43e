"""Conversations for tests: one short word a message, and a strategy that makes any session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from openclaw_lab.messages import (
    OPPORTUNITY_KINDS,
    ContextCut,
    Message,
    Opportunity,
    OpportunityKind,
    Session,
    ToolCall,
)

steady = settings(deadline=None)  # the first example pays for imports, and the machine may be busy
HOSTS = ("seed", "openclaw-2026.3", "openclaw-2026.9")


def user(text: str = "go on") -> Message:
    return Message("user", text)


def said(text: str = "Done.", stop: str | None = None) -> Message:
    return Message("assistant", text, stop_reason=stop)


def called(*calls: ToolCall) -> Message:
    return Message("assistant", "", calls)


def call(id: str | None, name: str = "read", /, **arguments: Any) -> ToolCall:
    return ToolCall(id, name, arguments)


def result(id: str | None, text: str = "ok", *, failed: bool | None = None, name: str | None = None) -> Message:
    return Message("tool", text, tool_call_id=id, name=name, failed=failed)


def tried(id: str, command: str, output: str, *, failed: bool | None = None) -> tuple[Message, Message]:
    """One shell command and its output."""
    return called(call(id, "bash", command=command)), result(id, output, failed=failed)


def turn(text: str, calls: int, first: int = 0) -> list[Message]:
    """A user's turn that takes so many model calls: each but the last reads a file."""
    messages = [user(text)]
    for number in range(first, first + calls - 1):
        messages += [called(call(f"c{number}")), result(f"c{number}")]
    return [*messages, said()]


def talk(
    *messages: Message | Sequence[Message],
    id: str = "s",
    cuts: Mapping[int, str] | None = None,
    opportunities: Sequence[tuple[int, OpportunityKind]] | None = None,
    **fields: Any,
) -> Session:
    """A session of messages (or lists of them)."""
    flat = [one for each in messages for one in ([each] if isinstance(each, Message) else each)]
    labels = None if opportunities is None else tuple(Opportunity(index, kind) for index, kind in opportunities)
    made = tuple(ContextCut(at, kind) for at, kind in (cuts or {}).items())  # type: ignore[arg-type]
    return Session(id, tuple(flat), opportunities=labels, cuts=made, fields=fields)


_TEXTS = st.sampled_from([
    "", "go on", "继续", "No, use pnpm, not npm", "不对，应该用 pnpm", "没问题", "so what?",
    "please remember: 以后用 uv",
    "Error: boom", "0 errors", "失败：超时", "好的。", "Done.", "a longer text about nothing " * 12,
    "很长的一段话" * 40,
])  # fmt: skip
_CALLS = st.builds(
    ToolCall,
    st.sampled_from([None, "a", "b", "c"]),
    st.sampled_from(["bash", "read", "kb_save", "kb_search", "web_fetch", "tool_call"]),
    st.sampled_from([
        {}, "not json", {"command": "cd x && uv sync | tail"}, {"command": "ffmpeg -i a"},
        {"id": "kb_save", "args": {}},
        {"url": "https://例子.cn/页"}, {"url": "https://docs.example.com:8080/x"}, {"n": 3},
    ]),
)  # fmt: skip
_MESSAGES = st.one_of(
    st.builds(Message, st.just("user"), _TEXTS),
    st.builds(Message, st.just("system"), _TEXTS),
    st.builds(
        Message,
        st.just("assistant"),
        _TEXTS,
        st.lists(_CALLS, max_size=3).map(tuple),
        stop_reason=st.sampled_from([None, "stop", "aborted", "error"]),
    ),
    st.builds(
        Message,
        st.just("tool"),
        _TEXTS,
        tool_call_id=st.sampled_from([None, "a", "b", "c"]),
        name=st.sampled_from([None, "bash", "kb_save"]),
        failed=st.sampled_from([None, True, False]),
    ),
)


@st.composite
def sessions(draw: st.DrawFn, id: str = "s") -> Session:
    """Any session at all, orphan results, empty turns and cuts in odd places included."""
    messages = tuple(draw(st.lists(_MESSAGES, max_size=25)))
    places = st.integers(0, len(messages))
    cut = st.builds(ContextCut, places, st.sampled_from(["compaction", "reset"]))
    cuts = sorted(draw(st.lists(cut, max_size=3)), key=lambda each: each.at)
    label = st.builds(Opportunity, st.integers(0, max(0, len(messages) - 1)), st.sampled_from(OPPORTUNITY_KINDS))
    labels = draw(st.none() | st.lists(label, max_size=4).map(tuple)) if messages else None
    return Session(id, messages, opportunities=labels, cuts=tuple(cuts))
