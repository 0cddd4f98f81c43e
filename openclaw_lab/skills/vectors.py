"""Texts in, vectors out, each text embedded once; and the same vectors with the directions that all texts share damped.

Sentence vectors have a few directions in which all of them are long ("somebody asks for something"). Damping these
tells texts apart that are of one kind; what is damped is learned from texts that no figure is reported on.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.knowhub.embed import PIECE, Embedder, embedder_named, normalised

Matrix = NDArray[np.float32]
_BATCH = 256
_KEPT = 50_000  # vectors that are remembered for each embedder, 2 kB each


class Memory:
    """An embedder that remembers: words and phrases come again and again."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: OrderedDict[str, Matrix] = OrderedDict()

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """One row of length 1 a text; of a long text the start counts."""
        heads = [text[:PIECE] for text in texts]
        new = list(dict.fromkeys(head for head in heads if head not in self._known))
        for start in range(0, len(new), _BATCH):
            batch = new[start : start + _BATCH]
            self._known.update(zip(batch, self._embedder.embed(batch), strict=True))
        rows = np.zeros((len(heads), self._embedder.dimension), dtype=np.float32)
        for row, head in zip(rows, heads, strict=True):
            row[:] = self._known[head]
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return rows


@functools.lru_cache(maxsize=4)
def memory(embedder: str) -> Memory:
    """The memory of an embedder, by its name."""
    return Memory(embedder_named(embedder))


@dataclass(frozen=True, eq=False)
class Damping:
    """The mean of all texts, the directions that they share, and what is taken off in each (as a share)."""

    mean: Matrix
    axes: Matrix
    less: Matrix

    def __call__(self, rows: Matrix) -> Matrix:
        """The vectors with what they share damped; as they are, where they come from another embedder."""
        if rows.shape[1] != len(self.mean):
            return rows
        moved = rows - self.mean
        return normalised(np.asarray(moved - ((moved @ self.axes) * self.less) @ self.axes.T, dtype=np.float32))

    @classmethod
    def learned(cls, rows: Matrix, axes: int = 64, power: float = 0.25) -> Damping:
        """From texts of all sorts: the main directions brought towards the spread of the last of them."""
        mean = rows.mean(axis=0)
        directions, spread, _ = np.linalg.svd(np.cov((rows - mean).T))
        less = 1 - (spread[:axes] / spread[axes]) ** -power
        return cls(mean, directions[:, :axes].astype(np.float32), less.astype(np.float32))
