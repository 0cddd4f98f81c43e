"""The example plugins, each against a server on this machine that answers as the real one does."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from openclaw_lab.plugins.folders import bundled_plugins
from openclaw_lab.plugins.loader import Plugins, load_plugins
from openclaw_lab.plugins.manifest import read_manifest

SECRET = "s3cret-of-the-app"


class Far:
    """What was asked, and what is answered next."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, Any], str]] = []
        self.tokens = self.status = 0
        self.text, self.expire = "北京: ⛅️ +20°C", 7200
        self.codes: list[int] = []
        self.address = ""

    def answer(self, path: str) -> tuple[int, str]:
        if path.startswith("/open-apis/auth"):
            self.tokens += 1
            return 200, json.dumps({"code": 0, "tenant_access_token": f"t-{self.tokens}", "expire": self.expire})
        if path.startswith("/open-apis/im"):
            code = self.codes.pop(0) if self.codes else 0
            data = {"message_id": "om_1"} if code == 0 else None
            return 200, json.dumps({"code": code, "msg": "权限不足" if code else "success", "data": data})
        return self.status or 200, self.text


@contextmanager
def served() -> Iterator[Far]:
    far = Far()

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            far.asked.append((self.command, self.path, body, self.headers.get("Authorization", "")))
            status, text = far.answer(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = _reply  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    far.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield far
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def far() -> Iterator[Far]:
    with served() as made:
        yield made


def loaded(name: str, isolated: bool = False, environment: dict[str, str] | None = None, **settings: Any) -> Plugins:
    config = {"plugins": {"entries": {name: {"config": settings}}}}
    return load_plugins(name, config=config, isolated=isolated, environment=environment)


# --- weather ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("isolated", [False, True])
def test_the_weather_of_a_city(far: Far, isolated: bool) -> None:
    plugins = loaded("weather", isolated, baseUrl=far.address + "/")
    assert plugins.call("weather_get", city=" 北京/朝阳 ").text == "北京: ⛅️ +20°C"
    assert plugins.call("weather_get", city="PEK", format="forecast").text == "北京: ⛅️ +20°C"
    paths = [unquote(path) for _, path, _, _ in far.asked]
    assert paths == ["/北京/朝阳?format=3", "/PEK?T"]
    assert "%2F" in far.asked[0][1]
    plugins.stop()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"city": ""}, "city is empty: name one, for example 北京"),
        ({"city": "北京", "format": "long"}, "weather_get: format: found a string; expected one of brief, forecast"),
        ({}, "weather_get: city: is missing"),
    ],
)
def test_the_weather_of_nowhere(far: Far, arguments: dict[str, str], said: str) -> None:
    answer = loaded("weather", baseUrl=far.address).call("weather_get", **arguments)
    assert (answer.text, answer.failed) == (said, True)
    assert far.asked == []


def test_a_weather_server_that_fails(far: Far) -> None:
    far.status, far.text = 503, "x"
    plugins = loaded("weather", baseUrl=far.address)
    assert plugins.call("weather_get", city="a").text == "the weather server answers with status 503"
    plugins = loaded("weather", baseUrl="http://127.0.0.1:1")
    assert plugins.call("weather_get", city="a").text == "the weather server does not answer (ConnectError)"


def test_a_long_answer_is_cut(far: Far) -> None:
    far.text = "晴" * 100_000
    assert len(loaded("weather", baseUrl=far.address).call("weather_get", city="a").text) == 4_000


def test_a_wrong_weather_config() -> None:
    assert "config.baseUrl: found a string; expected a string that matches" in str(loaded("weather", baseUrl="ftp://x"))
    assert "config.timeout: found a number; expected at most 60" in str(loaded("weather", timeout=100))


# --- feishu -------------------------------------------------------------------------------------------------------


def feishu(far: Far, **more: Any) -> Plugins:
    return loaded("feishu-tools", baseUrl=far.address, appId="cli_1", appSecret=SECRET, **more)


