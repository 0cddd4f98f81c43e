"""A reading of a text in, the rules that can hit in it out; most harmless texts hold nothing that a rule needs.

What a rule needs is told by `needs`. All needs of all rules are bits of one number, so that a text costs a look-up for
each of its words, and a few operations on numbers, however many rules there are. A rule without needs can always hit.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from openclaw_lab.injection.needs import PART, WORD_CHARS, Needs, share
from openclaw_lab.rules.pattern import compile_js

# Needs of an alternative that are looked at; a power of two.
_PLANES = 4
# Signs are looked for in what is left without these: it is short, and signs that stand together still do.
_NO_SIGNS = bytes(code for code in range(256) if code >= 128 or chr(code).isalnum() or chr(code).isspace())
# Words that are remembered, and shorter than which they are: longer ones do not come again.
_SEEN, _LONG = 50_000, 40


@dataclass(frozen=True, slots=True)
class Weighted:
    """A rule, what a hit of it weighs, and what a text needs for one; its pattern is compiled at first use."""

    id: str
    type: str
    weight: float
    pattern: str
    flags: str = ""
    needs: Needs = ()

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern for Python."""
        return _compiled(self.pattern, self.flags, self.id)


@functools.cache
def _compiled(pattern: str, flags: str, rule_id: str) -> re.Pattern[str]:
    return compile_js(pattern, flags, rule_id)


class _Words:
    """Which needs a word meets: as a whole, by how it begins or ends, or by what it holds.

    The words of texts repeat themselves: those that were seen before are known.
    """

    def __init__(self, keys: Mapping[str, int]) -> None:
        self._whole = {key.encode(): bits for key, bits in keys.items() if PART not in key}
        stems = [(key.strip(PART).encode(), key[0] != PART, key[-1] != PART, keys[key]) for key in keys if PART in key]
        self._begin = {stem: bits for stem, begins, _, bits in stems if begins}
        self._end = {stem: bits for stem, _, ends, bits in stems if ends}
        self._inside = [(stem, bits) for stem, begins, ends, bits in stems if not begins and not ends]
        self._longest = max((len(stem) for stem, *_ in stems), default=0)
        # Words that meet no need, and those that do.
        self._dull, self._known = set[bytes](), dict[bytes, int]()

    def bits(self, words: Iterable[bytes]) -> int:
        """The needs that some words meet."""
        held, known = 0, self._known
        for word in itertools.filterfalse(self._dull.__contains__, words):
            held |= known[word] if word in known else self._noted(word)
        return held

    def _noted(self, word: bytes) -> int:
        """The needs that a new word meets; it is remembered."""
        bits = self._of(word)
        if len(self._dull) + len(self._known) > _SEEN:
            self._dull, self._known = set(), {}
        if bits:
            self._known[word] = bits
        elif len(word) < _LONG:
            self._dull.add(word)
        return bits

    def _of(self, word: bytes) -> int:
        bits = self._whole.get(word, 0)
        for size in range(1, min(len(word), self._longest) + 1):
            bits |= self._begin.get(word[:size], 0) | self._end.get(word[-size:], 0)
        for stem, each in self._inside:
            if stem in word:
                bits |= each
        return bits


class _Parts:
    """Which needs a text meets by its parts: signs, and foreign ones, each looked up by its rarest character."""

    def __init__(self, keys: Mapping[str, int], wanted: int) -> None:
        keys = {key: bits & wanted for key, bits in keys.items() if bits & wanted}
        self._signs = [(key.encode(), bits) for key, bits in keys.items() if key.isascii()]
        self._by_char: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for key, bits in keys.items():
            if not key.isascii():
                self._by_char[min(key, key=share)].append((key, bits))
        self._rare = _finder([key for key in keys if not key.isascii()], self._by_char)
        self.signs = functools.reduce(operator.or_, (bits for _, bits in self._signs), 0)
        self.foreign = functools.reduce(operator.or_, (keys[key] for key in keys if not key.isascii()), 0)

    def bits(self, text: str, wanted: int) -> int:
        """The needs that a text meets, at least those that are wanted."""
        held = 0
        if self.signs & wanted:
            signs = text.encode("utf-8", "surrogatepass").translate(None, _NO_SIGNS)
            for sign, bits in self._signs:
                if bits & wanted and sign in signs:
                    held |= bits
        if self.foreign & wanted and not text.isascii():
            for char in set(self._rare.findall(text)):
                for part, bits in self._by_char[char]:
                    if bits & wanted and part in text:
                        held |= bits
        return held


