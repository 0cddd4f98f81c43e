"""The values that the retrieval task works on: a corpus with its queries scored once, and what is found of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.experiments.corpus import Corpus
from openclaw_lab.text import count_tokens

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Asked:
    """One corpus and its queries: `samples[i]` is the number of row i's sample; columns are documents.

    `similarity` is the cosine of a document's best piece; `bm25` and its share `shared` are 0 without a common word.
    `marks` are the documents' scores, `chinese` says which of them are Chinese.
    """

    samples: NDArray[np.intp]
    queries: tuple[str, ...]
    corpus: Corpus
    similarity: Matrix
    bm25: Matrix
    shared: Matrix
    relevant: NDArray[np.bool_]
    marks: NDArray[np.int_]
    chinese: NDArray[np.bool_]
    sizes: dict[int, int] = field(default_factory=dict, compare=False, repr=False)

    def tokens(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """The tokens of documents by their rows; each is counted once."""
        for row in np.unique(rows).tolist():
            if row not in self.sizes:
                self.sizes[row] = count_tokens(self.corpus.documents[row].text)
        return np.vectorize(self.sizes.__getitem__, otypes=[float])(rows) if rows.size else np.zeros(rows.shape)


@dataclass(frozen=True, slots=True)
class Found:
    """The first documents of each query, best first; `hit` says which of them are found at all."""

    rows: NDArray[np.intp]
    score: NDArray[np.float64]
    hit: NDArray[np.bool_]


def first(score: Matrix, valid: NDArray[np.bool_], depth: int) -> Found:
    """The `depth` highest valid scores of each line; of equal ones the earlier document."""
    score = np.where(valid, score, -np.inf)
    depth = min(depth, score.shape[1])
    rows = np.sort(np.argpartition(-score, depth - 1, axis=1)[:, :depth], axis=1)
    order = np.argsort(-np.take_along_axis(score, rows, axis=1), axis=1, kind="stable")
    rows = np.take_along_axis(rows, order, axis=1)
    best = np.take_along_axis(score, rows, axis=1).astype(np.float64)
    return Found(rows, best, best > -np.inf)
