"""A path in, SQLite connections out: one that writes durably (WAL, synchronous FULL), one that only reads.

What cannot be written can still be read: a folder closed to this user, a medium that is read-only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from openclaw_lab.errors import DataError

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS entries(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL,"
    " fingerprint INTEGER NOT NULL, checksum INTEGER NOT NULL, body TEXT NOT NULL, terms TEXT NOT NULL,"
    " vectors BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS entries_by_revision ON entries(revision)",
    "CREATE INDEX IF NOT EXISTS entries_by_fingerprint ON entries(fingerprint)",
    "CREATE TABLE IF NOT EXISTS history(id TEXT NOT NULL, version INTEGER NOT NULL, action TEXT NOT NULL,"
    " at TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE UNIQUE INDEX IF NOT EXISTS history_by_id ON history(id, version)",
    "CREATE TABLE IF NOT EXISTS requests(key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID",
)
# Seconds to wait for another writer.
_PATIENCE = 60.0


def can_write(path: Path) -> bool:
    """Whether the file and its folder can be written, or made."""
    parents = [each for each in path.absolute().parents if os.path.exists(each)]  # False, too, where none may look
    folder_open = bool(parents) and os.access(parents[0], os.W_OK | os.X_OK)
    return folder_open and (not os.path.exists(path) or os.access(path, os.W_OK))


def connect(path: Path) -> sqlite3.Connection:
    """A connection for writing; makes the folder, the file and its tables when they are missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    except OSError as error:
        raise DataError(str(path), error.strerror or str(error), "a folder that can be written") from None
    except sqlite3.Error as error:
        raise unopened(path, error) from None
    try:
        _prepare(connection)
    except sqlite3.Error as error:
        connection.close()
        raise unopened(path, error) from None
    return connection


def unopened(path: Path, error: Exception) -> DataError:
    """The error for a file that SQLite cannot open."""
    return DataError(str(path), str(error), "a KnowHub store that can be opened", "restore it from a copy")


def _prepare(connection: sqlite3.Connection) -> None:
    patiently(connection, "PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('meta', 'requests')").fetchone()[0]
    if tables == 2:
        return
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("COMMIT")


def patiently(connection: sqlite3.Connection, statement: str) -> None:
    """A change of the journal mode does not wait for other openers by itself."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute(statement).fetchone()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def reader(path: Path, aside: contextlib.ExitStack) -> sqlite3.Connection:
    """A connection for reading only. Where nothing can be written, the file is read as it lies there.

    A log that was never merged needs a writable folder: then a copy is read, which `aside` removes when it closes.
    """
    try:
        return _open(path, "mode=ro")
    except sqlite3.Error as error:
        if can_write(path) or not os.path.exists(path):
            raise unopened(path, error) from None
    log = path.with_name(f"{path.name}-wal")
    try:
        if not log.exists() or not log.stat().st_size:
            return _open(path, "immutable=1")
        folder = Path(aside.enter_context(tempfile.TemporaryDirectory(prefix="knowhub-")))
        for each in (path, log):
            shutil.copyfile(each, folder / each.name)
        return _open(folder / path.name, "mode=rw")
    except (sqlite3.Error, OSError) as error:
        raise unopened(path, error) from None


def _open(path: Path, options: str) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?{options}"
    connection = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("SELECT count(*) FROM meta").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
