"""Vectors and words of all entries in memory, searchable.

Vectors are searched exactly (FAISS flat inner product over rows of length 1, so the product is the cosine).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from openclaw_lab.knowhub.columns import Column
from openclaw_lab.knowhub.embed import Vectors
from openclaw_lab.knowhub.facts import Facts, Mask
from openclaw_lab.knowhub.lexical import Bm25
from openclaw_lab.knowhub.ranking import lift, shared_words
from openclaw_lab.knowhub.store import Row

# Rows of earlier texts that may stay before the index is built again, and their share.
_DROPPED, _SHARE = 1_000, 0.25


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row that a search came upon: its blended score and the two parts of it."""

    row: int
    blend: float
    similarity: float
    lexical: float


class Index:
    """Rows of entries; each row has one or more pieces of text, the first for the whole."""

    def __init__(self, dimension: int) -> None:
        import faiss

        self.dimension, self.revision = dimension, 0
        self.facts = Facts()
        self.checksums: dict[str, int] = {}
        self._alike: dict[int, list[str]] = {}
        self._faiss = faiss.IndexFlatIP(dimension)
        self._words = Bm25()
        self._row_of_piece, self._first_piece = Column(np.int64), Column(np.int64)

    def __len__(self) -> int:
        """Entries that can be found, superseded ones included."""
        return len(self.facts.row_of)

    @property
    def pieces(self) -> int:
        """Vectors, those of earlier versions included."""
        return int(self._faiss.ntotal)

    @property
    def sparse(self) -> bool:
        """Whether so many rows belong to earlier texts that building it again would pay."""
        dropped = self.facts.dropped
        return dropped > _DROPPED and dropped > _SHARE * len(self)

    def add(self, rows: Iterable[Row]) -> None:
        """Add entries (or new versions of entries) in the order of their revisions.

        A version whose text the index already has changes only what filters ask.
        """
        vectors: list[Vectors] = []
        pieces = self.pieces
        for row in rows:
            self.revision = max(self.revision, row.revision)
            alike = self._alike.setdefault(row.form, [])
            if row.entry.id not in alike:
                alike.append(row.entry.id)
            if self.checksums.get(row.entry.id) == row.checksum:
                self.facts.revise(row.entry)
                continue
            if row.entry.id in self.facts.row_of:
                self._words.remove(self.facts.row_of[row.entry.id])
            self._words.add(row.terms)
            self.checksums[row.entry.id] = row.checksum
            number = self.facts.add(row.entry)
            for _ in range(len(row.vectors)):
                self._row_of_piece.append(number)
            self._first_piece.append(pieces)
            pieces += len(row.vectors)
            vectors.append(row.vectors)
        if vectors:
            self._faiss.add(np.concatenate(vectors) if len(vectors) > 1 else vectors[0])

    def alike(self, form: int) -> Sequence[str]:
        """The ids of entries that have, or had, a text with this fingerprint."""
        return self._alike.get(form, ())

    # --- the nearest of a new entry -------------------------------------------------------------------------------

    def nearest_live(self, vector: Vectors, scopes: Sequence[str], count: int, least: float) -> list[tuple[str, float]]:
        """`nearest` among the live entries of some scopes whose cosine is at least so high.

        Seldom is one near, and seldom is a near one not live: a few are fetched and looked at, which costs less than a
        mask of all rows.
        """
        wanted = 2 * count
        near = self._search(vector.reshape(1, -1), None, wanted, least)
        if not near:
            return []
        rows, firsts, shown = self._row_of_piece.values, self._first_piece.values, self.facts.shown_in(scopes)
        placed = [(int(rows[piece]), piece, cosine) for piece, cosine in near]
        found = [
            (self.facts.ids[row], cosine)
            for row, piece, cosine in placed
            if firsts[row] == piece and self.facts.live_in(row, shown)
        ]
        if len(found) < count and len(near) == wanted:  # there may be more behind those that do not count
            found = self.nearest(vector, self.facts.mask(scopes=scopes), count)
        return [pair for pair in found[:count] if pair[1] >= least]

    def nearest(self, vector: Vectors, allowed: Mask, count: int) -> list[tuple[str, float]]:
        """The ids whose whole text is nearest to a vector, with their cosine, best first."""
        return self.neighbours(vector.reshape(1, -1), allowed, count)[0]

    def neighbours(self, vectors: Vectors, allowed: Mask, count: int) -> list[list[tuple[str, float]]]:
        """`nearest` for several vectors at once: one matrix product, many times faster than one by one."""
        owned = self.facts.ids
        rows = np.flatnonzero(allowed)
        if not len(rows):
            return [[] for _ in vectors]
        pieces = self._first_piece.values[rows]
        if len(vectors) == 1:
            found = self._search(vectors, self._only(pieces), count)
            return [[(owned[int(self._row_of_piece.values[piece])], cosine) for piece, cosine in found]]
        matrix = self._matrix()
        similarity = vectors @ (matrix if len(pieces) == len(matrix) else matrix[pieces]).T
        best = _largest(similarity, count)
        return [
            sorted(((owned[int(rows[place])], float(line[place])) for place in places), key=lambda pair: -pair[1])
            for line, places in zip(similarity, best, strict=True)
        ]

    def _only(self, pieces: Any) -> Mask | None:
        """The mask of some pieces; None when they are all there are."""
        if len(pieces) == self.pieces:
            return None
        mask = np.zeros(self.pieces, dtype=bool)
        mask[pieces] = True
        return mask

    # --- the answers to a query -----------------------------------------------------------------------------------

    def search(
        self, vector: Vectors, terms: list[str], allowed: Mask, count: int, weight: float, balance: float = 0.0
    ) -> list[Candidate]:
        """Rows by cosine of their best piece + `weight` · shared words + `balance` · the lift of their language."""
        if count < 1 or not allowed.any():
            return []
        shared = self._words.scores(terms) if weight else np.zeros(len(allowed), dtype=np.float32)
        possible = self._words.possible(terms) if weight else 0.0
        groups = [each & allowed for each in self.facts.languages()] if balance else [allowed]
        found = [self._blended(vector, group, shared, possible, count, weight) for group in groups]
        found = [each for each in found if each]
        raised = lift(np.array([each[0].blend for each in found]), balance) if balance else np.zeros(len(found))
        ids = self.facts.ids
        lifted = [
            (-each.blend - float(up), ids[each.row], each) for of, up in zip(found, raised, strict=True) for each in of
        ]
        return [replace(each, blend=-blend) for blend, _, each in sorted(lifted, key=_place)[:count]]

    def _blended(
        self, vector: Vectors, allowed: Mask, shared: Vectors, possible: float, count: int, weight: float
    ) -> list[Candidate]:
        """The best of some rows: those with the nearest pieces and those with the weightiest common words."""
        similar = self._similar(vector, None if allowed.all() else allowed, count)
        rows = np.flatnonzero(shared * allowed)
        if len(rows) > count:
            rows = rows[np.argpartition(shared[rows], -count)[-count:]]
        similar |= self._similarities(vector, [row for row in rows.tolist() if row not in similar])
        found = []
        for row, similarity in similar.items():
            words = shared_words(float(shared[row]), possible)
            found.append(Candidate(row, similarity + weight * words, similarity, words))
        return sorted(found, key=self._order)[:count]

    def _order(self, found: Candidate) -> tuple[float, str]:
        return -found.blend, self.facts.ids[found.row]

    def vectors_of(self, entry_id: str) -> Vectors:
        """The vectors of an entry's pieces, the whole first."""
        start, end = self._span(self.facts.row_of[entry_id])
        return np.array(self._matrix()[start:end])

    def _similar(self, vector: Vectors, allowed: Mask | None, count: int) -> dict[int, float]:
        """The rows with the nearest pieces; a long text's many pieces do not crowd out other rows."""
        rows, single = self._row_of_piece.values, self.pieces == len(self.facts)
        mask = allowed if allowed is None or single else allowed[rows]
        wanted = count
        while True:
            found = self._search(vector.reshape(1, -1), mask, wanted)
            similar: dict[int, float] = {}
            for piece, similarity in found:
                similar.setdefault(int(rows[piece]), similarity)
            if len(similar) >= count or len(found) < wanted:
                return similar
            wanted *= 4

    def _search(
        self, vector: Vectors, allowed: Mask | None, count: int, least: float = -np.inf
    ) -> list[tuple[int, float]]:
        """Pieces and their cosines, best first, down to the lowest that is wanted; `allowed` is by piece."""
        options = None
        if allowed is not None:
            import faiss

            bitmap: Any = np.packbits(allowed, bitorder="little")
            selector: Any = faiss.IDSelectorBitmap
            options = faiss.SearchParameters(**{"sel": selector(bitmap)})
        count = min(count, self.pieces)
        if not count:
            return []
        similarity, found = self._faiss.search(vector, count, params=options)
        if similarity.item(0) < least:
            return []
        pairs = zip(found[0].tolist(), similarity[0].tolist(), strict=True)
        return [(piece, min(cosine, 1.0)) for piece, cosine in pairs if piece >= 0 and cosine >= least]

    def _similarities(self, vector: Vectors, rows: list[int]) -> dict[int, float]:
        """The cosines of some rows with a vector, each of its best piece."""
        spans = [self._span(row) for row in rows]
        if not spans:
            return {}
        pieces = np.concatenate([np.arange(start, end) for start, end in spans])
        cosines = self._matrix()[pieces] @ vector.reshape(-1)
        starts = np.cumsum([0, *(end - start for start, end in spans[:-1])])
        best = np.minimum(np.maximum.reduceat(cosines, starts), 1.0)
        return dict(zip(rows, best.tolist(), strict=True))

    def _span(self, row: int) -> tuple[int, int]:
        """The pieces of a row: from, to."""
        starts = self._first_piece.values
        return int(starts[row]), int(starts[row + 1]) if row + 1 < len(starts) else self.pieces

    def _matrix(self) -> Vectors:
        """All vectors where they lie; good until the next `add`."""
        import faiss

        if not self.pieces:
            return np.empty((0, self.dimension), dtype=np.float32)
        flat: Vectors = faiss.rev_swig_ptr(self._faiss.get_xb(), self.pieces * self.dimension)
        return flat.reshape(self.pieces, self.dimension)


def _place(found: tuple[float, str, Candidate]) -> tuple[float, str]:
    return found[:2]


def _largest(scores: Vectors, count: int) -> Any:
    """For each line the places of its highest scores, in no order."""
    if scores.shape[1] <= count:
        return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    return np.argpartition(scores, -count, axis=1)[:, -count:]
