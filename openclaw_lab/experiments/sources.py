"""What a notebook holds in, its rows with their places out: a list of rows, a DataFrame, a Hugging Face dataset.

Told by what an object can do, so that no library is imported for it. A place is `name:row`, the row as the object
itself counts: by its index in a DataFrame, from 0 elsewhere.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.experiments.reading import Rows
from openclaw_lab.messages import Session


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that belong together (a file, a split): the name of the dataset, and how to read them.

    `stem` is what a row without an id is called by.
    """

    name: str
    rows: Callable[[list[DataError]], Rows]
    stem: str = ""
    fields: Mapping[str, Any] | None = None  # what every row is told besides
    path: Path | None = None  # the file, where it is one


def parts_of(source: object, name: str = "") -> list[Part] | None:
    """The parts of an object in memory; None where it is none that holds rows."""
    if isinstance(source, Mapping):
        return _splits(source) or _columns(source, name)
    if isinstance(source, str | bytes | bytearray | Session):
        return None
    if _is_frame(source):
        return [_part(name or "DataFrame", lambda: _frame_rows(source))]
    listed = getattr(source, "to_pylist", None) or getattr(source, "to_dicts", None)  # of PyArrow, of Polars
    if callable(listed):
        return [_part(name or "table", lambda: enumerate(listed()))]
    if hasattr(source, "column_names") and isinstance(source, Iterable):
        return [_part(name or _split_of(source), lambda: enumerate(source))]
    if isinstance(source, Sequence) and source and any(isinstance(each, Mapping) for each in source):
        return [_part(name or "rows", lambda: enumerate(source))]
    return None


def _part(name: str, rows: Callable[[], Iterable[tuple[object, Any]]]) -> Part:
    return Part(name, lambda problems: _placed(name, rows(), problems))


def _splits(source: Mapping[Any, Any]) -> list[Part] | None:
    """A part a split; the split stands in the rows as `split`."""
    if not source or not all(hasattr(each, "column_names") or _is_frame(each) for each in source.values()):
        return None
    parts = ((str(name), part) for name, each in source.items() for part in parts_of(each, str(name)) or ())
    return [Part(part.name, part.rows, fields={"split": name}) for name, part in parts]


def _columns(source: Mapping[Any, Any], name: str) -> list[Part] | None:
    """Rows of columns by name, lists of one length."""
    lists = list(source.values())
    if not lists or not all(isinstance(each, list | tuple) for each in lists) or len({len(each) for each in lists}) > 1:
        return None
    return [
        _part(
            name or "rows", lambda: enumerate(dict(zip(source, row, strict=True)) for row in zip(*lists, strict=True))
        )
    ]


def _split_of(source: object) -> str:
    return str(getattr(source, "split", None) or "rows")


def _is_frame(source: object) -> bool:
    """Whether it is a DataFrame of pandas, or of what copies it."""
    return hasattr(source, "columns") and hasattr(source, "iloc") and hasattr(source, "to_dict")


def _frame_rows(frame: Any) -> Iterator[tuple[object, Any]]:
    if frame.columns.nlevels > 1 or not frame.columns.is_unique:
        raise DataError("DataFrame", "columns of one name, or of several levels", "each column by a name of its own")
    index = frame.index if frame.index.is_unique and frame.index.nlevels == 1 else range(len(frame))
    columns = [(str(name), frame[name].tolist()) for name in frame.columns]
    for at, row in enumerate(index):
        yield row, {name: values[at] for name, values in columns}


def _placed(name: str, rows: Iterable[tuple[object, Any]], problems: list[DataError]) -> Rows:
    for number, row in rows:
        where = f"{name}:{number}"
        if isinstance(row, Mapping):
            yield where, {str(key): _plain(value) for key, value in row.items()}
        else:
            problems.append(DataError(where, f"a {type(row).__name__}", "a row: an object with a value a column"))


def _plain(value: Any) -> Any:
    """A value as JSON has it: arrays as lists, numbers of numpy as Python's, missing ones as None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, datetime.date):
        return None if value != value else value.isoformat()  # pandas' NaT is one too
    if hasattr(value, "tolist"):  # an array or a number of numpy
        return _plain(value.tolist())
    return None if type(value).__name__ in ("NAType", "NaTType") else value
