"""The reminders task: its fast path against the hook bus, its figures by hand, and odd sessions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from talks import HOSTS, call, called, result, said, sessions, steady, talk, turn, user

import openclaw_lab as lab
from openclaw_lab.errors import LabError, TaskError
from openclaw_lab.experiments.dataset import Dataset, as_dataset
from openclaw_lab.experiments.tasks.reminders import RemindersTask
from openclaw_lab.messages import OPPORTUNITY_KINDS, Message, Session
from openclaw_lab.reminders.behaviour import BAND, Behaviour
from openclaw_lab.reminders.opportunities import find_opportunities
from openclaw_lab.reminders.texts import joined, text_for
from openclaw_lab.text import count_tokens

MINI = lab.load_dataset("sessions/mini")
fewer = hypothesis.settings(steady, max_examples=25)
EVERY = {"policy": "interval", "interval": 1}


def settings(base: lab.LabConfig | None = None, /, **changes: Any) -> lab.LabConfig:
    return (base or lab.LabConfig()).with_({f"reminders.{name}": value for name, value in changes.items()})


def figures(data: object, config: lab.LabConfig, **options: Any) -> dict[str, float]:
    return {name: metric.value for name, metric in lab.evaluate("reminders", data, config, **options).metrics.items()}


def tokens_of(config: lab.LabConfig, *kinds: Any, spoken: Any = "en") -> int:
    return count_tokens(joined(kinds, config.reminders, spoken))


# --- the fast path and the slow one -------------------------------------------------------------------------------

CONFIGS = st.fixed_dictionaries({
    "host": st.sampled_from(HOSTS),
    "policy": st.sampled_from(["off", "interval", "since_save", "token_gap", "event"]),
    "interval": st.integers(1, 5),
    "since_save": st.integers(1, 6),
    "since_reminder": st.integers(1, 4),
    "token_gap": st.integers(100, 1500),
    "events": st.lists(st.sampled_from(OPPORTUNITY_KINDS), unique=True),
    "min_gap": st.integers(1, 4),
    "unit": st.sampled_from(["llm_call", "user_turn"]),
    "scope": st.sampled_from(["run", "session"]),
    "start": st.sampled_from(["off", "session", "run"]),
    "language": st.sampled_from(["auto", "zh", "en"]),
    "reminder_text_zh": st.sampled_from(["", "存一下。"]),
}).map(lambda changes: settings(**changes))  # fmt: skip


def fast(data: Dataset, config: lab.LabConfig) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """For each session: messages before each prompt with a reminder, those with a start text, tokens injected."""
    task = RemindersTask()
    prepared = task.prepare(data, config)
    owners, places = prepared.prompt_session, prepared.prompt_at
    reminders, starts = (
        [places[prompts[owners[prompts] == number]].tolist() for number in range(len(data))]
        for prompts in task.decide(prepared, config)
    )
    frame = lab.evaluate(task, data, config).frame
    return reminders, starts, frame["tokens"].tolist()


def slow(data: Dataset, config: lab.LabConfig) -> tuple[list[list[int]], list[list[int]], list[int]]:
    """The same by running the plugin's hooks."""
    reminders, starts, tokens = [], [], []
    for sample in data:
        trace = lab.replay(sample.input, config)
        assert trace.errors == []
        given_ = [(firing.event.at, firing.injection) for firing in trace.injections if firing.injection]
        reminders.append([at for at, injection in given_ if injection.kind == "reminder"])
        tokens.append(sum(count_tokens(injection.text) for _, injection in given_))
        texts = {text_for("start", config.reminders, spoken) for spoken in ("zh", "en")}
        starts.append([at for at, injection in given_ if any(map(injection.text.startswith, texts))])
    return reminders, starts, tokens


@steady
@given(CONFIGS, st.integers(0, len(MINI) - 4))
@example(settings(**EVERY), 0)
@example(lab.LabConfig(), 0)
@example(lab.LabConfig.preset("seed"), 0)
def test_the_fast_path_is_the_slow_path_on_bundled_sessions(config: lab.LabConfig, first: int) -> None:
    data = MINI[first : first + 4]
    assert fast(data, config) == slow(data, config)


