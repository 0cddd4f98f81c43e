"""Words in, BM25 scores out: an inverted index in memory that grows entry by entry.

BM25 with k1 = 1.2, b = 0.75 and the idf of Lucene (Robertson and Zaragoza 2009, doi 10.1561/1500000019). Exact strings
(error codes, flags, names) are what embeddings blur; a query in another language shares no word and scores 0.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_K1, _B = 1.2, 0.75


class _Postings:
    """The rows that have a term, how often, and how many of them were removed since."""

    __slots__ = ("counts", "removed", "rows")

    def __init__(self) -> None:
        self.rows, self.counts, self.removed = array("I"), array("H"), 0


class Bm25:
    """Rows are numbered from 0 in the order in which they are added; a removed one no longer counts in any score."""

    def __init__(self) -> None:
        self._terms: dict[str, _Postings] = {}
        self._having: list[tuple[_Postings, ...]] = []
        self._lengths = array("f")
        self._total, self._rows = 0.0, 0
        self._waiting: list[Sequence[str]] = []

    def __len__(self) -> int:
        return len(self._lengths) + len(self._waiting)

    def add(self, terms: Sequence[str]) -> None:
        """Add the next row; the work is done when scores are asked for, so that a save does not wait for it."""
        self._waiting.append(terms)

    def _take_in(self) -> None:
        waiting, self._waiting = self._waiting, []
        for terms in waiting:
            self._index(terms)

    def _index(self, terms: Sequence[str]) -> None:
        row, having = len(self._lengths), []
        for term, count in Counter(terms).items():
            postings = self._terms.get(term)
            if postings is None:
                postings = self._terms[term] = _Postings()
            postings.rows.append(row)
            postings.counts.append(min(count, 65_535))
            having.append(postings)
        self._having.append(tuple(having))
        self._lengths.append(len(terms))
        self._total += len(terms)
        self._rows += 1

    def remove(self, row: int) -> None:
        """Take a row out of the statistics, so that the scores of all others are as if it had never been."""
        self._take_in()
        for postings in self._having[row]:
            postings.removed += 1
        self._having[row] = ()
        self._total -= self._lengths[row]
        self._rows -= 1

    def scores(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """The score of every row for a query; each distinct term counts once. That of a removed row means nothing."""
        self._take_in()
        found = np.zeros(len(self._lengths), dtype=np.float32)
        if not self._total:
            return found
        lengths = np.frombuffer(self._lengths, dtype=np.float32)
        scale = np.float32(_K1 * _B * self._rows / self._total)
        for term in dict.fromkeys(terms):
            postings = self._terms.get(term)
            if postings is None:
                continue
            rows = np.frombuffer(postings.rows, dtype=np.uint32)
            counts = np.frombuffer(postings.counts, dtype=np.uint16).astype(np.float32)
            have = len(rows) - postings.removed
            idf = math.log(1 + (self._rows - have + 0.5) / (have + 0.5))
            pull = lengths[rows] * scale
            pull += np.float32(_K1 * (1 - _B))
            pull += counts
            counts *= np.float32(idf * (_K1 + 1))
            counts /= pull
            found[rows] += counts
        return found

    def possible(self, terms: Sequence[str]) -> float:
        """What the distinct words of a query weigh together: the sum of their idf, those in no row included."""
        self._take_in()
        found = 0.0
        for term in dict.fromkeys(terms):
            postings = self._terms.get(term)
            have = len(postings.rows) - postings.removed if postings else 0
            found += math.log(1 + (self._rows - have + 0.5) / (have + 0.5))
        return found
