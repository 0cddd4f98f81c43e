"""Answers of models in one JSONL file, by key: found again, appended durably; the file may be shared by processes.

MemoryTape keeps them in memory only.
It does not know what a request is, nor whom to ask (see `models`). A line cut short by a crash costs only itself.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import warnings
from pathlib import Path
from typing import Any, Protocol

from openclaw_lab.errors import DataError, DataWarning
from openclaw_lab.files import unreadable


class Tape(Protocol):
    """Where answers are found and kept."""

    @property
    def path(self) -> Path:
        """Names it in messages."""

    def find(self, key: str, kind: str) -> dict[str, Any] | None:
        """The answer of a kind under a key."""

    def append(self, row: dict[str, Any]) -> dict[str, Any]:
        """Keep a row; returned is what is kept under its key, the first one."""


@functools.lru_cache(maxsize=32)
def cassette_at(path: Path) -> Cassette:
    """The cassette at an absolute path; one a process, so that its file is read once."""
    return Cassette(path)


class Cassette:
    """The answers in a file, read once; what others append is read when something is looked for."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}
        self._read, self._inode = 0, -1

    def find(self, key: str, kind: str) -> dict[str, Any] | None:
        """The answer of a kind (`completion`, `embedding`) under a key; None when there is none."""
        with self._lock:
            self._refresh()
            known = self._known.get(key)
        return known if known and known.get("kind") == kind else None

    def append(self, row: dict[str, Any]) -> dict[str, Any]:
        """Write a row to disk and wait until it is there; returned is what is kept under its key, the first one."""
        line = json.dumps(row).encode() + b"\n"
        try:
            with self._lock:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
                with os.fdopen(handle, "r+b", buffering=0) as file:
                    end = file.seek(0, os.SEEK_END)
                    file.seek(max(end - 1, 0))
                    torn = file.read(1) not in (b"", b"\n")
                    file.write(b"\n" + line if torn else line)
                    os.fsync(file.fileno())
                self._refresh()
                return self._known.get(row["key"], row)
        except OSError as error:
            raise DataError(str(self.path), error.strerror, "a file to write answers to", "check the path") from None

    def _refresh(self) -> None:
        try:
            with self.path.open("rb") as file:
                state = os.fstat(file.fileno())
                if state.st_ino != self._inode or state.st_size < self._read:
                    self._known, self._read, self._inode = {}, 0, state.st_ino
                file.seek(self._read)
                found = file.read()
        except FileNotFoundError:
            self._known, self._read, self._inode = {}, 0, -1
            return
        except OSError as error:
            raise unreadable(self.path, error) from None
        whole = found[: found.rfind(b"\n") + 1]
        self._read += len(whole)
        damaged = sum(not self._take(line) for line in whole.split(b"\n") if line.strip())
        if damaged and not self._known:  # somebody's file of another kind: nothing is to be appended to it
            self._read = 0
            raise DataError(str(self.path), "no answer of a model in it", "a cassette, or a new file", "name another")
        if damaged:
            warnings.warn(DataWarning(f"{self.path}: {damaged} damaged lines; left out"), stacklevel=4)

    def _take(self, line: bytes) -> bool:
        try:
            row = json.loads(line)
            good = isinstance(row["key"], str) and isinstance(row["text"] if "text" in row else row["vector"], str)
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        if good:
            self._known.setdefault(row["key"], row)
        return good


class MemoryTape:
    """Answers that are kept as long as the process lives, and nowhere else."""

    def __init__(self) -> None:
        self.path, self._lock = Path(f"memory-{id(self):x}"), threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}

    def __reduce__(self) -> Any:
        """In another process it starts empty."""
        return MemoryTape, ()

    def find(self, key: str, kind: str) -> dict[str, Any] | None:
        """The answer of a kind under a key; None when there is none."""
        known = self._known.get(key)
        return known if known and known.get("kind") == kind else None

    def append(self, row: dict[str, Any]) -> dict[str, Any]:
        """Keep a row; returned is what is kept under its key, the first one."""
        with self._lock:
            return self._known.setdefault(row["key"], row)


# What a notebook's kernel has been answered, for a cell that is run again.
SESSION = MemoryTape()
