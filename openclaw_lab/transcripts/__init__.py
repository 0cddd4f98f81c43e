"""A file or folder of recorded conversations in, Sessions and a report of what was left out.

Reads OpenClaw's JSONL and SQLite store, OpenAI-style JSONL and our own rows; which it is, is told by the content. Never
writes, and never opens a live store.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import get_args

from openclaw_lab.errors import ConfigError, DataError, DataWarning
from openclaw_lab.files import unreadable
from openclaw_lab.messages import Session
from openclaw_lab.transcripts.lines import Record, read_records
from openclaw_lab.transcripts.records import is_transcript_record, read_transcripts
from openclaw_lab.transcripts.report import Duplicate, LoadReport, OnError, Problem, SessionList, Sessions, Tally, count
from openclaw_lab.transcripts.rows import (
    is_message_row,
    is_session_row,
    read_messages,
    read_rows,
    read_session_rows,
    session_from_row,
)
from openclaw_lab.transcripts.store import MAGIC, SUFFIXES, OtherFileError, read_store

__all__ = [
    "Duplicate",
    "LoadReport",
    "Problem",
    "SessionList",
    "load_sessions",
    "read_session_rows",
    "session_from_row",
]

_Reader = Callable[[Iterable[tuple[int, Record]], str, str, Tally], Sessions]
# Told by the first record that fits; the last column says whether the id of the whole file is its bare name.
_FORMATS: tuple[tuple[Callable[[Record], bool], _Reader, str], ...] = (
    (is_transcript_record, read_transcripts, "name"),
    (is_session_row, read_rows, "path"),
    (is_message_row, read_messages, "path without suffix"),
)
_EXPECTED = "OpenClaw JSONL or SQLite, or JSON lines with messages"
_FOLDER_SUFFIXES = (".jsonl", ".gz", ".sqlite")
# Records looked at before a file counts as something else.
_LOOK_AT = 100


def load_sessions(path: str | Path, *, on_error: OnError = "skip") -> SessionList:
    """All sessions of a file (JSONL, its .gz, a SQLite store) or of a folder and what lies below it.

    A damaged line costs that line only; what was lost stands in `.report`, and one DataWarning sums it up. With
    `on_error="raise"` the first problem is a DataError instead. In a folder, copies of one session in several files are
    read once, the longer one. Raises DataError for a path, a file or a folder from which nothing can be read.
    """
    if on_error not in get_args(OnError):
        raise ConfigError("on_error", on_error, " or ".join(map(repr, get_args(OnError))))
    root = _existing(path)
    tally = Tally(on_error)
    sessions = _load_folder(root, tally) if root.is_dir() else _load_named(root, tally)
    report = tally.report(sessions)
    lost = len(report.problems) + report.more_problems
    if lost:
        text = f"{root}: {count(lost, 'problem')}, the first: {report.problems[0]}; the rest is loaded"
        warnings.warn(text, DataWarning, stacklevel=2)
    return SessionList(sessions, report)


def _existing(path: str | Path) -> Path:
    if not str(path):
        raise DataError("path", "an empty text", "a file or a folder")
    try:
        root = Path(path).expanduser()
        root.stat()
    except OSError as error:
        raise unreadable(Path(path), error) from None
    except (ValueError, RuntimeError) as error:
        raise DataError("path", str(path), "a file or a folder", str(error)) from None
    if not root.is_dir() and not root.is_file():
        raise DataError(str(root), "neither a file nor a folder", "a file or a folder")
    return root


# --- one file -----------------------------------------------------------------------------------------------------


def _load_named(path: Path, tally: Tally) -> list[Session]:
    """The sessions of the one file that was named."""
    tally.files.append(str(path))
    with contextlib.closing(_read_file(path, path.name, tally)) as reading:
        sessions = list(reading)
    if not sessions:
        first = f"the first problem: {tally.problems[0]}" if tally.problems else ""
        raise DataError(str(path), "no session", _EXPECTED, first)
    return sessions


def _read_file(path: Path, label: str, tally: Tally) -> Sessions:
    """The sessions of a file; `label` is its name within what is loaded, for sessions that have no id of their own."""
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
    except OSError as error:
        raise unreadable(path, error) from None
    if not head:
        raise DataError(str(path), "an empty file", _EXPECTED)
    if head == MAGIC:
        return read_store(path, tally)
    if path.suffix in SUFFIXES:
        raise DataError(str(path), "no SQLite database", _EXPECTED, "is it encrypted or damaged?")
    return _read_lines(path, label, tally)


def _read_lines(path: Path, label: str, tally: Tally) -> Sessions:
    records = read_records(path, tally)
    problems = len(tally.problems)
    looked: list[tuple[int, Record]] = []
    for item in itertools.islice(records, _LOOK_AT):
        looked.append(item)
        for fits, reader, naming in _FORMATS:
            if fits(item[1]):
                return reader(itertools.chain(looked, records), str(path), _name(label, naming), tally)
    if looked:
        raise OtherFileError(str(path), f"records with {', '.join(list(looked[0][1])[:5])}", _EXPECTED)
    first = f"the first problem: {tally.problems[problems]}" if len(tally.problems) > problems else ""
    raise DataError(str(path), "no line that can be read", _EXPECTED, first)


def _name(label: str, naming: str) -> str:
    if naming == "path":
        return label
    bare = label.removesuffix(".gz").removesuffix(".jsonl")
    return PurePosixPath(bare).name if naming == "name" else bare


# --- a folder -----------------------------------------------------------------------------------------------------


def _load_folder(root: Path, tally: Tally) -> list[Session]:
    """The sessions of every transcript below a folder, each once."""
    paths = sorted(_candidates(root, tally))
    if not paths:
        raise DataError(str(root), "a folder without transcripts", "files *.jsonl, *.jsonl.gz or *.sqlite in it")
    found = _Once(tally)
    for path in paths:
        _load_one_of(path, path.relative_to(root).as_posix(), tally, found)
    if not found.sessions:
        first = f"the first problem: {tally.problems[0]}" if tally.problems else ""
        raise DataError(str(root), "a folder without transcripts", _EXPECTED, first)
    return found.sessions


def _candidates(root: Path, tally: Tally) -> Iterator[Path]:
    def unread(error: OSError) -> None:
        folder = str(error.filename)
        tally.lost_file(folder, DataError(folder, error.strerror or "unreadable", "a readable folder"))

    for folder, _, names in os.walk(root, onerror=unread):
        for name in names:
            path = Path(folder, name)
            if name.endswith(_FOLDER_SUFFIXES) and path.is_file():
                yield path


def _load_one_of(path: Path, label: str, tally: Tally, found: _Once) -> None:
    """The sessions of one file of a folder; a file from which nothing can be read is one problem."""
    before = len(tally.problems), tally.more_problems, found.seen
    try:
        with contextlib.closing(_read_file(path, label, tally)) as sessions:
            for session in sessions:
                found.add(session, str(path))
        tally.files.append(str(path))
    except DataError as error:
        if found.seen == before[2]:
            del tally.problems[before[0] :]
            tally.more_problems = before[1]
        log = path.suffix == ".gz" and not path.name.endswith(".jsonl.gz") and found.seen == before[2]
        if log or isinstance(error, OtherFileError):
            tally.other_files += 1
        else:
            tally.lost_file(str(path), error)


class _Once:
    """Sessions by id: an install may hold one in its store and, left over, in a JSONL file."""

    def __init__(self, tally: Tally) -> None:
        self.sessions: list[Session] = []
        self.seen = 0
        self._places: dict[str, tuple[int, str]] = {}
        self._tally = tally

    def add(self, session: Session, file: str) -> None:
        """Take a session, unless another file gave one of this id with at least as many messages."""
        self.seen += 1
        place, other = self._places.get(session.id, (-1, file))
        if other == file:
            self._places.setdefault(session.id, (len(self.sessions), file))
            self.sessions.append(session)
        elif len(session.messages) > len(self.sessions[place].messages):
            self._tally.duplicates.append(Duplicate(session.id, file, other))
            self.sessions[place] = session
            self._places[session.id] = (place, file)
        else:
            self._tally.duplicates.append(Duplicate(session.id, other, file))
