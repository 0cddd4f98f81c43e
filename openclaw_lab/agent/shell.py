"""The `shell` tool: programs of an allow-list, started with an argument vector and never through a shell.

Contained are: what is not on the list, shell syntax, time, output, and every process that a program leaves behind.
An interpreter on the list (`python`, `bash`, `env`) runs whatever it is told: put it there only if that is meant.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from openclaw_lab.errors import ConfigError
from openclaw_lab.given import named_texts, path, seconds, whole
from openclaw_lab.plugins.tool import Tool, ToolContext, ToolResult

_PATH = "/usr/local/bin:/usr/bin:/bin"
_OPERATORS = frozenset(";|&<>()")
# A program that writes more than this many times what is kept is stopped instead of read to its end.
_PATIENCE = 64
# Seconds that whatever still holds the output gets after the program itself has ended.
_GRACE = 0.2
_MARK = "OPENCLAW_LAB_SHELL_CALL"


def shell(
    allow: Iterable[str],
    *,
    cwd: str | Path = ".",
    timeout: float = 30.0,
    longest: int = 50_000,
    env: Mapping[str, str] | None = None,
) -> Tool:
    """A tool that runs the programs `allow` (names, found in the system's folders, or absolute paths) in `cwd`.

    `timeout` in seconds, `longest` in bytes of output. A program sees PATH, HOME (which is `cwd`), LANG and `env`:
    nothing else of this process' environment.
    """
    programs = _programs(allow)
    timeout, longest = seconds("shell: timeout", timeout), whole("shell: longest", longest)
    folder = path("shell: cwd", cwd, expected="a folder").resolve()
    if not folder.is_dir():
        raise ConfigError("shell: cwd", cwd, "a folder")
    given = {"PATH": _PATH, "HOME": str(folder), "LANG": "C.UTF-8", **named_texts("shell: env", env)}

    def run(arguments: Mapping[str, Any], _: ToolContext) -> ToolResult:
        vector = _vector(arguments["command"], programs)
        return vector if isinstance(vector, ToolResult) else _run(vector, folder, given, timeout, longest)

    listed = ", ".join(sorted(programs)) or "none"
    description = f"Run one program without a shell (no pipes, no ;, no redirection). Programs: {listed}."
    command = {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        "description": "the program and its arguments",
    }
    schema = {"type": "object", "properties": {"command": command}, "required": ["command"]}
    return Tool("shell", description, {**schema, "additionalProperties": False}, run)


def _programs(allow: Iterable[str]) -> dict[str, str]:
    if isinstance(allow, str) or not isinstance(allow, Iterable):
        raise ConfigError("shell: allow", allow, "a list of programs")
    found: dict[str, str] = {}
    for each in allow:
        if not isinstance(each, str) or not each:
            raise ConfigError("shell: allow", each, "the name of a program, or its absolute path")
        program = None if "\0" in each else each if os.path.isabs(each) else shutil.which(each, path=_PATH)
        if program is None or ("/" in each and not os.path.isabs(each)) or not os.access(program, os.X_OK):
            raise ConfigError("shell: allow", each, "a program that is installed, or its absolute path")
        found[os.path.basename(each)] = program
    return found


def _vector(command: str | list[str], programs: Mapping[str, str]) -> list[str] | ToolResult:
    """The argument vector of an allowed command, or why it is none."""
    if isinstance(command, list):
        words = command
    else:
        try:
            words = shlex.split(command)
            pieces = list(shlex.shlex(command, posix=True, punctuation_chars=True))
        except ValueError as error:
            return _refused(f"quotes that do not match ({error})")
        operator = next((each for each in pieces if each and set(each) <= _OPERATORS), "")
        if operator:
            return _refused(f"{operator!r} means nothing without a shell: run one program at a time, or quote it")
    if not words or any("\0" in each for each in words):
        return _refused("no program")
    name = words[0]
    program = programs.get(name) or (name if name in programs.values() else None)
    if program is None:
        return _refused(f"{name!r} is not allowed; allowed: {', '.join(sorted(programs)) or 'nothing'}")
    return [program, *words[1:]]


def _refused(why: str) -> ToolResult:
    return ToolResult(f"shell: {why}", failed=True)


def _run(vector: list[str], folder: Path, env: Mapping[str, str], timeout: float, longest: int) -> ToolResult:
    mark = secrets.token_hex(16)
    try:
        child = subprocess.Popen(
            vector,
            cwd=folder,
            env={**env, _MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        return _refused(f"{vector[0]}: {error}")
    output, ended = _Output(longest), "timeout"
    try:
        assert child.stdout is not None
        ended = _drain(child, child.stdout, output, time.monotonic() + timeout)
    finally:
        _kill(child, mark)
    text, code = output.text(), child.returncode
    details = {"exit_code": code, "bytes": output.seen, "ended": ended}
    if ended == "timeout":
        return ToolResult(f"shell: stopped after {timeout:g} s\n{text}", True, details)
    if ended == "output":
        return ToolResult(f"shell: stopped after {output.seen:,} bytes of output\n{text}", True, details)
    return ToolResult(text if code == 0 else f"exit code {code}\n{text}", code != 0, details)


def _drain(child: subprocess.Popen[bytes], pipe: IO[bytes], output: _Output, deadline: float) -> str:
    """Read until the program ends (`exit`), its time is over (`timeout`) or it writes without end (`output`)."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if child.poll() is not None:  # what still holds the pipe is somebody else's: a moment for the last bytes
                deadline = min(deadline, now + _GRACE)
            if now >= deadline:
                return "timeout" if child.poll() is None else "exit"
            if not selector.select(min(0.05, deadline - now)):
                continue
            piece = os.read(pipe.fileno(), 1 << 16)
            if not piece:
                return _wait(child, deadline)
            output.take(piece)
            if output.seen > output.longest * _PATIENCE:
                return "output"


def _wait(child: subprocess.Popen[bytes], deadline: float) -> str:
    """The output is closed; the program itself may go on."""
    try:
        child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return "timeout"
    return "exit"


def _kill(child: subprocess.Popen[bytes], mark: str) -> None:
    """End the whole group, and what has left it: on Linux that is found by the mark in its environment."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    for _ in range(3):
        left = _marked(mark)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break
    child.wait()
    if child.stdout is not None:
        child.stdout.close()


def _marked(mark: str) -> list[int]:
    sign, found = f"{_MARK}={mark}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if sign in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


class _Output:
    """The beginning and the end of what is written, however much that is."""

    def __init__(self, longest: int) -> None:
        self.longest, self.seen = longest, 0
        self._head, self._tail = bytearray(), bytearray()
        self._first = longest * 3 // 4

    def take(self, piece: bytes) -> None:
        """The next bytes."""
        self.seen += len(piece)
        room = max(0, self._first - len(self._head))
        self._head += piece[:room]
        self._tail += piece[room:]
        del self._tail[: max(0, len(self._tail) - (self.longest - self._first))]

    def text(self) -> str:
        """What was kept, with a note of what was not."""
        left = self.seen - len(self._head) - len(self._tail)
        head, tail = (bytes(each).decode("utf-8", "replace") for each in (self._head, self._tail))
        return f"{head}\n… {left:,} bytes left out …\n{tail}" if left else head + tail
