"""A plugin in a process of its own: its tools are called over pipes, and it is killed when it takes too long.

The process has a bare environment, an empty home that is deleted afterwards, and limits; it does not inherit the
caller's variables, terminal or open files. It is no sandbox: it may read and write what the user may, and use the
network.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from openclaw_lab.errors import PluginError
from openclaw_lab.plugins.api import PluginApi
from openclaw_lab.plugins.child import HOME
from openclaw_lab.plugins.entry import PluginEntry, Service
from openclaw_lab.plugins.hooks import HookEvent, Injection, Verdict
from openclaw_lab.plugins.limits import Limits
from openclaw_lab.plugins.manifest import Manifest
from openclaw_lab.plugins.tool import Run, Tool, ToolContext, ToolResult
from openclaw_lab.plugins.wire import EventsOut

MARK = "OPENCLAW_LAB_PLUGIN"
_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = "import sys; sys.path.insert(0, {root!r}); from openclaw_lab.plugins.child import main; main({fds})"
# Bytes of one answer.
_LONGEST = 16_000_000


def isolated_entry(
    manifest: Manifest,
    config: Mapping[str, Any],
    environment: Mapping[str, str],
    limits: Limits,
    hook_limits: Mapping[str, float],
) -> PluginEntry:
    """The entry of a plugin folder whose code runs in another process."""
    if os.name != "posix":
        raise PluginError(f"plugin {manifest.id}: isolation", os.name, "a POSIX system")
    setup = {"config": dict(config), "environment": dict(environment), "hook_limits": dict(hook_limits)}
    child = _Child(manifest, setup, limits)
    return PluginEntry(manifest.id, manifest.name, manifest.description, child.register)


class _Child:
    """One plugin's process; started at need, killed when it is late or says what it must not."""

    def __init__(self, manifest: Manifest, setup: Mapping[str, Any], limits: Limits) -> None:
        self._manifest, self._limits = manifest, limits
        self._setup = {"folder": str(manifest.folder), **setup}
        self._process: subprocess.Popen[bytes] | None = None
        self._running: list[str] = []  # services, to be started again in a new process
        self._lock = threading.Lock()
        self._mark, self._home, self._buffer = "", "", b""
        self._to, self._from = -1, -1
        self._events = EventsOut()

    def register(self, api: PluginApi) -> None:
        """Start the process, let it register, and register the same here."""
        api.when_closed(self.close)
        try:
            with self._lock:
                said = self._spawn()
        except BaseException:
            self.close()
            raise
        for each in said["tools"]:
            api.register_tool(Tool(each["name"], each["description"], each["parameters"], self._runner(each["name"])))
        for name in said["services"]:
            api.register_service(Service(name, self._service("start", name), self._service("stop", name)))
        for index, (hook, priority, limit) in enumerate(said["hooks"]):
            api.on(hook, self._handler(index, min(limit, self._limits.call)), priority=priority, timeout=limit)
        for note in said["notes"]:
            api.note(note)

    def close(self) -> None:
        """Kill the process and all that it started; a second time does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        kill_marked(self._mark)
        process.wait()
        for each in (self._to, self._from):
            os.close(each)
        shutil.rmtree(self._home, ignore_errors=True)

    def _runner(self, name: str) -> Run:
        def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
            asked: dict[str, Any] = {
                "do": "call",
                "name": name,
                "arguments": dict(arguments),
                "session": context.session_id,
            }
            asked |= {"agent": context.agent_id, "call": context.call_id, "deltas": context.on_delta is not None}
            said = self._ask(asked, f"tool {name}", context.on_delta)
            return ToolResult(str(said["text"]), bool(said["failed"]), dict(said["details"]))

        return run

    def _service(self, verb: str, name: str) -> Callable[[], None]:
        def run() -> None:
            if verb == "stop" and self._process is None:
                return
            self._ask({"do": verb, "name": name}, f"service {name}: {verb}")
            self._running = [each for each in self._running if each != name] + [name] * (verb == "start")

        return run

    def _handler(self, index: int, limit: float) -> Callable[[HookEvent], Injection | Verdict | None]:
        def run(event: HookEvent) -> Injection | Verdict | None:
            said = self._ask({"do": "hook", "index": index}, f"hook {event.hook}", event=event, limit=limit)
            if "verdict" in said:
                return Verdict(**said["verdict"])
            return Injection(str(said["text"]), str(said["kind"])) if "text" in said else None

        return run

    def _ask(
        self,
        asked: Mapping[str, Any],
        what: str,
        on_delta: Callable[[str], None] | None = None,
        event: HookEvent | None = None,
        limit: float | None = None,
    ) -> dict[str, Any]:
        with self._lock:
            try:
                if self._process is None:
                    self._spawn()
                    for name in self._running:
                        self._talk({"do": "start", "name": name}, self._limits.call, f"service {name}: start")
                if event is not None:  # written last: a new process knows no messages
                    asked = {**asked, **self._events.written(event)}
                said = self._talk(asked, limit or self._limits.call, what, on_delta)
            except BaseException:
                self.close()
                raise
        return _checked(said)

    # --- the process ----------------------------------------------------------------------------------------------

    def _spawn(self) -> dict[str, Any]:
        self._mark, self._buffer, self._events = uuid.uuid4().hex, b"", EventsOut()
        self._home = tempfile.mkdtemp(prefix=HOME)
        theirs_from, self._to = os.pipe()
        self._from, theirs_to = os.pipe()
        program = _PROGRAM.format(root=str(_ROOT), fds=f"{theirs_from}, {theirs_to}")
        environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": self._home, "TMPDIR": self._home}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._home,
                env={**environment, MARK: self._mark},
                pass_fds=(theirs_from, theirs_to),
                start_new_session=True,
            )
        finally:
            os.close(theirs_from)
            os.close(theirs_to)
        os.set_blocking(self._to, False)
        setup = {**self._setup, "memory_mb": self._limits.memory_mb, "limit": self._limits.register}
        return _checked(self._talk(setup, self._limits.register, "register"))

    def _talk(
        self, asked: Mapping[str, Any], limit: float, what: str, on_delta: Callable[[str], None] | None = None
    ) -> dict[str, Any]:
        """Ask, and wait for the answer; pieces of output on the way go to `on_delta`."""
        end = time.monotonic() + limit
        try:
            self._write(json.dumps(asked, default=str).encode() + b"\n", end)
            while True:
                said = json.loads(self._read_line(end))
                if "delta" not in said:
                    break
                if on_delta:
                    on_delta(str(said["delta"]))
            return dict(said)
        except TimeoutError:
            raise PluginError(f"{what}: took longer than {limit:g} s; its process was killed") from None
        except EOFError:
            raise PluginError(f"{what}: its process ended ({self._ending()})") from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise PluginError(what, "an answer that cannot be read", "one line of JSON") from None

    def _ending(self) -> str:
        if self._process is None:
            return "unknown"
        try:
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:
            return "its pipe is closed"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def _write(self, data: bytes, end: float) -> None:
        while data:
            _, ready, _ = select.select([], [self._to], [], max(end - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            try:
                data = data[os.write(self._to, data) :]
            except BrokenPipeError:
                raise EOFError from None

    def _read_line(self, end: float) -> bytes:
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(end - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            piece = os.read(self._from, 65_536)
            if not piece:
                raise EOFError
            self._buffer += piece
            if len(self._buffer) > _LONGEST:
                raise ValueError("too long")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


def _checked(said: dict[str, Any]) -> dict[str, Any]:
    """An answer that is no fault of the plugin."""
    if said.get("fault"):
        raise PluginError(str(said["fault"]))
    return said


def kill_marked(mark: str, limit: float = 2.0) -> None:
    """Kill what inherited a mark, wherever it went: a child may have left the process group. Linux only.

    Again until none is there, since it may be starting others meanwhile; for `limit` seconds at most.
    """
    wanted, end = f"{MARK}={mark}".encode(), time.monotonic() + limit
    while found := [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if _has(path, wanted)]:
        for number in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if time.monotonic() > end:
            return
        time.sleep(0.002)


def _has(path: Path, wanted: bytes) -> bool:
    try:
        return wanted in path.read_bytes().split(b"\0")
    except OSError:
        return False
