"""A session's log: what is in it, what is never in it, going on from it, taking turns back, forking, replaying."""

from __future__ import annotations

import itertools
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from agents import HOSTS, add, adding, agent, talk
from hypothesis import given
from hypothesis import strategies as st
from talks import steady

import openclaw_lab as lab
from openclaw_lab.agent.models import calls
from openclaw_lab.agent.reminding import Reminding
from openclaw_lab.agent.replaying import replay_log
from openclaw_lab.agent.reply import Reply, Request
from openclaw_lab.errors import DataError, DataWarning, TaskError
from openclaw_lab.messages import Message

KEY = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcd"


def said(messages: Any) -> list[tuple[Any, ...]]:
    """What matters of messages, apart from when they came."""
    return [(m.role, m.text, m.tool_calls, m.tool_call_id, m.name, m.failed) for m in messages]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("host", HOSTS)
def test_a_log_is_loaded_as_the_session_it_is(tmp_path: Path, host: str) -> None:
    path = tmp_path / "deep" / "s.jsonl"
    with agent(session=path, host=host, id="我的") as made:
        talk(made, 3, "第 {} 句 \u2028 🙂")
        made.rollback()
        made.run("other")
        made.compact(1)
        made.run("last")
    (loaded,) = lab.load_sessions(path)
    assert loaded.id == "我的"
    assert said(loaded.messages) == said(made.messages)
    assert [(cut.at, cut.kind, cut.tokens_before) for cut in loaded.cuts] == [
        (cut.at, cut.kind, cut.tokens_before) for cut in made.session.cuts
    ]
    assert len(loaded.cuts) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_only_grows(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    made = agent(session=path)
    talk(made, 2)
    before = path.read_bytes()
    made.rollback(2)
    made.run("again")
    assert path.read_bytes().startswith(before)


def test_secrets_are_not_in_the_log_but_reach_the_model(tmp_path: Path) -> None:
    path, asked = tmp_path / "s.jsonl", []

    def model(request: Request) -> Reply:
        asked.append(request.last.text)
        return (
            Reply(f"I used {KEY}") if request.last.role == "tool" else calls(("show", {"password": "hunter2hunter2"}))
        )

    def show(password: str) -> str:
        """Show a secret."""
        return f"OPENAI_API_KEY={KEY}"

    made = agent(model, [show], session=path)
    made.run(f"my key is {KEY}, 我的手机号 13812345678")
    made.compact(0)
    text = path.read_text("utf-8")
    assert KEY not in text
    assert "hunter2hunter2" not in text
    assert "13812345678" not in text
    assert KEY in asked[0]
    assert KEY in asked[1]


@pytest.mark.parametrize("preset", ["seed", "strict", "relaxed"])
def test_no_preset_lets_a_key_into_the_log(tmp_path: Path, preset: str) -> None:
    path = tmp_path / "s.jsonl"

    def model(request: Request) -> Reply:
        raise ValueError(f"refused: {KEY}")

    made = agent(model, session=path, config=lab.LabConfig().with_({"redaction.preset": preset}))
    with pytest.raises(ValueError, match="refused"):
        made.run(f"use {KEY}")
    text = path.read_text("utf-8")
    assert KEY not in text
    assert "refused" in text


def test_injected_text_is_not_in_the_log_except_where_the_host_keeps_it(tmp_path: Path) -> None:
    for host in HOSTS:
        path = tmp_path / f"{host}.jsonl"
        config = lab.LabConfig().with_({"reminders.host": host, "reminders.start": "run"})
        made = agent(session=path, config=config, plugins=[Reminding(config.reminders)])
        talk(made, 3)
        kept = [each for each in lines(path) if each.get("customType") == "openclaw-lab:injected"]
        assert bool(kept) == (host == "openclaw-2026.3")
        assert not [each for each in lines(path) if each["type"] == "message" and "KnowHub" in json.dumps(each)]
        noted = [each["data"]["kind"] for each in lines(path) if each.get("customType") == "openclaw-lab:injection"]
        assert noted
        assert set(noted) <= {"start", "reminder"}


# --- going on -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_resumed_it_goes_on_as_if_it_had_never_stopped(tmp_path: Path, host: str) -> None:
    config = lab.LabConfig().with_({"reminders.host": host, "reminders.policy": "interval", "reminders.interval": 3})

    def made(path: Path) -> Any:
        return agent(session=path, config=config, plugins=[Reminding(config.reminders)], id="s")

    whole = made(tmp_path / "whole.jsonl")
    talk(whole, 8)
    parted = made(tmp_path / "parted.jsonl")
    talk(parted, 3)
    parted.rollback()
    parted.run("say 3")
    parted.close()
    again = made(tmp_path / "parted.jsonl")
    for number in range(4, 9):
        again.run(f"say {number}")
    assert said(again.messages) == said(whole.messages)
    assert again.steps() == whole.steps()
    turns = [(each.event.run, each.injection.kind) for each in whole.trace.injections if each.event.run > 3]
    resumed = [
        (each.event.run, each.injection.kind) for each in again.trace.injections if each.injection.kind != "start"
    ]
    assert [each for each in turns if each[1] != "start"] == resumed


def test_a_torn_last_line_costs_itself_only(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with agent(session=path) as made:
        talk(made, 2)
    whole = path.read_bytes()
    for cut in (5, 40, 200):
        path.write_bytes(whole[:-cut])
        with agent(session=path) as again:
            assert again.messages[-1].stop_reason == "aborted"
            kept = [each for each in again.messages if each.text != "interrupted" and each.stop_reason != "aborted"]
            assert said(kept) == said(made.messages)[: len(kept)]
            again.run("go on")
        with pytest.warns(DataWarning, match="1 problem"):
            (loaded,) = lab.load_sessions(path)
        assert said(loaded.messages) == said(again.messages)


@pytest.mark.parametrize("lines", range(2, 10))
def test_a_turn_that_was_cut_short_is_ended_and_taken_back_alone(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "s.jsonl"
    with agent(session=path) as made:
        talk(made, 2)
    path.write_text("".join(f"{line}\n" for line in path.read_text("utf-8").splitlines()[:lines]), "utf-8")
    with agent(session=path) as again:
        again.run("继续")
        roles = [each.role for each in again.messages]
        assert ("user", "user") not in itertools.pairwise(roles)
        called = [call.id for each in again.messages for call in each.tool_calls]
        assert called == [each.tool_call_id for each in again.messages if each.role == "tool"]
        assert [each.text for each in again.rollback() if each.role == "user"] == ["继续"]


@steady
@given(st.integers(0, 10**6))
def test_a_log_cut_anywhere_can_be_gone_on_with(cut: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        with agent(session=path, id="s") as made:
            talk(made, 2)
            made.rollback()
            talk(made, 1)
        whole = path.read_bytes()
        path.write_bytes(whole[: cut % len(whole)])
        try:
            again = agent(session=path, id="s")
        except DataError as error:
            assert cut % len(whole) <= whole.index(b"\n")
            assert "\n" not in str(error)  # noqa: PT017
            return
        again.run("go on")
        again.close()
        assert said(agent(session=path).messages) == said(again.messages)


@pytest.mark.parametrize("content", ["hello\n", '{"role": "user", "content": "x"}\n', "\0\0\0"])
def test_a_file_that_is_no_log_is_refused_and_stays(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(content)
    with pytest.raises(DataError):
        agent(session=path)
    assert path.read_text() == content


def test_two_writers_of_one_log_are_told(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    one = agent(session=path)
    one.run("go")
    two = agent(session=path)
    two.run("go")
    with pytest.raises(DataError, match="another writer"):
        one.run("again")


def test_a_disk_that_is_full_is_one_line() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with pytest.raises(DataError, match="No space left"):
        agent(session="/dev/full").run("go")


# --- taking back and forking --------------------------------------------------------------------------------------


def test_rollback_takes_back_turns_and_counts_go_on_from_there() -> None:
    made = agent()
    talk(made, 5)
    kept = made.messages
    assert [each.text for each in made.rollback(2) if each.role == "user"] == ["say 4", "say 5"]
    assert [text for _, text, _ in made.steps()] == ["say 1", "say 2", "say 3"]
    assert len(kept) == 20  # who held the messages still has them
    assert made.run("other").trace.events[0].run == 4
    for wrong in (0, -1, 5):
        with pytest.raises(TaskError, match="1 to 4 turns"):
            made.rollback(wrong)
    made.rollback(4)
    with pytest.raises(TaskError, match="a turn to take back"):
        made.rollback()
    assert made.run("first").text == "the sum is 5"


def test_a_rollback_past_a_compaction_undoes_it() -> None:
    made = agent()
    talk(made, 4)
    made.compact(1)
    talk(made, 1)
    made.rollback(1)
    assert len(made.session.cuts) == 1
    made.rollback(1)
    assert not made.session.cuts


def test_a_fork_goes_its_own_way_without_copies_of_a_message(tmp_path: Path) -> None:
    made = agent(session=tmp_path / "a.jsonl", id="a")
    talk(made, 3)
    other = made.fork(session=tmp_path / "b.jsonl", id="b")
    other.run("left")
    made.run("right")
    assert [each.text for each in other.messages if each.role == "user"] == ["say 1", "say 2", "say 3", "left"]
    assert [each.text for each in made.messages if each.role == "user"] == ["say 1", "say 2", "say 3", "right"]
    assert said(lab.load_sessions(tmp_path / "b.jsonl")[0].messages) == said(other.messages)
    assert lines(tmp_path / "b.jsonl")[0]["parentSession"] == "a"
    with pytest.raises(DataError, match="name another"):
        made.fork(session=tmp_path / "b.jsonl")


def test_a_fork_within_a_nested_agent_has_each_message_once() -> None:
    forks: list[Any] = []
    inner = agent(id="inner")

    def ask(question: str) -> str:
        """Ask the inner agent, and fork it."""
        answer = inner.run(question).text
        forks.append(inner.fork())
        return answer

    outer = agent([calls(("ask", {"question": "a"})), "x", calls(("ask", {"question": "b"})), "y"], [ask])
    outer.run("first")
    outer.run("second")
    forks[0].run("new input")
    assert [m.text for m in forks[0].messages if m.role == "user"] == ["a", "new input"]
    assert [m.text for m in forks[1].messages if m.role == "user"] == ["a", "b"]


def test_a_fork_of_reminders_counts_on_from_the_same_place() -> None:
    config = lab.LabConfig().with_({"reminders.policy": "interval", "reminders.interval": 3})
    made = agent(config=config, plugins=[Reminding(config.reminders)])
    talk(made, 4)
    other = made.fork()
    kinds = [[i.injection.kind for i in turn.injections if i.injection] for turn in talk(other, 3)]
    assert [("reminder" in each) for each in kinds] == [False, True, False]


moves = st.lists(st.tuples(st.sampled_from(["run", "back", "fork", "compact"]), st.integers(1, 3)), max_size=12)


@steady
@given(moves)
def test_any_moves_keep_memory_log_and_what_goes_out_alike(script: list[tuple[str, int]]) -> None:
    """Whatever is done, the log reads back as the session, and calls keep their results."""
    import tempfile

    asked: list[list[Message]] = []

    def model(request: Request) -> Reply:
        asked.append(request.messages)
        return adding(request)

    with tempfile.TemporaryDirectory() as folder:
        made = agent(model, session=Path(folder) / "0.jsonl")
        for number, (move, size) in enumerate(script, 1):
            if move == "run":
                made.run(f"say {number}")
            elif move == "back" and len(made.steps()) >= size:
                made.rollback(size)
            elif move == "fork":
                made = made.fork(session=Path(folder) / f"{number}.jsonl")
            elif move == "compact":
                made.compact(size)
        path = Path(made.session.source)
        if made.messages:
            (loaded,) = lab.load_sessions(path)
            assert said(loaded.messages) == said(made.messages)
        again = agent(model, session=path)
        assert said(again.messages) == said(made.messages)
        assert again.steps() == made.steps()
        assert [c.start for c in again.compactions] == [c.start for c in made.compactions]
    for messages in asked:
        roles = [each.role for each in messages if each.role != "system"]
        assert roles[0] == "user"
        assert {c.id for m in messages for c in m.tool_calls} == {m.tool_call_id for m in messages if m.role == "tool"}


# --- replay -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_a_replay_from_the_cassette_is_byte_for_byte(tmp_path: Path, host: str) -> None:
    config = lab.LabConfig()
    options: dict[str, Any] = {"tools": [add], "host": host, "config": config, "context_tokens": 300}
    log, tape = tmp_path / "log.jsonl", tmp_path / "tape.jsonl"
    with lab.Agent(adding, session=log, cassette=tape, plugins=[Reminding(config.reminders)], **options) as made:
        talk(made, 4, "第 {} 句")
        made.rollback(2)
        made.run("other")
        made.compact(1)
        talk(made, 9)
    again = tmp_path / "again.jsonl"
    recorded = tape.read_bytes()
    replay_log(log, again, cassette=tape, model=adding, plugins=[Reminding(config.reminders)], **options)
    assert again.read_bytes() == log.read_bytes()
    assert tape.read_bytes() == recorded
    with pytest.raises(DataError, match="a new one"):
        replay_log(log, again, cassette=tape, model=adding, **options)


def test_a_replay_asks_nobody_and_says_what_is_missing(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with agent(session=log, cassette=tmp_path / "tape.jsonl") as made:
        talk(made, 1)
    with pytest.raises(DataError, match="no answer to this request"):
        replay_log(log, tmp_path / "b.jsonl", cassette=tmp_path / "none.jsonl", model=adding, tools=[add])
    with pytest.raises(DataError):
        replay_log(tmp_path / "tape.jsonl", tmp_path / "c.jsonl", cassette=tmp_path / "tape.jsonl")
