"""How much a shared word tells: rare words much, words that every description or message has, nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

_FEW = 8


def rarity(texts: Sequence[Collection[str]], background: Mapping[str, float] | None = None) -> Callable[[str], float]:
    """The weight of a word: log of one over the share of texts that have it, here or in the background.

    `background` gives the share of other descriptions and messages that have a word, because a handful of skills cannot
    tell that "please" says nothing. Nor can they tell that "disk" does: fewer texts than `_FEW` count as so many.
    """
    having = Counter(word for text in texts for word in set(text))
    known = background or {}

    def weight(word: str) -> float:
        share = max((having[word] + 0.5) / (max(_FEW, len(texts)) + 1), known.get(word, 0.0))
        return max(0.0, -math.log(min(1.0, share)))

    return weight
