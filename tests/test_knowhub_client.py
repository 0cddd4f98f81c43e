"""The client against real servers and scripted ones: the same verbs, offline, exactly once, nothing in the clear."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from servers import Server, everything, free_port, knowledge, served

from openclaw_lab.errors import ConfigError, DataError, DataWarning, LabError, OfflineError, RefusedError
from openclaw_lab.knowhub import client as client_module
from openclaw_lab.knowhub.client import Hits, KnowHubClient, Queued
from openclaw_lab.knowhub.entry import Source
from openclaw_lab.knowhub.service import KnowHub, Saved

TOKEN = "s3cr3t-t0ken"
NOBODY = "http://127.0.0.1:9"  # the discard port: nobody answers
REMOTE = "http://knowhub.example:9999"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_FIRST_PAUSE", 0.01)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowHub]:
    with KnowHub.open(tmp_path / "kb", embedder="hash") as kb:
        yield kb


@pytest.fixture
def url(kb: KnowHub) -> Iterator[str]:
    with served(kb) as url:
        yield url


def item(number: int = 1, **more: Any) -> dict[str, Any]:
    return {"task": f"job {number}", "content": f"content of job{number}", "types": ["tool"], **more}


class Script:
    """A transport that answers as told, and keeps what was asked. An exception is raised, a number is a status."""

    def __init__(self, *answers: Any, last: Any = 200) -> None:
        self.answers, self.last, self.asked = list(answers), last, [httpx.Request("GET", "http://none")][:0]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if self.answers else self.last
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            return answer
        if answer != 200:
            return httpx.Response(answer, json={"error": f"said {answer}"})
        saved = {"id": "kb_1", "action": "created"}
        return httpx.Response(200, json={"count": 0, "results": []} if request.method == "GET" else saved)

    def client(self, url: str = NOBODY, **options: Any) -> KnowHubClient:
        return KnowHubClient(url, transport=httpx.MockTransport(self), **options)


# --- the same verbs and values as an open KnowHub -----------------------------------------------------------------


def test_the_same_values_as_an_open_knowhub(kb: KnowHub, url: str) -> None:
    with KnowHubClient(url, agent_id="main") as remote:
        source = Source(name="vitest", urls=("https://vitest.dev",), agent_id="main")
        saved = remote.save(task="运行测试", content="vitest --run 单次", types=["tool"], score=4, source=source)
        assert isinstance(saved, Saved)
        assert remote.get(saved.id) == kb.get(saved.id)
        entry = kb.get(saved.id)
        assert entry is not None
        assert (entry.source, entry.owner) == (source, "agent:main")
        again = remote.save(task="运行测试", content="vitest --run 单次", types=["tool"], score=4)
        assert isinstance(again, Saved)
        assert (again.action, again.id, again.other_id) == ("duplicate", saved.id, saved.id)
        assert again.threshold == kb.config.near_similarity
        updated = remote.update(saved.id, is_helpful=True)
        assert not isinstance(updated, Queued)
        assert (updated.helpful[0].task, updated.helpful[0].outcome) == ("使用成功", "有效")
        assert updated == kb.get(saved.id)
        harmful = remote.update(saved.id, is_helpful=False, feedback="它坏了")
        assert not isinstance(harmful, Queued)
        assert (harmful.harmful[0].outcome, harmful.harmful[0].reason) == ("无效", "它坏了")
        hits = remote.search("测试 vitest", types=["tool"])
        local = kb.search("测试 vitest", types=["tool"])
        assert [hit.entry for hit in hits] == [hit.entry for hit in local]
        assert hits[0].similarity == pytest.approx(local[0].similarity)
        assert hits[0].quality == pytest.approx(local[0].quality)
        assert hits.stale == ""
        assert remote.get("kb_nothing") is None


def test_private_entries(url: str) -> None:
    with KnowHubClient(url, agent_id="ann") as ann, KnowHubClient(url, agent_id="bob") as bob:
        saved = ann.save(**item(content="the secret zebra"), scopes=["agent:ann"])
        assert isinstance(saved, Saved)
        assert ann.get(saved.id) is not None
        assert bob.get(saved.id) is None
        assert ann.search("secret zebra")[0].entry.id == saved.id
        assert bob.search("secret zebra") == []
        with pytest.raises(RefusedError, match="404"):
            bob.update(saved.id, is_helpful=False)
        assert not isinstance(ann.update(saved.id, is_helpful=True), Queued)


def test_extract(kb: KnowHub, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    answer = [Saved("created", "kb_1"), Saved("duplicate", "kb_2", "kb_2", 1.0, 0.85, "the same words")]

    def extract(messages: Any, **more: Any) -> list[Saved]:
        asked.append((messages, more))
        return answer

    monkeypatch.setattr(kb, "extract", extract, raising=False)
    with KnowHubClient(url, agent_id="main") as remote:
        assert remote.extract([{"role": "user", "content": "记住"}], session_key="s", submitted_by="me") == answer
    more = {"agent_id": "main", "session_key": "s", "submitted_by": "me", "extractor": "rules"}
    assert asked == [([{"role": "user", "content": "记住"}], more)]


@pytest.mark.parametrize(
    "bad", [{"task": " "}, {"types": []}, {"score": 6}, {"content": "x" * 100_001}, {"colour": "red"}], ids=str
)
def test_what_is_wrong_is_said_before_anything_is_sent(tmp_path: Path, bad: dict[str, Any]) -> None:
    script = Script()
    with script.client(cache=tmp_path / "c") as remote:
        with pytest.raises(DataError):
            remote.save(**item(**bad))
        assert remote.waiting == len(script.asked) == 0


def test_the_token_is_sent_and_never_shown(kb: KnowHub, tmp_path: Path) -> None:
    with served(kb, token=TOKEN) as url:
        with KnowHubClient(url, TOKEN) as remote:
            assert isinstance(remote.save(**item()), Saved)
            assert TOKEN not in repr(remote)
        with KnowHubClient(url, f"{TOKEN}-wrong", cache=tmp_path / "c") as remote:
            with pytest.raises(RefusedError, match="check the token") as caught:
                remote.save(**item())
            assert TOKEN not in str(caught.value)
            assert remote.waiting == 0


# --- what is sent where -------------------------------------------------------------------------------------------


def test_nothing_is_uploaded_in_the_clear(tmp_path: Path) -> None:
    script = Script()
    with script.client(REMOTE, cache=tmp_path / "c") as remote:
        for upload in (
            lambda: remote.save(**item()),
            lambda: remote.update("kb_1", is_helpful=True),
            lambda: remote.extract([{"role": "user", "content": "x"}]),
            remote.send,
        ):
            with pytest.raises(ConfigError, match="https"):
                upload()
        assert not script.asked
        assert remote.waiting == 0
        with pytest.warns(DataWarning, match="not encrypted"):
            remote.search("x")
        remote.search("once is enough")
        assert len(script.asked) == 2
    with script.client(REMOTE, token=TOKEN) as remote, pytest.raises(ConfigError, match="token") as caught:
        remote.search("x")
    assert TOKEN not in str(caught.value)
    assert len(script.asked) == 2


@pytest.mark.parametrize("url", ["https://knowhub.example", "http://localhost:1", "http://[::1]:1", "HTTPS://a.b/c/"])
def test_private_addresses(url: str) -> None:
    script = Script()
    with script.client(url, token=TOKEN) as remote:
        assert remote.save(**item()) == Saved("created", "kb_1")
    assert script.asked[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert str(script.asked[0].url).lower() == f"{url.rstrip('/')}/api/knowledge".lower()


@pytest.mark.parametrize(
    "url", ["", "knowhub", "ftp://a", "http://", "http://a:b@127.0.0.1", "https://a/?token=b", "https://a:99999"]
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        KnowHubClient(url)
    assert "a:b" not in str(caught.value)


@pytest.mark.parametrize("token", ["a\nb", "密"])
def test_tokens_that_are_refused(token: str) -> None:
    with pytest.raises(ConfigError) as caught:
        KnowHubClient(NOBODY, token)
    assert token not in str(caught.value)


def test_a_redirect_is_not_followed() -> None:
    script = Script(httpx.Response(307, headers={"Location": "http://evil.example"}, text="moved"))
    with script.client(token=TOKEN) as remote, pytest.raises(RefusedError, match="307"):
        remote.save(**item())
    assert len(script.asked) == 1


# --- again --------------------------------------------------------------------------------------------------------


def reset() -> Exception:
    return httpx.ReadError("connection reset")


@pytest.mark.parametrize(
    ("answers", "call", "tries"),
    [
        ([503, 503], lambda kb: kb.search("x"), 3),
        ([429, reset()], lambda kb: kb.search("x"), 3),
        ([httpx.ReadTimeout("late")], lambda kb: kb.save(**item()), 2),
        ([reset(), 502], lambda kb: kb.save(**item()), 3),
        ([httpx.ConnectError("no"), 503], lambda kb: kb.extract([]), 3),
    ],
)
def test_what_does_no_harm_twice_is_tried_again(answers: list[Any], call: Callable[[Any], Any], tries: int) -> None:
    script = Script(*answers)
    with script.client() as remote:
        call(remote)
    assert len(script.asked) == tries
    keys = {request.headers.get("Idempotency-Key") for request in script.asked}
    assert len(keys) == 1


def test_an_extraction_that_may_have_arrived_is_not_sent_again() -> None:
    script = Script(reset())
    with script.client() as remote, pytest.raises(OfflineError):
        remote.extract([{"role": "user", "content": "x"}])
    assert len(script.asked) == 1


@pytest.mark.parametrize("status", [400, 404, 422, 500])
def test_a_refusal_is_final(status: int) -> None:
    script = Script(last=status)
    with script.client() as remote, pytest.raises(RefusedError, match=f"said {status}") as caught:
        remote.save(**item())
    assert caught.value.status == status
    assert len(script.asked) == 1


def test_the_server_says_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    late = [httpx.Response(503, headers={"Retry-After": each}, json={}) for each in ("2", "9999")]
    with Script(*late).client() as remote:
        remote.search("x")
    assert waited == [2.0, 5.0]


FOREIGN = [b"", b"<html>", b"[]", b"null", b"3", b'{"results": 3}', b'{"results": [{}]}', b'{"results": [[]]}']


@pytest.mark.parametrize("body", FOREIGN)
def test_answers_of_another_program(body: bytes, tmp_path: Path) -> None:
    with Script(httpx.Response(200, content=body)).client(cache=tmp_path / "c") as remote, pytest.raises(DataError):
        remote.search("x")
    with Script(last=httpx.Response(200, content=body)).client() as remote, pytest.raises(DataError):
        remote.save(**item())


def test_a_server_that_says_less() -> None:
    entry = {"id": "1", "task": "t", "content": "c", "types": ["tool"], "eval": {"score": 4}, "quality_score": 6.0}
    with Script(httpx.Response(200, json={"count": 1, "results": [entry]})).client() as remote:
        hit = remote.search("x")[0]
    assert (hit.entry.task, hit.entry.score, hit.quality, hit.entry.status) == ("t", 4, 6.0, "live")


# --- offline ------------------------------------------------------------------------------------------------------


def test_searches_offline(kb: KnowHub, tmp_path: Path) -> None:
    kb.save(**item())
    with served(kb) as url, KnowHubClient(url, cache=tmp_path / "c") as remote:
        fresh = remote.search("job")
    with KnowHubClient(url, cache=tmp_path / "c") as remote:
        stale = remote.search("job")
        assert stale == fresh
        assert isinstance(stale, Hits)
        assert stale.stale.endswith("Z")
        with pytest.raises(OfflineError):
            remote.search("never asked before")
        with pytest.raises(OfflineError):
            remote.get("kb_1")
    with KnowHubClient(url, cache=tmp_path / "c", agent_id="other") as remote, pytest.raises(OfflineError):
        remote.search("job")
    with KnowHubClient(NOBODY, cache=tmp_path / "c") as remote, pytest.raises(OfflineError):
        remote.search("job")
    with KnowHubClient(url) as remote, pytest.raises(OfflineError, match="start it"):
        remote.search("job")


def test_saves_offline_are_sent_later_in_order_and_once(kb: KnowHub, tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with KnowHubClient(url, cache=tmp_path / "c") as remote:
        queued = [remote.save(**item(number)) for number in range(5)]
        assert all(isinstance(each, Queued) and each.action == "queued" for each in queued)
    with KnowHubClient(url, cache=tmp_path / "c") as remote:  # another run of the program
        assert remote.waiting == 5
        with pytest.raises(OfflineError):
            remote.send()
    with Server(tmp_path / "other", port=port), KnowHubClient(url, cache=tmp_path / "c") as remote:
        saved = remote.save(**item(5))
        assert isinstance(saved, Saved)
        assert remote.waiting == remote.send() == 0
        assert [each["task"] for each in everything(url)] == [f"job {number}" for number in range(6)]


def test_a_report_offline(tmp_path: Path) -> None:
    script = Script(last=httpx.ConnectError("no"))
    with script.client(cache=tmp_path / "c", agent_id="ann") as remote:
        assert isinstance(remote.update("kb_1", is_helpful=True), Queued)
        script.last = httpx.Response(200, json={})
        assert remote.send() == 1
    assert script.asked[-1].method == "PUT"
    assert script.asked[-1].url.raw_path == b"/api/knowledge/kb_1?agent_id=ann"
    assert json.loads(script.asked[-1].content)["add_helpful_case"]["outcome"] == "有效"
    assert len({request.headers["Idempotency-Key"] for request in script.asked}) == 1


def test_an_answer_that_was_lost_is_asked_for_again(kb: KnowHub, url: str, tmp_path: Path) -> None:
    """The server saved, but the client never heard of it: the same key gets the same answer."""
    real = httpx.HTTPTransport()
    lost = [True, True]

    class Lossy(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = real.handle_request(request)
            if lost and lost.pop():
                answer.close()
                raise reset()
            return answer

        def close(self) -> None:
            real.close()

    with KnowHubClient(url, cache=tmp_path / "c", transport=Lossy()) as remote:
        saved = remote.save(**item())
        assert isinstance(saved, Saved)
        assert saved.action == "created"
        assert len(kb) == 1


def test_what_the_server_refuses_later_is_put_aside_with_its_reason(tmp_path: Path) -> None:
    script = Script(last=httpx.ConnectError("no"))
    with script.client(cache=tmp_path / "c") as remote:
        for number in range(3):
            remote.save(**item(number))
        script.answers, script.last = [422], 200
        with pytest.warns(DataWarning, match="said 422"):
            assert remote.send() == 2
        assert remote.waiting == 0
        assert [(each.body["task"], "said 422" in each.fault) for each in remote.refused()] == [("job 0", True)]


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_token_loses_nothing_that_waits(tmp_path: Path, status: int) -> None:
    script = Script(last=httpx.ConnectError("no"))
    with script.client(cache=tmp_path / "c") as remote:
        remote.save(**item(1))
        script.last = status
        with pytest.raises(RefusedError):
            remote.save(**item(2))
        assert remote.waiting == 1
        script.last = 200
        assert remote.send() == 1


def test_a_key_used_twice_by_mistake_loses_nothing(kb: KnowHub, tmp_path: Path) -> None:
    with Script(last=httpx.ConnectError("no")).client("http://127.0.0.1:1", cache=tmp_path / "c") as remote:
        for number in (1, 1, 2):
            assert isinstance(remote.save(**item(number), key="k"), Queued)
        assert remote.waiting == 2
    with served(kb) as url, KnowHubClient(url) as remote:
        ids = {saved.id for n in (1, 1, 2) if isinstance(saved := remote.save(**item(n), key="k"), Saved)}
        assert len(ids) == len(kb) == 2


@pytest.mark.parametrize("key", ["a b", "a\nb", "键", "x" * 201])
def test_keys_that_are_refused(tmp_path: Path, key: str) -> None:
    with Script().client(cache=tmp_path / "c") as remote:
        with pytest.raises(DataError, match="key"):
            remote.save(**item(), key=key)
        assert remote.waiting == 0


def test_another_server_gets_nothing_of_it(tmp_path: Path) -> None:
    with Script(last=httpx.ConnectError("no")).client(cache=tmp_path / "c") as remote:
        remote.save(**item())
    script = Script()
    with script.client("http://localhost:1", cache=tmp_path / "c") as remote:
        assert remote.waiting == remote.send() == len(script.asked) == 0


def test_conversations_are_never_kept(tmp_path: Path) -> None:
    with Script(last=httpx.ConnectError("no")).client(cache=tmp_path / "c") as remote, pytest.raises(OfflineError):
        remote.extract([{"role": "user", "content": "very-private-words"}])
    kept = b"".join(path.read_bytes() for path in (tmp_path / "c").iterdir())
    assert b"very-private-words" not in kept
    assert TOKEN.encode() not in kept


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_the_cache_is_its_owners_only(tmp_path: Path) -> None:
    with Script().client(cache=tmp_path / "c") as remote:
        remote.search("x")
        modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "c").iterdir()}
    assert modes == {0o600}


def test_a_cache_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "knowhub-client.sqlite").write_text("nonsense " * 1000)
    with pytest.raises(DataError, match="knowhub-client"):
        Script().client(cache=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError):
        Script().client(cache=tmp_path / "file" / "c")


def test_only_so_many_answers_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openclaw_lab.knowhub.outbox.KEPT", 3)
    script = Script()
    with script.client(cache=tmp_path / "c") as remote:
        for number in range(5):
            remote.search(f"q{number}")
        script.last = httpx.ConnectError("no")
        for number in range(5):
            if number < 2:
                with pytest.raises(OfflineError):
                    remote.search(f"q{number}")
            else:
                assert remote.search(f"q{number}").stale


# --- many at once, and a server that dies -------------------------------------------------------------------------


def test_threads_and_clients_that_share_a_cache(url: str, tmp_path: Path) -> None:
    def save(number: int) -> Any:
        with KnowHubClient(url, cache=tmp_path / "c") as remote:
            return [remote.save(**item(10 * number + each)) for each in range(5)]

    with ThreadPoolExecutor(4) as pool:
        answers = [each for found in pool.map(save, range(4)) for each in found]
    assert all(isinstance(each, Saved) for each in answers)
    assert len({each.id for each in answers}) == len(everything(url)) == 20
    with KnowHubClient(url, cache=tmp_path / "c") as remote:

        def once(number: int) -> Any:
            return remote.save(**item(number))

        with ThreadPoolExecutor(8) as pool:
            assert all(isinstance(each, Saved) for each in pool.map(once, range(100, 140)))
        assert remote.waiting == 0
    assert len(everything(url)) == 60


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_a_server_that_is_killed_while_a_client_saves(tmp_path: Path, kills: int) -> None:
    port, done = free_port(), threading.Event()
    url = f"http://127.0.0.1:{port}"
    told: list[str] = []

    def save() -> None:
        with KnowHubClient(url, cache=tmp_path / "c", timeout=10) as remote:
            while not done.is_set():
                text = f"text{len(told)} alone{len(told)}"
                remote.save(**item(len(told), content=text))
                told.append(text)
                time.sleep(0.001)

    with ThreadPoolExecutor(1) as pool:
        saving = pool.submit(save)
        try:
            for number in range(kills):
                with Server(tmp_path / "kb", port=port) as server:
                    time.sleep(0.4 + 0.13 * (number % 3))
                    server.process.kill()
        finally:
            done.set()
        saving.result()
    with Server(tmp_path / "kb", port=port), KnowHubClient(url, cache=tmp_path / "c") as remote:
        remote.send()
        assert remote.waiting == 0
        assert not remote.refused()
        found = [each["content"] for each in everything(url)]
    assert len(told) > 10
    assert found == told  # each once, in order


SAVER = """
import sys
from openclaw_lab.knowhub.client import KnowHubClient
with KnowHubClient(sys.argv[1], cache=sys.argv[2]) as kb:
    for number in range(100_000):
        kb.save(task=f"job {number}", content=f"text{number} alone{number}", types=["tool"])
        print(number, flush=True)
"""


def test_a_client_that_is_killed_while_it_saves(kb: KnowHub, url: str, tmp_path: Path) -> None:
    told = []
    for pause in (0.05, 0.21):
        command = [sys.executable, "-c", SAVER, url, str(tmp_path / "c")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            told.append(process.stdout.readline())
            time.sleep(pause)
            process.kill()
            told += process.stdout.read().splitlines()
        with KnowHubClient(url, cache=tmp_path / "c") as remote:
            remote.send()
            assert remote.waiting == 0
        numbers = {int(each) for each in told}
        kept = [entry.content for entry in kb.entries(include_superseded=True)]
        assert len(kept) == len(set(kept))
        assert {f"text{number} alone{number}" for number in numbers} <= set(kept)
        assert len(kept) <= max(numbers) + 2


def test_the_body_is_what_the_plugin_sends() -> None:
    script = Script()
    with script.client() as remote:
        remote.save(**{**knowledge(), "scopes": ["org:openclaw"]})
    source = {**knowledge()["source"], "timestamp": ""}
    assert json.loads(script.asked[0].content) == {**knowledge(), "source": source}
