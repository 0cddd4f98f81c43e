"""Reminder policies, the tracker, the texts and the plugin: which prompts carry what, on which host."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talks import HOSTS, call, called, result, said, sessions, steady, talk, tried, turn, user

import openclaw_lab as lab
from openclaw_lab.agent.host import host_profile
from openclaw_lab.agent.replay import hook_events
from openclaw_lab.config import MODE_INTERVALS
from openclaw_lab.messages import Message, Session, ToolCall
from openclaw_lab.plugins.builtin.knowhub.plugin import StepReader
from openclaw_lab.reminders.behaviour import BAND, Behaviour
from openclaw_lab.reminders.policy import ReminderPolicy, Step
from openclaw_lab.reminders.texts import joined, text_for
from openclaw_lab.reminders.tracker import SessionTracker, message_tokens
from openclaw_lab.text import count_tokens

DATA = Path(os.environ.get("OPENCLAW_LAB_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
SEED = lab.LabConfig.preset("seed")


def settings(base: lab.LabConfig | None = None, /, **changes: Any) -> lab.LabConfig:
    return (base or lab.LabConfig()).with_({f"reminders.{name}": value for name, value in changes.items()})


def injected(session: Session, config: lab.LabConfig) -> list[tuple[str, int, str, str]]:
    """(hook, model call, kind, text) of everything that a replay puts into a prompt."""
    trace = lab.replay(session, config)
    assert trace.errors == []
    return [(f.event.hook, f.event.call, f.injection.kind, f.injection.text) for f in trace.injections if f.injection]


def reminded(session: Session, config: lab.LabConfig) -> list[int]:
    """The model calls whose prompt carries a reminder."""
    return [number for _, number, kind, _ in injected(session, config) if kind == "reminder"]


# --- policies -----------------------------------------------------------------------------------------------------

# Three runs: calls 1-4, 5-6, 7-9.
PLAIN = talk(turn("first", 4), turn("第二个", 2), turn("third", 3))
# The same with knowledge saved between calls 2 and 3.
SAVING = talk(
    [
        user("first"),
        called(call("r")),
        result("r"),
        called(call("s", "kb_save", task="t")),
        result("s", "✅ 知识已保存"),
    ],
    [said("."), said()],
    turn("第二个", 2),
    turn("third", 3),
)
# A correction opens run 2; a retry succeeds between calls 8 and 9.
EVENTFUL = talk(
    turn("first", 4),
    turn("不对，应该用 pnpm", 2),
    [user("third"), *tried("x", "pnpm test", "exit code 1"), *tried("y", "pnpm test", "12 passed"), said()],
)
LONG = "plain words about nothing. " * 30  # about 150 tokens
# Long messages open runs 1 and 3.
WORDY = talk(turn(LONG, 4), turn("第二个", 2), turn(LONG, 3))

POLICIES: list[tuple[Session, dict[str, Any], dict[str, list[int]]]] = [
    (PLAIN, {"policy": "interval", "interval": 1, "unit": "llm_call", "scope": "session"},
     {"seed": [1, 2, 3, 4, 5, 6, 7, 8, 9], "openclaw-2026.9": [1, 5, 7]}),
    (PLAIN, {"policy": "interval", "interval": 2, "unit": "llm_call", "scope": "session"},
     {"seed": [2, 4, 6, 8], "openclaw-2026.9": [5, 7]}),
    (PLAIN, {"policy": "interval", "interval": 2, "unit": "llm_call", "scope": "run"},
     {"seed": [2, 4, 6, 8], "openclaw-2026.9": []}),
    (PLAIN, {"policy": "interval", "interval": 3, "unit": "llm_call", "scope": "session"},
     {"seed": [3, 6, 9], "openclaw-2026.9": [5]}),
    (PLAIN, {"policy": "interval", "interval": 3, "unit": "llm_call", "scope": "run"},
     {"seed": [3, 9], "openclaw-2026.9": []}),
    (PLAIN, {"policy": "interval", "interval": 1, "unit": "user_turn", "scope": "session"},
     {"seed": [1, 5, 7], "openclaw-2026.9": [1, 5, 7]}),
    (PLAIN, {"policy": "interval", "interval": 1, "unit": "user_turn", "scope": "run"},
     {"seed": [1, 5, 7], "openclaw-2026.9": [1, 5, 7]}),
    (PLAIN, {"policy": "interval", "interval": 2, "unit": "user_turn", "scope": "session"},
     {"seed": [5], "openclaw-2026.9": [5]}),
    (PLAIN, {"policy": "interval", "interval": 2, "unit": "user_turn", "scope": "run"},
     {"seed": [], "openclaw-2026.9": []}),
    (PLAIN, {"policy": "since_save", "since_save": 3, "since_reminder": 2, "unit": "llm_call", "scope": "session"},
     {"seed": [3, 5, 7, 9], "openclaw-2026.9": [5, 7]}),
    (PLAIN, {"policy": "since_save", "since_save": 3, "since_reminder": 4, "unit": "llm_call", "scope": "session"},
     {"seed": [4, 8], "openclaw-2026.9": [5]}),
    (PLAIN, {"policy": "since_save", "since_save": 3, "since_reminder": 2, "unit": "llm_call", "scope": "run"},
     {"seed": [3, 9], "openclaw-2026.9": []}),
    (SAVING, {"policy": "since_save", "since_save": 3, "since_reminder": 2, "unit": "llm_call", "scope": "session"},
     {"seed": [5, 7, 9], "openclaw-2026.9": [5, 7]}),
    (SAVING, {"policy": "since_save", "since_save": 3, "since_reminder": 2, "unit": "llm_call", "scope": "run"},
     {"seed": [9], "openclaw-2026.9": []}),
    (SAVING, {"policy": "since_save", "since_save": 2, "since_reminder": 1, "unit": "user_turn", "scope": "session"},
     {"seed": [7], "openclaw-2026.9": [7]}),
    (PLAIN, {"policy": "since_save", "since_save": 2, "since_reminder": 1, "unit": "user_turn", "scope": "session"},
     {"seed": [5, 7], "openclaw-2026.9": [5, 7]}),
    (PLAIN, {"policy": "since_save", "since_save": 1, "since_reminder": 1, "unit": "user_turn", "scope": "run"},
     {"seed": [1, 5, 7], "openclaw-2026.9": [1, 5, 7]}),
    (WORDY, {"policy": "token_gap", "token_gap": 100, "scope": "session"},
     {"seed": [1, 7], "openclaw-2026.9": [1, 7]}),
    (WORDY, {"policy": "token_gap", "token_gap": 100, "scope": "run"}, {"seed": [1, 7], "openclaw-2026.9": [1, 7]}),
    (WORDY, {"policy": "token_gap", "token_gap": 250, "scope": "session"}, {"seed": [7], "openclaw-2026.9": [7]}),
    (WORDY, {"policy": "token_gap", "token_gap": 250, "scope": "run"}, {"seed": [], "openclaw-2026.9": []}),
    (PLAIN, {"policy": "event"}, {"seed": [], "openclaw-2026.9": []}),
    (EVENTFUL, {"policy": "event", "unit": "llm_call", "scope": "session"},
     {"seed": [5, 7, 9], "openclaw-2026.9": [5, 7]}),
    (EVENTFUL, {"policy": "event", "unit": "llm_call", "scope": "run"},
     {"seed": [5, 9], "openclaw-2026.9": [5]}),
    (EVENTFUL, {"policy": "event", "unit": "user_turn", "scope": "session"},
     {"seed": [5, 7], "openclaw-2026.9": [5, 7]}),
    (EVENTFUL, {"policy": "event", "unit": "user_turn", "scope": "run"}, {"seed": [5, 9], "openclaw-2026.9": [5]}),
    (EVENTFUL, {"policy": "event", "unit": "llm_call", "scope": "session", "min_gap": 3},
     {"seed": [5, 8], "openclaw-2026.9": [5]}),
    (EVENTFUL, {"policy": "event", "events": ["recovery"], "unit": "llm_call", "scope": "session"},
     {"seed": [9], "openclaw-2026.9": []}),
    (EVENTFUL, {"policy": "event", "events": ["task_end"], "unit": "llm_call", "scope": "session"},
     {"seed": [7], "openclaw-2026.9": [7]}),
    (EVENTFUL, {"policy": "event", "events": []}, {"seed": [], "openclaw-2026.9": []}),
    (PLAIN, {"policy": "off"}, {"seed": [], "openclaw-2026.9": []}),
]  # fmt: skip


@pytest.mark.parametrize(("session", "changes", "wanted"), POLICIES)
def test_prompts_that_carry_a_reminder(
    session: Session, changes: dict[str, Any], wanted: Mapping[str, list[int]]
) -> None:
    calls = {
        host: reminded(session, settings(start="off", host=host, **changes)) for host in (*wanted, "openclaw-2026.3")
    }
    assert {host: calls[host] for host in wanted} == wanted
    assert calls["openclaw-2026.3"] == wanted["openclaw-2026.9"]


def test_a_session_starts_its_counters_again_after_a_reset() -> None:
    session = talk(turn("first", 1), turn("second", 1), turn("third", 1), cuts={4: "reset"})
    every_second = {"policy": "interval", "interval": 2, "unit": "user_turn", "start": "off"}
    assert reminded(session, settings(**every_second)) == [2]
    assert reminded(talk(session.messages), settings(**every_second)) == [2]
    cut = talk(session.messages, cuts={2: "reset"})
    assert reminded(cut, settings(**every_second)) == [3]
    # A host without session hooks tells nobody of the reset.
    assert reminded(cut, settings(host="seed", **every_second)) == [2]
    compacted = talk(session.messages, cuts={2: "compaction"})
    assert reminded(compacted, settings(**every_second)) == [2]


@pytest.mark.parametrize(
    ("mode", "calls"), [("minimal", [5, 10]), ("normal", [3, 6, 9]), ("aggressive", [2, 4, 6, 8, 10])]
)
def test_seed_modes_fire_within_one_run(mode: str, calls: list[int]) -> None:
    session = talk(turn("first", 11), turn("second", 5))
    within_the_second = [11 + number for number in range(1, 6) if number % MODE_INTERVALS[mode] == 0]
    assert reminded(session, settings(SEED, mode=mode)) == calls + within_the_second


def test_the_counter_is_cleared_at_the_end_of_a_run() -> None:
    two_calls_a_turn = talk([message for number in range(10) for message in turn(f"turn {number}", 2)])
    assert reminded(two_calls_a_turn, settings(SEED, mode="normal")) == []
    assert reminded(two_calls_a_turn, settings(SEED, mode="aggressive")) == list(range(2, 21, 2))


# --- the seed document's own hooks, in Python ---------------------------------------------------------------------


def seeds_reminders(session: Session, interval: int) -> list[int]:
    """hooks.ts: a Map that counts prompts under the session's key; deleted at agent_end; reminds at count % interval.

    A prompt is built for every recorded answer; a run is over when a user speaks after an answer, or at a reset.
    """
    counts: dict[str, int] = {}
    calls, found, last = 0, [], ""
    resets = {cut.at for cut in session.cuts if cut.kind == "reset"}
    for at, message in enumerate(session.messages):
        if at in resets or (message.role == "user" and last not in ("", "user")):
            counts.pop("default", None)
        if message.role == "assistant":
            calls += 1
            counts["default"] = counts.get("default", 0) + 1
            if counts["default"] % interval == 0:
                found.append(calls)
        last = last if message.role == "system" else message.role
    return found


@pytest.mark.parametrize("mode", MODE_INTERVALS)
def test_preset_seed_is_the_seeds_hooks_on_the_bundled_sessions(mode: str) -> None:
    config = settings(SEED, mode=mode)
    for sample in lab.load_dataset("sessions/mini"):
        assert reminded(sample.input, config) == seeds_reminders(sample.input, MODE_INTERVALS[mode]), sample.id


@steady
@given(sessions(), st.sampled_from(sorted(MODE_INTERVALS)))
def test_preset_seed_is_the_seeds_hooks_on_any_session(session: Session, mode: str) -> None:
    assert reminded(session, settings(SEED, mode=mode)) == seeds_reminders(session, MODE_INTERVALS[mode])


def public_sessions() -> list[Any]:
    """The public recordings; one skipped parameter that says why when they are not at hand."""
    files = sorted((DATA / "sessions").glob("*.jsonl.gz"))
    reason = f"no public sessions under {DATA / 'sessions'} (set OPENCLAW_LAB_DATA)"
    missing = pytest.param(None, marks=pytest.mark.skip(reason=reason))
    return [pytest.param(path, id=path.name) for path in files] or [missing]


@pytest.mark.parametrize("path", public_sessions())
def test_preset_seed_is_the_seeds_hooks_on_public_sessions(path: Path) -> None:
    for session in lab.load_sessions(path):
        assert reminded(session, SEED) == seeds_reminders(session, 3), session.id


# --- start text ---------------------------------------------------------------------------------------------------

TWO_SESSIONS = talk(turn("first", 2), turn("second", 1), turn("after a reset", 2), cuts={6: "reset"})
START_HOOK, PROMPT = "before_agent_start", "before_prompt_build"


@pytest.mark.parametrize(
    ("host", "start", "places"),
    [
        ("seed", "off", []),
        ("seed", "session", [(START_HOOK, 1)]),
        ("seed", "run", [(START_HOOK, 1), (START_HOOK, 3), (START_HOOK, 4)]),
        ("openclaw-2026.3", "off", []),
        ("openclaw-2026.3", "session", [(START_HOOK, 1), (START_HOOK, 4)]),
        ("openclaw-2026.3", "run", [(START_HOOK, 1), (START_HOOK, 3), (START_HOOK, 4)]),
        ("openclaw-2026.9", "off", []),
        ("openclaw-2026.9", "session", [(PROMPT, 1), (PROMPT, 4)]),
        ("openclaw-2026.9", "run", [(PROMPT, 1), (PROMPT, 4)]),
    ],
)
def test_where_the_start_text_goes(host: str, start: str, places: list[tuple[str, int]]) -> None:
    config = settings(host=host, start=start, policy="since_save")
    text = text_for("start", config.reminders, "en")
    assert injected(TWO_SESSIONS, config) == [(hook, number, "start", text) for hook, number in places]


def test_a_start_text_and_a_reminder_in_one_prompt_are_one_text() -> None:
    every = {"policy": "interval", "interval": 1, "start": "session"}
    both = joined(("start", "reminder"), lab.LabConfig().reminders)
    assert injected(talk(turn("hi", 1)), settings(**every)) == [(PROMPT, 1, "reminder", both)]
    assert [row[:3] for row in injected(talk(turn("hi", 1)), settings(host="seed", **every))] == [
        (START_HOOK, 1, "start"),
        (PROMPT, 1, "reminder"),
    ]


@steady
@given(sessions(), st.sampled_from(HOSTS), st.sampled_from(["off", "session", "run"]), st.booleans())
def test_off_adds_no_byte(session: Session, host: str, start: str, access: bool) -> None:
    """pm-053: off means off, on every host."""
    config = settings(host=host, start=start, policy="off")
    trace = lab.replay(session, config, conversation_access=access)
    assert (trace.injections, trace.errors) == ([], [])
    assert "".join(trace.frame["text"]) == ""


def test_normal_for_fifty_turns_says_what_it_costs() -> None:
    """pm-053: tokens a turn and in total, from the table."""
    session = talk([message for number in range(50) for message in turn(f"第{number}步", 4)])
    row = lab.evaluate("reminders", [session], SEED).frame.iloc[0]
    start, reminder = (count_tokens(text_for(kind, SEED.reminders)) for kind in ("start", "reminder"))
    assert (row["turns"], row["calls"], row["reminders"]) == (50, 200, 50)
    assert row["tokens"] == 50 * (start + reminder)
    assert row["tokens"] / row["turns"] == start + reminder
    off = lab.evaluate("reminders", [session], settings(SEED, mode="off"))
    assert off.frame.iloc[0][["reminders", "tokens", "paid_tokens"]].tolist() == [0, 0, 0]


def test_the_seeds_way_fires_by_call_and_never_by_turn() -> None:
    """pm-079: normal, 20 turns; the hook once a call or once a turn."""
    session = talk([message for number in range(20) for message in turn(f"第{number}步", 4)])
    fired = {host: len(reminded(session, settings(SEED, mode="normal", host=host))) for host in HOSTS}
    assert fired == {"seed": 20, "openclaw-2026.3": 0, "openclaw-2026.9": 0}
    cured = settings(SEED, mode="normal", host="openclaw-2026.9", scope="session", unit="user_turn")
    assert reminded(session, cured) == [4 * number + 1 for number in (2, 5, 8, 11, 14, 17)]


# --- texts --------------------------------------------------------------------------------------------------------

# From the seed document, sections before_agent_start and before_prompt_build.
SEED_START = (
    "💡 KnowHub 知识库已启用\n\n可用工具：\n"
    "- kb_search: 搜索知识（遇到复杂任务、不确定用什么工具、多次失败时）\n"
    "- kb_save: 保存知识（使用资源后、获得用户反馈后、搜索过程有发现时）\n"
    "- kb_update: 反馈知识有效性（使用知识后）\n\n"
    "建议：开始任务前先搜索相关知识，完成后及时保存新发现。"
)
SEED_REMINDER = "💡 提醒：如果遇到复杂问题、使用了工具/资源、或获得了用户反馈，记得用 kb_save 保存知识到 KnowHub。"


def test_the_seeds_texts() -> None:
    assert text_for("start", SEED.reminders) == SEED_START
    assert text_for("reminder", SEED.reminders) == SEED_REMINDER
    texts = [text for *_, text in injected(talk(turn("please be quick", 3)), settings(SEED, mode="normal"))]
    assert texts == [SEED_START, SEED_REMINDER]


@pytest.mark.parametrize("kind", ["start", "reminder"])
@pytest.mark.parametrize(("language", "spoken", "chosen"), [
    ("auto", "zh", "zh"), ("auto", "en", "en"), ("zh", "en", "zh"), ("zh", "zh", "zh"), ("en", "zh", "en"),
])  # fmt: skip
def test_which_text(kind: Any, language: str, spoken: Any, chosen: str) -> None:
    config = settings(language=language).reminders
    assert text_for(kind, config, spoken) == text_for(kind, settings(language=chosen).reminders)
    assert (text_for(kind, config, spoken) in (SEED_START, SEED_REMINDER)) == (chosen == "zh")
    own = settings(language=language, **{f"{kind}_text_{chosen}": "自己的 words"}).reminders
    assert text_for(kind, own, spoken) == "自己的 words"
    other = settings(language=language, **{f"{kind}_text_{'en' if chosen == 'zh' else 'zh'}": "unused"}).reminders
    assert text_for(kind, other, spoken) == text_for(kind, config, spoken)


def test_the_language_follows_the_user() -> None:
    session = talk(
        turn("please list the files", 1),
        turn("换成中文", 1),
        turn("", 1),  # says nothing, so it changes nothing
        turn("帮我写一个 plugin", 1),
        turn("in English again, please", 1),
    )
    every = settings(policy="interval", interval=1, start="off")
    texts = [text for *_, text in injected(session, every)]
    assert [text == SEED_REMINDER for text in texts] == [False, True, True, True, False]
    # Before anybody has spoken it is English.
    greeting = settings(policy="interval", interval=1, start="off", unit="llm_call")
    assert injected(talk(said("您好")), greeting)[0][3] == texts[0]


# --- the tracker --------------------------------------------------------------------------------------------------

SAVES: list[tuple[str, list[Message], int]] = [
    ("a save", [called(call("1", "kb_save")), result("1", "✅ 知识已保存 (ID: knowledge-1)")], 1),
    ("one that failed, by its text", [called(call("1", "kb_save")), result("1", "提交失败: Bad Gateway")], 0),
    ("one that failed, by the host's word", [called(call("1", "kb_save")), result("1", "done", failed=True)], 0),
    ("one that the host calls good", [called(call("1", "kb_save")), result("1", "错误: as text", failed=False)], 1),
    ("one that lacks parameters", [called(call("1", "kb_save")), result("1", '{"success": false}')], 0),
    ("no result", [called(call("1", "kb_save")), said()], 0),
    ("another tool", [called(call("1", "kb_search")), result("1")], 0),
    ("talk about it", [said("I will kb_save this"), user("kb_save")], 0),
    ("the same result twice", [called(call("1", "kb_save")), result("1"), result("1")], 1),
    ("parallel, the save second", [called(call("1"), call("2", "kb_save")), result("1"), result("2")], 1),
    ("parallel, the save failed", [called(call("1"), call("2", "kb_save")), result("1"), result("2", "失败")], 0),
    ("parallel, results swapped", [called(call("1"), call("2", "kb_save")), result("2", "失败"), result("1")], 0),
    ("no ids, the save first", [called(call(None, "kb_save"), call(None)), result(None), result(None, "失败")], 1),
    ("no ids, the save second", [called(call(None), call(None, "kb_save")), result(None), result(None, "失败")], 0),
    ("no ids, told by name",
     [called(call(None), call(None, "kb_save")), result(None, "失败", name="kb_save"), result(None, name="read")], 0),
    ("no id, a later result of another tool",
     [called(call(None, "kb_save")), called(call(None)), result(None)], 0),
    ("through Tool Search", [called(call("1", "tool_call", id="kb_save", args={})), result("1")], 1),
    ("through Tool Search, with a source", [called(call("1", "tool_call", id="knowhub:kb_save")), result("1")], 1),
    ("through Tool Search, another tool", [called(call("1", "tool_call", id="kb_search")), result("1")], 0),
    ("a look at the tool", [called(call("1", "tool_describe", id="kb_save")), result("1")], 0),
    ("a tool_call without JSON", [called(ToolCall("1", "tool_call", "kb_save")), result("1")], 0),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "saves"), [row[1:] for row in SAVES], ids=[row[0] for row in SAVES])
def test_what_counts_as_a_save(messages: list[Message], saves: int) -> None:
    tracker = SessionTracker()
    steps = [step for message in [user(), *messages] for step in tracker.see(message)]
    assert [step.kind for step in steps].count("save") == saves


def test_a_save_starts_the_other_counters_again() -> None:
    kept = {"policy": "token_gap", "token_gap": 100, "start": "off", "host": "seed"}
    saved = [user(LONG), called(call("1", "kb_save")), result("1", "✅"), said(), *turn("next", 2)]
    assert reminded(talk(saved), settings(**kept)) == [1]
    failed = [*saved[:2], result("1", "失败"), *saved[3:]]
    assert reminded(talk(failed), settings(**kept)) == [1]
    late = talk([user("short"), called(call("1", "kb_save")), result("1", LONG), said(), *turn("next", 2)])
    assert reminded(late, settings(**kept)) == [2]


def test_counters() -> None:
    tracker = SessionTracker()
    for message in (Message("system", "x"), user("你好"), Message("system", "y"), user("在吗"), said("在"), user("hm")):
        tracker.see(message)
    assert (tracker.calls, tracker.turns, tracker.seen, tracker.spoken) == (1, 2, 6, "en")
    assert tracker.tokens == sum(count_tokens(text) for text in ("x", "你好", "y", "在吗", "在", "hm"))
    assert tracker.prompt() == Step("prompt", 2, 2, tracker.tokens, 6)
    assert tracker.session_end() == Step("session_end", 1, 2, tracker.tokens, 6)
    without = SessionTracker(with_tokens=False)
    without.see(user("你好"))
    assert without.tokens == 0


def test_tokens_of_a_message() -> None:
    calls = called(call("1", "读", 路径="文件"), call("2", "read"))
    assert message_tokens(calls) == sum(map(count_tokens, ["", "读", '{"路径": "文件"}', "read", "{}"]))
    blocks = Message("user", ({"type": "text", "text": "看图"}, {"type": "image", "data": "A" * 1000}))
    assert message_tokens(blocks) == count_tokens("看图")


@steady
@given(sessions(), st.sampled_from(HOSTS))
def test_steps_count_up(session: Session, host: str) -> None:
    reader = StepReader()
    steps = [step for event in hook_events(session, host_profile(host)) for step in reader.read(event)]
    for name in ("calls", "turns", "tokens", "at"):
        values = [getattr(step, name) for step in steps if step.kind != "prompt"]
        assert values == sorted(values)
    assert [step.kind for step in steps].count("prompt") == sum(
        event.hook == "before_prompt_build" for event in hook_events(session, host_profile(host))
    )


def steps_of(kinds: list[str]) -> Iterator[Step]:
    for number, kind in enumerate(kinds, 1):
        yield Step(kind, number, number, 100 * number, number, "feedback" if kind == "event" else None)  # type: ignore[arg-type]


@steady
@given(
    st.lists(st.sampled_from(["prompt", "save", "event", "run_end", "session_end"]), max_size=40),
    st.sampled_from(["off", "interval", "since_save", "token_gap", "event"]),
    st.integers(1, 6),
    st.sampled_from(["llm_call", "user_turn"]),
    st.sampled_from(["run", "session"]),
)
def test_only_prompts_remind_and_never_more_often_than_set(
    kinds: list[str], policy: str, gap: int, unit: str, scope: str
) -> None:
    names = ("interval", "since_save", "since_reminder", "min_gap")
    config = settings(policy=policy, unit=unit, scope=scope, token_gap=100 * gap, **dict.fromkeys(names, gap))
    rule = ReminderPolicy(config.reminders)
    answers = [(step, rule.step(step)) for step in steps_of(kinds)]
    fired = [step.at for step, answer in answers if answer]
    assert all(step.kind == "prompt" for step, answer in answers if answer)
    assert all(later - sooner >= gap for sooner, later in itertools.pairwise(fired))
    assert policy != "off" or not fired


# --- the behaviour model ------------------------------------------------------------------------------------------


def test_behaviour_by_hand() -> None:
    import numpy as np

    gap, extra, repeats = (
        np.array([0.0, 2.0, np.inf, 0.0]),
        np.array([0.0, 1.0, 0.0, 0.0]),
        np.array([0.0, 0.0, 0.0, 0.1]),
    )
    wanted = [0.6, 0.05 + 0.55 * np.exp(-0.214) * 0.7, 0.05, 0.05 + 0.55 * 0.9**2]
    assert np.allclose(Behaviour().p_save(gap, extra, repeats), wanted)
    # No decay at all still means nothing where no reminder came.
    assert np.allclose(Behaviour(decay=0).p_save(gap, extra, repeats)[2:3], [0.05])
    assert len(set(BAND)) == 16


@steady
@given(
    st.floats(0, 50) | st.just(float("inf")),
    st.integers(0, 5),
    st.floats(0, 1),
)
def test_the_band_holds_the_default(gap: float, extra: int, repeats: float) -> None:
    import numpy as np

    given_ = (np.array([gap]), np.array([float(extra)]), np.array([repeats]))
    ends = [float(each.p_save(*given_)[0]) for each in BAND]
    assert min(ends) <= float(Behaviour().p_save(*given_)[0]) <= max(ends)
    assert min(ends) >= 0
    assert max(ends) <= 1