def test_a_message_is_sent_and_the_token_kept(far: Far, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        plugins = feishu(far)
        answer = plugins.call("feishu_send_message", receive_id="ou_1", content="部署完成")
        assert answer.text == "ok: message sent (msg_id: om_1)"
        plugins.call("feishu_send_message", receive_id="oc_1", content="x")
    auth, sent, second = far.asked
    assert auth[1:3] == ("/open-apis/auth/v3/tenant_access_token/internal", {"app_id": "cli_1", "app_secret": SECRET})
    assert sent[1] == "/open-apis/im/v1/messages?receive_id_type=open_id"
    assert json.loads(sent[2]["content"]) == {"text": "部署完成"}
    assert (sent[2]["receive_id"], sent[2]["msg_type"], sent[3]) == ("ou_1", "text", "Bearer t-1")
    assert second[1].endswith("receive_id_type=chat_id")
    assert far.tokens == 1
    assert SECRET not in caplog.text
    assert "t-1" not in caplog.text
    assert "部署完成" not in caplog.text


def test_the_service_forgets_the_token(far: Far) -> None:
    plugins = feishu(far)
    assert plugins.services == {"feishu-tools": ("feishu-token-cache",)}
    plugins.call("feishu_send_message", receive_id="ou_1", content="x")
    assert plugins.stop() == ()
    plugins.start()
    plugins.call("feishu_send_message", receive_id="ou_1", content="x")
    assert far.tokens == 2


def test_a_token_is_fetched_again_before_it_ends_and_when_it_is_refused(far: Far) -> None:
    far.expire = 60  # as good as over
    plugins = feishu(far)
    for _ in range(2):
        plugins.call("feishu_send_message", receive_id="ou_1", content="x")
    assert far.tokens == 2
    far.expire, far.codes = 7200, [0, 99991663, 0]
    plugins = feishu(far)
    for _ in range(2):
        assert not plugins.call("feishu_send_message", receive_id="ou_1", content="x").failed
    assert far.tokens == 4


def test_many_at_once_fetch_one_token(far: Far) -> None:
    plugins = feishu(far)
    threads = [
        threading.Thread(target=plugins.call, args=("feishu_send_message",), kwargs={"receive_id": "u", "content": "x"})
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert far.tokens == 1
    assert len(far.asked) == 9


def test_credentials_from_the_environment(far: Far) -> None:
    environment = {"FEISHU_APP_ID": "cli_env", "FEISHU_APP_SECRET": SECRET}
    plugins = loaded("feishu-tools", environment=environment, baseUrl=far.address)
    assert not plugins.call("feishu_send_message", receive_id="a@b.cn", content="x").failed
    assert far.asked[0][2]["app_id"] == "cli_env"
    assert far.asked[1][1].endswith("receive_id_type=email")


@pytest.mark.parametrize(
    ("settings", "arguments", "said"),
    [
        ({"appSecret": ""}, {"content": "x"}, "error: appId and appSecret are not set"),
        ({}, {"content": " "}, "error: receive_id and content must not be empty"),
        ({"baseUrl": "http://127.0.0.1:1"}, {"content": "x"}, "error: Feishu does not answer (ConnectError)"),
        ({}, {}, "feishu_send_message: content: is missing"),
    ],
)
def test_what_cannot_be_sent(far: Far, settings: dict[str, str], arguments: dict[str, str], said: str) -> None:
    config = {"baseUrl": far.address, "appId": "cli_1", "appSecret": SECRET, **settings}
    answer = loaded("feishu-tools", **config).call("feishu_send_message", receive_id="ou_1", **arguments)
    assert answer.failed
    assert answer.text.startswith(said)
    assert SECRET not in answer.text


def test_a_refusal_is_told(far: Far) -> None:
    far.codes = [230002]
    answer = feishu(far).call("feishu_send_message", receive_id="ou_1", content="x")
    assert (answer.text, answer.failed) == ("error: Feishu refuses: 权限不足 (code 230002)", True)


@pytest.mark.parametrize("address", ["http://open.feishu.cn", "http://127.0.0.1.evil.cn", "ftp://127.0.0.1"])
def test_a_secret_never_goes_out_in_the_clear(address: str) -> None:
    line = str(loaded("feishu-tools", baseUrl=address, appId="a", appSecret=SECRET))
    assert line.startswith("[plugin:feishu-tools] disabled: config: plugins.entries.feishu-tools.config.baseUrl: found")
    assert SECRET not in line


def test_the_embedded_skill() -> None:
    (folder,) = load_plugins("feishu-tools").skills
    text = (folder / "feishu-messaging" / "SKILL.md").read_text(encoding="utf-8")
    assert "user-invocable: false" in text
    assert "feishu_send_message" in text


def test_every_bundled_plugin_describes_its_settings() -> None:
    for folder in bundled_plugins().values():
        for name, each in read_manifest(Path(folder)).config_schema["properties"].items():
            assert each.get("description"), name
            assert "default" in each, name
