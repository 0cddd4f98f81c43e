"""Labels that a person gave, by the id of a row, in; the dataset with them out. And the file that keeps them.

    labels = {"mail:17": 1, "mail:18": "harmless"}
    data = lab.with_labels(texts, labels)

A LabelFile has a line a label, on the disk as soon as it is given; `load_dataset` reads it like any other data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.experiments.dataset import Dataset, as_dataset, load_dataset
from openclaw_lab.experiments.formats import FORMATS, RowFormat
from openclaw_lab.experiments.reading import read_rows
from openclaw_lab.experiments.samples import Sample
from openclaw_lab.experiments.words import verdict_of
from openclaw_lab.files import unreadable, write_bytes
from openclaw_lab.given import path as checked_path
from openclaw_lab.knobs import nearest
from openclaw_lab.messages import Session


def with_labels(data: object, labels: object, *, keep_unlabelled: bool = False) -> Dataset:
    """The rows of `data` that have a label: one of `labels` (it wins), or one of their own.

    `labels` are labels by id, as a row of the format has them (injection: 1 and 0, or words such as "attack" and
    "harmless"), or the path of a LabelFile. `keep_unlabelled` keeps the others too. Raises DataError for an id that no
    row has, and for a label that is none.
    """
    dataset = unlabelled(data)
    row_format = labelled_format(dataset)
    given = LabelFile(labels).labels if isinstance(labels, str | Path) else labels
    if not isinstance(given, Mapping):
        raise DataError("labels", given, "labels by id, or the path of a file of labels")
    named = {str(key): value for key, value in given.items()}
    known = dict.fromkeys(sample.id for sample in dataset.samples)
    for key in named:
        if key not in known:
            raise DataError(f"labels {key!r}", expected="the id of a row", todo=nearest(key, list(known)[:1000]))
    samples = [labelled(row_format, each, named[each.id]) if each.id in named else each for each in dataset.samples]
    kept = tuple(each for each in samples if keep_unlabelled or each.label is not None)
    return replace(dataset, samples=kept)


def unlabelled(data: object) -> Dataset:
    """A Dataset of what was given, whether its rows have labels or not; a list or a Series of texts will do."""
    if isinstance(data, Dataset):
        return data
    if hasattr(data, "to_frame") and hasattr(data, "iloc"):  # a Series, whose index names the rows
        data = data.to_frame("text")
    if isinstance(data, list | tuple) and data and all(isinstance(each, str) for each in data):
        data = [{"text": each} for each in data]
    if isinstance(data, list | tuple) and data and all(isinstance(each, Session) for each in data):
        return as_dataset(data)
    return load_dataset(data, labelled=False)


def labelled_format(data: Dataset) -> RowFormat:
    """The format of rows that a label is given to by hand; sessions have none."""
    found = next((each for each in FORMATS if each.name == data.format), None)
    if found is None:
        raise DataError(f"labels of {data.name}", f"{data.format} rows", f"one of {', '.join(_names())}")
    return found


def labelled(row_format: RowFormat, sample: Sample, value: object) -> Sample:
    """A sample with the label that a value of its format is."""
    if row_format.name == "injection" and isinstance(value, str):
        value = value if (verdict := verdict_of(value)) is None else verdict
    row = {**sample.fields, row_format.label: value}
    if row_format.read_input is None:
        row[row_format.text] = sample.input
    return replace(sample, label=row_format.read_label(f"labels {sample.id!r}", row), fields=row)


def _names() -> list[str]:
    return [each.name for each in FORMATS]


class LabelFile:
    """Labels in a .jsonl file, one row a label, ready to be loaded; made when the first label is given.

    What is there is read when it is opened, so that labelling goes on after a restart. A line that a crash cut off is
    taken away; any other line that cannot be read is a DataError, and nothing is written then.
    """

    def __init__(self, path: object) -> None:
        self.path = checked_path("labels", path, expected="the path of a .jsonl file", error=DataError)
        if not self.path.name.lower().endswith(".jsonl"):
            raise DataError(str(self.path), self.path.suffix or "no suffix", "a path ending in .jsonl")
        self.rows: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            self._mend()
            self._read()

    @property
    def labels(self) -> dict[str, Any]:
        """The labels by id, as they were given."""
        return {key: row[_label_of(row)] for key, row in self.rows.items()}

    def __len__(self) -> int:
        return len(self.rows)

    def put(self, sample: Sample, value: object, row_format: RowFormat) -> None:
        """Keep a label: on the disk when this returns. Another one for the same row takes the first one's place."""
        checked = labelled(row_format, sample, value)
        row = {**checked.fields, "id": sample.id}
        row[row_format.label] = checked.label if row_format.name == "injection" else value
        again = sample.id in self.rows
        self.check(sample, row_format)
        line = _line(row)
        if again:
            self._write({**self.rows, sample.id: row})
        else:
            _append(self.path, line)
        self.rows[sample.id] = row

    def drop(self, sample_id: str) -> None:
        """Take a label back."""
        if sample_id in self.rows:
            kept = {key: row for key, row in self.rows.items() if key != sample_id}
            self._write(kept)
            self.rows = kept

    def check(self, sample: Sample, row_format: RowFormat) -> None:
        """Refuse a file in which this id stands for another text."""
        row = self.rows.get(sample.id)
        if row is not None and row_format.read_input is None and row.get(row_format.text) != sample.input:
            raise DataError(str(self.path), f"another text with the id {sample.id!r}", "labels of this data",
                            "name another file")  # fmt: skip

    def _mend(self) -> None:
        """Take away the half of a line that a crash left."""
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise unreadable(self.path, error) from None
        whole, _, rest = data.rpartition(b"\n")
        if rest:
            try:
                json.loads(rest)
            except ValueError:
                write_bytes(self.path, whole + b"\n" if whole else b"", private=True)
            else:
                write_bytes(self.path, data + b"\n", private=True)

    def _read(self) -> None:
        problems: list[DataError] = []
        for where, row in read_rows(self.path, problems):
            if not isinstance(row.get("id"), str) or not _label_of(row):
                raise DataError(where, f"the fields {', '.join(map(str, row))}", "a row with an id and a label")
            self.rows[row["id"]] = dict(row)
        if problems:
            raise problems[0].advised("mend the file, or name another one")

    def _write(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        try:
            write_bytes(self.path, b"".join(map(_line, rows.values())), private=True)
        except OSError as error:
            raise unreadable(self.path, error) from None


def _label_of(row: Mapping[str, Any]) -> str:
    return next((each.label for each in FORMATS if each.label in row), "")


def _line(row: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False, default=str).encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can write
        return json.dumps(row, default=str).encode("ascii") + b"\n"


def _append(path: Path, line: bytes) -> None:
    """Add a line at once, all of it or nothing; only its owner can read a new file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
        try:
            size = os.lseek(file, 0, os.SEEK_END)
            try:
                _all(file, line)
            except BaseException:
                os.ftruncate(file, size)
                raise
        finally:
            os.close(file)
    except OSError as error:
        raise unreadable(path, error) from None


def _all(file: int, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(file, rest) :]
    os.fsync(file)


def values_of(samples: Iterable[Sample]) -> dict[str, Any]:
    """The labels that samples have, by id."""
    return {sample.id: sample.label for sample in samples if sample.label is not None}
