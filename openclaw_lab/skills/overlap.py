"""Words in common between messages and a catalogue, as five numbers a pair; all messages are compared at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from openclaw_lab.skills.catalogue import Catalogue
from openclaw_lab.skills.rarity import rarity
from openclaw_lab.skills.vectors import Matrix
from openclaw_lab.text import words

_ROWS = 512  # messages at a time
_DOUBT = 2.0  # a phrase of one common word is said by chance: as if something of this weight were missing


class Overlap:
    """A catalogue's words as rows of numbers, weighed by how rare they are."""

    def __init__(self, catalogue: Catalogue, background: Mapping[str, float]) -> None:
        self._weigh = rarity(catalogue.word_sets, background)
        self._columns = {word: number for number, word in enumerate(sorted(frozenset().union(*catalogue.word_sets)))}
        self._weight = np.array([self._weigh(word) for word in self._columns], dtype=np.float32)
        self._texts = self._rows(catalogue.word_sets)
        self._names = self._rows([words(title) for title in catalogue.titles])
        self._wanted = [[words(each) for each in group.wanted[1:]] for group in catalogue.phrases]
        self._unwanted = [[words(each) for each in group.unwanted] for group in catalogue.phrases]

    def _rows(self, groups: Sequence[Collection[str]]) -> Matrix:
        rows = np.zeros((len(groups), len(self._columns)), dtype=np.float32)
        for row, group in zip(rows, groups, strict=True):
            row[[self._columns[word] for word in group if word in self._columns]] = 1
        return rows

    def compare(self, messages: Sequence[str]) -> dict[str, Matrix]:
        """shared: weight in common (log); covered: its share of the message's; named: the share of the name that is
        said; said, unsaid: that of the best wanted and of the best unwanted phrase.
        """
        asked = [frozenset(words(each)) for each in messages]
        total = np.array([sum(map(self._weigh, group)) for group in asked], dtype=np.float32)
        phrases = self._rows([each for groups in (self._wanted, self._unwanted) for group in groups for each in group])
        parts = []
        for start in range(0, len(messages), _ROWS):
            rows = self._rows(asked[start : start + _ROWS]) * self._weight
            parts.append((rows @ self._texts.T, rows @ self._names.T, rows @ phrases.T))
        shared, named, said = (np.concatenate([part[i] for part in parts]) for i in range(3))
        said = said / (phrases @ self._weight + _DOUBT)
        skip = sum(map(len, self._wanted))
        return {
            "shared": np.log1p(shared) / 4,
            "covered": shared / np.maximum(total, 1e-6)[:, None],
            "named": named / np.maximum(self._names @ self._weight, 1e-6),
            "said": best_of(said[:, :skip], [len(group) for group in self._wanted]),
            "unsaid": best_of(said[:, skip:], [len(group) for group in self._unwanted]),
        }


def best_of(scores: Matrix, counts: Sequence[int]) -> Matrix:
    """The best score of each group of neighbouring columns; 0 for a group without any."""
    found = np.zeros((len(scores), len(counts)), dtype=np.float32)
    some = [column for column, count in enumerate(counts) if count]
    if some:
        starts = np.cumsum([0, *counts[:-1]])[some]
        found[:, some] = np.maximum.reduceat(scores, starts, axis=1)
    return found
