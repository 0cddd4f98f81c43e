"""Models of an agent over real HTTP: tool calls, streaming, retries, tokens and cost, cassettes, what errors say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import add, agent
from openai_server import KEY, Server, call, serving, text

import openclaw_lab as lab
from openclaw_lab.agent.models import ScriptedModel, TapedModel, calls
from openclaw_lab.agent.replaying import replay_log
from openclaw_lab.agent.reply import Request
from openclaw_lab.errors import DataError, LabError, OfflineError, RefusedError

MODEL = "litellm:openai/gpt-4o-mini"


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Calls `add` for a message with a plus, then says the result."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return text(f"结果是 {last['content']}")
    if "+" in last["content"]:
        return call("add", '{"a": 2, "b": 3}')
    return text(f"你好, {len(body['messages'])} messages")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(answer) as made:
        yield made


def live(server: Server, **options: Any) -> lab.Agent:
    return lab.Agent(MODEL, tools=[add], model_options=server.options, **options)


def test_a_tool_call_over_http(server: Server) -> None:
    turn = live(server).run("2+3?")
    assert (turn.text, turn.calls, turn.stop_reason) == ("结果是 5", 2, "stop")
    assert (turn.usage.input, turn.usage.output, turn.usage.cache_read) == (100, 10, 40)
    assert turn.cost is not None
    assert 0 < turn.cost < 0.001
    first, second = server.asked
    assert [each["function"]["name"] for each in first["tools"]] == ["add"]
    assert [each["role"] for each in second["messages"]] == ["system", "user", "assistant", "tool"]
    made = second["messages"][2]["tool_calls"][0]
    assert json.loads(made["function"]["arguments"]) == {"a": 2, "b": 3}
    assert second["messages"][3]["tool_call_id"] == made["id"] == "call_1"


@pytest.mark.parametrize("content", ["import os\n", "一行\n另一行\n", '{"a": 1}\n'])
def test_a_file_that_is_no_cassette_is_refused_and_stays(tmp_path: Path, content: str) -> None:
    tape = tmp_path / "笔记.py"
    tape.write_text(content, "utf-8")
    for _ in range(2):
        with pytest.raises(DataError, match="found no answer of a model in it; expected a cassette, or a new file"):
            agent(cassette=tape).run("你好")
    assert tape.read_text("utf-8") == content


def test_streamed_it_is_the_same_and_text_comes_in_pieces(server: Server) -> None:
    pieces: list[str] = []
    turn = live(server).run("2+3?", on_delta=pieces.append)
    assert "".join(pieces) == turn.text == "结果是 5"
    assert len(pieces) > 3
    assert all(each["stream"] for each in server.asked)
    assert (turn.usage.input, turn.usage.output, turn.usage.cache_read) == (100, 10, 40)
    assert turn.tool_calls[0].arguments == {"a": 2, "b": 3}


def test_arguments_that_are_no_json_go_back_to_the_model() -> None:
    def broken(body: dict[str, Any]) -> dict[str, Any]:
        last = body["messages"][-1]
        return text("sorry") if last["role"] == "tool" else call("add", '{"a": 2,')

    with serving(broken) as server:
        turn = live(server).run("2+3?")
    assert turn.text == "sorry"
    assert "expected a JSON object" in turn.messages[2].text


def test_a_lost_connection_is_tried_again(server: Server) -> None:
    server.faults = [0, 503]
    assert live(server).run("2+3?").text == "结果是 5"
    assert len(server.asked) == 4


@pytest.mark.parametrize("hard", [True, False], ids=["reset", "silent"])
def test_a_stream_that_is_cut_is_asked_again_and_tells_nothing_twice(server: Server, hard: bool) -> None:
    server.cut_after, server.cut_hard = 4, hard
    pieces: list[str] = []
    turn = live(server).run("hello", on_delta=pieces.append)
    assert turn.text == "你好, 2 messages"
    assert turn.text.startswith("".join(pieces))


def test_what_cannot_be_helped_is_one_line_without_the_key(server: Server) -> None:
    server.faults = [401]
    with pytest.raises(RefusedError) as caught:
        live(server).run("hello")
    assert KEY not in str(caught.value)
    server.faults = [503] * 9
    with pytest.raises(OfflineError):
        live(server).run("hello")
    with pytest.raises(LabError, match="no connection"):
        lab.Agent(MODEL, model_options={"api_base": "http://127.0.0.1:9/v1", "api_key": KEY}).run("hello")


def test_after_a_fault_the_session_goes_on(server: Server) -> None:
    made = live(server)
    server.faults = [401]
    with pytest.raises(RefusedError):
        made.run("hello")
    assert made.run("2+3?").text == "结果是 5"
    assert all(each["content"] for each in server.asked[-1]["messages"] if each["role"] == "user")


def test_the_cassette_gives_the_same_bytes_and_asks_nobody(server: Server, tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    first = live(server, cassette=tape).run("2+3?")
    asked, recorded = len(server.asked), tape.read_bytes()
    for options in ({}, {"cassette_only": True}):
        again = live(server, cassette=tape, **options)
        pieces: list[str] = []
        turn = again.run("2+3?", on_delta=pieces.append)
        assert (turn.messages, turn.usage, turn.cost) == (first.messages, first.usage, first.cost)
        assert pieces == ["结果是 5"]
    assert (len(server.asked), tape.read_bytes()) == (asked, recorded)
    assert KEY not in tape.read_text()
    with pytest.raises(DataError, match="without cassette_only"):
        live(server, cassette=tape, cassette_only=True).run("other")


def test_a_session_is_replayed_from_its_cassette_byte_for_byte(server: Server, tmp_path: Path) -> None:
    log, tape, again = tmp_path / "log.jsonl", tmp_path / "tape.jsonl", tmp_path / "again.jsonl"
    with live(server, cassette=tape, session=log) as made:
        made.run("2+3?")
        made.run("你好")
        made.rollback()
        made.run("hello")
    asked = len(server.asked)
    replay_log(log, again, cassette=tape, model=MODEL, model_options=server.options, tools=[add])
    assert again.read_bytes() == log.read_bytes()
    assert len(server.asked) == asked


def test_within_a_running_loop_and_many_at_once(server: Server) -> None:
    async def cell() -> list[str]:
        turns = await asyncio.gather(*(live(server).arun("2+3?") for _ in range(4)))
        return [turn.text for turn in turns] + [live(server).run("2+3?").text]

    assert asyncio.run(cell()) == ["结果是 5"] * 5


def test_the_models_word_for_an_early_end_is_kept() -> None:
    with serving(lambda body: text("half", "length")) as server:
        assert live(server).run("hello").stop_reason == "length"


def test_any_model_can_be_taped(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    asked: list[str] = []

    async def model(request: Request) -> str:
        asked.append(request.last.text)
        return f"answer {len(asked)}"

    assert agent(model, cassette=tape).run("a").text == "answer 1"
    assert agent(model, cassette=tape).run("a").text == "answer 1"
    assert asked == ["a"]
    assert agent(model, cassette=tape).run("b").text == "answer 2"
    with pytest.raises(DataError, match="no answer to this request"):
        agent(model, cassette=tape, cassette_only=True).run("c")


def test_the_key_is_the_whole_request(tmp_path: Path) -> None:
    """Another system prompt, another tool, another model: each is asked for anew."""
    tape = tmp_path / "tape.jsonl"
    counted = ScriptedModel(lambda request: "x")
    for options in ({}, {"base": "other"}, {"tools": []}, {"base": "other"}):
        agent(counted, cassette=tape, **options).run("a")  # type: ignore[arg-type]
    assert counted.asked == 3
    named = TapedModel(counted, tape, name="other")
    lab.Agent(named, tools=[add]).run("a")
    assert counted.asked == 4


def test_a_damaged_tape_is_told(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    agent([calls(("add", {"a": 1, "b": 1})), "x"], cassette=tape).run("a")
    rows = [json.loads(line) for line in tape.read_text().splitlines()]
    rows[0]["calls"] = [{"name": "add"}]
    tape.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match="a recorded answer"):
        agent(["y"], cassette=tape).run("a")
