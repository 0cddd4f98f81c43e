"""The hook bus: a closed set of names, an order, and faults of handlers that stop nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talks import steady

from openclaw_lab.errors import HookError, LabError
from openclaw_lab.messages import Message
from openclaw_lab.plugins.hooks import (
    HOOKS,
    PROMPT_HOOKS,
    Firing,
    HookBus,
    HookEvent,
    HookName,
    Injection,
    Trace,
)


def event(hook: HookName = "before_prompt_build", run: int = 1, call: int = 1, at: int = 0) -> HookEvent:
    return HookEvent(hook, "s", run, call, at, ())


def answers(text: str) -> Callable[[HookEvent], Injection]:
    return lambda _: Injection(text, "reminder")


def breaks(_: HookEvent) -> None:
    raise ValueError("坏了\nin two lines")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("before_prompt_built", "did you mean before_prompt_build?"),
        ("agent_ends", "did you mean agent_end?"),
        ("beforePromptBuild", "did you mean before_prompt_build?"),
        ("before_compactio", "did you mean before_compaction?"),
        ("Session_Start", "did you mean session_start?"),
        ("提示", "known: session_start, before_agent_start"),
        ("", "known: session_start"),
        ("command:new", "known: session_start"),
    ],
)
def test_unknown_hook(name: str, advice: str) -> None:
    with pytest.raises(HookError, match="expected a known hook") as caught:
        HookBus().on(name, breaks)
    assert advice in str(caught.value)
    assert isinstance(caught.value, LabError)


def test_the_set_is_closed() -> None:
    assert get_args(HookName) == HOOKS
    assert set(HOOKS) > PROMPT_HOOKS
    bus = HookBus()
    for name in HOOKS:
        bus.on(name, lambda _: None, plugin="p")
        assert bus.emit(event(name)) == [Firing(event(name), "p")]
    assert HookBus().emit(event()) == []


@steady
@given(st.lists(st.integers(-3, 3), max_size=8))
def test_higher_priority_first_then_registration(priorities: list[int]) -> None:
    bus = HookBus()
    for number, priority in enumerate(priorities):
        bus.on("agent_end", lambda _: None, plugin=str(number), priority=priority)
    wanted = sorted(range(len(priorities)), key=lambda number: (-priorities[number], number))
    assert [firing.plugin for firing in bus.emit(event("agent_end"))] == [str(number) for number in wanted]


async def forgets_that_hooks_are_plain(_: HookEvent) -> Injection:
    return Injection("never seen", "reminder")


FAULTS: list[tuple[HookName, Any, str]] = [
    ("before_prompt_build", breaks, "ValueError: 坏了 in two lines"),
    ("agent_end", breaks, "ValueError: 坏了 in two lines"),
    ("agent_end", answers("x"), "expected no answer to a hook that builds no prompt"),
    ("session_start", answers("x"), "expected no answer to a hook that builds no prompt"),
    ("model_call_started", lambda _: "text", "expected no answer to a hook that builds no prompt"),
    ("before_prompt_build", lambda _: "text", "found text; expected an Injection of text, or None"),
    ("before_prompt_build", lambda _: {"prependContext": "提醒"}, "expected an Injection of text, or None"),
    ("before_agent_start", lambda _: False, "found False; expected an Injection of text, or None"),
    ("before_agent_start", lambda _: Injection(None, "start"), "expected an Injection of text"),  # type: ignore[arg-type]
    ("before_prompt_build", forgets_that_hooks_are_plain, "expected an Injection of text, or None"),
    ("agent_end", forgets_that_hooks_are_plain, "expected no answer"),
    ("agent_end", lambda: None, "TypeError: "),
    ("before_prompt_build", lambda _: Injection("text", None), "expected an Injection of text"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("hook", "handler", "error"), FAULTS)
def test_a_fault_is_recorded_and_the_others_run(hook: HookName, handler: Any, error: str) -> None:
    bus = HookBus()
    seen: list[HookEvent] = []
    bus.on(hook, seen.append, plugin="first", priority=1)
    bus.on(hook, handler, plugin="faulty")
    bus.on(hook, seen.append, plugin="last", priority=-1)
    firings = bus.emit(event(hook))
    assert [firing.plugin for firing in firings] == ["first", "faulty", "last"]
    assert seen == [event(hook)] * 2
    assert error in firings[1].error
    assert "\n" not in firings[1].error
    assert firings[1].injection is None
    assert [firings[0].error, firings[2].error] == ["", ""]


def test_an_error_is_one_short_line() -> None:
    def rambles(_: HookEvent) -> None:
        raise RuntimeError("很长\n" * 10_000)

    bus = HookBus()
    bus.on("agent_end", rambles)
    (firing,) = bus.emit(event("agent_end"))
    assert len(firing.error) <= 200
    assert firing.error.startswith("RuntimeError: 很长 很长")


def test_a_keyboard_interrupt_is_no_plugin_fault() -> None:
    def interrupted(_: HookEvent) -> None:
        raise KeyboardInterrupt

    bus = HookBus()
    bus.on("agent_end", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bus.emit(event("agent_end"))


def test_a_handler_that_registers_another_does_not_call_it_at_once() -> None:
    bus = HookBus()
    bus.on("agent_end", lambda _: bus.on("agent_end", breaks))
    assert len(bus.emit(event("agent_end"))) == 1
    assert len(bus.emit(event("agent_end"))) == 2


# --- traces -------------------------------------------------------------------------------------------------------


def trace() -> Trace:
    """Three events: nobody listens; one is silent, two answer and one breaks; one breaks."""
    bus = HookBus()
    bus.on("before_prompt_build", answers("起点"), plugin="a", priority=3)
    bus.on("before_prompt_build", lambda _: None, plugin="b", priority=2)
    bus.on("before_prompt_build", breaks, plugin="c", priority=1)
    bus.on("before_prompt_build", answers("second"), plugin="d")
    bus.on("agent_end", breaks, plugin="c")
    events = (event("session_start", 0, 0), event(), event("agent_end", at=2))
    return Trace(events, tuple(firing for each in events for firing in bus.emit(each)))


def test_trace_counts_every_hook() -> None:
    assert trace().counts == {
        name: int(name in ("session_start", "before_prompt_build", "agent_end")) for name in HOOKS
    }
    assert set(Trace((), ()).counts.values()) == {0}


def test_trace_injections_and_errors() -> None:
    assert [(each.plugin, each.injection) for each in trace().injections] == [
        ("a", Injection("起点", "reminder")),
        ("d", Injection("second", "reminder")),
    ]
    assert [(each.plugin, each.event.hook) for each in trace().errors] == [
        ("c", "before_prompt_build"),
        ("c", "agent_end"),
    ]


def test_an_empty_text_is_no_injection() -> None:
    bus = HookBus()
    bus.on("before_prompt_build", answers(""))
    assert Trace((event(),), tuple(bus.emit(event()))).injections == []


def test_trace_frame_shows_every_answer() -> None:
    frame = trace().frame
    assert list(frame.columns) == ["run", "call", "message", "hook", "answer", "text"]
    assert frame.values.tolist() == [
        [0, 0, 0, "session_start", "", ""],
        [1, 1, 0, "before_prompt_build", "reminder; ValueError: 坏了 in two lines; reminder", "起点\n\nsecond"],
        [1, 1, 2, "agent_end", "ValueError: 坏了 in two lines", ""],
    ]
    assert list(Trace((), ()).frame.columns) == list(frame.columns)


def test_trace_as_text() -> None:
    lines = str(trace()).splitlines()
    assert len(lines) == 4
    assert lines[0].split() == ["run", "call", "message", "hook", "answer"]
    assert "起点" not in str(trace())
    assert "before_prompt_build" in lines[2]


def test_event_shows_only_what_the_host_hands_over() -> None:
    history = tuple(Message("user", text) for text in ("一", "two", "three"))
    assert HookEvent("agent_end", "s", 1, 1, 2, history).messages == history[:2]
    assert HookEvent("agent_end", "s", 1, 1, 2, history, visible=False).messages == ()
    assert "three" not in repr(HookEvent("agent_end", "s", 1, 1, 2, history))
