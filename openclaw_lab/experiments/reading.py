"""A data file in, its rows with their places out, one after the other. Knows nothing of what they mean.

JSON lines, JSON, CSV and TSV, gzipped or not, and Parquet. Text is UTF-8 (a byte-order mark is dropped) unless an
`encoding` is said. A place is `file:line`, in a JSON array and in Parquet `file:row` from 1.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import itertools
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from openclaw_lab.errors import DataError, MissingExtra, excerpt
from openclaw_lab.files import unreadable, wrong_encoding

Rows = Iterator[tuple[str, Mapping[str, Any]]]

_PACKED = tuple(f"{suffix}{gz}" for suffix in (".jsonl", ".ndjson", ".csv", ".tsv") for gz in ("", ".gz"))
SUFFIXES = (*_PACKED, ".parquet")  # what a folder of data is searched for
ALONE = (".json", ".json.gz")  # and what counts only where it is all that there is
_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_DELIMITERS = (",", ";", "\t")
_WRAPPERS = ("data", "rows", "examples", "records")  # names that a file gives to its one list of rows
_LOOKED_AT = 65_536  # bytes that an encoding is guessed from


def read_rows(path: Path, problems: list[DataError], encoding: str = "") -> Rows:
    """(where, row) of every readable row; what cannot be read goes to `problems`.

    Raises DataError, while it is read, for a file that cannot be read at all or not to its end.
    """
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".parquet"):
        return _parquet_rows(path)
    checked = checked_encoding(encoding)
    if name.endswith((".csv", ".tsv")):
        return _cell_rows(path, problems, checked, "\t" if name.endswith(".tsv") else "")
    if name.endswith(".json"):
        return _json_file(path, problems, checked)
    return _line_rows(path, problems, checked)


def checked_encoding(encoding: object) -> str:
    """The name of an encoding of text; empty for UTF-8, which is what is read when nothing is said."""
    if encoding is None or encoding == "":
        return ""
    try:
        found = codecs.lookup(encoding)  # type: ignore[arg-type]
        "".encode(found.name)
    except (LookupError, TypeError, ValueError):
        todo = 'Chinese Excel writes "gb18030", "Unicode text" of Excel is "utf-16"'
        raise DataError("encoding", encoding, "the name of an encoding", todo) from None
    return "" if found.name in ("utf-8", "utf-8-sig", "ascii") else found.name


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked; what goes wrong meanwhile is a DataError."""
    packed = False
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            if packed:
                with gzip.open(file) as unpacked:
                    yield cast(BinaryIO, unpacked)
            else:
                yield file
    except (OSError, EOFError, zlib.error) as error:
        if not packed and isinstance(error, OSError):
            raise unreadable(path, error) from None
        raise DataError(str(path), f"a damaged gzip file ({error})", "a whole gzip file", "copy it again") from None


@contextlib.contextmanager
def _text(path: Path, encoding: str) -> Iterator[TextIO]:
    """The text of a file, its line ends as they are; bytes that are none of the encoding's are a DataError."""
    with _opened(path) as file:
        try:
            yield io.TextIOWrapper(file, encoding or "utf-8-sig", newline="")
        except UnicodeDecodeError:
            pass
        else:
            return
    raise _undecodable(path, encoding)


def _undecodable(path: Path, encoding: str) -> DataError:
    with _opened(path) as file:
        data = file.read()
    try:
        data.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.start + (len(_MARK) if not encoding and data.startswith(_MARK) else 0)
        if not encoding:
            return _no_utf8(path, data[:4], start, data[:_LOOKED_AT])
        return DataError(str(path), f"bytes that are not {encoding} at byte {start}", encoding, _advice(data))
    return DataError(str(path), "a file that changed while it was read", encoding or "UTF-8")


def _no_utf8(where: object, head: bytes, start: int, sample: bytes) -> DataError:
    plain = wrong_encoding(where, head, start)
    return DataError(plain.where, plain.found, plain.expected, f"{plain.todo}, or {_advice(sample)}")


