"""Messages and skills compared word by word by meaning: each word of one side with the nearest of the other.

One vector for a whole text blurs the one word that decides, most of all between languages; single words do not ("late
interaction", Khattab and Zaharia 2020, doi 10.1145/3397271.3401075, with sentence vectors of single words).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from openclaw_lab.skills.catalogue import Catalogue
from openclaw_lab.skills.overlap import best_of
from openclaw_lab.skills.rarity import rarity
from openclaw_lab.skills.vectors import Damping, Matrix, Memory
from openclaw_lab.text import cut

_ROWS = 200  # messages at a time
_HEAVIEST = 5.0  # weight of a word, at most: what is in no other text may be a typing error
# Cosines of single words below the first say nothing; from there they count up to 1.
_NEAR, _NEARER = 0.35, 0.4
_DOUBT = 1.5


class Late:
    """A catalogue's words as vectors."""

    def __init__(self, catalogue: Catalogue, embedder: Memory, damp: Damping, background: Mapping[str, float]) -> None:
        self._embedder, self._damp = embedder, damp
        texts = [cut(each) for each in catalogue.texts]
        self._weigh = rarity(texts, background)
        phrases = [cut(each) for group in catalogue.phrases for each in group.wanted]
        names = [cut(each) for each in catalogue.titles]
        known = sorted({word for group in (*texts, *phrases, *names) for word in group})
        self._columns = {word: number for number, word in enumerate(known)}
        self._vectors = damp(embedder.vectors(known))
        self._texts = [[self._columns[word] for word in group] for group in texts]
        self._counts = [len(group.wanted) for group in catalogue.phrases]
        self._phrases, self._names = self._shares(phrases), self._shares(names)

    def _shares(self, groups: Sequence[Sequence[str]]) -> Matrix:
        """Rows of what each word counts in its text; the sum stays below 1 for short texts of common words."""
        rows = np.zeros((len(groups), len(self._columns)), dtype=np.float32)
        for row, group in zip(rows, groups, strict=True):
            columns = [self._columns[word] for word in group]
            row[columns] = [self._weight(word) for word in group]
            row /= row.sum() + _DOUBT
        return rows

    def _weight(self, word: str) -> float:
        return min(_HEAVIEST, self._weigh(word))

    def compare(self, messages: Sequence[str]) -> dict[str, Matrix]:
        """words, words_sharp: how near the message's words are to the description's; said_soft, named_soft: how near
        the words of the best phrase, and of the name, are to the message's.
        """
        asked = [cut(each) or ["?"] for each in messages]
        known = sorted({word for group in asked for word in group})
        rows = {word: number for number, word in enumerate(known)}
        vectors = self._damp(self._embedder.vectors(known))
        near = self._nearest(vectors)
        share = np.zeros((len(messages), len(known)), dtype=np.float32)
        for row, group in zip(share, asked, strict=True):
            row[[rows[word] for word in group]] = [self._weight(word) for word in group]
            row /= max(float(row.sum()), 1e-6)
        said, named = self._said(asked, rows, vectors)
        sharp = np.clip((near - _NEARER) / (1 - _NEARER), 0, 1) ** 2
        return {"words": share @ near, "words_sharp": share @ sharp, "said_soft": said, "named_soft": named}

    def _nearest(self, vectors: Matrix) -> Matrix:
        """The cosine of each word with the nearest word of each description."""
        best = np.zeros((len(vectors), len(self._texts)), dtype=np.float32)
        for start in range(0, len(vectors), 5 * _ROWS):
            cosines = vectors[start : start + 5 * _ROWS] @ self._vectors.T
            for column, own in enumerate(self._texts):
                if own:
                    best[start : start + 5 * _ROWS, column] = cosines[:, own].max(axis=1)
        return best

    def _said(self, asked: Sequence[Sequence[str]], rows: Mapping[str, int], vectors: Matrix) -> tuple[Matrix, Matrix]:
        said, named = [], []
        for start in range(0, len(asked), _ROWS):
            part = asked[start : start + _ROWS]
            cosines = self._vectors @ vectors[[rows[word] for group in part for word in group]].T
            near = best_of(cosines, [len(group) for group in part])
            near = np.clip((near - _NEAR) / (1 - _NEAR), 0, 1)
            said.append(best_of((self._phrases @ near).T, self._counts))
            named.append((self._names @ near).T)
        return np.concatenate(said), np.concatenate(named)
