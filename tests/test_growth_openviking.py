"""OpenViking by its published HTTP API, on a server on loopback; and the cases of others about growth."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from openclaw_lab.errors import DataError, LabError, OfflineError, RefusedError
from openclaw_lab.growth.entry import LAYERS
from openclaw_lab.growth.memory import GrowthMemory
from openclaw_lab.growth.openviking import Found, MemoryServer, OpenViking, layer_of, level_of

DATA = Path(os.environ.get("OPENCLAW_LAB_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
CASES = DATA / "cases" / "growth.jsonl.gz"
ROOT = "viking://user/memories"
TALK = "user: hello\nassistant: hi, " + "word " * 400


class Viking:
    """As the API documentation has it: `/content/{abstract,overview,read,write}`, `/fs/ls`, `/search/find`."""

    def __init__(self) -> None:
        folder = f"{ROOT}/a1/sessions/s1"
        self.files = {f"{folder}/raw.md": TALK, f"{ROOT}/a1/knowledge/user-facts/home.md": "I live in Porto"}
        self.short = {
            ("abstract", folder): "A greeting.",
            ("overview", folder): "The user said hello; the agent answered.",
        }
        self.asked: list[tuple[str, Any]] = []
        self.answer: tuple[int, str, bytes] | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                self._reply(parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()})

            def do_POST(self) -> None:
                self._reply(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _reply(self, path: str, given: dict[str, Any]) -> None:
                outer.asked.append((path, given))
                if self.headers.get("X-API-Key") != "fake-key":
                    status, body = 401, {"status": "error", "error": {"code": "UNAUTHENTICATED", "message": "no key"}}
                else:
                    status, body = outer.reply(path, given)
                kind, raw = "application/json", json.dumps(body).encode()
                if outer.answer:
                    status, kind, raw = outer.answer
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def reply(self, path: str, given: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        gone = (404, {"status": "error", "error": {"code": "NOT_FOUND", "message": f"not found: {given.get('uri')}"}})
        verb = path.rpartition("/")[2]
        if verb in ("abstract", "overview"):
            text = self.short.get((verb, given["uri"]))
            return (200, {"status": "ok", "result": text}) if text else gone
        if verb == "read":
            return (200, {"status": "ok", "result": self.files[given["uri"]]}) if given["uri"] in self.files else gone
        if verb == "write":
            if given["mode"] == "replace" and given["uri"] not in self.files:
                return gone
            self.files[given["uri"]] = given["content"]
            return 200, {"status": "ok", "result": {"uri": given["uri"]}}
        if verb == "ls":
            under = [uri for uri in self.files if uri.startswith(f"{given['uri']}/")]
            return 200, {"status": "ok", "result": [{"uri": uri, "isDir": False} for uri in under]}
        rows = [{"uri": uri, "level": 2, "abstract": text[:40], "score": 0.5 + number / 10, "context_type": "memory"}
                for number, (uri, text) in enumerate(self.files.items())]  # fmt: skip
        return 200, {"status": "ok", "result": {"memories": rows, "resources": [], "skills": [], "total": len(rows)}}


@pytest.fixture
def server() -> Iterator[Viking]:
    made = Viking()
    thread = threading.Thread(target=made.http.serve_forever, daemon=True)
    thread.start()
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join()


@pytest.fixture
def viking(server: Viking) -> Iterator[OpenViking]:
    with OpenViking(server.url, api_key="fake-key") as made:
        yield made


def test_the_order_of_layers_is_the_other_way_round() -> None:
    assert [level_of(each) for each in LAYERS] == [2, 1, 0]
    assert [layer_of(each) for each in range(3)] == ["keywords", "summary", "raw"]
    for wrong in (3, -1):
        with pytest.raises(DataError, match="0 \\(abstract\\)"):
            layer_of(wrong)
    with pytest.raises(DataError, match="layer"):
        level_of("L0")  # type: ignore[arg-type]


def test_layers_are_read_by_name(viking: OpenViking, server: Viking) -> None:
    uri = "agent://a1/sessions/s1"
    assert viking.read(uri) == TALK
    assert viking.read(uri, "summary") == "The user said hello; the agent answered."
    assert viking.read(uri, "keywords") == "A greeting."
    assert [path.rpartition("/")[2] for path, _ in server.asked] == ["read", "overview", "abstract"]


def test_addresses_go_there_and_back(viking: OpenViking, server: Viking) -> None:
    kept: MemoryServer = viking
    uri = "agent://a1/knowledge/user-facts/%E5%9F%8E%E5%B8%82"
    assert viking.uri(viking.address(uri)) == uri
    assert viking.uri("viking://resources/docs") == "viking://resources/docs"
    kept.write(uri, "我住在杭州")
    assert [given["mode"] for path, given in server.asked if path.endswith("write")] == ["replace", "create"]
    assert kept.read(uri) == "我住在杭州"
    assert uri in kept.names("agent://a1/knowledge/user-facts")


def test_what_is_found_has_our_addresses_and_layers(viking: OpenViking, server: Viking) -> None:
    found = viking.find("where do I live", under="agent://a1/knowledge/user-facts", limit=1, least=0.2)
    assert found == [Found("agent://a1/knowledge/user-facts/home", "raw", "I live in Porto", 0.6)]
    asked = server.asked[-1][1]
    assert asked["target_uri"] == f"{ROOT}/a1/knowledge/user-facts"
    assert (asked["limit"], asked["score_threshold"]) == (1, 0.2)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ((500, "application/json", b'{"status": "error", "error": {"message": "boom"}}'), OfflineError, "500: boom"),
        ((429, "text/plain", b"slow down"), OfflineError, "429"),
        ((403, "application/json", b'{"status": "error", "error": {"message": "no"}}'), RefusedError, "403: no"),
        ((200, "application/json", b'{"status": "error", "error": {"message": "odd"}}'), RefusedError, "odd"),
        ((200, "application/json", b'{"status": "ok", "resu'), DataError, "broken JSON"),
        ((200, "text/html", b"<html>"), DataError, "without status ok"),
        ((200, "application/json", b'{"status": "ok", "result": [1]}'), DataError, "no object"),
    ],
)
def test_an_answer_that_is_none_is_one_clear_line(
    viking: OpenViking, server: Viking, answer: Any, error: type[LabError], said: str
) -> None:
    server.answer = answer
    with pytest.raises(error, match=said) as caught:
        viking.find("hello")
    assert "\n" not in str(caught.value)


def test_a_server_that_is_not_there_or_refuses(server: Viking) -> None:
    with OpenViking(server.url) as nobody, pytest.raises(RefusedError, match="no key"):
        nobody.read("agent://a1/sessions/s1")
    with OpenViking(server.url, api_key="fake-key") as known, pytest.raises(RefusedError, match="not found"):
        known.read("agent://a1/sessions/none", "summary")
    with OpenViking("http://127.0.0.1:9", api_key="fake-key") as gone, pytest.raises(OfflineError, match="check that"):
        gone.read("agent://a1/sessions/s1")
    for wrong in ("http://memory.example", "ftp://127.0.0.1", "nowhere"):
        with pytest.raises(DataError, match="OpenViking url"):
            OpenViking(wrong)


# --- what users of similar tools complained of --------------------------------------------------------------------


def feedback_moves_within_bounds(folder: Path, viking: OpenViking) -> None:
    with GrowthMemory.open(folder, "a1", embedder="hash") as memory:
        kept = memory.remember("I live in Porto", importance=3)
        assert kept.entry is not None
        quality = [kept.entry.quality]
        assert quality == [3.0], "no feedback is the neutral default"
        quality += [memory.feedback(kept.entry.uri, useful=useful).quality for useful in (True, True, False)]
        assert quality[0] < quality[1] < quality[2] > quality[3] > quality[0]
        for _ in range(30):
            last = memory.feedback(kept.entry.uri, useful=False)
        assert 0 <= last.quality < quality[0]
        assert (last.helpful, last.harmful) == (2, 31), "reports are added, none is taken away"
        assert memory.read(kept.entry.uri) is not None, "nothing is deleted by it"
        assert len(memory.history(kept.entry.uri)) == 34


def the_short_layer_is_never_the_transcript(folder: Path, viking: OpenViking) -> None:
    for layer in (layer_of(0), layer_of(1)):
        assert TALK not in viking.read("agent://a1/sessions/s1", layer)
        assert len(viking.read("agent://a1/sessions/s1", layer)) < 100
    assert viking.read("agent://a1/sessions/s1", layer_of(2)) == TALK
    assert list(viking.layers("agent://a1/sessions/s1")) == ["raw", "summary", "keywords"]


ANSWERS: dict[str, Callable[[Path, OpenViking], None]] = {
    "pm-062": feedback_moves_within_bounds,
    "pm-064": the_short_layer_is_never_the_transcript,
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_complaint_about_others_does_not_hold_here(name: str, tmp_path: Path, viking: OpenViking) -> None:
    ANSWERS[name](tmp_path, viking)


@pytest.mark.skipif(not CASES.exists(), reason="the public data set is not here")
def test_every_complaint_has_its_test() -> None:
    with gzip.open(CASES, "rt", encoding="utf-8") as file:
        assert {json.loads(line)["id"] for line in file} == ANSWERS.keys()
