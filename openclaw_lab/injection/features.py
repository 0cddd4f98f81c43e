"""A text in, its windows out: sentences and pairs of neighbouring short ones, each as a bag of hashed n-grams.

N-grams of 2 to 5 characters and of 1 to 3 words, in lower case, digits as 0, white space as one blank, what repeats
itself (rulers, empty cells) cut short. A bucket is the last `BITS` bits of a 32-bit hash: a polynomial in the code
points, modulo 2^32, and MurmurHash3's finaliser. It has no opinion on what an injection looks like.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from openclaw_lab.injection.views import lower

BITS = 18
CHARACTERS, WORDS = (2, 3, 4, 5), (1, 2, 3)
# Characters of a sentence (a longer one is cut), and of a pair of sentences that are read together.
LONGEST, LONGEST_PAIR = 300, 240
# What is added to the number of n-grams of a window: a short one says little, whatever it says.
FEW = 32

# By how many n-grams of a kind fewer than characters or words there are.
_SHORTER = np.array([*CHARACTERS, *WORDS], dtype=np.intp)[:, None] - 1

_PRIME, _STEP, _SALT = 0x01000193, 0x9E3779B1, 0x85EBCA6B
_END = re.compile(r"""[.!?]["')\]]*\s+|[。！？；…]["”’』」）]*|\n+""")
# A word: letters and digits of the scripts that set words apart (others are read by characters), or one sign.
_SET_TOGETHER = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(rf"[^\W_{_SET_TOGETHER}]+(?:['’][^\W_{_SET_TOGETHER}]+)*|[^\w\s]")

Codes = np.ndarray[Any, np.dtype[np.uint32]]
Places = np.ndarray[Any, np.dtype[np.intp]]
Weights = np.ndarray[Any, np.dtype[np.floating[Any]]]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Sentences, then pairs of them, as places in the text."""
    sentences = list(_sentences(text))
    yield from sentences
    for (start, _), (_, end) in itertools.pairwise(sentences):
        if end - start <= LONGEST_PAIR:
            yield start, end


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        while end - start > LONGEST:
            cut = text.rfind(" ", start + LONGEST // 2, start + LONGEST)
            cut = cut if cut > 0 else start + LONGEST
            if _LETTER.search(text, start, cut):
                yield start, cut
            start = cut
        if _LETTER.search(text, start, end):
            yield start, end
        start = end


class Bags:
    """The windows of a text (`spans`, places in the text) and their n-grams; no window where nothing is written."""

    def __init__(self, text: str) -> None:
        codes, places = _read(lower(text))
        powers, self._inverse = _powers(max(len(codes).bit_length(), 8))
        self._sums: Codes = np.zeros(len(codes) + 1, np.uint32)
        np.cumsum(codes * powers[: len(codes)], dtype=np.uint32, out=self._sums[1:])
        self.spans = list(_spans(text))
        edges = np.searchsorted(places, np.array(self.spans, dtype=np.intp).reshape(-1, 2))
        kept = codes.tobytes().decode("utf-32-le", "surrogatepass")
        words = np.array([match.span() for match in _WORD.finditer(kept)], dtype=np.intp).reshape(-1, 2)
        in_words = np.searchsorted(words[:, 0], edges[:, 0]), np.searchsorted(words[:, 1], edges[:, 1], side="right")
        kinds = [*map(self._hashed, CHARACTERS), *self._word_grams(words[:, 0], words[:, 1])]
        # All kinds of n-grams one after the other; of each kind and window the first, and what follows the last.
        self._buckets = _bucket(np.concatenate(kinds))
        starts = np.stack([edges[:, 0]] * len(CHARACTERS) + [in_words[0]] * len(WORDS))
        ends = np.stack([edges[:, 1]] * len(CHARACTERS) + [in_words[1]] * len(WORDS))
        lengths = np.array([len(each) for each in kinds], dtype=np.intp)[:, None]
        before = np.cumsum(lengths)[:, None] - lengths
        first = np.minimum(starts, lengths)
        self._first: Places = first + before
        self._last: Places = np.maximum(first, np.minimum(ends - _SHORTER, lengths)) + before

    def counts(self, window: int) -> tuple[Codes, Places]:
        """The buckets of one window, ascending, and how often each is in it."""
        places = zip(self._first[:, window].tolist(), self._last[:, window].tolist(), strict=True)
        return np.unique(np.concatenate([self._buckets[first:last] for first, last in places]), return_counts=True)

    def sums(self, weights: Weights) -> Weights:
        """Of each window, the sum of the weights of its n-grams over the root of their number (and `FEW`)."""
        running = np.zeros(len(self._buckets) + 1)
        np.cumsum(weights[self._buckets], out=running[1:])
        total = (running[self._last] - running[self._first]).sum(0)
        return np.asarray(total / np.sqrt((self._last - self._first).sum(0) + FEW))

    def _hashed(self, size: int) -> Codes:
        """The hash of the n-gram of so many characters that begins at each place."""
        if len(self._sums) <= size:
            return np.zeros(0, np.uint32)
        sums = self._sums[size:] - self._sums[:-size]
        return _salted(sums * self._inverse[: len(sums)], size)

    def _word_grams(self, starts: Places, ends: Places) -> Iterator[Codes]:
        words = (self._sums[ends] - self._sums[starts]) * self._inverse[starts]
        words = words * np.uint32(_SALT)
        words ^= words >> np.uint32(13)
        for size in WORDS:
            grams = np.zeros(max(0, len(words) - size + 1), np.uint32)
            for offset in range(size):
                grams = grams * np.uint32(_STEP) + words[offset : offset + len(grams)]
            yield _salted(grams, 100 + size)


def _read(low: str) -> tuple[Codes, Places]:
    """The code points of a text in lower case as they are hashed, and the place in the text that each comes from."""
    codes = np.frombuffer(low.encode("utf-32-le", "surrogatepass"), np.uint32)
    blank = (codes <= 32) | (codes == 0xA0) | (codes == 0x3000) | ((codes >= 0x2000) & (codes <= 0x200B))
    codes = np.where(blank, np.uint32(32), np.where((codes >= 48) & (codes <= 57), np.uint32(48), codes))
    kept = ~blank
    kept[1:] |= ~blank[:-1]
    places = np.flatnonzero(kept)
    codes = codes[places]
    for period in range(1, 5):
        fresh = _fresh(codes, period)
        if not fresh.all():
            codes, places = codes[fresh], places[fresh]
    return codes, places


def _fresh(codes: Codes, period: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which characters do not go on with what has repeated itself three times at such a distance."""
    fresh = np.ones(len(codes), np.bool_)
    run = 3 * period
    again = codes[period:] == codes[:-period]
    if len(codes) > run + period and b"\1" * run in again.tobytes():
        same = np.zeros(len(codes) + 1, np.intp)
        np.cumsum(np.concatenate([np.zeros(period, np.bool_), again]), out=same[1:])
        fresh[run - 1 :] = same[run:] - same[:-run] < run
    return fresh


def _salted(hashed: Codes, salt: int) -> Codes:
    """The hashes of one kind of n-grams, set apart from those of others."""
    return hashed ^ np.uint32(salt * _STEP & 0xFFFFFFFF)


def _bucket(hashed: Codes) -> Codes:
    """The last bits of MurmurHash3's finaliser (public domain, Austin Appleby)."""
    hashed = hashed * np.uint32(0x85EBCA6B)
    hashed ^= hashed >> np.uint32(13)
    hashed *= np.uint32(0xC2B2AE35)
    hashed ^= hashed >> np.uint32(16)
    return hashed & np.uint32((1 << BITS) - 1)


@functools.lru_cache(maxsize=4)
def _powers(bits: int) -> tuple[Codes, Codes]:
    """The powers of the prime modulo 2^32, and of its inverse, from 0 to 2^bits."""
    both = []
    for base in (_PRIME, pow(_PRIME, -1, 1 << 32)):
        steps = np.full((1 << bits) + 1, base, np.uint32)
        steps[0] = 1
        both.append(np.multiply.accumulate(steps, dtype=np.uint32))
    return both[0], both[1]
