"""A place in a reading in, how much a hit there counts out: 1 for an order, less for words that are only mentioned.

Dampers are rules of `rules/damping.json`; the type of each says where it looks: `before` (in the same sentence, up to
the hit), `after` (from its end to that of the sentence), `around` (within `AROUND` characters). Besides, what stands in
quotation marks within a sentence, or in a fenced block, counts less. Factors multiply.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from openclaw_lab.rules.rule import Rule

# Characters on either side of a hit that are looked at: of the same sentence, and of the neighbourhood.
BESIDE, AROUND = 90, 400

_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？；\n]")
_QUOTED = re.compile(
    '(?<=[a-z0-9\u3400-\u9fff,:：，、。(（]) ?["\'`“‘「『«][^"`”」』»\n]{0,90}$'
    '|[“「『«《][^”」』»》\n]{0,90}$|(?<!\\S)"[^":]{0,90}$'
)
_UNQUOTED = re.compile('^[^"“「『«\n]{0,160}["\'`”’」』»》]')
_KEY = re.compile('[a-z0-9_"\'\\]][:=] ?["\'`“]?[^"”\n]{0,90}$')


class Damping:
    """What some dampers make of a hit; `factors` has the factor of each, and of `quote` and `fence`, by id."""

    def __init__(self, rules: Iterable[Rule], factors: Mapping[str, float]) -> None:
        self._rules = tuple(rules)
        self._factors = factors

    def factor(self, text: str, start: int, end: int) -> float:
        """What to multiply the weight of the hit `text[start:end]` by."""
        before, after = text[max(0, start - BESIDE) : start], text[end : end + BESIDE]
        places = {
            "before": _SENTENCE_END.split(before)[-1],
            "after": _SENTENCE_END.split(after, maxsplit=1)[0],
            "around": text[max(0, start - AROUND) : end + AROUND],
        }
        found = [rule.id for rule in self._rules if rule.compiled.search(places[rule.type])]
        if is_quoted(before, text[end : end + 2 * BESIDE]):
            found.append("quote")
        if "```" in text and text.count("```", 0, start) % 2:
            found.append("fence")
        return math.prod(self._factors[each] for each in found)


def is_quoted(before: str, after: str) -> bool:
    """Whether a quotation in running text opens before a place and closes after it; the value of a key is none."""
    line = before.rpartition("\n")[2]
    return bool(_QUOTED.search(line)) and bool(_UNQUOTED.search(after)) and not _KEY.search(line)