@steady
@given(CONFIGS, sessions("a"), sessions("b"))
def test_the_fast_path_is_the_slow_path_on_any_session(config: lab.LabConfig, one: Session, other: Session) -> None:
    data = as_dataset([one, other])
    assert fast(data, config) == slow(data, config)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", ["seed", "tuned"])
def test_the_presets_on_all_bundled_sessions(name: str, host: str) -> None:
    config = settings(lab.LabConfig.preset(name), host=host)
    assert fast(MINI, config) == slow(MINI, config)


# --- figures by hand ----------------------------------------------------------------------------------------------

# Calls 0-3, 4, 5, 6-8 with the messages 1 3 5 7 | 9 | 11 | 13 15 17; what is learned at 4 is for call 2, at 10 for
# call 5, at 14 for call 7, and the closing answer 17 is call 8 itself.
SMALL = talk(
    turn("first", 4), turn("二", 1), turn("third", 1), turn("fourth", 3),
    opportunities=[(4, "recovery"), (10, "feedback"), (14, "new_resource"), (17, "task_end")],
)  # fmt: skip


def test_small_is_what_the_comment_says() -> None:
    assert [at for at, each in enumerate(SMALL.messages) if each.role == "assistant"] == [1, 3, 5, 7, 9, 11, 13, 15, 17]


HAND: list[tuple[dict[str, Any], int, dict[str, float]]] = [
    # Reminders at calls 2, 5, 8; nothing new before the first, feedback by the second, a resource by the third.
    ({"host": "seed", "policy": "interval", "interval": 3, "unit": "llm_call"}, 3,
     {"reminders": 3, "per_100_calls": 100 / 3, "coverage": 1, "late": 0, "reached": 1, "precision": 1, "repeats": 0}),
    # The same within one call: of the calls 2, 5, 7 and 8 the third is answered without one.
    ({"host": "seed", "policy": "interval", "interval": 3, "unit": "llm_call"}, 1,
     {"coverage": 0.75, "late": 0, "reached": 0.75, "precision": 1, "repeats": 0}),
    # Reminders at calls 4 and 5 and 6 (turns 2, 3, 4): call 2 is late by two, 5, 7 and 8 are in time.
    ({"host": "openclaw-2026.9", "policy": "interval", "interval": 1, "start": "session"}, 3,
     {"reminders": 4, "coverage": 1, "late": 0, "precision": 1, "repeats": 0.25}),
    ({"host": "openclaw-2026.9", "policy": "since_save", "since_save": 2, "since_reminder": 1}, 3,
     {"reminders": 3, "coverage": 0.75, "late": 0.25, "reached": 1, "precision": 1, "repeats": 1 / 3}),
    ({"host": "openclaw-2026.9", "policy": "since_save", "since_save": 2, "since_reminder": 1}, 2,
     {"coverage": 0.5, "late": 0, "reached": 0.5, "precision": 1}),
    ({"host": "openclaw-2026.9", "policy": "interval", "interval": 3}, 2,
     {"reminders": 1, "coverage": 0.25, "late": 0, "reached": 0.25, "precision": 1, "repeats": 0}),
    ({"host": "openclaw-2026.9", "policy": "interval", "interval": 2}, 1,
     {"reminders": 2, "coverage": 0, "late": 0, "reached": 0, "precision": 0, "repeats": 0}),
    ({"policy": "off"}, 3, {"reminders": 0, "tokens": 0, "paid_tokens": 0, "coverage": 0, "p_save": 0.05}),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "window", "wanted"), HAND)
def test_figures_by_hand(changes: dict[str, Any], window: int, wanted: dict[str, float]) -> None:
    found = figures([SMALL], settings(**changes), window=window)
    assert {name: found[name] for name in wanted} == pytest.approx(wanted)


def test_shares_of_no_reminders_are_unknown() -> None:
    metrics = lab.evaluate("reminders", [SMALL], settings(policy="off")).metrics
    for name in ("precision", "repeats"):
        assert math.isnan(metrics[name].value)
        assert metrics[name].n == 0


