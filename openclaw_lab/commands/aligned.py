"""Rows of words in, lines with aligned columns out; a Chinese character takes two places."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence


def width(text: str) -> int:
    """The places that a text takes in a terminal."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
               for char in text)  # fmt: skip


def aligned(rows: Sequence[Sequence[str]], gap: int = 2) -> Iterator[str]:
    """Lines of the rows; the last column is not padded."""
    columns = max((len(row) for row in rows), default=0)
    widths = [max((width(row[at]) for row in rows if at < len(row)), default=0) for at in range(columns)]
    for row in rows:
        cells = [cell + " " * (widths[at] - width(cell) + gap) for at, cell in enumerate(row[:-1])]
        yield "".join([*cells, *row[-1:]]).rstrip()
