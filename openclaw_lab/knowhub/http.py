"""A KnowHub folder in, an HTTP server for the OpenClaw plugin out. Needs the extra `server`.

On loopback anybody on this machine may ask; at any other address a token is demanded. TLS is a reverse proxy's work.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from openclaw_lab.errors import ConfigError, MissingExtra
from openclaw_lab.knowhub.embed import Embedder
from openclaw_lab.knowhub.extract import check_extractor
from openclaw_lab.knowhub.guard import LOOPBACK, MAX_BODY, Guard
from openclaw_lab.knowhub.service import KnowHub

HOST, PORT = "127.0.0.1", 9999
# Threads that call the knowledge base, requests that may wait for one, seconds that running ones have at the end.
WORKERS, WAITING, GRACE = 4, 256, 30


def build_app(
    kb: KnowHub,
    *,
    loopback: bool = True,
    token: str = "",
    max_body: int = MAX_BODY,
    workers: int = WORKERS,
    waiting: int = WAITING,
    extractor: str = "rules",
) -> Guard:
    """The ASGI app for an open KnowHub, with its guard; `extractor` by name, `rules` or `litellm:<model>`.

    `max_body` in bytes; `workers` calls run at once and `waiting` more wait, any beyond get 503 with Retry-After.
    """
    try:
        from openclaw_lab.knowhub.gate import Gate
        from openclaw_lab.knowhub.routes import routes
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    check_extractor(extractor)
    app = routes(kb, Gate(workers, waiting), token=bool(token), extractor=extractor)
    return Guard(app, loopback=loopback, token=token, max_body=max_body)


def serve(
    folder: str | Path,
    *,
    host: str = HOST,
    port: int = PORT,
    embedder: str | Embedder | Callable[[Sequence[str]], Any] | None = None,
    token: str = "",
    extractor: str = "rules",
    ready: Callable[[str], None] = print,
) -> None:
    """Serve a folder until SIGTERM or Ctrl-C; requests that run are finished first.

    `ready` is called once with the address, as soon as it can be asked; port 0 takes a free one.
    """
    loopback = check_address(host, token)
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    with contextlib.closing(_listen(host, port)) as listener, KnowHub.open(folder, embedder=embedder) as kb:
        config = uvicorn.Config(
            build_app(kb, loopback=loopback, token=token, extractor=extractor),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=GRACE,
        )
        ready(_address(host, listener))
        uvicorn.Server(config).run(sockets=[listener])


def check_address(host: str, token: str) -> bool:
    """Whether an address is reached from this machine only; any other needs a token, else it is a ConfigError."""
    loopback = host.lower() in LOOPBACK
    if not loopback and not token:
        raise ConfigError("serve", f"the address {host}", "a token, for all but 127.0.0.1, ::1 and localhost")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("serve", "a token that does not fit into a header", "letters, digits and signs")
    return loopback


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, number, _, address = _addresses(host, port)[0]
        listener = socket.socket(family, kind, number)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigError("serve", f"{host} port {port}", "an address of this machine", str(error)) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError("serve", f"{host} port {port}: {reason}", "a free port", "choose one by --port") from None
    return listener


def _addresses(host: str, port: int) -> Sequence[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)


def _address(host: str, listener: socket.socket) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def _missing(error: ModuleNotFoundError) -> MissingExtra:
    return MissingExtra("the KnowHub server", error.name or "fastapi", "server")
