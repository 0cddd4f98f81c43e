"""A sample (or a row) in, a line more in your case file out: the file is data that load_dataset reads.

    save_case(texts.where(id="en-017")[0], "~/cases/leaks.jsonl", note="a token in a URL")

Texts of the injection and the redaction format. The file may hold secrets: only its owner can read it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.experiments.dataset import Sample
from openclaw_lab.experiments.formats import RowFormat, format_of, missing
from openclaw_lab.experiments.reading import read_rows
from openclaw_lab.experiments.secrets import Secrets
from openclaw_lab.files import unreadable

_FORMATS = ("injection", "redaction")
_OF_SAMPLE = ("lang", "kind", "group")
_OF_FRAME = ("id", "text", "label", "spans", "partial", "source", *_OF_SAMPLE)


def save_case(case: Sample | Mapping[str, Any], path: str | Path, note: str = "") -> str:
    """Append a case to a .jsonl file and return its id; the file and its folder are made when they are not there.

    `case` is a Sample, a row (`{"text", "label"}` or `{"text", "spans"}`) or a row of a frame. A case that is there
    already, text and label alike, is not written again; another one under its id is a DataError, as is anything that
    load_dataset would not read back.
    """
    target = Path(path).expanduser()
    if not target.name.lower().endswith(".jsonl"):
        raise DataError(str(target), target.suffix or "no suffix", "a path ending in .jsonl")
    row_format, row = _row(case)
    if note:
        row["note"] = str(note)
    line = _line(row)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target) as file:
            if os.read(file, 2) == b"\x1f\x8b":
                raise DataError(str(target), "a gzip file", "plain lines", "name another file")
            if _is_new(target, row_format, row):
                _append(file, line)
    except OSError as error:
        raise unreadable(target, error) from None
    return str(row["id"])


def _row(case: object) -> tuple[RowFormat, dict[str, Any]]:
    """The row that is written, checked as one that is read."""
    if isinstance(case, Sample):
        row = _row_of(case)
    elif isinstance(case, Mapping):
        row = dict(case)
    elif hasattr(case, "to_dict"):  # a row of a frame
        row = {name: value for name, value in case.to_dict().items() if name in _OF_FRAME}
    else:
        raise DataError("case", f"a {type(case).__name__}", "a Sample, or a row with text and label, or text and spans")
    row = {str(name): _plain(value) for name, value in row.items()}
    row_format = format_of("case", row)
    if row_format.name not in _FORMATS:
        raise DataError("case", f"a {row_format.name} row", "a row with text and label, or text and spans")
    text, label = row_format.read("case", row)
    if missing(row.get("id")):
        row["id"] = f"case-{hashlib.sha256(repr((text, label)).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    return row_format, row


def _row_of(sample: Sample) -> dict[str, Any]:
    """A sample's row as it was read, or made of what the sample says."""
    row = {**sample.fields, "id": sample.id, "text": sample.input}
    row |= {name: getattr(sample, name) for name in _OF_SAMPLE if getattr(sample, name)}
    if not isinstance(sample.label, Secrets):
        return row if sample.label is None or isinstance(sample.label, tuple) else {**row, "label": sample.label}
    row["spans"] = [
        {"start": each.start, "end": each.end, "type": each.type, "value": sample.input[each.start : each.end]}
        for each in sample.label.spans
    ]
    return row if sample.label.complete else {**row, "partial": True}


def _plain(value: Any) -> Any:
    """What JSON can hold: numbers of numpy as Python's."""
    return value.item() if hasattr(value, "item") else value


def _line(row: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can write
        return json.dumps(row, allow_nan=False).encode("ascii") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError("case", f"what JSON cannot hold ({error})", "plain strings, numbers and lists") from None


def _is_new(path: Path, row_format: RowFormat, row: Mapping[str, Any]) -> bool:
    """Whether a case is still to be written; the file must be one that can be loaded, and of the same format."""
    problems: list[DataError] = []
    for number, (where, other) in enumerate(read_rows(path, problems)):
        if number == 0 and format_of(where, other).name != row_format.name:
            found = f"{format_of(where, other).name} rows"
            raise DataError(str(path), found, f"{row_format.name} rows", "give the case a file of its own")
        if str(other.get("id")) == str(row["id"]):
            if _content(row_format, where, other) == _content(row_format, "case", row):
                return False
            raise DataError(
                where, f"the id {row['id']!r} for another case", "one id a case", 'give the row another "id"'
            )
    if problems:
        raise problems[0].advised("mend the file first")
    return True


def _content(row_format: RowFormat, where: str, row: Mapping[str, Any]) -> tuple[object, object]:
    return row_format.read(where, row)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The open file, which nobody else appends to meanwhile; for its owner's eyes only."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with contextlib.suppress(ImportError):  # Windows has no such lock; there, one writer at a time
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        with contextlib.suppress(OSError, AttributeError):  # somebody else's file keeps its mode
            os.fchmod(file, 0o600)
        yield file
    finally:
        os.close(file)


def _byte(file: int, place: int) -> bytes:
    os.lseek(file, place, os.SEEK_SET)
    return os.read(file, 1)


def _append(file: int, line: bytes) -> None:
    """Add a line on its own; all of it or, when the disk is full, nothing."""
    size = os.lseek(file, 0, os.SEEK_END)
    if size and _byte(file, size - 1) != b"\n":
        line = b"\n" + line
    try:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fsync(file)
    except BaseException:
        os.ftruncate(file, size)
        raise