def test_repeats_count_within_a_session_only() -> None:
    quiet = [talk(turn("hi", 1), turn("again", 1), id=str(number), opportunities=[]) for number in range(3)]
    metrics = lab.evaluate("reminders", quiet, settings(**EVERY)).metrics
    assert (metrics["repeats"].value, metrics["repeats"].n) == (0.5, 6)
    assert math.isnan(metrics["coverage"].value)
    assert metrics["precision"].value == 0


@pytest.mark.parametrize("window", [1, 3, 50, 10**6 - 1, 10**9])
def test_windows_never_cross_sessions(window: int) -> None:
    """A reminder at the end of one session and an opportunity at the start of the next are strangers."""
    first = talk(turn("hi", 1), turn("again", 1), id="a", opportunities=[])
    second = talk(turn("hi", 1), id="b", opportunities=[(0, "feedback")])
    third = talk(turn("hi", 1), turn("again", 1), id="c", opportunities=[])
    from_the_second_turn = settings(policy="since_save", since_save=2, since_reminder=1)
    found = figures([first, second, third], from_the_second_turn, window=window)
    assert (found["reminders"], found["coverage"], found["late"], found["precision"]) == (pytest.approx(2 / 3), 0, 0, 0)


# --- tokens -------------------------------------------------------------------------------------------------------

LONG_RUN = talk(turn("first", 4), turn("second", 3))  # calls 0-3, 4-6; messages 0-7, 8-13
CUT = talk(LONG_RUN.messages, cuts={4: "compaction"})  # between the calls 1 and 2
RESET = talk(LONG_RUN.messages, cuts={8: "reset"})  # between the runs
BETWEEN = talk(LONG_RUN.messages, cuts={8: "compaction"})

PAID: list[tuple[str, Session, dict[str, Any], int, int]] = [
    # host, session, settings, reminders injected, calls that pay for one of them
    ("seed", LONG_RUN, EVERY | {"unit": "llm_call"}, 7, 7),
    ("seed", CUT, EVERY | {"unit": "llm_call"}, 7, 7),
    ("openclaw-2026.9", LONG_RUN, EVERY, 2, 4 + 3),
    ("openclaw-2026.9", CUT, EVERY, 2, 2 + 3),
    ("openclaw-2026.9", BETWEEN, EVERY, 2, 4 + 3),
    ("openclaw-2026.9", RESET, EVERY, 2, 4 + 3),
    ("openclaw-2026.3", LONG_RUN, EVERY, 2, 7 + 3),
    ("openclaw-2026.3", CUT, EVERY, 2, 2 + 3),
    ("openclaw-2026.3", BETWEEN, EVERY, 2, 4 + 3),
    ("openclaw-2026.3", RESET, EVERY, 2, 4 + 3),
]


@pytest.mark.parametrize(("host", "session", "changes", "injected", "paid"), PAID)
def test_what_is_paid_for_injected_text(
    host: str, session: Session, changes: dict[str, Any], injected: int, paid: int
) -> None:
    config = settings(host=host, start="off", **changes)
    found, one = figures([session], config), tokens_of(config, "reminder")
    assert (found["tokens"], found["paid_tokens"]) == (injected * one, paid * one)


@pytest.mark.parametrize(
    ("host", "start", "lengths"),
    [
        ("openclaw-2026.9", "session", [("start", "reminder"), ("reminder",)]),
        ("openclaw-2026.9", "run", [("start", "reminder"), ("reminder",)]),
        ("openclaw-2026.3", "session", [("start",), ("reminder",), ("reminder",)]),
        ("openclaw-2026.3", "run", [("start",), ("reminder",), ("start",), ("reminder",)]),
    ],
)
def test_a_text_is_counted_as_it_is_sent(host: str, start: str, lengths: list[Any]) -> None:
    config = settings(host=host, start=start, **EVERY)
    found = figures([LONG_RUN], config)
    assert found["tokens"] == sum(tokens_of(config, *kinds) for kinds in lengths)


def test_tokens_follow_the_language() -> None:
    config = settings(start="off", **EVERY)
    found = lab.evaluate("reminders", [talk(turn("你好", 1), turn("hello again", 1))], config).frame["tokens"].tolist()
    assert found == [tokens_of(config, "reminder", spoken="zh") + tokens_of(config, "reminder", spoken="en")]


