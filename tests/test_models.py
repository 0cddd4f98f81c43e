"""Live models through a server on loopback: what is asked, what is recorded, what is replayed, and what errors say."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openclaw_lab.errors import ConfigError, DataError, DataWarning, LabError, OfflineError, RefusedError, TaskError
from openclaw_lab.knowhub.embed import embedder_named, full_name
from openclaw_lab.knowhub.service import KnowHub
from openclaw_lab.models import complete, complete_json, embed

KEY = "fake-key-0f9e8d7c6b5a"
MODEL = "openai/tiny"


class Server:
    """Answers in the OpenAI form; `answers` are given in turn, the last one again and again."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: list[Any] = ["hello"]
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path, body))
                reply = json.dumps(outer.reply(self.path, body)).encode()
                self.send_response(outer.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.options = {"api_base": f"http://127.0.0.1:{self.http.server_port}/v1", "api_key": KEY}

    def reply(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.status != 200:
            return {"error": {"message": f"Incorrect API key provided: {KEY}", "type": "x", "code": "y"}}
        if path == "/v1/embeddings":
            rows = [{"object": "embedding", "index": i, "embedding": vector(t)} for i, t in enumerate(body["input"])]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            return {"object": "list", "model": "tiny", "data": rows[::-1], "usage": usage}
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "tiny",
            "choices": [choice],
            "usage": usage,
        }


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.1, float(text.count("a"))]


@contextmanager
def serving() -> Iterator[Server]:
    """A server in a thread, until the end of the block."""
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.http.shutdown()
        made.http.server_close()
        thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


# --- the cassette -------------------------------------------------------------------------------------------------


def test_a_replay_is_identical_and_asks_nobody(server: Server, tmp_path: Path) -> None:
    tape = tmp_path / "deep" / "tape.jsonl"
    server.answers = ["你好 🙂\n\ud83d"]
    first = complete(MODEL, user("hi"), cassette=tape, temperature=0, **server.options)
    server.answers = ["another"]
    assert complete(f"litellm:{MODEL}", user("hi"), cassette=str(tape), temperature=0, **server.options) == first
    assert len(server.asked) == 1
    assert server.asked[0][1]["messages"] == user("hi")
    changed = complete(MODEL, user("hi"), cassette=tape, temperature=1, **server.options)
    assert (changed, len(server.asked)) == ("another", 2)
    other_key = {**server.options, "api_key": "another-key-entirely"}
    only = complete(MODEL, user("hi"), cassette=tape, cassette_only=True, temperature=0, **other_key)
    assert (only, len(server.asked)) == (first, 2)
    assert [json.loads(line)["completion_tokens"] for line in tape.read_text().splitlines()] == [3, 3]


