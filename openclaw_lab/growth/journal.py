"""What happened to memories, one row an event, beside the store: accesses, usefulness, questions, how far was read.

It is a log, not the truth: without it no memory is lost, only counts. Several processes may write it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from openclaw_lab.errors import DataError
from openclaw_lab.knowhub.draft import now

EventKind = Literal["new", "confirmed", "superseded", "accessed", "useful", "useless", "question", "refused"]
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS events(number INTEGER PRIMARY KEY, agent TEXT NOT NULL, at TEXT NOT NULL,"
    " kind TEXT NOT NULL, type TEXT NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL, value REAL NOT NULL)",
    "CREATE INDEX IF NOT EXISTS events_by_id ON events(agent, kind, id)",
    "CREATE TABLE IF NOT EXISTS seen(agent TEXT NOT NULL, session TEXT NOT NULL, count INTEGER NOT NULL,"
    " digest TEXT NOT NULL, PRIMARY KEY(agent, session)) WITHOUT ROWID",
)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `id` names the memory; `value`: 1 for a question that memory answered, else 0."""

    kind: EventKind
    type: str = ""
    id: str = ""
    session: str = ""
    value: float = 0.0
    at: str = ""


class Journal:
    """The log of one agent in a folder."""

    def __init__(self, path: Path, agent: str) -> None:
        self.path, self.agent, self._lock = path, agent, threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL").fetchone()
            self._connection.execute("PRAGMA synchronous = NORMAL")
            for statement in _SCHEMA:
                self._connection.execute(statement)
        except (sqlite3.Error, OSError) as error:
            raise DataError(str(path), str(error), "a growth journal that can be written", "check the folder") from None

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        """One thread at a time; what was begun is committed, or nothing of it; one clear line for what goes wrong."""
        with self._lock:
            try:
                with self._connection:
                    yield
            except sqlite3.Error as error:
                raise DataError(str(self.path), str(error), "a growth journal that is open and whole") from None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def add(self, events: Iterable[Event]) -> None:
        """Append events in one transaction."""
        moment = now()
        rows = [(self.agent, e.at or moment, e.kind, e.type, e.id, e.session, e.value) for e in events]
        if not rows:
            return
        with self._open():
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                "INSERT INTO events(agent, at, kind, type, id, session, value) VALUES (?, ?, ?, ?, ?, ?, ?)", rows
            )

    def events(self) -> list[Event]:
        """All events of the agent, oldest first."""
        query = "SELECT kind, type, id, session, value, at FROM events WHERE agent = ? ORDER BY number"
        with self._open():
            return [Event(*row) for row in self._connection.execute(query, (self.agent,))]

    def accesses(self, ids: Iterable[str]) -> dict[str, tuple[int, str]]:
        """For each id how often it was retrieved, and when last."""
        query = "SELECT count(*), coalesce(max(at), '') FROM events WHERE agent = ? AND kind = 'accessed' AND id = ?"
        with self._open():
            return {each: self._connection.execute(query, (self.agent, each)).fetchone() for each in ids}

    def seen(self, session: str) -> tuple[int, str]:
        """How many messages of a conversation were read, and the digest of those; (0, "") when none were."""
        query = "SELECT count, digest FROM seen WHERE agent = ? AND session = ?"
        with self._open():
            return self._connection.execute(query, (self.agent, session)).fetchone() or (0, "")

    def mark(self, session: str, count: int, digest: str) -> None:
        """Say how far a conversation was read."""
        with self._open():
            values = (self.agent, session, count, digest)
            self._connection.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)", values)