# --- the behaviour model ------------------------------------------------------------------------------------------


def pulls(session: Session, config: lab.LabConfig) -> list[tuple[int, int, float] | None]:
    """For every opportunity, in plain Python and from the trace alone: turns since the last reminder, further reminders
    in the same run, share of reminders with nothing new; None where no reminder came before.
    """
    messages = session.messages
    call_at = [at for at, message in enumerate(messages) if message.role == "assistant"]
    turn_of, run_of = [], []  # of every call
    turns, after_user = 0, False
    for message in messages:
        turns += message.role == "user" and not after_user
        after_user = message.role == "user" or (after_user and message.role == "system")
        if message.role == "assistant":
            turn_of.append(turns)
    run_of = [
        e.run for e in lab.replay(session, lab.LabConfig.preset("seed")).events if e.hook == "before_prompt_build"
    ]
    reminders = [
        (each.event.call - 1, each.event.at) for each in lab.replay(session, config).injections
        if each.injection and each.injection.kind == "reminder"
    ]  # fmt: skip
    found = session.opportunities if session.opportunities is not None else find_opportunities(session)
    factors: list[tuple[int, int, float] | None] = []
    for opportunity in found if call_at else ():
        first_able = opportunity.index + (opportunity.kind != "task_end")
        answer = next((number for number, at in enumerate(call_at) if at >= first_able), len(call_at) - 1)
        before = [pair for pair in reminders if pair[0] <= answer]
        if not before:
            factors.append(None)
            continue
        # On a host with one prompt a run, every call of the run belongs to the turn of its first call.
        now = turn_of[answer if config.reminders.host == "seed" else run_of.index(run_of[answer])]
        in_the_run = sum(run_of[number] == run_of[answer] for number, _ in before)
        stale = sum(
            not any(sooner <= each.index < later for each in found)
            for (_, sooner), (_, later) in itertools.pairwise(before)
        )
        factors.append((now - turn_of[before[-1][0]], max(0, in_the_run - 1), stale / len(before)))
    return factors


def chance(factors: tuple[int, int, float] | None, behaviour: Behaviour) -> float:
    if factors is None:
        return behaviour.floor
    gap, extra, stale = factors
    pull = math.exp(-behaviour.decay * gap) * behaviour.extra_factor**extra * behaviour.repeat_factor ** (stale / 0.05)
    return behaviour.floor + (behaviour.p0 - behaviour.floor) * pull


@fewer
@given(CONFIGS, st.integers(0, len(MINI) - 3))
@example(lab.LabConfig.preset("seed"), 0)
@example(lab.LabConfig(), 5)
def test_p_save_is_the_formula(config: lab.LabConfig, first: int) -> None:
    data = MINI[first : first + 3]
    metric = lab.evaluate("reminders", data, config).metrics["p_save"]
    every = [factors for sample in data for factors in pulls(sample.input, config)]
    assert metric.n == len(every)
    assert metric.kind == "simulated"
    if metric.n:
        means = [sum(chance(each, behaviour) for each in every) / len(every) for behaviour in (Behaviour(), *BAND)]
        assert metric.value == pytest.approx(means[0])
        assert (metric.low, metric.high) == (pytest.approx(min(means)), pytest.approx(max(means)))
        assert metric.low <= metric.value <= metric.high


def test_a_behaviour_of_ones_own() -> None:
    bold = Behaviour(p0=0.95, floor=0.9, decay=0.0)
    results = lab.evaluate("reminders", [SMALL], lab.LabConfig(), behaviour=bold)
    metric = results.metrics["p_save"]
    assert 0.9 <= metric.value <= 0.95
    assert metric.low < metric.value == metric.high, "the band holds the value, wherever that is"
    assert results.task.options()["behaviour"] == {
        "p0": 0.95, "floor": 0.9, "decay": 0.0, "extra_factor": 0.7, "repeat_factor": 0.9,
    }  # fmt: skip
    again = lab.evaluate("reminders", [SMALL], lab.LabConfig(), **results.task.options())
    assert str(again) == str(results)
    assert RemindersTask().options() == {"window": 3, "opportunities": "auto"}


