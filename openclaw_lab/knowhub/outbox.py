"""What a client keeps on disk: requests that wait to be sent, in order, and the last answers to searches.

One SQLite file (WAL, synchronous FULL), readable by its owner only; several processes may share it. It sends nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.knowhub.database import patiently

FILE = "knowhub-client.sqlite"
# Answers to searches that are kept; the oldest go first. Nothing that waits to be sent ever goes.
KEPT = 1000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS waiting(
  number INTEGER PRIMARY KEY AUTOINCREMENT, server TEXT NOT NULL, key TEXT NOT NULL, method TEXT NOT NULL,
  path TEXT NOT NULL, body TEXT NOT NULL, fault TEXT NOT NULL DEFAULT '', UNIQUE(server, key, method, path, body)
);
CREATE TABLE IF NOT EXISTS answers(
  server TEXT NOT NULL, query TEXT NOT NULL, at TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY(server, query)
);
"""

_SELECT = "SELECT number, key, method, path, body, fault FROM waiting WHERE server = ?"

_PUT = (
    "INSERT INTO waiting(server, key, method, path, body) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT DO UPDATE SET fault = '' RETURNING number"
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One request that waits; `fault` is why the server refused it (it is not sent again by itself)."""

    number: int
    key: str
    method: str
    path: str
    body: Any
    fault: str = ""


class Outbox:
    """The file of one client, for one server."""

    def __init__(self, folder: Path, server: str) -> None:
        self.path, self._server = folder / FILE, server
        self._lock = threading.RLock()
        with self._loud():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._connection = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
        try:
            with self._loud():
                patiently(self._connection, "PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
                for statement in _SCHEMA.split(";"):  # not executescript: it would not wait for another opener
                    patiently(self._connection, statement)
        except DataError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file; what waits stays in it."""
        with self._lock:
            self._connection.close()

    def put(self, key: str, method: str, path: str, body: Any) -> int:
        """Keep a request (the same one with the same key once); when this returns its number, it is on the disk."""
        values = (self._server, key, method, path, json.dumps(body))
        return int(self._run(_PUT, *values)[0][0])

    def first(self) -> Waiting | None:
        """What is to be sent next."""
        rows = self._run(f"{_SELECT} AND fault = '' ORDER BY number LIMIT 1", self._server)
        return _waiting(rows[0]) if rows else None

    def count(self) -> int:
        """How many are to be sent."""
        return int(self._run("SELECT count(*) FROM waiting WHERE server = ? AND fault = ''", self._server)[0][0])

    def refused(self) -> list[Waiting]:
        """What the server refused, oldest first."""
        return [_waiting(row) for row in self._run(f"{_SELECT} AND fault != '' ORDER BY number", self._server)]

    def done(self, number: int) -> None:
        """It was answered."""
        self._run("DELETE FROM waiting WHERE number = ?", number)

    def refuse(self, number: int, fault: str) -> None:
        """The server will not take it: keep it, with the reason, out of the way of the others."""
        self._run("UPDATE waiting SET fault = ? WHERE number = ?", fault or "refused", number)

    def remember(self, query: str, answer: Any) -> None:
        """Keep the answer to a search."""
        at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._run("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", self._server, query, at, json.dumps(answer))
        self._run(f"DELETE FROM answers WHERE rowid <= (SELECT max(rowid) FROM answers) - {KEPT}")

    def remembered(self, query: str) -> tuple[str, Any] | None:
        """When a search was answered last, and what."""
        rows = self._run("SELECT at, body FROM answers WHERE server = ? AND query = ?", self._server, query)
        return (rows[0][0], json.loads(rows[0][1])) if rows else None

    def _run(self, statement: str, *values: str | int) -> list[Any]:
        with self._lock, self._loud():
            return self._connection.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def _loud(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(str(self.path), error.strerror or str(error), "a folder that can be written") from None
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise DataError(str(self.path), str(error), "a file that can be written", "nothing was kept") from None


def _waiting(row: tuple[int, str, str, str, str, str]) -> Waiting:
    number, key, method, path, body, fault = row
    return Waiting(number, key, method, path, json.loads(body), fault)
