"""A file's bytes in, one JSON object a line out; what is damaged is reported and costs its own line only.

Reads plain and gzip-compressed text, one line at a time. Knows nothing about the records' meaning.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from openclaw_lab.errors import DataError
from openclaw_lab.files import unreadable, wrong_encoding
from openclaw_lab.transcripts.report import Tally

Record = dict[str, Any]
GZIP = b"\x1f\x8b"
# Bytes. A recorded picture may make a line of some ten MB; a longer one than this would only fill the memory.
LONGEST_LINE = 256 * 2**20
# Levels of lists and objects; Python's own limit is near a thousand, but later users of the record recurse as well.
DEEPEST = 100
_BOM = b"\xef\xbb\xbf"
_SNIPPET = 60
_ONE_OBJECT = "one JSON object a line"
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def read_records(path: Path, tally: Tally) -> Iterator[tuple[int, Record]]:
    """Line number (from 1) and object of every readable line; the others are noted in the tally.

    Raises DataError when the file cannot be opened or is, as a whole, not UTF-8.
    """
    script = _Script()
    for number, line in _read_lines(path, tally):
        try:
            record = parse(line, last=not line.endswith(b"\n"))
        except DataError as error:
            script.note_damaged(line)
            tally.lost(str(path), number, error)
        else:
            script.note(line)
            yield number, record
    script.check(path)


def parse(line: bytes, *, last: bool = False) -> Record:
    """One line as an object; DataError (without a place) when it is not one."""
    try:
        return read_object(line.decode("utf-8"), "truncated last line" if last else "not JSON")
    except UnicodeDecodeError as error:
        todo = "the line reads as GBK: save the file as UTF-8" if _reads_as_gbk(line) else ""
        raise DataError(f"bytes that are not UTF-8 at byte {error.start}", snippet(line), "UTF-8", todo) from None
    except DataError as error:
        raise DataError(error.where, snippet(line), error.expected) from None


def read_object(text: str, complaint: str = "not JSON") -> Record:
    """A JSON object that is safe to keep and to write again; DataError when the text is not one.

    NaN and infinite numbers become None, lone surrogates become U+FFFD.
    """
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{complaint} ({error.msg} at character {error.pos})", expected=_ONE_OBJECT) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise DataError(f"{complaint} ({str(error).partition(';')[0]})", expected=_ONE_OBJECT) from None
    if not isinstance(value, dict):
        raise DataError("not a JSON object", expected=_ONE_OBJECT)
    if _SURROGATE_ESCAPE.search(text) or text.count("[") + text.count("{") > DEEPEST:
        return {_clean(key, 1): _clean(item, DEEPEST) for key, item in value.items()}
    return value


def snippet(line: bytes) -> str:
    """The start of a damaged line, safe to print."""
    text = line[: _SNIPPET * 4].decode("utf-8", "replace").strip()
    head = "".join(char if char.isprintable() else "·" for char in text[:_SNIPPET])
    return head + ("…" if len(text) > _SNIPPET else "")


def _finite(token: str) -> float | None:
    value = float(token)
    return value if math.isfinite(value) else None


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=lambda _token: None)


def _too_deep() -> DataError:
    return DataError(f"nested deeper than {DEEPEST} levels", expected="a record of a transcript")


def _clean(value: Any, levels: int) -> Any:
    """The value without lone surrogates; DataError when it is nested too deep."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not isinstance(value, (dict, list)):
        return value
    if not levels:
        raise _too_deep()
    if isinstance(value, list):
        return [_clean(item, levels - 1) for item in value]
    return {_clean(key, 1): _clean(item, levels - 1) for key, item in value.items()}


# --- bytes --------------------------------------------------------------------------------------------------------


def _read_lines(path: Path, tally: Tally) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of the lines that are not blank; ends early, with a note, where reading fails."""
    number = 0
    try:
        with _open(path) as file:
            for line in iter(lambda: file.readline(LONGEST_LINE), b""):
                number += 1
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    tally.lost(str(path), number, _too_long(line, file))
                    continue
                if number == 1:
                    line = _start(path, line)
                if not line.isspace():
                    yield number, line
    except EOFError:
        tally.lost(str(path), number + 1, DataError("the compressed file ends early", expected="a whole .gz file"))
    except (zlib.error, gzip.BadGzipFile) as error:
        tally.lost(str(path), number + 1, DataError(f"damaged compressed data ({error})"))
    except OSError as error:
        if not number:
            raise unreadable(path, error) from None
        tally.lost(str(path), number + 1, DataError(f"the file cannot be read further ({error.strerror})"))


def _open(path: Path) -> BinaryIO | gzip.GzipFile:
    file = path.open("rb")
    if file.read(2) == GZIP:
        file.close()
        return gzip.open(path, "rb")
    file.seek(0)
    return file


def _start(path: Path, line: bytes) -> bytes:
    """The first line without its byte-order mark; DataError for UTF-16, with or without one."""
    if line[:2] in (b"\xff\xfe", b"\xfe\xff") and 0 in line[2:4]:
        raise wrong_encoding(path, line[:4], 0)
    if line[:4] and line[:4].count(0) == len(line[:4]) // 2 and b"{" in line[:4]:
        raise DataError(str(path), "UTF-16 text", "UTF-8", "save the file as UTF-8")
    return line.removeprefix(_BOM)


def _too_long(line: bytes, file: BinaryIO | gzip.GzipFile) -> DataError:
    start = snippet(line[: _SNIPPET * 4])
    while line and not line.endswith(b"\n"):
        line = file.readline(2**20)
    return DataError(f"a line of more than {LONGEST_LINE // 2**20} MB", start)


# --- a whole file in another encoding -----------------------------------------------------------------------------


class _Script:
    """Tells a file in GBK from a UTF-8 file with damaged lines: by all of its lines, not by one."""

    def __init__(self) -> None:
        self.lines = self.gbk = self.other = 0

    def note(self, line: bytes) -> None:
        self.lines += 1
        self.other += not line.isascii()

    def note_damaged(self, line: bytes) -> None:
        self.lines += 1
        if not line.isascii():
            gbk = _reads_as_gbk(line)
            self.gbk += gbk
            self.other += not gbk

    def check(self, path: Path) -> None:
        """DataError when every line beyond ASCII reads as GBK, and there are too many of them for chance."""
        enough = self.gbk >= 2 or self.gbk == self.lines
        if self.gbk and enough and not self.other and self.gbk * 5 >= self.lines:
            raise DataError(str(path), "text that reads as GBK", "UTF-8", "save the file as UTF-8")


_HIGH_RUN = re.compile(rb"[\x80-\xff]{4}")


def _reads_as_gbk(line: bytes) -> bool:
    """Not UTF-8, at least two Chinese characters in a row, and an object when read as GBK."""
    if not _HIGH_RUN.search(line):
        return False
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        try:
            return isinstance(json.loads(line.decode("gb18030")), dict)
        except (ValueError, RecursionError):
            return False
    return False