# --- odd data -----------------------------------------------------------------------------------------------------

ODD: list[tuple[str, Session]] = [
    ("no messages", talk()),
    ("no calls", talk(user("在吗"), user("?"), opportunities=[(0, "feedback")])),
    ("no users", talk(said("您好"), called(call("1")), result("1"))),
    ("only a system message", talk(Message("system", "x"))),
    ("nothing worth remembering", talk(turn("hi", 2), opportunities=[])),
    ("an opportunity that nobody could answer", talk(turn("hi", 2), user("不对"), opportunities=[(4, "feedback")])),
    ("a label past the end", talk(turn("hi", 2), opportunities=[(99, "feedback")])),
    ("resets everywhere", talk(turn("hi", 2), cuts={0: "reset", 2: "reset", 4: "reset"})),
]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("session", [row[1] for row in ODD], ids=[row[0] for row in ODD])
def test_odd_sessions(session: Session, host: str) -> None:
    for policy in ("off", "interval", "since_save", "token_gap", "event"):
        results = lab.evaluate("reminders", [session], settings(host=host, policy=policy))
        assert len(results.frame) == 1
        for metric in results.metrics.values():
            assert math.isnan(metric.value) or metric.value >= 0
        assert results.metrics["reminders"].n == 1
        assert isinstance(str(results), str)
        results.errors()


@steady
@given(st.lists(sessions(), min_size=1, max_size=3), CONFIGS, st.integers(1, 9), st.sampled_from(["auto", "rules"]))
def test_figures_are_possible(each: list[Session], config: lab.LabConfig, window: int, source: str) -> None:
    data = as_dataset(
        [Session(str(n), s.messages, opportunities=s.opportunities, cuts=s.cuts) for n, s in enumerate(each)]
    )
    results = lab.evaluate("reminders", data, config, window=window, opportunities=source)
    found, frame = results.metrics, results.frame
    for name in ("coverage", "late", "reached", "precision", "repeats", "p_save"):
        metric = found[name]
        assert math.isnan(metric.value) or 0 <= metric.low <= metric.value <= metric.high <= 1, name
    if not math.isnan(found["reached"].value):
        assert found["reached"].value == pytest.approx(found["coverage"].value + found["late"].value)
    assert found["paid_tokens"].value >= found["tokens"].value
    assert found["reminders"].value * len(data) == pytest.approx(frame["reminders"].sum())
    assert frame["calls"].tolist() == [sum(m.role == "assistant" for m in s.input.messages) for s in data]
    assert (frame["reminded_at"].map(len) == frame["reminders"]).all()
    assert (frame["missed"].map(len) == frame["opportunities"] - frame["covered"]).all()


@fewer
@given(st.permutations(range(6)), CONFIGS)
def test_the_order_of_sessions_does_not_matter(order: list[int], config: lab.LabConfig) -> None:
    data = list(MINI[:6])
    one = figures([sample.input for sample in data], config)
    other = figures([data[index].input for index in order], config)
    assert one == pytest.approx(other, nan_ok=True)


def test_one_session_gives_intervals() -> None:
    longest = max((sample.input for sample in MINI), key=lambda session: len(session.messages))
    for name, metric in lab.evaluate("reminders", [longest], settings(policy="interval", interval=2)).metrics.items():
        assert metric.n > 0, name
        assert metric.low <= metric.value <= metric.high, name
        assert metric.low < metric.high, name


# --- labels, options, columns -------------------------------------------------------------------------------------

LABELLED = talk(turn("hi", 1), turn("不对，应该是 8443", 1), id="a", opportunities=[(0, "recovery")])
UNLABELLED = talk(turn("hi", 1), turn("不对，应该是 8443", 1), id="b")
LOOKED_AT = talk(turn("hi", 1), turn("不对，应该是 8443", 1), id="c", opportunities=[])


@pytest.mark.parametrize(
    ("source", "opportunities", "labelled"),
    [("auto", [1, 1, 0], [True, False, True]), ("rules", [1, 1, 1], [False, False, False])],
)
def test_where_opportunities_come_from(source: str, opportunities: list[int], labelled: list[bool]) -> None:
    frame = lab.evaluate("reminders", [LABELLED, UNLABELLED, LOOKED_AT], opportunities=source).frame
    assert frame["opportunities"].tolist() == opportunities
    assert frame["labelled"].tolist() == labelled


