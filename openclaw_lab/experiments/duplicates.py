"""Texts in, pairs that say nearly the same out: MinHash over stretches of eight characters.

Two texts whose sets of stretches have a Jaccard index of four fifths are nearly the same; of such pairs 98 % are found.
Case, white space and digits do not count, so `order 12` and `order 13` are the same. Cost grows with the length of all
texts, not with the number of pairs. (Broder 1997, doi 10.1109/SEQUEN.1997.666900.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

ALIKE = 0.8
# Characters of a stretch, of a text that are looked at; hashes of a signature, and of these so many a band.
_STRETCH, _LONGEST = 8, 20_000
_HASHES, _BAND = 32, 4
_SIGNS = re.compile(r"\s+|[0-9]+")
_Hashes = NDArray[np.uint64]


def near_duplicates(texts: Sequence[str], least: float = ALIKE) -> list[tuple[int, int]]:
    """Pairs of indexes of texts that are nearly the same, the lower first; of many alike ones not every pair."""
    stretches = [_stretches(text) for text in texts]
    signatures = _signatures(stretches)
    pairs: list[tuple[int, int]] = []
    buckets: dict[bytes, list[int]] = {}
    for index, stretch in enumerate(stretches):
        seen: set[int] = set()
        for key in _keys(signatures[index]):
            held = buckets.setdefault(key, [])
            for other in held:
                if other not in seen and _alike(stretches[other], stretch) >= least:
                    pairs.append((other, index))
                seen.add(other)
            if len(held) < _KEPT:
                held.append(index)
    return sorted(pairs)


# Texts of one bucket that a new one is compared with.
_KEPT = 64


def _stretches(text: str) -> _Hashes:
    """The hashes of a text's stretches, each once; of a short text that of the whole."""
    plain = _SIGNS.sub(lambda sign: "0" if sign.group()[0].isdigit() else " ", text[:_LONGEST].lower()).strip()
    codes = np.frombuffer(plain.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    size = min(_STRETCH, max(1, len(codes)))
    if not len(codes):
        return np.zeros(1, dtype=np.uint64)
    count = len(codes) - size + 1
    found = np.zeros(count, dtype=np.uint64)
    for place in range(size):  # a polynomial, modulo 2⁶⁴
        found = found * _BASE + codes[place : place + count]
    return np.unique(found * _BASE ^ (found >> np.uint64(29)))


_BASE = np.uint64(0x9E3779B97F4A7C15)


def _signatures(stretches: Sequence[_Hashes]) -> _Hashes:
    """For each text the least of its hashes under each of some permutations."""
    chance = np.random.default_rng(0)
    odd = chance.integers(0, 2**63, _HASHES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    shift = chance.integers(0, 2**63, _HASHES, dtype=np.uint64)
    found = np.empty((len(stretches), _HASHES), dtype=np.uint64)
    for index, each in enumerate(stretches):
        mixed = each[:, None] * odd + shift
        found[index] = (mixed ^ (mixed >> np.uint64(31))).min(axis=0)
    return found


def _keys(signature: _Hashes) -> Iterator[bytes]:
    for start in range(0, _HASHES, _BAND):
        yield bytes([start]) + signature[start : start + _BAND].tobytes()


def _alike(one: _Hashes, other: _Hashes) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)
