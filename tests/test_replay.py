"""Replay: the exact hook events of a hand-written session on every host, and what must hold for any session."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talks import HOSTS, call, called, result, said, sessions, steady, talk, turn, user

import openclaw_lab as lab
from openclaw_lab.agent.host import PROFILES, host_profile, silent_hosts
from openclaw_lab.agent.replay import hook_events, replay_on
from openclaw_lab.errors import TaskError
from openclaw_lab.messages import Message, Session
from openclaw_lab.plugins.hooks import HookBus, HookEvent

STORY = talk(
    Message("system", "你是助手"),
    said("您好，有什么可以帮您？"),  # 1: a greeting before any user
    user("查一下"),
    user("快点"),  # 3: the same turn
    called(call("c1", "bash", command="ls"), call("c2")),  # 4: parallel
    result("c1"),
    result("c2"),
    said("查到了。"),  # 7: after a compaction in the middle of the run
    user("next"),
    said("", "aborted"),  # 9
    user("again"),  # 10: after a reset
    said(),
    user("还在吗？"),  # 12: never answered
    cuts={7: "compaction", 10: "reset"},
)

# hook, run.call, @messages so far
SEED = """
before_agent_start 1.1@1, before_prompt_build 1.1@1, agent_end 1.1@2,
before_agent_start 2.2@4, before_prompt_build 2.2@4, before_tool_call 2.2@5, before_tool_call 2.2@5,
after_tool_call 2.2@6, after_tool_call 2.2@7, before_compaction 2.2@7, before_prompt_build 2.3@7, agent_end 2.3@8,
before_agent_start 3.4@9, before_prompt_build 3.4@9, agent_end 3.4@10,
before_agent_start 4.5@11, before_prompt_build 4.5@11, agent_end 4.5@12
"""
OLD = """
session_start 0.0@0, before_agent_start 1.1@1, before_prompt_build 1.1@1, agent_end 1.1@2,
before_agent_start 2.2@4, before_prompt_build 2.2@4, before_tool_call 2.2@5, before_tool_call 2.2@5,
after_tool_call 2.2@6, after_tool_call 2.2@7, before_compaction 2.2@7, agent_end 2.3@8,
before_agent_start 3.4@9, before_prompt_build 3.4@9, agent_end 3.4@10, session_end 3.4@10, session_start 3.4@10,
before_agent_start 4.5@11, before_prompt_build 4.5@11, agent_end 4.5@12, session_end 4.5@13
"""
NEW = """
session_start 0.0@0, before_prompt_build 1.1@1, model_call_started 1.1@1, agent_end 1.1@2,
before_prompt_build 2.2@4, model_call_started 2.2@4, before_tool_call 2.2@5, before_tool_call 2.2@5,
after_tool_call 2.2@6, after_tool_call 2.2@7, before_compaction 2.2@7, model_call_started 2.3@7, agent_end 2.3@8,
before_prompt_build 3.4@9, model_call_started 3.4@9, agent_end 3.4@10, session_end 3.4@10, session_start 3.4@10,
before_prompt_build 4.5@11, model_call_started 4.5@11, agent_end 4.5@12, session_end 4.5@13
"""


def events_of(session: Session, host: str, *, conversation_access: bool = True) -> list[HookEvent]:
    return list(hook_events(session, host_profile(host), conversation_access=conversation_access))


def written(session: Session, host: str) -> list[str]:
    return [f"{e.hook} {e.run}.{e.call}@{e.at}" for e in events_of(session, host)]


@pytest.mark.parametrize(("host", "wanted"), list(zip(HOSTS, (SEED, OLD, NEW), strict=True)))
def test_every_event_of_a_story(host: str, wanted: str) -> None:
    assert written(STORY, host) == [each.strip() for each in wanted.split(",")]


SMALL: list[tuple[str, Session, str]] = [
    ("no messages", talk(), "session_start 0.0@0, session_end 0.0@0"),
    ("no answer", talk(user("在吗"), user("?")), "session_start 0.0@0, session_end 0.0@2"),
    ("only a system message", talk(Message("system", "x")), "session_start 0.0@0, session_end 0.0@1"),
    (
        "a compaction between two runs comes after the first one's end",
        talk(user(), said(), user(), said(), cuts={2: "compaction"}),
        "session_start 0.0@0, before_prompt_build 1.1@1, model_call_started 1.1@1, agent_end 1.1@2, "
        "before_compaction 1.1@2, before_prompt_build 2.2@3, model_call_started 2.2@3, agent_end 2.2@4, "
        "session_end 2.2@4",
    ),
    (
        "a compaction at the end",
        talk(user(), said(), cuts={2: "compaction"}),
        "session_start 0.0@0, before_prompt_build 1.1@1, model_call_started 1.1@1, agent_end 1.1@2, "
        "before_compaction 1.1@2, session_end 1.1@2",
    ),
    (
        "a system message between two user messages leaves one turn",
        talk(user(), Message("system", "x"), user(), said()),
        "session_start 0.0@0, before_prompt_build 1.1@3, model_call_started 1.1@3, agent_end 1.1@4, session_end 1.1@4",
    ),
    (
        "a reset in the middle of a run ends it",
        talk(user(), said("a"), said("b"), cuts={2: "reset"}),
        "session_start 0.0@0, before_prompt_build 1.1@1, model_call_started 1.1@1, agent_end 1.1@2, session_end 1.1@2, "
        "session_start 1.1@2, before_prompt_build 2.2@2, model_call_started 2.2@2, agent_end 2.2@3, session_end 2.2@3",
    ),
    (
        "a result that nobody asked for",
        talk(result("x"), user(), said()),
        "session_start 0.0@0, after_tool_call 0.0@1, before_prompt_build 1.1@2, model_call_started 1.1@2, "
        "agent_end 1.1@3, session_end 1.1@3",
    ),
]


@pytest.mark.parametrize(("session", "wanted"), [row[1:] for row in SMALL], ids=[row[0] for row in SMALL])
def test_every_event_of_a_small_session(session: Session, wanted: str) -> None:
    assert written(session, "openclaw-2026.9") == wanted.split(", ")


TWENTY = talk([message for number in range(20) for message in turn(f"第{number}步", 3)], cuts={60: "compaction"})


@pytest.mark.parametrize(
    ("host", "counts"),
    [
        ("seed", {"before_agent_start": 20, "before_prompt_build": 60, "agent_end": 20, "before_compaction": 1,
                  "before_tool_call": 40, "after_tool_call": 40}),
        ("openclaw-2026.3", {"session_start": 1, "before_agent_start": 20, "before_prompt_build": 20, "agent_end": 20,
                             "before_compaction": 1, "before_tool_call": 40, "after_tool_call": 40, "session_end": 1}),
        ("openclaw-2026.9", {"session_start": 1, "before_prompt_build": 20, "model_call_started": 60, "agent_end": 20,
                             "before_compaction": 1, "before_tool_call": 40, "after_tool_call": 40, "session_end": 1}),
    ],
)  # fmt: skip
def test_counts_over_twenty_turns(host: str, counts: dict[str, int]) -> None:
    trace = replay_on(TWENTY, host_profile(host), HookBus())
    assert {hook: count for hook, count in trace.counts.items() if count} == counts
    assert trace.firings == ()


def test_what_the_host_hands_over() -> None:
    """agent_end gets the whole session so far; before_compaction no messages on the newer hosts."""
    ends = [event for event in events_of(TWENTY, "openclaw-2026.9") if event.hook == "agent_end"]
    assert [len(event.messages) for event in ends] == list(range(6, 121, 6))
    for host, handed in [("seed", 60), ("openclaw-2026.9", 0)]:
        (cut,) = (event for event in events_of(TWENTY, host) if event.hook == "before_compaction")
        assert (cut.at, len(cut.messages)) == (60, handed)


@pytest.mark.parametrize(
    ("host", "lost"),
    [("seed", set()), ("openclaw-2026.3", set()), ("openclaw-2026.9", {"before_prompt_build", "agent_end"})],
)
def test_without_conversation_access_gated_hooks_reach_nobody(host: str, lost: set[str]) -> None:
    whole, kept = events_of(TWENTY, host), events_of(TWENTY, host, conversation_access=False)
    assert kept == [event for event in whole if event.hook not in lost]
    heard: list[HookEvent] = []
    bus = HookBus()
    for hook in ("before_prompt_build", "agent_end", "after_tool_call"):
        bus.on(hook, heard.append)
    replay_on(TWENTY, host_profile(host), bus, conversation_access=False)
    assert {event.hook for event in heard} == {"before_prompt_build", "agent_end", "after_tool_call"} - lost


def test_without_conversation_access_nothing_is_injected() -> None:
    eager = lab.LabConfig().with_({"reminders.policy": "interval", "reminders.interval": 1})
    assert lab.replay(TWENTY, eager).counts["before_prompt_build"] == len(lab.replay(TWENTY, eager).injections) == 20
    trace = lab.replay(TWENTY, eager, conversation_access=False)
    assert (trace.injections, trace.errors) == ([], [])


@steady
@given(sessions(), st.sampled_from(HOSTS))
def test_events_are_ordered(session: Session, host: str) -> None:
    events = events_of(session, host)
    places = [event.at for event in events]
    assert places == sorted(places)
    assert all(0 <= event.at <= len(session.messages) for event in events)
    assert [event.run for event in events] == sorted(event.run for event in events)
    assert [event.call for event in events] == sorted(event.call for event in events)
    assert events == events_of(session, host)


@steady
@given(sessions(), st.sampled_from(HOSTS))
def test_every_run_ends_exactly_once(session: Session, host: str) -> None:
    events = events_of(session, host)
    calls = sum(message.role == "assistant" for message in session.messages)
    runs = max((event.run for event in events), default=0)
    assert [event.run for event in events if event.hook == "agent_end"] == list(range(1, runs + 1))
    assert max((event.call for event in events), default=0) == calls
    prompts = [event for event in events if event.hook == "before_prompt_build"]
    by_call = host_profile(host).prompt_hook == "llm_call"
    assert len(prompts) == (calls if by_call else runs)
    starts = [event.run for event in events if event.hook == "before_agent_start"]
    assert starts == (list(range(1, runs + 1)) if host_profile(host).start_hook else [])


@steady
@given(sessions())
def test_hosts_agree_on_the_runs(session: Session) -> None:
    ends = [[(e.run, e.call, e.at) for e in events_of(session, host) if e.hook == "agent_end"] for host in HOSTS]
    assert ends[0] == ends[1] == ends[2]


@steady
@given(sessions(), st.sampled_from(HOSTS))
def test_session_hooks_come_in_pairs(session: Session, host: str) -> None:
    hooks = [event.hook for event in events_of(session, host) if event.hook in ("session_start", "session_end")]
    resets = sum(cut.kind == "reset" for cut in session.cuts)
    assert hooks == ["session_start", "session_end"] * ((1 + resets) if host_profile(host).session_hooks else 0)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("openclaw-2026.8", "did you mean openclaw-2026"),
        ("Seed", "did you mean seed?"),
        ("主机", "known: seed, openclaw-2026.3, openclaw-2026.9"),
    ],
)
def test_unknown_host(name: str, advice: str) -> None:
    with pytest.raises(TaskError, match="expected a known host") as caught:
        host_profile(name)
    assert advice in str(caught.value)


def test_hosts_by_name() -> None:
    assert tuple(PROFILES) == HOSTS == lab.LabConfig.knobs()["reminders.host"].choices


OPENCLAW = ("openclaw-2026.3", "openclaw-2026.9")


@pytest.mark.parametrize(
    ("changes", "hosts"),
    [
        ({"mode": "minimal"}, OPENCLAW),
        ({"mode": "normal"}, OPENCLAW),
        ({"mode": "aggressive"}, OPENCLAW),
        ({"mode": "off"}, ()),
        ({"mode": "normal", "scope": "session"}, ()),
        ({"policy": "interval", "interval": 1}, ()),
        ({"mode": "normal", "unit": "user_turn"}, OPENCLAW),
        ({"policy": "since_save"}, OPENCLAW),
        ({"policy": "since_save", "since_save": 1, "since_reminder": 1}, ()),
        ({"policy": "event"}, ()),
        ({"policy": "event", "min_gap": 2}, OPENCLAW),
        ({"policy": "token_gap"}, ()),
    ],
)
def test_hosts_on_which_a_setting_never_reminds(changes: dict[str, object], hosts: tuple[str, ...]) -> None:
    config = lab.LabConfig.preset("seed").with_({f"reminders.{name}": value for name, value in changes.items()})
    assert silent_hosts(config.reminders) == hosts


@steady
@given(sessions(), st.sampled_from(["minimal", "normal", "aggressive"]), st.sampled_from(OPENCLAW))
def test_a_silent_setting_is_silent(session: Session, mode: str, host: str) -> None:
    config = lab.LabConfig.preset("seed").with_({"reminders.mode": mode, "reminders.host": host})
    assert host in silent_hosts(config.reminders)
    trace = lab.replay(session, config)
    assert not [each for each in trace.injections if each.injection and each.injection.kind == "reminder"]
