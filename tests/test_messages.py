"""Messages and sessions: what a reader sees of them, and that they are values."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, get_args

import pytest

from openclaw_lab import messages as module
from openclaw_lab.messages import (
    OPPORTUNITY_KINDS,
    ROLES,
    ContextCut,
    Message,
    Opportunity,
    Session,
    Span,
    ToolCall,
    Usage,
    as_text,
)

TALK = Session(
    "s1",
    (Message("user", "你好"), Message("assistant", "Let me look.", (ToolCall("c1", "kb_search", {"query": "北京"}),))),
    fields={"lang": "zh"},
)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", ""),
        ("一\n二", "一\n二"),
        ((), ""),
        (({"type": "text", "text": "a"},), "a"),
        (({"type": "text", "text": "a"}, {"type": "image", "data": "…"}, {"type": "text", "text": "二"}), "a\n二"),
        (({"type": "thinking", "thinking": "secret"},), ""),
        (({"type": "text"},), ""),
        (({"text": "untyped"},), ""),
        (({"type": "text", "text": 5},), "5"),
    ],
)
def test_the_text_of_a_message(content: Any, text: str) -> None:
    assert Message("user", content).text == text


def test_a_conversation_as_lines() -> None:
    assert as_text(TALK.messages) == "user: 你好\nassistant [kb_search]: Let me look."
    assert as_text([]) == ""


def test_a_session_is_short_when_shown_and_equal_by_what_was_said() -> None:
    assert repr(TALK) == "Session('s1', 2 messages)"
    assert dataclasses.replace(TALK, fields={}) == TALK
    assert dataclasses.replace(TALK, opportunities=()) != TALK
    assert pickle.loads(pickle.dumps(TALK)) == TALK


@pytest.mark.parametrize(
    "value",
    [
        TALK,
        TALK.messages[0],
        ToolCall(None, "x", "{"),
        Usage(),
        Span(0, 1, "ip"),
        Opportunity(0, "feedback"),
        ContextCut(0, "reset"),
    ],
)
def test_values_are_frozen(value: Any) -> None:
    name = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, None)
    assert not hasattr(value, "__dict__")


def test_the_kinds_are_those_of_the_types() -> None:
    assert get_args(module.Role) == ROLES
    assert get_args(module.OpportunityKind) == OPPORTUNITY_KINDS
    assert "user" in ROLES