class RuleGate:
    """Which of some rules can hit in a text.

    Alternative number `a` of `n` has bit `a` for its first need, bit `n + a` for its second, and so on; what a text
    holds meets an alternative where all of these bits are set. The parts of all needs but the first are
    looked for only in a text that may meet an alternative with them.
    """

    def __init__(self, rules: Sequence[Weighted]) -> None:
        self._rules = rules
        self._owners = [index for index, rule in enumerate(rules) for _ in rule.needs or ((),)]
        self._count = len(self._owners)
        self._planes = sum(1 << plane * self._count for plane in range(_PLANES))
        self._met = 0  # bits of needs that are none
        keys: dict[str, int] = defaultdict(int)
        for at, needs in enumerate(each for rule in rules for each in rule.needs or ((),)):
            for plane in range(_PLANES):
                bit = 1 << (plane * self._count + at)
                if plane >= len(needs):
                    self._met |= bit
                for key in needs[plane] if plane < len(needs) else ():
                    keys[key] |= bit
        first = (1 << self._count) - 1
        words = {key: bits for key, bits in keys.items() if WORD_CHARS.issuperset(key.strip(PART))}
        parts = {key: bits for key, bits in keys.items() if key not in words}
        self._words, self._first, self._others = _Words(words), _Parts(parts, first), _Parts(parts, ~first)

    def rules(self, text: str, words: Iterable[bytes]) -> list[Weighted]:
        """The rules that can hit in a text in lower case, in their order; `words` are those of `words_of`."""
        held = self._met | self._words.bits(words)
        later = self._others.signs if text.isascii() else self._others.signs | self._others.foreign
        # What is met if all parts are there; then with those of the first needs; then with all that are.
        for parts, hoped in ((self._first, later), (self._others, 0)):
            alternatives = self._alternatives(held | parts.signs | parts.foreign | hoped)
            if not alternatives:
                return []
            held |= parts.bits(text, alternatives * self._planes & ~held)
        return self._of(self._alternatives(held))

    def _alternatives(self, held: int) -> int:
        """The alternatives all of whose needs are met, a bit each."""
        held &= held >> 2 * self._count
        return held & held >> self._count & (1 << self._count) - 1

    def _of(self, alternatives: int) -> list[Weighted]:
        owners: dict[int, None] = {}
        while alternatives:
            owners[self._owners[(alternatives & -alternatives).bit_length() - 1]] = None
            alternatives &= alternatives - 1
        return [self._rules[owner] for owner in owners]


def _finder(parts: Sequence[str], by_char: Iterable[str]) -> re.Pattern[str]:
    """What finds the characters that parts are looked up by, where one of the right characters stands beside them."""
    before = {part[0] for part in parts if len(part) > 1 and part[1] in by_char}
    after = {part[1] for part in parts if len(part) > 1 and part[0] in by_char}
    alone = {part for part in parts if len(part) == 1}
    sides = [f"(?={_class(after)})", f"(?<={_class(before)}.)", f"(?<={_class(alone)})"]
    return re.compile(f"{_class(by_char)}(?:{'|'.join(sides)})", re.DOTALL)


def _class(chars: Iterable[str]) -> str:
    return "[" + re.escape("".join(sorted(chars)) or "\U0010ffff") + "]"
