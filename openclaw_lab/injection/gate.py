"""A reading of a text in, the rules that can hit in it out; most harmless texts hold nothing that a rule needs.

What a rule needs stands in `rules/weights.json`: for each alternative of its pattern a list of sets, of each of which a
text must hold one member. A member of Latin letters is a whole word of the text; any other one is a part of it, as is
what follows the sign "…". A rule without needs can always hit.
"""

from __future__ import annotations

import functools
import re
import string
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from openclaw_lab.rules.pattern import compile_js

_LETTERS = frozenset(string.ascii_lowercase)
# The commonest Chinese and Japanese characters, the commonest first: a part is looked up by its rarest character.
_COMMON = (
    "的一是不了在人有我他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家十用发天如然作方成者"
    "多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从请给您我们吗在に吧里酒店のを話号馆电话地址价格推荐评分时间钟分钟"
    "はがとでたすまし。、，？"
)


@dataclass(frozen=True, slots=True)
class Need:
    """What a text must hold one of: a whole word, or a part."""

    words: frozenset[str]
    parts: tuple[str, ...]
    any_part: re.Pattern[str]

    @classmethod
    def of(cls, members: Sequence[str]) -> Need:
        """Words and parts told apart."""
        words = frozenset(each for each in members if _LETTERS.issuperset(each))
        parts = tuple(each.removeprefix("…") for each in members if each not in words)
        return cls(words, parts, re.compile("|".join(map(re.escape, parts))))


@dataclass(frozen=True, slots=True)
class Weighted:
    """A rule, what a hit of it weighs, and what a text needs for one; its pattern is compiled at first use."""

    id: str
    type: str
    weight: float
    pattern: str
    flags: str = ""
    needs: tuple[tuple[Need, ...], ...] = ()

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern for Python."""
        return _compiled(self.pattern, self.flags, self.id)


@functools.cache
def _compiled(pattern: str, flags: str, rule_id: str) -> re.Pattern[str]:
    return compile_js(pattern, flags, rule_id)


class RuleGate:
    """Which of some rules can hit in a text: looked up by the first need of each alternative."""

    def __init__(self, rules: Sequence[Weighted]) -> None:
        self._rules = rules
        self._always = [index for index, rule in enumerate(rules) if not rule.needs]
        self._by_key: dict[str, list[tuple[int, tuple[Need, ...]]]] = defaultdict(list)
        for index, rule in enumerate(rules):
            for first, *others in rule.needs:
                for key in (*first.words, *first.parts):
                    self._by_key[key].append((index, tuple(others)))
        firsts = [first for rule in rules for first, *_ in rule.needs]
        self._words = frozenset(word for first in firsts for word in first.words)
        parts = sorted({part for first in firsts for part in first.parts})
        self._signs = tuple(part for part in parts if part.isascii())
        self._any_sign = re.compile("|".join(map(re.escape, self._signs)) or "\uffff")
        self._foreign: dict[str, list[str]] = defaultdict(list)
        for part in parts:
            if not part.isascii():
                self._foreign[max(part, key=_rarity)].append(part)
        self._rare = re.compile("[" + re.escape("".join(self._foreign) or "\uffff") + "]")

    def rules(self, text: str, words: list[str]) -> list[Weighted]:
        """The rules that can hit in a text in lower case, in their order; `words` are those of `words_of`."""
        keys = self._keys(text, words)
        if not keys:
            return [self._rules[index] for index in self._always]
        held, found = frozenset(words), set(self._always)
        for key in keys:
            for index, others in self._by_key[key]:
                if index in found:
                    continue
                for need in others:
                    if need.words.isdisjoint(held) and not (need.parts and need.any_part.search(text)):
                        break
                else:
                    found.add(index)
        return [self._rules[index] for index in sorted(found)]

    def _keys(self, text: str, words: list[str]) -> list[str]:
        keys = [] if self._words.isdisjoint(words) else list(self._words.intersection(words))
        if self._any_sign.search(text):
            keys += [sign for sign in self._signs if sign in text]
        if not text.isascii():
            for char in set(self._rare.findall(text)):
                keys += [part for part in self._foreign[char] if part in text]
        return keys


def _rarity(char: str) -> int:
    if char.isascii():
        return -1
    at = _COMMON.find(char)
    return at if at >= 0 else len(_COMMON)
