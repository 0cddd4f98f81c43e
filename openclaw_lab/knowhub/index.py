"""Vectors and words of all entries in memory, searchable.

Vectors are searched exactly (FAISS flat inner product over rows of length 1, so the product is the cosine).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.knowhub.columns import Column
from openclaw_lab.knowhub.embed import Vectors
from openclaw_lab.knowhub.facts import Facts, Mask
from openclaw_lab.knowhub.lexical import Bm25
from openclaw_lab.knowhub.ranking import SAME_WORDS, lift, shared_words
from openclaw_lab.knowhub.store import Row

# Rows of earlier texts that may stay before the index is built again, and their share.
_DROPPED, _SHARE = 1_000, 0.25
# The share of all rows from which it costs less to take the products of all than to pick.
_MOST = 0.6
# One score of so many is looked at to tell about how high the highest are.
_PART = 16
Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


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
        self,
        vector: Vectors,
        terms: list[str],
        allowed: Mask,
        count: int,
        weight: float,
        balance: float = 0.0,
        least: float = -np.inf,
    ) -> list[Candidate]:
        """Rows by cosine of their best piece + `weight` · shared words + `balance` · the lift of their language.

        Every allowed row is scored: one pass over the vectors, array arithmetic after it. Of the first `count`, those
        whose cosine is below `least` are left out, unless they share many words with the query.
        """
        rows = np.flatnonzero(allowed)
        if count < 1 or not len(rows):
            return []
        similar = self._cosines(vector.reshape(-1), rows)
        shared = np.zeros(len(rows), dtype=np.float32)
        if weight:
            shared = shared_words(self._taken(self._words.scores(terms), rows), self._words.possible(terms))
        blend = similar + weight * shared
        places = self._highest(blend, rows, count, balance)
        columns = (each[places].tolist() for each in (rows, blend, similar, shared))
        return [Candidate(*each) for each in zip(*columns, strict=True) if each[2] >= least or each[3] > SAME_WORDS]

    def _taken(self, column: NDArray[Any], rows: Rows) -> NDArray[Any]:
        """Some rows of a column, in their order; most often they are all there are."""
        return column if len(rows) == len(column) else column[rows]

    def _highest(self, blend: Scores, rows: Rows, count: int, balance: float) -> list[int]:
        """The places of the highest scores, best first; of equal ones the lower id comes first.

        What makes up for a language's being behind is added to the scores of its first rows, which are all that matter.
        """
        chinese = self._taken(self.facts.languages()[0], rows)
        likely = np.flatnonzero(blend >= _about(blend, count))
        groups = []
        for own, few in ((chinese, likely[chinese[likely]]), (~chinese, likely[~chinese[likely]])):
            places = few if len(few) >= count else np.flatnonzero(own)
            groups += [places] if len(places) else []
        first = [_largest_of(blend, each, count) for each in groups]
        raised = lift(np.array([blend[each].max() for each in first]), balance)
        for each, up in zip(first, raised, strict=True):
            blend[each] += up
        places, ids = np.concatenate(first), self.facts.ids
        found = zip((-blend[places]).tolist(), rows[places].tolist(), places.tolist(), strict=True)
        return [place for _, _, place in sorted((less, ids[row], place) for less, row, place in found)[:count]]

    def _cosines(self, vector: Vectors, rows: Rows) -> Scores:
        """The cosine of each of some rows with a vector: that of its best piece."""
        firsts = self._first_piece.values
        if len(rows) >= _MOST * len(firsts):
            products = self._products(vector)
            best = products if len(products) == len(firsts) else np.maximum.reduceat(products, firsts)
            cosines = self._taken(best, rows).astype(np.float64)
        else:
            sizes = np.append(firsts[1:], self.pieces)[rows] - firsts[rows]
            ends = np.cumsum(sizes)
            products = self._products(vector, np.arange(ends[-1]) + np.repeat(firsts[rows] - ends + sizes, sizes))
            cosines = np.maximum.reduceat(products, ends - sizes).astype(np.float64)
        return np.minimum(cosines, 1.0, out=cosines)

    def _products(self, vector: Vectors, pieces: Rows | None = None) -> Vectors:
        """The inner products of some pieces, or of all, with a vector: FAISS's own, without a heap of the best."""
        import faiss

        bare: Any = faiss
        found = np.empty(self.pieces if pieces is None else len(pieces), dtype=np.float32)
        asked = np.ascontiguousarray(vector, dtype=np.float32)
        given = bare.swig_ptr(found), bare.swig_ptr(asked), self._faiss.get_xb()
        if pieces is None:
            bare.fvec_inner_products_ny(*given, self.dimension, len(found))
        else:
            bare.fvec_inner_products_by_idx(*given, bare.swig_ptr(pieces), self.dimension, 1, len(found))
        return found

    def vectors_of(self, entry_id: str) -> Vectors:
        """The vectors of an entry's pieces, the whole first."""
        start, end = self._span(self.facts.row_of[entry_id])
        return np.array(self._matrix()[start:end])

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


def _about(scores: Scores, count: int) -> float:
    """What about four times as many scores as are wanted reach, told from a part of them; often all do."""
    part = scores[::_PART]
    wanted = 4 * count // _PART + _PART
    return float(np.partition(part, -wanted)[-wanted]) if len(part) > 2 * wanted else -np.inf


def _largest_of(scores: Scores, places: Rows, count: int) -> Rows:
    """Those of some places with the highest scores, in no order; with the last of them, all that equal it."""
    if len(places) <= count:
        return places
    own = scores[places]
    kept: Rows = places[own >= np.partition(own, -count)[-count]]
    return kept


def _largest(scores: Vectors, count: int) -> Any:
    """For each line the places of its highest scores, in no order."""
    if scores.shape[1] <= count:
        return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    return np.argpartition(scores, -count, axis=1)[:, -count:]
