"""A loopback server that answers as the Hugging Face Hub does for data repositories; nothing else of it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

SHA = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """Repositories by id, each its files by name; `gated` ones refuse, `failing` gives a status to everything."""

    repositories: Mapping[str, Mapping[str, bytes]]
    gated: frozenset[str] = frozenset()
    failing: int = 0
    address: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)


@contextmanager
def running(hub: Hub) -> Iterator[Hub]:
    """Serve it for a while."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append((self.command, path))
            hub.tokens.append(self.headers.get("Authorization", ""))
            status, content, headers = _found(hub, path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _found(hub: Hub, path: str) -> tuple[int, bytes, dict[str, str]]:
    if hub.failing:
        return hub.failing, b"{}", {}
    parts = path.strip("/").split("/")
    api = parts[:2] == ["api", "datasets"]
    name = "/".join(parts[2:4] if api else parts[1:3])
    files = hub.repositories.get(name)
    if files is None:
        return 404, b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
    if name in hub.gated and not api:
        return 403, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}
    rest = parts[4:] if api else parts[3:]
    revision = rest[1] if len(rest) > 1 else "main"
    if revision not in ("main", "v1", SHA):
        return 404, b"{}", {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}
    if api and rest[:1] == ["tree"]:
        return _json(
            [{"type": "file", "path": each, "size": len(data), "oid": _etag(data)} for each, data in files.items()]
        )
    if api:
        return _json(_about(name, files))
    content = files.get("/".join(rest[2:]))
    if content is None:
        return 404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": SHA}
    return 200, content, {"ETag": f'"{_etag(content)}"', "X-Repo-Commit": SHA, "Accept-Ranges": "bytes"}


def _about(name: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    siblings = [{"rfilename": each, "size": len(data), "blobId": _etag(data)} for each, data in files.items()]
    card = json.loads(files.get("card.json", b"{}"))
    return {"_id": "1", "id": name, "sha": SHA, "private": False, "gated": False, "disabled": False, "tags": [],
            "downloads": 0, "likes": 0, "cardData": card, "siblings": siblings}  # fmt: skip


def _json(value: object) -> tuple[int, bytes, dict[str, str]]:
    return 200, json.dumps(value).encode(), {"Content-Type": "application/json", "X-Repo-Commit": SHA}


def _etag(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()
