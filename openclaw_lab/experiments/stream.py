"""A file of any length in, blocks of its rows out, so that a set larger than memory can be measured."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from openclaw_lab.errors import DataError
from openclaw_lab.experiments.columns import Columns
from openclaw_lab.experiments.formats import RowFormat, format_of
from openclaw_lab.experiments.reading import read_rows
from openclaw_lab.experiments.samples import Dataset, Sample, sample_of

ROWS = 20_000
_SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".tsv", ".parquet")


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows of one file that are read a block at a time; see `stream`."""

    path: Path
    rows: int
    columns: Columns
    encoding: str
    skip_bad: bool

    @property
    def name(self) -> str:
        """The file as it was named."""
        return str(self.path)

    def blocks(self, problems: list[DataError]) -> Iterator[Dataset]:
        """The rows in order, so many at a time; a bad row is an error, or goes to `problems`."""
        block: list[Sample] = []
        found: list[DataError] = []
        row_format: RowFormat | None = None
        dataset = self.path.name.split(".")[0]
        for where, row in read_rows(self.path, found, self.encoding):
            try:
                renamed = self.columns.row(where, row)
                if renamed is not None:
                    row_format = row_format or format_of(where, renamed, self.columns.fields)
                    block.append(sample_of(row_format, where, renamed, dataset))
            except DataError as error:
                found.append(error)
            self._settle(found, problems)
            if len(block) == self.rows:
                yield self._block(row_format, block)
                block = []
        self._settle(found, problems)
        if row_format is None:
            raise DataError(self.name, "no row that can be read", "one row a line")
        if block:
            yield self._block(row_format, block)

    def _settle(self, found: list[DataError], problems: list[DataError]) -> None:
        """Raise what was wrong, or note it; of very many only the first ones are kept whole."""
        if found and not self.skip_bad:
            raise found[0].advised('or leave bad rows out: on_error="skip"')
        problems += found
        found.clear()

    def _block(self, row_format: RowFormat | None, block: list[Sample]) -> Dataset:
        assert row_format is not None  # a block has rows
        return Dataset(self.name, row_format.name, tuple(block))


def stream(
    path: str | Path, *, rows: int = ROWS, columns: object = None, labels: object = None, encoding: str = "",
    on_error: str = "raise",
) -> Stream:  # fmt: skip
    """A file that `evaluate` measures a block of `rows` at a time: memory grows by some 100 bytes a row.

    `columns`, `labels`, `encoding` and `on_error` as in `load_dataset`. Ids are not checked for repeats. Queries and
    messages that are asked of a corpus beside them are loaded whole: use `load_dataset`.
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise DataError("stream: rows", rows, "a whole number of rows, at least 1")
    if on_error not in ("raise", "skip"):
        raise DataError("on_error", on_error, "raise or skip")
    file = Path(path).expanduser()
    if not file.is_file() or not file.name.lower().endswith(_SUFFIXES):
        raise DataError(str(path), expected=f"a file ending in {', '.join(_SUFFIXES)}")
    return Stream(file, rows, Columns.of(columns, labels), encoding, on_error == "skip")


def digest_of(before: bytes, block: Dataset) -> bytes:
    """Names the content of all blocks so far, whatever their size."""
    digest = before
    for sample in block.samples:
        digest = hashlib.sha256(digest + repr((sample.input, sample.label)).encode("utf-8", "surrogatepass")).digest()
    return digest
