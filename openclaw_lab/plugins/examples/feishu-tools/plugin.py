"""A tool that sends Feishu messages, and a service that keeps the tenant token until it is stopped."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import Annotated, Any

from openclaw_lab.plugins.sdk import PluginApi, ToolResult, define_plugin_entry

_TOKEN = "/open-apis/auth/v3/tenant_access_token/internal"
_MESSAGES = "/open-apis/im/v1/messages"
# Seconds before its end at which a token is fetched anew.
_EARLY = 60
# What the platform answers when a token is no longer good.
_STALE = frozenset({99991661, 99991663, 99991668})
_KINDS: Mapping[str, str] = {"ou_": "open_id", "oc_": "chat_id", "on_": "union_id"}


class _Fault(Exception):
    """What went wrong, in words that hold no secret."""


class _Feishu:
    """The platform, and the token that it gave."""

    def __init__(self, base: str, timeout: float, app_id: str, secret: str) -> None:
        self._base, self._timeout, self._app_id, self._secret = base.rstrip("/"), timeout, app_id, secret
        self._token, self._ends = "", 0.0
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Drop the token."""
        self._token, self._ends = "", 0.0

    def send(self, receive_id: str, content: str) -> str:
        """Send a text; the message's id."""
        body = {"receive_id": receive_id, "msg_type": "text", "content": json.dumps({"text": content})}
        path = f"{_MESSAGES}?receive_id_type={kind_of(receive_id)}"
        answer = self._post(path, body, self.token())
        if answer.get("code") in _STALE:
            self.forget()
            answer = self._post(path, body, self.token())
        return str((_checked(answer).get("data") or {}).get("message_id", ""))

    def token(self) -> str:
        """The token, from memory as long as it is good."""
        with self._lock:
            if not self._token or time.monotonic() >= self._ends:
                answer = _checked(self._post(_TOKEN, {"app_id": self._app_id, "app_secret": self._secret}))
                self._token = str(answer.get("tenant_access_token") or "")
                self._ends = time.monotonic() + float(answer.get("expire") or 0) - _EARLY
            return self._token

    def _post(self, path: str, body: Mapping[str, Any], token: str = "") -> dict[str, Any]:
        import httpx  # heavy, and needed only when the tool is called

        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            answer = httpx.post(
                f"{self._base}{path}",
                json=body,
                headers=headers,
                timeout=self._timeout,
                verify=self._base.startswith("https"),
            )
            said = answer.json()
        except httpx.HTTPError as error:
            raise _Fault(f"Feishu does not answer ({type(error).__name__})") from None
        except ValueError:
            raise _Fault(f"Feishu answers with status {answer.status_code} and no JSON") from None
        if not isinstance(said, dict):
            raise _Fault("Feishu answers with JSON that is no object")
        return said


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    if answer.get("code") != 0:
        raise _Fault(f"Feishu refuses: {answer.get('msg') or 'no reason given'} (code {answer.get('code')})")
    return answer


def kind_of(receive_id: str) -> str:
    """Which kind of id it is, by its beginning."""
    if "@" in receive_id:
        return "email"
    return _KINDS.get(receive_id[:3], "user_id")


def _register(api: PluginApi) -> None:
    config, environment = api.plugin_config, api.environment
    app_id = config["appId"] or environment.get("FEISHU_APP_ID", "")
    secret = config["appSecret"] or environment.get("FEISHU_APP_SECRET", "")
    feishu = _Feishu(config["baseUrl"], float(config["timeout"]), app_id, secret)

    def feishu_send_message(
        receive_id: Annotated[str, "接收者 who gets it: ou_… (user), oc_… (group), on_…, an e-mail or a user id"],
        content: Annotated[str, "消息正文 the text"],
    ) -> ToolResult:
        """向飞书用户或群发送一条文本消息。Send a text message to a Feishu user or group."""
        if not app_id or not secret:
            return ToolResult(
                "error: appId and appSecret are not set (or FEISHU_APP_ID, FEISHU_APP_SECRET)", failed=True
            )
        if not receive_id.strip() or not content.strip():
            return ToolResult("error: receive_id and content must not be empty", failed=True)
        try:
            number = feishu.send(receive_id.strip(), content)
        except _Fault as fault:
            return ToolResult(f"error: {fault}", failed=True)
        api.logger.info("message sent to a %s", kind_of(receive_id))
        return ToolResult(f"ok: message sent (msg_id: {number})", details={"message_id": number})

    api.register_service("feishu-token-cache", stop=feishu.forget)
    api.register_tool(feishu_send_message)


entry = define_plugin_entry(id="feishu-tools", name="Feishu", description="Send Feishu messages", register=_register)
