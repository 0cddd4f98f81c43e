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
import zlib
from pathlib import Path
from urllib.parse import quote

from openclaw_lab.errors import DataError

FORMAT = "2"
# An update keeps what it replaces, whoever makes it: a body is written once when it is new, and again only when another
# takes its place. `action` made the current version; NULL (stores of format 1) means that the history has that one too.
_NEWER = (
    "ALTER TABLE entries ADD COLUMN action TEXT",
    "ALTER TABLE entries ADD COLUMN body_checksum INTEGER",
    "DROP INDEX IF EXISTS entries_by_fingerprint",  # what looks fingerprints up has them all in memory
    "CREATE TRIGGER entries_to_history AFTER UPDATE OF body ON entries WHEN old.action IS NOT NULL BEGIN"
    " INSERT OR IGNORE INTO history VALUES (old.id, json_extract(old.body, '$.version'), old.action,"
    " json_extract(old.body, '$.updated_at'), old.body); END",
)
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS entries(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL,"
    " fingerprint INTEGER NOT NULL, checksum INTEGER NOT NULL, body TEXT NOT NULL, terms TEXT NOT NULL,"
    " vectors BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS entries_by_revision ON entries(revision)",
    "CREATE TABLE IF NOT EXISTS history(id TEXT NOT NULL, version INTEGER NOT NULL, action TEXT NOT NULL,"
    " at TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE UNIQUE INDEX IF NOT EXISTS history_by_id ON history(id, version)",
    "CREATE TABLE IF NOT EXISTS requests(key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID",
)
_FORMAT_OF = "SELECT value FROM meta WHERE key = 'format'"
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
    if _complete(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA:
        connection.execute(statement)
    if not _complete(connection):  # else another process was quicker
        for statement in _NEWER:
            connection.execute(statement)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'format' AND value = '1'", (FORMAT,))
    connection.execute("COMMIT")


def _complete(connection: sqlite3.Connection) -> bool:
    """Whether all tables are there, in this format or in one that is unknown: what is unknown is not touched."""
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if not {"meta", "requests"} <= names:
        return False
    return "entries_to_history" in names or connection.execute(_FORMAT_OF).fetchone() not in (None, ("1",))


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
        connection.create_function("crc32", 1, lambda body: zlib.crc32(body.encode()))
    except sqlite3.Error:
        connection.close()
        raise
    return connection
