"""An InjectionConfig in, the scorer "rules" out: a text's score from 0 to 1, and the rules that hit with their places.

How a score comes about (the exported plugin does the same):

1. Each reading of the text (`views`) is in lower case; a rule of `rules/rules.json` is searched in it only where what
   it needs is there (`gate`), at most `MOST` times.
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_lab.config import InjectionConfig
from openclaw_lab.errors import RuleError
from openclaw_lab.files import read_text
from openclaw_lab.injection.damping import Damping
from openclaw_lab.injection.gate import RuleGate, Weighted
from openclaw_lab.injection.letters import words_of
from openclaw_lab.injection.needs import needs_of
from openclaw_lab.injection.verdict import Hit
from openclaw_lab.injection.views import View, has_plainer, is_plain, lower, plain_views, views
from openclaw_lab.knobs import nearest
from openclaw_lab.rules.lint import lint
from openclaw_lab.rules.rule import Rule, all_rules

# Places of one rule that are looked at in one reading; characters within which hits support each other; fewest that a
# hit must weigh to be reported.
MOST, WINDOW, LEAST = 20, 400, 0.05

# A capital letter, and not a class such as `\W`.
_CAPITAL = re.compile(r"(?<!\\)[A-Z]")
_FOLDER = Path(__file__).with_name("rules")


@dataclass(frozen=True, slots=True)
class Weighed:
    """A hit and what it weighs after damping."""

    hit: Hit
    weight: float


class RuleScorer:
    """Scores a text by the rules of an InjectionConfig."""

    def __init__(self, config: InjectionConfig) -> None:
        self._views = frozenset(config.views)
        self._gate = RuleGate(_chosen(config))
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
        words = words_of(low)
        rules = self._gate.rules(low, words)
        plain = is_plain(text, low, words) and not has_plainer(text)
        if plain and not rules:
            return []
        best: dict[tuple[str, int, int], Weighed] = {}
        for view in plain_views(low, self._views) if plain else views(text, self._views):
            held = rules if view.text == low else self._gate.rules(view.text, words_of(view.text))
            for each in self.hits(view, held):
                key = (each.hit.rule, each.hit.start, each.hit.end)
                if key not in best or best[key].weight < each.weight:
                    best[key] = each
        return sorted(best.values(), key=lambda each: (each.hit.start, each.hit.end, each.hit.rule))

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
    table = _table()["rules"]
    return tuple(
        Weighted(row["id"], row["type"], table[row["id"]]["weight"], row["pattern"], row.get("flags", ""),
                 needs_of(row["pattern"], row.get("flags", "")))
        for row in json.loads(read_text(_FOLDER / "rules.json"))
    )  # fmt: skip


@functools.cache
def _table() -> Any:
    return json.loads(read_text(_FOLDER / "weights.json"))


@functools.cache
def _damping() -> Damping:
    return Damping(all_rules(_FOLDER / "damping.json"), _table()["factors"])
