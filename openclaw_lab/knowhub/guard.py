"""What stands before the routes: who may ask (Host, Origin, token), and how much may be sent. Plain ASGI, no framework.

On loopback, a page in the user's browser must reach nothing: another site's request has a foreign Origin, and a name
that was rebound to 127.0.0.1 has a foreign Host. Elsewhere a token is demanded. Refusals are one line of JSON.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from openclaw_lab.knowhub.wire import HEALTH

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Bytes of a body; a longer one is read to its end (and dropped) up to so many times the limit, so that the client
# reads the answer rather than a broken connection.
MAX_BODY, _PATIENCE = 2_000_000, 8


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status and one line."""

    status: int
    line: str


class _TooLong(Exception):
    pass


class _Gone(Exception):
    pass


class Guard:
    """Wraps an app: checks each request's head, reads its body up to the limit, then lets it in."""

    def __init__(self, app: App, *, loopback: bool = True, token: str = "", max_body: int = MAX_BODY) -> None:
        self._app, self._loopback, self._token, self._max_body = app, loopback, token.encode(), max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        refusal = self.refusal(scope["path"], headers)
        try:
            body = await self._body(receive, self._max_body if refusal is None else 0)
            if refusal is None:
                await self._app(scope, _replay(body, receive), send)
                return
        except _TooLong:
            refusal = refusal or Refusal(413, f"body: found more than {self._max_body:,} bytes; send less at a time")
        except _Gone:
            return
        await _refuse(refusal, send)

    def refusal(self, path: str, headers: dict[bytes, bytes]) -> Refusal | None:
        """Why a request with these headers may not pass; None when it may."""
        host = headers.get(b"host", b"").decode("latin-1")
        if self._loopback and host_name(f"//{host}") not in LOOPBACK:
            return Refusal(403, "Host: not an address of this machine; use http://127.0.0.1 with the port")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() not in (
            f"http://{host}".lower(),
            f"https://{host}".lower(),
        ):
            return Refusal(403, "Origin: pages of other sites may not use this server")
        if self._token and path != HEALTH and not self._knows(headers.get(b"authorization", b"")):
            return Refusal(401, "Authorization: expected Bearer and the token of this server")
        return None

    def _knows(self, given: bytes) -> bool:
        kind, _, token = given.partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)

    async def _body(self, receive: Receive, limit: int) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            part, more = message.get("body", b""), message.get("more_body", False)
            size += len(part)
            if size > self._max_body * _PATIENCE:
                break
            if size <= limit:
                parts.append(part)
        if size > limit:
            raise _TooLong
        return b"".join(parts)


def host_name(address: str) -> str:
    """The name in an address, lower case, without port; "" when there is none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read, then whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def _refuse(refusal: Refusal, send: Send) -> None:
    body = json.dumps({"error": refusal.line}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"www-authenticate", b"Bearer")] if refusal.status == 401 else []
    headers += [(b"connection", b"close")] if refusal.status == 413 else []
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
