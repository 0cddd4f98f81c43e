"""What a load did: sessions in, one LoadReport beside them; damage becomes a Problem, or an error when asked for.

Counts only: nothing here reads a file.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from openclaw_lab.errors import DataError, excerpt
from openclaw_lab.messages import Session

OnError = Literal["skip", "raise"]
Sessions = Generator[Session, None, None]
# More problems than this are counted, not kept: a binary file under a wrong name has millions of "lines".
KEPT_PROBLEMS = 1_000
_KIND_LENGTH = 40
_KINDS = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """A line (or, with `line` None, a file) that was left out, and why. In a SQLite store the line is the row's seq."""

    file: str
    line: int | None
    why: str

    def __str__(self) -> str:
        return f"{_place(self.file, self.line)}: {self.why}"


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A second copy of a session, by id: the file whose copy was kept and the file whose copy was dropped."""

    id: str
    kept: str
    dropped: str


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What was read and what was left out; `str()` is one paragraph.

    `skipped` counts record types that hold no message (and roles that no model sees, as `message:<role>`);
    `off_branch` counts messages of abandoned branches; `archived` counts rows in a store's archive tables, which are
    not read; `other_files` counts files of a folder that hold something else; `more_problems` were counted, not kept.
    """

    files: tuple[str, ...] = ()
    sessions: int = 0
    messages: int = 0
    problems: tuple[Problem, ...] = ()
    more_problems: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    duplicates: tuple[Duplicate, ...] = ()
    off_branch: int = 0
    archived: int = 0
    other_files: int = 0

    def __str__(self) -> str:
        head = f"{count(self.sessions, 'session')} with {count(self.messages, 'message')} "
        return " ".join([f"{head}from {count(len(self.files), 'file')}.", *self._left_out()])

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self))}</p>"

    def _left_out(self) -> Iterable[str]:
        lost = len(self.problems) + self.more_problems
        if lost:
            yield f"{count(lost, 'problem')}, the first: {self.problems[0]}."
        if self.duplicates:
            yield f"{count(len(self.duplicates), 'duplicate session')} dropped."
        if self.off_branch:
            yield f"{count(self.off_branch, 'message')} of abandoned branches left out."
        if self.skipped:
            yield "Records without a message: " + ", ".join(f"{kind} {n:,}" for kind, n in self.skipped.items()) + "."
        if self.archived:
            yield f"{count(self.archived, 'archived row')} not read."
        if self.other_files:
            yield f"{count(self.other_files, 'file')} with something else passed over."


class SessionList(list[Session]):
    """The sessions of one load, a plain list with a `report`."""

    def __init__(self, sessions: Iterable[Session] = (), report: LoadReport | None = None) -> None:
        super().__init__(sessions)
        self.report = report if report is not None else LoadReport()

    def __repr__(self) -> str:
        return f"SessionList({count(len(self), 'session')})"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


class Tally:
    """The counts of one load while it runs. `lost` is where `on_error="raise"` takes effect."""

    def __init__(self, on_error: OnError) -> None:
        self.on_error = on_error
        self.files: list[str] = []
        self.problems: list[Problem] = []
        self.more_problems = 0
        self.skipped: Counter[str] = Counter()
        self.duplicates: list[Duplicate] = []
        self.off_branch = self.archived = self.other_files = 0

    def lost(self, file: str, line: int | None, error: DataError) -> None:
        """Note what could not be read, or raise it with its place."""
        if self.on_error == "raise":
            raise located(error, file, line) from None
        if len(self.problems) < KEPT_PROBLEMS:
            self.problems.append(Problem(file, line, str(error)))
        else:
            self.more_problems += 1

    def lost_file(self, file: str, error: DataError) -> None:
        """As `lost`, for an error about a whole file, whose message already starts with the file."""
        if self.on_error == "raise":
            raise error
        self.lost(file, None, DataError(error.where.removeprefix(file).lstrip(": ") or "not read", *_rest(error)))

    def skip(self, kind: str) -> None:
        """Count a record that holds no message."""
        kind = excerpt(kind, _KIND_LENGTH)
        self.skipped[kind if kind in self.skipped or len(self.skipped) < _KINDS else "…"] += 1

    def report(self, sessions: Iterable[Session]) -> LoadReport:
        """The finished report."""
        lengths = [len(session.messages) for session in sessions]
        return LoadReport(
            tuple(self.files),
            len(lengths),
            sum(lengths),
            tuple(self.problems),
            self.more_problems,
            dict(self.skipped.most_common()),
            tuple(self.duplicates),
            self.off_branch,
            self.archived,
            self.other_files,
        )


def located(error: DataError, file: str, line: int | None) -> DataError:
    """The same error with its file and line in front."""
    return DataError(f"{_place(file, line)}: {error.where}", *_rest(error))


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _rest(error: DataError) -> tuple[object, str, str]:
    return error.found, error.expected, error.todo


def _place(file: str, line: int | None) -> str:
    return file if line is None else f"{file}:{line}"
