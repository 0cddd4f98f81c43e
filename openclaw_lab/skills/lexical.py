"""The matchers that count words: `seed` as the seed document has it, faults included; `keyword`; `bm25`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from openclaw_lab.knowhub.lexical import Bm25
from openclaw_lab.skills.background import background
from openclaw_lab.skills.catalogue import Catalogue
from openclaw_lab.skills.rarity import rarity
from openclaw_lab.skills.scores import Floats, Scores
from openclaw_lab.text import words

_SEED_WORD = re.compile(r"\W+", re.ASCII)
# Logits, so that one threshold serves all matchers: 0.5 where the F1 over four public sets is best (weight 7, BM25 12).
_KEYWORD, _BM25 = (0.4, -2.8), (0.4, -4.8)


def seed_words(text: str) -> list[str]:
    """What JavaScript's `text.toLowerCase().split(/\\W+/).filter(w => w.length > 3)` gives: ASCII words only."""
    return [word for word in _SEED_WORD.split(text.lower()) if len(word) > 3]


def seed_scores(messages: Sequence[str], catalogue: Catalogue) -> Scores:
    """Keywords of the description that the message has; a keyword that stands twice counts twice.

    A skill without a keyword needs none, and so is picked by every message.
    """
    keywords = [seed_words(each) for each in catalogue.descriptions]
    asked = [set(seed_words(each)) for each in messages]
    hits = np.array([[sum(word in said for word in own) for own in keywords] for said in asked], dtype=np.int32)
    hits = hits.reshape(len(messages), len(catalogue))
    counts = np.array([len(each) for each in keywords], dtype=np.int32)

    def reason(row: int, column: int) -> str:
        if not keywords[column]:
            return "the description has no keyword, so none is asked for"
        shared = dict.fromkeys(word for word in keywords[column] if word in asked[row])
        return f"{hits[row, column]} of {counts[column]} keywords: {', '.join(shared)}"

    return Scores(catalogue.names, hits.astype(np.float32), hits, counts, False, False, reason)


def keyword_scores(messages: Sequence[str], catalogue: Catalogue) -> Scores:
    """Distinct words in common, Chinese ones included, weighed by how rare they are."""
    weigh = rarity(catalogue.word_sets, background())
    common, count = background(), Counter(word for each in catalogue.word_sets for word in each)
    most = max(1, round(_COMMON * len(catalogue)))
    own = [{w for w in each if count[w] <= most and common.get(w, 0) < _COMMON} for each in catalogue.word_sets]
    asked = [set(words(each)) for each in messages]
    hits = np.zeros((len(messages), len(catalogue)), dtype=np.int32)
    weight = np.zeros(hits.shape, dtype=np.float32)
    having: dict[str, list[int]] = {}
    for column, each in enumerate(own):
        for word in each:
            having.setdefault(word, []).append(column)
    for row, said in enumerate(asked):
        for word in said & having.keys():
            hits[row, having[word]] += 1
            weight[row, having[word]] += weigh(word)

    def reason(row: int, column: int) -> str:
        shared = sorted(own[column] & asked[row], key=lambda word: (-weigh(word), word))
        return f"{len(shared)} words in common: {', '.join(f'{word} {weigh(word):.1f}' for word in shared[:12])}"

    counts = np.array([len(each) for each in own], dtype=np.int32)
    return Scores(catalogue.names, logistic(weight, *_KEYWORD), hits, counts, reason=reason)


# Words that a fifth of all descriptions or messages have are no keywords.
_COMMON = 0.2


def bm25_scores(messages: Sequence[str], catalogue: Catalogue) -> Scores:
    """BM25 of the message's words against name and description, brought to 0…1."""
    index = Bm25()
    for each in catalogue.words:
        index.add(each)
    asked = [words(each) for each in messages]
    raw = np.zeros((len(messages), len(catalogue)), dtype=np.float32)
    for row, said in enumerate(asked):
        raw[row] = index.scores(said)

    def reason(row: int, column: int) -> str:
        shared = [word for word in dict.fromkeys(asked[row]) if word in catalogue.word_sets[column]]
        return f"BM25 {raw[row, column]:.1f}: {', '.join(shared[:8])}"

    score = np.where(raw > 0, logistic(raw, *_BM25), 0).astype(np.float32)
    return Scores(catalogue.names, score, reason=reason)


def logistic(values: Floats, slope: float, start: float) -> Floats:
    """1 / (1 + exp(-(slope·value + start)))."""
    return np.asarray(1 / (1 + np.exp(-np.clip(slope * values + start, -50, 50))), dtype=np.float32)
