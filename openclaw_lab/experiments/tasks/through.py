"""What is found in, what of it reaches the prompt out: under one budget of tokens, or as memories under growth's.

As memories they go the way that GrowthMemory goes: the same ranks, budgets of types, frame and last count of tokens.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import LabConfig
from openclaw_lab.experiments.corpus import Document
from openclaw_lab.experiments.metrics import Array
from openclaw_lab.experiments.tasks.asked import Asked, Found
from openclaw_lab.growth.calibrate import calibration
from openclaw_lab.growth.entry import MemoryEntry, uri_of
from openclaw_lab.growth.inject import inject
from openclaw_lab.growth.lookup import least_cosine
from openclaw_lab.growth.retrieve import Recalled, within_budgets
from openclaw_lab.knowhub.embed import Embedder

# A document without a date is as old as any other one.
_DAY = "2000-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Through:
    """A number for each query: relevant documents let through, all that are, all found, and the tokens they take."""

    right: Array
    kept: Array
    found: Array
    tokens: Array


def under_one_budget(asked: Asked, found: Found, config: LabConfig) -> Through:
    """Of the first `knowhub.top_k`, those before the first one that `growth.max_tokens` has no room for."""
    some = slice(config.knowhub.top_k)
    rows, hit = found.rows[:, some], found.hit[:, some]
    sizes = np.where(hit, asked.tokens(rows), 0.0)
    fits = hit & (np.cumsum(sizes, axis=1) <= config.growth.max_tokens)
    right = fits & np.take_along_axis(asked.relevant, rows, axis=1)
    return Through(right.sum(axis=1), fits.sum(axis=1), hit.sum(axis=1), (sizes * fits).sum(axis=1))


def as_memories(asked: Asked, found: Found, config: LabConfig, embedder: Embedder) -> Through:
    """Those of the found that a growth memory would put into the prompt; the tokens are those of the whole block."""
    level = calibration(embedder).level
    made = []
    for line, query in enumerate(asked.queries):
        rows = found.rows[line][found.hit[line]].tolist()
        recalled = [
            Recalled(memory_of(asked.corpus.documents[row]), cosine := float(asked.similarity[line, row]),
                     level(cosine), float(score), "")
            for row, score in zip(rows, found.score[line], strict=False)
        ]  # fmt: skip
        block = inject(within_budgets(query, recalled, config.growth), config.growth)
        kept = [asked.corpus.row_of[each.entry.id] for each in block.used]
        made.append((asked.relevant[line, kept].sum(), len(kept), len(rows), block.tokens))
    columns = np.array(made, dtype=float).reshape(-1, 4).T
    return Through(*columns)


def near_enough(similarity: NDArray[np.float32], config: LabConfig, embedder: Embedder) -> NDArray[np.bool_]:
    """Which cosines are at least what `growth.min_similarity` means for the embedder."""
    return similarity >= least_cosine(config.growth, calibration(embedder))


@functools.lru_cache(maxsize=100_000)
def memory_of(document: Document) -> MemoryEntry:
    """A document as a memory of its type, or of knowledge."""
    return MemoryEntry(
        uri=uri_of("corpus", document.type, "documents", document.id),
        type=document.type,
        content=document.text,
        importance=document.score,
        access_count=0,
        created_at=_DAY,
        last_accessed="",
        updated_at=_DAY,
        id=document.id,
    )
