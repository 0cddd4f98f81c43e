"""KnowHub servers for tests: one in a thread, one as a real process, both on loopback and at a free port."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from openclaw_lab.knowhub.http import build_app
from openclaw_lab.knowhub.service import KnowHub

# A server whose embedder takes its time for a text with the word "slow".
PROGRAM = """
import sys, time
from openclaw_lab.cli import main
from openclaw_lab.knowhub import embed
hashed = embed.embedder_named("hash")
def slow(texts):
    time.sleep(1.0 if any("slow" in text for text in texts) else 0)
    return hashed.embed(texts)
embed._BY_NAME["slow"] = lambda: embed.FunctionEmbedder("slow", "1", hashed.dimension, slow)
sys.exit(main(["serve", *sys.argv[1:]]))
"""


def knowledge(number: int = 1, **more: Any) -> dict[str, Any]:
    """A request body as the plugin writes it."""
    return {
        "task": f"job {number}",
        "content": f"what to know of job {number}: use tool {number}",
        "types": ["tool", "strategy"],
        "score": 4,
        "scopes": ["org:openclaw"],
        "owner": "agent:main",
        "source": {
            "name": "vitest",
            "category": "exp",
            "urls": ["https://vitest.dev"],
            "agent_id": "main",
            "submitted_by": "user@example.com",
            "message_id": "",
        },
        **more,
    }


@contextmanager
def served(kb: KnowHub, **options: Any) -> Iterator[str]:
    """The address of a server in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(build_app(kb, **options), log_level="critical", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


class Server:
    """A real process: `openclaw-lab serve FOLDER`."""

    def __init__(
        self, folder: Path, *arguments: str, port: int = 0, embedder: str = "hash", env: Mapping[str, str] | None = None
    ) -> None:
        kept = {name: value for name, value in os.environ.items() if name != "OPENCLAW_LAB_TOKEN"}
        command = [sys.executable, "-W", "error", "-c", PROGRAM, str(folder), "--port", str(port)]
        self.process = subprocess.Popen(
            [*command, "--embedder", embedder, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**kept, **(env or {})},
        )
        self.printed, self.url = "", ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed += line
            if found := re.search(r"KnowHub: (http://\S+)", line):
                self.url = found[1]
                break

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; the exit code and what it printed on stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=40)
        return self.process.returncode, errors

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def everything(url: str, **headers: str) -> list[dict[str, Any]]:
    """All entries of a server, superseded ones too, page by page."""
    found: list[dict[str, Any]] = []
    with httpx.Client(base_url=url, headers=headers, timeout=30, trust_env=False) as http:
        while True:
            asked = {"offset": len(found), "limit": 1000, "include_superseded": True}
            page = http.get("/api/knowledge", params=asked).json()
            found += page["results"]
            if not page["count"]:
                return found
