"""A data file in, its rows with their places out: .jsonl(.gz), .csv, .parquet. Knows nothing of what they mean."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from openclaw_lab.errors import DataError, MissingExtra, excerpt
from openclaw_lab.files import unreadable, wrong_encoding

Rows = Iterator[tuple[str, Mapping[str, Any]]]


def read_rows(path: Path, problems: list[DataError]) -> Rows:
    """(where, row) of every readable row; what cannot be read goes to `problems`."""
    if path.name.lower().endswith(".parquet"):
        return _parquet_rows(path)
    data = _bytes(path)
    if path.name.lower().endswith(".csv"):
        return _csv_rows(path, data, problems)
    return _json_rows(path, data, problems)


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(str(path), f"a damaged gzip file ({error})", "a whole gzip file", "copy it again") from None


def _json_rows(path: Path, data: bytes, problems: list[DataError]) -> Rows:
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
        except UnicodeDecodeError as error:
            wrong = wrong_encoding(where, data[:4], error.start)
            if number == 1:
                raise wrong from None
            problems.append(wrong)
        except (ValueError, RecursionError) as error:
            cut = number == len(lines) and not data.endswith(b"\n")
            found = line[:200].decode("utf-8", "replace")
            reason = "a whole line (the file seems cut off)" if cut else "one JSON object a line"
            problems.append(DataError(where, found if "constant" not in str(error) else str(error), reason))
        else:
            if isinstance(row, dict):
                yield where, row
            else:
                problems.append(DataError(where, row, "one JSON object a line"))


def _no_constant(name: str) -> object:
    raise ValueError(f"the constant {name}, which is not JSON")


def _csv_rows(path: Path, data: bytes, problems: list[DataError]) -> Rows:
    """Rows by the names in the first line; the place of a row is the line that it starts on."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong_encoding(path, data[:4], error.start) from None
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names: list[str] = []
    start = 1
    try:
        for cells in reader:
            where, start = f"{path}:{start}", reader.line_num + 1
            if not cells:
                continue
            if not names:
                names = cells
                if len(set(names)) < len(names):
                    raise DataError(where, ", ".join(names), "each name once in the first line")
            elif len(cells) == len(names):
                yield where, dict(zip(names, cells, strict=True))
            else:
                found = f"{len(cells)} values: {excerpt(','.join(cells), 40)}"
                problems.append(DataError(where, found, f"{len(names)} values, as the first line names"))
    except csv.Error as error:
        raise DataError(f"{path}:{start}", str(error), "a row of the CSV", "check its quotation marks") from None


def _parquet_rows(path: Path) -> Rows:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra(f"reading {path.name}", "pyarrow", "parquet") from None
    try:
        rows = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise DataError(str(path), str(error), "a Parquet file") from None
    return ((f"{path}:{number}", row) for number, row in enumerate(rows, 1))


def head(path: Path, lines: int = 5) -> Iterator[Mapping[str, Any]]:
    """The first few rows that can be read; nothing where the file cannot be."""
    opener = gzip.open if path.name.endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            for _ in range(lines):
                try:
                    row = json.loads(file.readline())
                except (ValueError, RecursionError):
                    continue
                if isinstance(row, dict):
                    yield row
    except (OSError, EOFError, zlib.error):
        return
