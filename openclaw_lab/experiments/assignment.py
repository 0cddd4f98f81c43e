"""Written and predicted memories in, which of them say the same out: pairs one to one, by the best sum of similarities.

The assignment is that of scipy (Kuhn 1955, doi 10.1002/nav.3800020109, in the form of Crouse 2016). A pair counts from
a threshold of similarity on; raising the threshold never finds more pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.knowhub.embed import embedder_named

# Characters of a text that are compared.
_LONGEST = 400
Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pair:
    """A written memory (row) and a predicted one (column) that say the same, and how similar they are."""

    gold: int
    found: int
    similarity: float


def similarities(groups: Sequence[tuple[Sequence[str], Sequence[str]]], embedder: str) -> list[Matrix]:
    """For each group the cosines of its written texts (rows) with its predicted ones; all are embedded at once."""
    texts = list(dict.fromkeys(text[:_LONGEST] for pair in groups for side in pair for text in side))
    vectors = embedder_named(embedder).embed(texts) if texts else np.zeros((0, 1), dtype=np.float32)
    place = {text: number for number, text in enumerate(texts)}

    def of(side: Sequence[str]) -> Matrix:
        return np.asarray(vectors[[place[text[:_LONGEST]] for text in side]]) if side else vectors[:0]

    return [np.asarray(of(gold) @ of(found).T, dtype=np.float32) for gold, found in groups]


def assigned(similar: Matrix, least: float) -> tuple[Pair, ...]:
    """The pairs that are at least so similar, each row and column once, in the order of the rows."""
    if not similar.size or not (similar >= least).any():
        return ()
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-np.where(similar >= least, similar, 0.0))
    return tuple(
        Pair(int(row), int(column), float(similar[row, column]))
        for row, column in zip(rows, columns, strict=True)
        if similar[row, column] >= least
    )
