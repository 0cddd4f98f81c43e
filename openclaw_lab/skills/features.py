"""Messages and a catalogue in, numbers for each pair of them out: what the hybrid matcher weighs.

Cosines see meaning across languages but blur names; words in common see names and trigger phrases but no synonyms;
single words compared by meaning stand between the two. Each is given as it is and as its distance from the message's
best skill, because a message that fits nothing fits nothing best.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from openclaw_lab.skills.background import background
from openclaw_lab.skills.catalogue import Catalogue
from openclaw_lab.skills.late import Late
from openclaw_lab.skills.overlap import Overlap, best_of
from openclaw_lab.skills.vectors import Damping, Matrix, Memory
from openclaw_lab.text import language, words

# Of the pair alone.
BASE = (
    "whole", "phrase", "phrases", "whole_damped", "phrase_damped", "clause", "clause_whole", "against",
    "shared", "covered", "named", "said", "unsaid", "words", "words_sharp", "said_soft", "named_soft",
)  # fmt: skip
# Behind the best skill of the message; ahead of the second best (0 for all others).
GAPS = ("whole", "phrase", "phrases", "whole_damped", "clause_whole", "shared", "said", "words", "said_soft")
LEADS = ("whole", "phrase", "phrases", "shared", "words", "said_soft")
# What counts differently for a Chinese message: once more, and 0 for all others.
CHINESE = ("whole", "words", "said_soft", "phrases", "shared", "clause_whole")
CHINESE_GAPS = ("whole", "words", "said_soft", "shared")
FEATURES = (
    *BASE, *(f"{name}_gap" for name in GAPS), *(f"{name}_lead" for name in LEADS), "length", "chinese", "across",
    *(f"{name}_zh" for name in CHINESE), *(f"{name}_gap_zh" for name in CHINESE_GAPS),
)  # fmt: skip
_TOP = 3
_CLAUSE = re.compile(r"[.!?;,，。！？；、:：\n]+\s*|\s+(?:and|but|so|because|then)\s+")
_CLAUSES = 12


def base_features(messages: Sequence[str], catalogue: Catalogue, embedder: Memory, damp: Damping) -> dict[str, Matrix]:
    """A matrix (messages, skills) for each name of BASE, and `length`, `chinese` and `across`."""
    held = _held(catalogue, embedder, damp)
    found = held.cosines(messages) | held.overlap.compare(messages) | held.late.compare(messages)
    shape = (len(messages), len(catalogue))
    asked = np.array([language(each) == "zh" for each in messages])
    length = np.array([math.log1p(len(words(each))) / 4 for each in messages])
    found["length"], found["chinese"] = (np.broadcast_to(each[:, None], shape) for each in (length, asked))
    found["across"] = asked[:, None] != held.chinese[None, :]
    return {name: np.asarray(each, dtype=np.float32) for name, each in found.items()}


def features(base: Mapping[str, Matrix]) -> Matrix:
    """An array of shape (messages, skills, FEATURES), from the matrices of all skills that compete."""
    gap = {name: base[name] - base[name].max(axis=1, keepdims=True) for name in GAPS}
    leads = [_lead(base[name]) for name in LEADS]
    rest = [base[name] for name in ("length", "chinese", "across")]
    chinese = [
        each * base["chinese"] for each in (*(base[name] for name in CHINESE), *(gap[name] for name in CHINESE_GAPS))
    ]
    return np.stack([*(base[name] for name in BASE), *gap.values(), *leads, *rest, *chinese], axis=2)


def _lead(scores: Matrix) -> Matrix:
    """How far the best one is above the second best; 0 for the others."""
    if scores.shape[1] < 2:
        return np.zeros_like(scores)
    top = np.partition(scores, -2, axis=1)
    best, second = top[:, -1:], top[:, -2:-1]
    return np.asarray(np.where(scores == best, scores - second, 0), dtype=np.float32)


class _Held:
    """What is known of a catalogue before any message comes."""

    def __init__(self, catalogue: Catalogue, embedder: Memory, damp: Damping) -> None:
        self._embedder, self._damp = embedder, damp
        self._whole = embedder.vectors(catalogue.texts)
        self._wanted = embedder.vectors([each for group in catalogue.phrases for each in group.wanted])
        self._unwanted = embedder.vectors([each for group in catalogue.phrases for each in group.unwanted])
        self._counts = [len(group.wanted) for group in catalogue.phrases]
        self._refused = [len(group.unwanted) for group in catalogue.phrases]
        self._damped = damp(self._whole), damp(self._wanted)
        self.overlap = Overlap(catalogue, background())
        self.late = Late(catalogue, embedder, damp, background())
        self.chinese = np.array([language(each) == "zh" for each in catalogue.descriptions])

    def cosines(self, messages: Sequence[str]) -> dict[str, Matrix]:
        """The features that are cosines of texts."""
        asked = self._embedder.vectors(messages)
        damped = self._damp(asked)
        cosines = asked @ self._wanted.T
        phrase = best_of(cosines, self._counts)
        against = best_of(asked @ self._unwanted.T, self._refused)
        clauses = [_clauses(each) for each in messages]
        parts = self._embedder.vectors([each for group in clauses for each in group])
        lengths = [len(group) for group in clauses]
        return {
            "whole": asked @ self._whole.T,
            "phrase": phrase,
            "phrases": _mean_of_best(cosines, self._counts),
            "whole_damped": damped @ self._damped[0].T,
            "phrase_damped": best_of(damped @ self._damped[1].T, self._counts),
            "clause": best_of(best_of(parts @ self._wanted.T, self._counts).T, lengths).T,
            "clause_whole": best_of((parts @ self._whole.T).T, lengths).T,
            # How much nearer what the skill is not for is than what it is for.
            "against": np.maximum(0, against - phrase + 0.1) * (against > 0),
        }


@functools.lru_cache(maxsize=8)
def _held(catalogue: Catalogue, embedder: Memory, damp: Damping) -> _Held:
    return _Held(catalogue, embedder, damp)


def _clauses(message: str) -> list[str]:
    """The message, and its parts where it has several."""
    parts = (part.strip() for part in _CLAUSE.split(message))
    return list(dict.fromkeys([message, *(part for part in parts if len(part.encode("utf-8", "replace")) >= 6)]))[
        :_CLAUSES
    ]


def _mean_of_best(cosines: Matrix, counts: Sequence[int]) -> Matrix:
    """The mean of the best few columns of each group."""
    found = np.zeros((len(cosines), len(counts)), dtype=np.float32)
    start = 0
    for column, count in enumerate(counts):
        if count:
            few = min(_TOP, count)
            found[:, column] = np.partition(cosines[:, start : start + count], -few, axis=1)[:, -few:].mean(axis=1)
        start += count
    return found