def test_another_process_replays_without_litellm(server: Server, tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    complete(MODEL, user("hi"), cassette=tape, api_base=server.options["api_base"], api_key=KEY)
    code = (
        "import sys; from openclaw_lab.models import complete\n"
        f"print(complete({MODEL!r}, {user('hi')!r}, cassette={str(tape)!r}, cassette_only=True,"
        f" api_base={server.options['api_base']!r}))\n"
        "assert 'litellm' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("hello\n", "")
    assert len(server.asked) == 1


def test_nothing_recorded_is_refused_by_cassette_only(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no answer of openai/tiny to this request; record it first"):
        complete(MODEL, user("hi"), cassette=tmp_path / "none.jsonl", cassette_only=True)
    with pytest.raises(DataError, match="no answer of openai/tiny"):
        embed(MODEL, ["hi"], cassette=tmp_path / "none.jsonl", cassette_only=True)
    assert not (tmp_path / "none.jsonl").exists()


def test_no_secret_is_in_the_cassette(server: Server, tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    server.answers = [f"your key is {KEY}"]
    headers = {"X-Secret": "header-secret-1234"}
    options = {**server.options, "api_base": server.options["api_base"].replace("//", "//me:hush@")}
    said = complete(MODEL, user("hi"), cassette=tape, extra_headers=headers, **options)
    assert said == "your key is [SECRET]"
    embed(MODEL, ["hi"], cassette=tape, extra_headers=headers, **server.options)
    written = tape.read_text()
    assert len(written.splitlines()) == 2
    assert not any(secret in written for secret in (KEY, "header-secret", "hush"))
    assert tape.stat().st_mode & 0o077 == 0


def test_a_line_cut_short_costs_only_itself(server: Server, tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    complete(MODEL, user("one"), cassette=tape, **server.options)
    whole = tape.read_bytes()
    tape.write_bytes(whole + whole[: len(whole) // 2])
    with pytest.warns(DataWarning, match="1 damaged"):
        complete(MODEL, user("two"), cassette=tape, **server.options)
    assert complete(MODEL, user("one"), cassette=tape, **server.options) == "hello"
    assert complete(MODEL, user("two"), cassette=tape, **server.options) == "hello"
    assert len(server.asked) == 2
    tape.unlink()
    complete(MODEL, user("one"), cassette=tape, **server.options)
    assert len(server.asked) == 3


def test_many_threads_record_everything_once(server: Server, tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    made = [
        threading.Thread(target=lambda n=n: complete(MODEL, user(f"{n}"), cassette=tape, **server.options))
        for n in range(8)
    ]
    for each in made:
        each.start()
    for each in made:
        each.join()
    assert len({json.loads(line)["key"] for line in tape.read_text().splitlines()}) == 8


# --- JSON ---------------------------------------------------------------------------------------------------------


def number(answer: Any) -> int:
    if type(answer) is not int:
        raise ValueError("not a whole number")
    return answer


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        (["3"], 1),
        (["```json\n3\n```"], 1),
        (["three", "3"], 2),
        (['"x"', "3"], 2),
        (["", "3"], 2),
        (["[" * 99999, "3"], 2),
    ],
)
def test_a_bad_answer_is_repaired_once(server: Server, answers: list[str], asked: int) -> None:
    server.answers = answers
    assert complete_json(MODEL, user("?"), number, schema={"type": "integer"}, **server.options) == 3
    assert len(server.asked) == asked
    form = server.asked[0][1]["response_format"]["json_schema"]
    assert form["schema"] == {"type": "integer"}
    if asked == 2:
        assert [each["role"] for each in server.asked[1][1]["messages"]] == ["user", "assistant", "user"]


def test_two_bad_answers_are_one_line(server: Server) -> None:
    server.answers = ["no\nJSON"]
    with pytest.raises(TaskError, match=r"model openai/tiny: two answers .* the last: not JSON") as caught:
        complete_json(MODEL, user("?"), number, schema={}, **server.options)
    assert "\n" not in str(caught.value)
    assert len(server.asked) == 2


# --- errors -------------------------------------------------------------------------------------------------------


def closed() -> str:
    """An address at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


def test_offline_is_said_clearly(capfd: pytest.CaptureFixture[str]) -> None:
    for call in (lambda **o: complete(MODEL, user("hi"), **o), lambda **o: embed(MODEL, ["hi"], **o)):
        with pytest.raises(OfflineError, match=r"^model openai/tiny: found no connection; check the network") as caught:
            call(api_base=closed(), api_key=KEY, retries=1)
        assert "\n" not in str(caught.value)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("status", "kind", "words", "asked"),
    [
        (401, RefusedError, "give a valid api_key", 1),
        (404, RefusedError, "check the model's name", 1),
        (400, RefusedError, "check the options", 1),
        (429, OfflineError, "try again later", 3),
        (503, OfflineError, "try again later", 3),
    ],
)
def test_what_a_server_refuses(server: Server, status: int, kind: type[LabError], words: str, asked: int) -> None:
    server.status = status
    with pytest.raises(kind, match=words) as caught:
        complete(MODEL, user("hi"), **server.options)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(server.asked) == asked


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: complete("no-such-provider-at-all", user("x")), "provider/model"),
    (lambda: complete("", user("x")), "a name of litellm"),
    (lambda: complete(MODEL, user("x"), cassette_only=True), "cassette_only"),
    (lambda: complete(MODEL, user("x"), stream=True), "stream"),
    (lambda: complete(MODEL, user("x"), stop=object()), "plain values"),
    (lambda: complete(MODEL, user("x"), retries=-1), "0 or more"),
    (lambda: complete(MODEL, user("x"), budget="五元"), "US dollars, above 0"),
    (lambda: complete(MODEL, user("x"), budgets=1), "expected budget"),
    (lambda: embed(MODEL, ["x"], budget=1.0), "no price of openai/tiny"),
    (lambda: embedder_named("hash", api_base="x"), "no options but for litellm"),
    (lambda: embedder_named("magic"), "litellm:<model>"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_wrong_use(call: Callable[[], object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        call()


def test_within_a_running_event_loop(server: Server) -> None:
    async def cell() -> str:
        return complete(MODEL, user("hi"), **server.options)

    assert asyncio.run(cell()) == "hello"


# --- vectors ------------------------------------------------------------------------------------------------------


def test_only_new_texts_are_asked_for(server: Server, tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    first = embed(MODEL, ["a", "bb", "a"], cassette=tape, **server.options)
    assert first.dtype == np.float32
    assert np.array_equal(first, np.array([vector("a"), vector("bb"), vector("a")], dtype=np.float32))
    again = embed(MODEL, ["ccc", "bb"], cassette=tape, **server.options)
    assert again.tolist()[1] == first.tolist()[1]
    assert [body["input"] for _, body in server.asked] == [["a", "bb"], ["ccc"]]
    assert embed(MODEL, [], **server.options).shape[0] == 0


def test_an_embedder_by_name(server: Server, tmp_path: Path) -> None:
    made = embedder_named(f"litellm:{MODEL}", **server.options)
    assert (made.name, made.version, made.dimension) == (f"litellm:{MODEL}", MODEL, 3)
    assert np.allclose(np.linalg.norm(made.embed(["a", "bb"]), axis=1), 1)
    asked = len(server.asked)
    given = embedder_named(f"litellm:{MODEL}", dimension=3, cassette=tmp_path / "tape.jsonl", **server.options)
    assert (full_name(given), given.embed([]).shape, len(server.asked)) == (full_name(made), (0, 3), asked)
    with KnowHub.open(tmp_path / "kb", embedder=given) as kb:
        kb.save(task="t", content="an apple a day", types=["tool"])
        assert kb.search("apple")[0].entry.content == "an apple a day"
        assert kb.verify() == []
    with pytest.raises(DataError, match="a store made with litellm:openai/tiny"):
        KnowHub.open(tmp_path / "kb", embedder="hash")


def test_a_wrong_dimension_is_said(server: Server) -> None:
    with pytest.raises(ConfigError, match=r"rows of 4 numbers"):
        embedder_named(f"litellm:{MODEL}", dimension=4, **server.options).embed(["a"])


def test_rules_and_the_package_do_not_load_litellm() -> None:
    code = (
        "import sys, openclaw_lab, openclaw_lab.models\n"
        "from openclaw_lab.knowhub.extract import extract_items\n"
        "assert extract_items([{'role': 'user', 'content': 'Remember that tea is hot.'}])\n"
        "assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
