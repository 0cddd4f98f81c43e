"""What a search computes, for one query or for thousands: texts to vectors, cosine and shared words to one order.

KnowHub.search and the retrieval experiment call these functions: what is measured is what is run. A row's score is

    cosine + lexical_weight · shared words + language lift + quality

The cosine is that of the row's best piece, each piece averaged with the entry's title. Shared words are BM25 as a share
of what the query could reach. The lift makes up for vectors and words of one language lying closer together: rows in
a language whose best row is behind the best of all get a part of that distance, and no more than MAX_LIFT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.knowhub.embed import PIECE, Embedder, Vectors, normalised, pieces
from openclaw_lab.text import words

# Turns before a question that are read with it.
HISTORY = 4
# Shared words from which a row counts as found, whatever its cosine: about half of the query's weight.
SAME_WORDS = 0.5
# A language that is further behind has nothing to say on the matter.
MAX_LIFT = 0.2
Floats = TypeVar("Floats", float, NDArray[Any])


def embed_entries(embedder: Embedder, entries: Sequence[tuple[str, str]]) -> list[tuple[Vectors, int]]:
    """For each (title, whole text) the vectors of its pieces, and how many characters were left out.

    The first piece stands for the whole. A title is embedded once more by itself and averaged into every piece, since
    it says what the entry is about; an empty title changes nothing.
    """
    cut = [pieces(text) for _, text in entries]
    titles = [title[:PIECE] for title, _ in entries]
    flat = [piece for found, _ in cut for piece in found]
    whole, end = len(flat), 0
    flat += filter(None, titles)
    rows = embedder.embed(flat) if flat else np.empty((0, embedder.dimension), dtype=np.float32)
    of_titles = iter(rows[whole:])
    made = []
    for title, (found, left_out) in zip(titles, cut, strict=True):
        part = rows[end : end + len(found)]
        end += len(found)
        made.append((normalised(part + next(of_titles)) if title else part, left_out))
    return made


def embed_queries(embedder: Embedder, queries: Sequence[tuple[str, Sequence[str]]]) -> Vectors:
    """One row for each (query, earlier turns): the query's vector, or its mean with that of the conversation's end."""
    alone = embedder.embed([query[:PIECE] for query, _ in queries])
    talks = [number for number, (_, history) in enumerate(queries) if history]
    if talks:
        joined = embedder.embed([in_context(*queries[number])[-PIECE:] for number in talks])
        alone[talks] = (alone[talks] + joined) / 2
    return alone


def query_words(query: str, history: Sequence[str] = ()) -> list[str]:
    """The words that are looked for."""
    return words(in_context(query, history))


def in_context(query: str, history: Sequence[str]) -> str:
    """A question with the last turns before it."""
    return " ".join([*history[-HISTORY:], query]) if history else query


def shared_words(bm25: Floats, possible: float) -> Floats:
    """BM25 scores from 0 to 1: one half where a row has half of what the query's words weigh (`Bm25.possible`)."""
    return bm25 / (bm25 + possible / 2 + 1e-9)


def lift(best: NDArray[Any], balance: float) -> NDArray[Any]:
    """What rows of each language are lifted by, from the best score of each language (the last axis)."""
    return np.asarray(np.minimum(balance * (best.max(axis=-1, keepdims=True) - best), MAX_LIFT))
