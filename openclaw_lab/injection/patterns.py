"""An InjectionConfig in, the scorer "rules" out: a text's score from 0 to 1, and the rules that hit with their places.

How a score comes about (the exported plugin does the same):

1. Each reading of the text (`views`) is in lower case; a rule of `rules/rules.json` is searched in it only where what
   it needs is there (`needs`, `sieve`), at most `MOST` times.
2. A hit weighs what `rules/weights.json` says under the rule's id (`default` for a rule that is not there), times the
   factors of the dampers that hold at its place (`damping`). What it covers of the source are its `start` and `end`.
3. Hits within `WINDOW` characters of the source support each other: of each type the heaviest counts, and the score is
   1 - (1-a)(1-b)... of their weights. The score of the text is that of its best window, so that an order weighs as much
   in a long text as alone.

The rules of the config's own file come besides the built-in ones or in the place of those with their ids.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_lab.config import InjectionConfig
from openclaw_lab.errors import RuleError
from openclaw_lab.files import read_text
from openclaw_lab.injection.damping import Damping
from openclaw_lab.injection.needs import Need, commonest, finder, need_of, phrase_of
from openclaw_lab.injection.verdict import Hit
from openclaw_lab.injection.views import JOINED, PLAIN, View, lower, plain_views, traits, views
from openclaw_lab.knobs import nearest
from openclaw_lab.rules.lint import lint
from openclaw_lab.rules.pattern import compile_js, python_source
from openclaw_lab.rules.relaxed import relaxed
from openclaw_lab.rules.rule import Rule, all_rules
from openclaw_lab.rules.sieve import Sieve, Sought
from openclaw_lab.rules.tree import parse

# Places of one rule that are looked at in one reading; characters within which hits support each other; fewest that a
# hit must weigh to be reported.
MOST, WINDOW, LEAST = 20, 400, 0.05

# Relaxed patterns that are looked for together: each has gaps, and the automaton of many would be large.
_GROUP = 4

# A capital letter, and not a class such as `\W`.
_CAPITAL = re.compile(r"(?<!\\)[A-Z]")
_FOLDER = Path(__file__).with_name("rules")


@dataclass(frozen=True, slots=True)
class Weighted:
    """A rule, what a hit of it weighs, and what a text needs for one; it is compiled at first use."""

    id: str
    type: str
    weight: float
    pattern: str
    flags: str = ""
    need: Need = ()
    phrase: str = ""

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern for Python."""
        return _compiled(self.pattern, self.flags, self.id)


@functools.cache
def _compiled(pattern: str, flags: str, rule_id: str) -> re.Pattern[str]:
    return compile_js(pattern, flags, rule_id)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A hit and what it weighs after damping."""

    hit: Hit
    weight: float


class RuleScorer:
    """Scores a text by the rules of an InjectionConfig."""

    def __init__(self, config: InjectionConfig) -> None:
        self._views = frozenset(config.views)
        self._rules = _chosen(config)
        self._sieve = Sieve([_sought(each) for each in self._rules], _GROUP)
        self._damping = _damping()

    def __call__(self, text: str) -> tuple[float, tuple[Hit, ...]]:
        """The score of the text's best window, and every hit that counts, in the order of the text."""
        weighed = self.weighed(text)
        if not weighed:
            return 0.0, ()
        return score(weighed), tuple(each.hit for each in weighed)

    def weighed(self, text: str) -> list[Weighed]:
        """Every hit that counts with its weight, in the order of the text; of one rule at one place the heaviest."""
        low = lower(text)
        state = traits(text, low)
        if state == PLAIN:
            rules = self._held(low)
            return self._weighed([(View("plain", low, range(len(low) + 1)), rules)]) if rules else []
        if state == JOINED:
            read = plain_views(low, self._views)
            rules = self._held("\n".join(view.text for view in read))
            return self._weighed((view, rules) for view in read) if rules else []
        return self._weighed((view, self._held(view.text)) for view in views(text, self._views))

    def _weighed(self, read: Iterable[tuple[View, Sequence[Weighted]]]) -> list[Weighed]:
        """What rules find in readings, with what it weighs."""
        best: dict[tuple[str, int, int], Weighed] = {}
        for view, rules in read:
            for each in self.hits(view, rules):
                key = (each.hit.rule, each.hit.start, each.hit.end)
                if key not in best or best[key].weight < each.weight:
                    best[key] = each
        return sorted(best.values(), key=lambda each: (each.hit.start, each.hit.end, each.hit.rule))

    def _held(self, low: str) -> list[Weighted]:
        """The rules that could hit in a text in lower case."""
        numbers = self._sieve.of(f"\n{low}\n".encode("utf-8", "surrogatepass"))
        return [self._rules[number] for number in numbers] if numbers else []

    def hits(self, view: View, rules: Iterable[Weighted]) -> Iterator[Weighed]:
        """What the rules find in one reading, with what it weighs."""
        for each in rules:
            for match in itertools.islice(each.compiled.finditer(view.text), MOST):
                weight = each.weight * self._damping.factor(view.text, *match.span())
                if weight >= LEAST and match.end() > match.start():
                    hit = Hit(each.id, each.type, *view.span(*match.span()), match.group())
                    yield Weighed(hit, weight)