def test_labels_alone_need_labels() -> None:
    frame = lab.evaluate("reminders", [LABELLED, LOOKED_AT], opportunities="labels").frame
    assert frame["opportunities"].tolist() == [1, 0]
    with pytest.raises(TaskError, match=r'session b: found no labelled opportunities.*use opportunities="auto"'):
        lab.evaluate("reminders", [LABELLED, UNLABELLED], opportunities="labels")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"window": 0}, "found 0; expected a whole number of model calls, at least 1"),
        ({"window": -3}, "found -3"),
        ({"window": 2.5}, r"found 2\.5"),
        ({"window": math.nan}, "found nan"),
        ({"window": "3"}, "found '3'"),
        ({"window": None}, "found None"),
        ({"window": True}, "found True"),
        ({"opportunities": "label"}, "found 'label'; expected auto, rules or labels"),
        ({"opportunities": "标签"}, "found '标签'"),
        ({"opportunities": None}, "found None"),
        ({"windows": 3}, "unexpected keyword argument 'windows'.*options that the task knows"),
        ({"behaviour": {"p1": 1}}, "unexpected keyword argument 'p1'"),
    ],
)
def test_bad_options(options: dict[str, Any], error: str) -> None:
    with pytest.raises(TaskError, match=error) as caught:
        lab.evaluate("reminders", [LABELLED], **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("window", [2, np.int64(2), np.int8(2)])
def test_any_whole_number_is_a_window(window: Any) -> None:
    task = RemindersTask(window)
    assert (task.window, type(task.window)) == (2, int)


@pytest.mark.parametrize("data", [[], "injection/mini", [talk(), "text"], None, 3])
def test_bad_data(data: Any) -> None:
    with pytest.raises(LabError) as caught:
        lab.evaluate("reminders", data)
    assert "\n" not in str(caught.value)


def test_columns() -> None:
    frame = lab.evaluate("reminders", [SMALL], settings(policy="since_save", since_save=2, since_reminder=1)).frame
    assert list(frame.columns) == [
        "id", "dataset", "lang", "turns", "reminders", "useful", "repeats", "opportunities", "covered", "late",
        "reached", "p_save", "calls", "tokens", "paid_tokens", "labelled", "reminded_at", "missed", "correct",
    ]  # fmt: skip
    row = frame.iloc[0]
    assert (row["turns"], row["calls"], row["reminders"], row["opportunities"]) == (4, 9, 3, 4)
    assert (row["reminded_at"], row["missed"]) == ([9, 11, 13], [4])
    assert not row["correct"]


def test_turns_are_the_same_on_every_host() -> None:
    trailing = talk(said("您好"), turn("hi", 2), user("还在吗"), user("?"))
    assert [lab.evaluate("reminders", [trailing], settings(host=host)).frame["turns"][0] for host in HOSTS] == [2, 2, 2]


def test_errors_come_worst_first() -> None:
    results = lab.evaluate("reminders", [LABELLED, SMALL, LOOKED_AT], settings(policy="off"))
    wrong = results.errors()
    assert wrong["id"].tolist() == ["s", "a"]
    assert wrong["misses"].tolist() == [4, 1]
    assert wrong["missed"].tolist() == [[4, 10, 14, 17], [0]]


def test_settings_share_a_preparation_when_they_may() -> None:
    task = RemindersTask()
    keys = [
        task.prepared_by(settings(**changes))
        for changes in ({}, EVERY, {"language": "zh"}, {"policy": "token_gap"}, {"host": "seed"})
    ]
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys)) == 3
    swept = lab.sweep(task, MINI[:5], None, {"reminders.policy": ["interval", "token_gap", "event"]})
    for choice in swept.choices:
        alone = lab.evaluate(task, MINI[:5], choice.config).metrics
        assert {k: m.value for k, m in choice.metrics.items()} == pytest.approx(
            {k: m.value for k, m in alone.items()}, nan_ok=True
        )