def _advice(sample: bytes) -> str:
    """Which encoding to try: a guess from the first bytes."""
    if sample[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return 'say encoding="utf-16"'
    with contextlib.suppress(UnicodeDecodeError):
        decoder = codecs.getincrementaldecoder("gb18030")()
        if any("\u4e00" <= char <= "\u9fff" for char in decoder.decode(sample[:_LOOKED_AT])):
            return 'say encoding="gb18030" (what Chinese Excel writes)'
    return 'say which it is, for example encoding="cp1252" (what Western Excel writes)'


# --- JSON ---------------------------------------------------------------------------------------------------------


def _no_constant(name: str) -> object:
    raise ValueError(f"the constant {name}, which is not JSON")


_decode = json.JSONDecoder(parse_constant=_no_constant).decode
_scan = json.JSONDecoder(parse_constant=_no_constant).raw_decode


def _line_rows(path: Path, problems: list[DataError], encoding: str) -> Rows:
    for number, (line, whole) in enumerate(_lines(path, encoding), 1):
        where = f"{path}:{number}"
        try:
            row = _decode(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            wrong = _no_utf8(where, line[:4], error.start, line[:_LOOKED_AT])
            if number == 1:
                raise wrong from None
            problems.append(wrong)
        except (ValueError, RecursionError) as error:
            if line.strip():
                problems.append(_no_row(where, line, whole, error))
        else:
            if isinstance(row, dict):
                yield where, row
            else:
                problems.append(DataError(where, row, "one JSON object a line"))


def _lines(path: Path, encoding: str) -> Iterator[tuple[bytes, bool]]:
    """The lines of a file without their ends, as UTF-8, and whether each has an end."""
    if encoding:
        with _text(path, encoding) as text:
            for each in text:
                yield each.rstrip("\r\n").encode("utf-8", "surrogatepass"), each.endswith(("\r", "\n"))
        return
    with _opened(path) as file:
        for number, raw in enumerate(file):
            line = raw.removeprefix(_MARK) if number == 0 else raw
            whole = line.endswith(b"\n")
            if b"\r" in line:  # ends of lines of an old Mac too
                yield from ((part, whole) for part in line.splitlines())
            else:
                yield line[:-1] if whole else line, whole


def _no_row(where: str, line: bytes, whole: bool, error: Exception) -> DataError:
    reason = "one JSON object a line" if whole else "a whole line (the file seems cut off)"
    found = str(error) if "constant" in str(error) else line[:200].decode("utf-8", "replace")
    return DataError(where, found, reason)


def _json_file(path: Path, problems: list[DataError], encoding: str) -> Rows:
    """A list of rows, an object with such a list, columns by name, one row, or JSON lines by this name."""
    with _text(path, encoding) as file:
        text = file.read().strip()
    if not text.startswith(("[", "{")):
        yield from _line_rows(path, problems, encoding)
        return
    try:
        value, end = _scan(text)
    except (ValueError, RecursionError) as error:
        if text.startswith("{"):
            yield from _line_rows(path, problems, encoding)
            return
        raise _no_array(path, text, error) from None
    if end < len(text):  # more than one value
        yield from _line_rows(path, problems, encoding)
        return
    for number, row in enumerate(_listed(value), 1):
        where = f"{path}:{number}"
        if isinstance(row, dict):
            yield where, row
        else:
            problems.append(DataError(where, row, "a list of objects, one a row"))


def _no_array(path: Path, text: str, error: Exception) -> DataError:
    line = getattr(error, "lineno", 1)
    cut = getattr(error, "pos", 0) >= len(text.rstrip()) or not text.endswith("]")
    found = str(error) if "constant" in str(error) else f"no JSON ({getattr(error, 'msg', 'too deep')})"
    expected = "a whole list of objects (the file seems cut off)" if cut else "a list of objects, one a row"
    return DataError(f"{path}:{line}", found, expected)


def _listed(value: Any) -> list[Any]:
    """The rows of a JSON value."""
    if isinstance(value, list):
        return value
    lists = [name for name, each in value.items() if isinstance(each, list) and each and isinstance(each[0], dict)]
    wrapper = next((name for name in lists if name in _WRAPPERS), "")
    if wrapper:
        return cast(list[Any], value[wrapper])
    return _transposed(value) or [value]


def _transposed(value: Mapping[str, Any]) -> list[Any]:
    """Rows of columns by name, each a list or, as pandas writes them, values by row; none where it is no such thing."""
    columns = list(value.values())
    alike = all(isinstance(each, list) for each in columns) or all(isinstance(each, dict) for each in columns)
    if len(columns) < 2 or not alike or len({len(each) for each in columns}) > 1:
        return []
    if isinstance(columns[0], dict):
        if any(each.keys() != columns[0].keys() for each in columns):
            return []
        columns = [list(each.values()) for each in columns]
    return [dict(zip(value, cells, strict=True)) for cells in zip(*columns, strict=True)]


# --- cells and columns --------------------------------------------------------------------------------------------


def _cell_rows(path: Path, problems: list[DataError], encoding: str, delimiter: str) -> Rows:
    """Rows by the names in the first line; the place of a row is the line that it starts on."""
    csv.field_size_limit(2**31 - 1)
    with _text(path, encoding) as text:
        first, skipped = text.readline(), 0
        if first.lower().startswith("sep=") and len(first.strip()) == 5:  # a note to Excel
            delimiter, first, skipped = first.strip()[4], text.readline(), 1
        delimiter = delimiter or next((each for each in _DELIMITERS if each in first), ",")
        reader = csv.reader(itertools.chain([first], text), strict=True, delimiter=delimiter)
        yield from _named_cells(path, reader, problems, skipped)


def _named_cells(path: Path, reader: Any, problems: list[DataError], skipped: int) -> Rows:
    names: list[str] = []
    start = 1 + skipped
    try:
        for cells in reader:
            where, start = f"{path}:{start}", reader.line_num + 1 + skipped
            if not any(cells):
                continue
            if not names:
                names = _names(where, cells)
            elif len(cells) == len(names):
                yield where, {name: cell for name, cell in zip(names, cells, strict=True) if name is not None}
            else:
                found = f"{len(cells)} values: {excerpt(','.join(cells), 40)}"
                problems.append(DataError(where, found, f"{len(names)} values, as the first line names"))
    except csv.Error as error:
        raise DataError(f"{path}:{start}", str(error), "a row of the CSV", "check its quotation marks") from None


def _names(where: str, cells: list[str]) -> list[Any]:
    """The names of the columns; None for those without, where they are several (what Excel leaves at the right)."""
    names = [cell.strip() for cell in cells]
    bare = names.count("")
    if len(set(names)) < len(names) - max(0, bare - 1):
        raise DataError(where, ", ".join(cells), "each name once in the first line")
    return [None if bare > 1 and not name else name for name in names]


def _parquet_rows(path: Path) -> Rows:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtra(f"reading {path.name}", "pyarrow", "parquet") from None
    return _batches(path, parquet)


def _batches(path: Path, parquet: Any) -> Rows:
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=4096):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}:{number}", row
    except (OSError, ValueError) as error:
        raise DataError(str(path), str(error), "a Parquet file") from None


def holds_list(path: Path) -> bool:
    """Whether a file starts as a list in JSON does: others of that name are settings more often than data."""
    try:
        with _opened(path) as file:
            return file.read(64).removeprefix(_MARK).lstrip()[:1] == b"["
    except DataError:
        return False


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