def score(weighed: list[Weighed]) -> float:
    """The score of the best window: hits in the order of their starts, of each type the heaviest."""
    best, first = 0.0, 0
    for last, each in enumerate(weighed):
        while weighed[first].hit.start < each.hit.start - WINDOW:
            first += 1
        heaviest: dict[str, float] = {}
        for other in weighed[first : last + 1]:
            heaviest[other.hit.type] = max(other.weight, heaviest.get(other.hit.type, 0.0))
        left = 1.0
        for weight in heaviest.values():
            left *= 1 - weight
        best = max(best, 1 - left)
    return min(1.0, best)


def _chosen(config: InjectionConfig) -> list[Weighted]:
    """The built-in rules and the config's own that are switched on."""
    own = all_rules(Path(config.rules)) if config.rules else ()
    for rule in own:
        lint(rule, Path(config.rules).name)
    chosen = {each.id: each for each in _built_in()}
    chosen.update((rule.id, _own(rule)) for rule in own)
    for rule_id in config.off:
        if rule_id not in chosen:
            raise RuleError("injection.off", rule_id, "the id of a rule", nearest(rule_id, chosen))
    off = {*config.off, *(rule.id for rule in own if not rule.enabled)}
    return [each for each in chosen.values() if each.id not in off]


def _sought(rule: Weighted) -> Sought:
    # Rules with the same common word come up together.
    needed = rule.phrase or finder(rule.need)
    return Sought((needed,) if needed else (), functools.partial(_relaxed, rule), commonest(rule.need))


def _relaxed(rule: Weighted) -> str:
    return relaxed(parse(*python_source(rule.pattern, rule.flags, rule.id)))


def _own(rule: Rule) -> Weighted:
    """A rule of the config's own: looked for in every text, as heavy as the built-in rule that it replaces.

    Texts are read in lower case, so a pattern with a capital letter is looked for whatever the case.
    """
    row = _table()["rules"].get(rule.id, {"weight": _table()["default"]})
    flags = f"{rule.flags}i" if "i" not in rule.flags and _CAPITAL.search(rule.pattern) else rule.flags
    return Weighted(rule.id, rule.type, row["weight"], rule.pattern, flags)


@functools.cache
def _built_in() -> tuple[Weighted, ...]:
    """The built-in rules: `load_rules` would take them too, but it would compile and prove all of them at once."""
    return tuple(_weighted(row) for row in json.loads(read_text(_FOLDER / "rules.json")))


def _weighted(row: Mapping[str, Any]) -> Weighted:
    given = row["pattern"], row.get("flags", "")
    weight = _table()["rules"][row["id"]]["weight"]
    return Weighted(row["id"], row["type"], weight, *given, need_of(*given), phrase_of(*given))


@functools.cache
def _table() -> Any:
    return json.loads(read_text(_FOLDER / "weights.json"))


@functools.cache
def _damping() -> Damping:
    return Damping(all_rules(_FOLDER / "damping.json"), _table()["factors"])
