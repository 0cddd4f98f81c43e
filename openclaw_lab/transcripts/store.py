"""OpenClaw's SQLite store in, Sessions out. The live file is never opened as a database: a copy of it is.

Reads the table `transcript_events`; the archive tables are counted, not read.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.files import unreadable
from openclaw_lab.transcripts.lines import LONGEST_LINE, parse
from openclaw_lab.transcripts.records import Transcript
from openclaw_lab.transcripts.report import Sessions, Tally

MAGIC = b"SQLite format 3\x00"
SUFFIXES = (".sqlite", ".sqlite3", ".db")
_ARCHIVES = ("session_transcript_archives", "session_transcript_cold_archives")
_COLUMNS = ("session_id", "seq", "event_json")
_WAL_HEADER = 32
_ATTEMPTS = 6
_FIRST_PAUSE = 0.02  # seconds; doubled after every attempt


class OtherFileError(DataError):
    """A sound file that holds something else: an error when it was named, passed over when it lay in a folder."""


def read_store(path: Path, tally: Tally) -> Sessions:
    """The sessions of a store, by session id; DataError when it is not an intact OpenClaw store."""
    with _copied(path) as copy, contextlib.closing(sqlite3.connect(copy)) as connection:
        # Bytes, so that text that is not UTF-8 costs its row, as in a file.
        connection.text_factory = bytes
        try:
            columns = _check(path, connection)
            tally.archived += sum(_rows_in(connection, table) for table in _ARCHIVES)
            yield from _sessions(path, connection, columns, tally)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from a message that quotes damaged names
            raise DataError(str(path), str(error), "an intact SQLite store", "is it truncated or encrypted?") from None


def _check(path: Path, connection: sqlite3.Connection) -> set[str]:
    """The columns of the events table; OtherFileError when there is no such table."""
    columns = {_text(name) for _, name, *_ in connection.execute("PRAGMA table_info(transcript_events)")}
    if not columns.issuperset(_COLUMNS):
        query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name LIMIT 5"
        tables = ", ".join(_text(name) for (name,) in connection.execute(query))
        expected = f"an OpenClaw store: a table transcript_events with {', '.join(_COLUMNS)}"
        raise OtherFileError(str(path), f"tables {tables}" if tables else "no tables", expected)
    return columns


def _rows_in(connection: sqlite3.Connection, table: str) -> int:
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
    if known.fetchone() is None:
        return 0
    (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(number)


def _sessions(path: Path, connection: sqlite3.Connection, columns: set[str], tally: Tally) -> Sessions:
    packed = "event_zstd" if "event_zstd" in columns else "NULL"
    query = f"SELECT session_id, seq, event_json, {packed} FROM transcript_events ORDER BY session_id, seq"
    for key, rows in itertools.groupby(connection.execute(query), key=lambda row: row[0]):
        transcript = Transcript(_text(key), str(path), tally)
        for _, seq, plain, compressed in rows:
            _add(transcript, seq, plain, compressed, tally, str(path))
        yield transcript.finish()


def _add(transcript: Transcript, seq: Any, plain: Any, compressed: Any, tally: Tally, file: str) -> None:
    line = seq if isinstance(seq, int) else None
    try:
        record = parse(_event(plain, compressed))
    except DataError as error:
        tally.lost(file, line, DataError(f"session {transcript.id}: {error.where}", error.found, error.expected))
        return
    if record.get("type") == "session":
        transcript.add_header(record)
    else:
        transcript.add(line or 0, record)


def _event(plain: Any, compressed: Any) -> bytes:
    """The bytes of one event: as they are, or unpacked."""
    if isinstance(plain, bytes):
        return plain
    if not isinstance(compressed, bytes):
        raise DataError("no event in the row", expected="event_json or event_zstd")
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(compressed) as reader:
            event = reader.read(LONGEST_LINE + 1)
    except zstandard.ZstdError as error:
        raise DataError(f"event_zstd is damaged ({error})") from None
    if len(event) > LONGEST_LINE:
        raise DataError(f"an event of more than {LONGEST_LINE // 2**20} MB")
    return event


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


# --- the copy -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """A copy of the store in a private temporary folder, which is gone afterwards, whatever happened."""
    live = path.resolve()
    with tempfile.TemporaryDirectory(prefix="openclaw-lab-") as folder:
        copy = Path(folder) / "store.sqlite"
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_FIRST_PAUSE * 2**attempt)
            if _copy_once(path, live, copy):
                break
        else:
            todo = "try again, or stop OpenClaw for a moment"
            raise DataError(str(path), "a store that changed during every copy", "a moment without writes", todo)
        yield copy


def _copy_once(path: Path, live: Path, copy: Path) -> bool:
    """Copy the store and its logs; False when what was copied may not fit together.

    The shared-memory index (`-shm`) stays behind: SQLite rebuilds it from the log, a copy taken beside a writer could
    be of another moment than the log, and closing our handle on it would drop SQLite's locks in this very process.
    """
    try:
        before = _stamp(live)
        shutil.copyfile(live, copy)
        for log in ("-wal", "-journal"):
            _copy_log(live.with_name(live.name + log), copy.with_name(copy.name + log))
        return before == _stamp(live)
    except OSError as error:
        raise unreadable(path, error) from None


def _copy_log(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(source, target)


def _stamp(live: Path) -> tuple[object, ...]:
    """What must not change while copying: the header of the write-ahead log or, without a log, the store itself.

    While the log's header stays, the log only grows and keeps all that is moved into the store meanwhile; its copy,
    taken second, makes up for pages of the store that were copied too early or half. Every new start of the log writes
    other random numbers to its header.
    """
    log = _head(live.with_name(live.name + "-wal"))
    if log:
        return (log,)
    journal = live.with_name(live.name + "-journal")
    return (_size_and_time(live), _size_and_time(journal))


def _size_and_time(path: Path) -> tuple[int, int, int] | None:
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_WAL_HEADER)
    except FileNotFoundError:
        return b""
