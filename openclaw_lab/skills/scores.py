"""Scores of messages (rows) and skills (columns), and which of them are picked under a setting.

The runtime picks for one message and an experiment for thousands, with this same code. What is costly (sorting) is
done once; each further threshold, limit or budget is array arithmetic.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import SkillConfig

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Mask = NDArray[np.bool_]
Reason = Callable[[int, int], str]


def _no_reason(row: int, column: int) -> str:
    return ""


@dataclass(frozen=True)
class Scores:
    """What a matcher says of every pair.

    `score` is from 0 to 1 (the seed's is a count); `hits` counts the keywords in common and `keywords` those of each
    skill, where the matcher counts them. `limited`: thresholds, top-k and the token budget apply (they do not to seed).
    """

    names: tuple[str, ...]
    score: Floats
    hits: Ints | None = None
    keywords: Ints | None = None
    limited: bool = True
    at_least_one: bool = True  # a skill without keywords can never be picked by them
    reason: Reason = field(default=_no_reason, compare=False)

    @functools.cached_property
    def order(self) -> NDArray[np.intp]:
        """Columns of each row, best first; equal scores in the order of the catalogue."""
        return np.argsort(-self.score, axis=1, kind="stable")

    @functools.cached_property
    def ranked(self) -> Floats:
        """The scores in that order."""
        return np.take_along_axis(self.score, self.order, axis=1)

    def enough(self, config: SkillConfig) -> Mask | None:
        """Where enough keywords are in common, in ranked order; None where the matcher does not count them."""
        if self.hits is None or self.keywords is None:
            return None
        needed = np.minimum(config.min_hits, self.keywords)
        if self.at_least_one:
            needed = np.maximum(needed, 1)
        return np.take_along_axis(self.hits >= needed[None, :], self.order, axis=1)


def picked(scores: Scores, config: SkillConfig, tokens: Sequence[int] | NDArray[np.intp]) -> Mask:
    """Which skills are picked, in ranked order (`scores.order`); `tokens` are those of each skill.

    Columns at the end, of which none can be picked, may be left out. A skill that no longer fits the budget is left
    out, and a smaller one behind it may still be taken.
    """
    enough = scores.enough(config)
    if not scores.limited:
        return np.ones_like(scores.order, dtype=bool) if enough is None else enough
    largest, most, budget = int(max(tokens, default=0)), config.top_k, config.max_tokens
    if enough is None and most and not config.thresholds and (not budget or largest * most <= budget):
        return np.asarray(scores.ranked[:, :most] >= np.float32(config.threshold))
    mask = np.asarray(scores.ranked >= _thresholds(scores, config), dtype=bool)
    if enough is not None:
        mask &= enough
    if not budget or _fits(mask, most, largest, budget):
        return _first(mask, most)
    return _within(mask, np.asarray(tokens, dtype=np.int64)[scores.order], most, budget)


def _thresholds(scores: Scores, config: SkillConfig) -> Floats | np.float32:
    """One threshold, or one for each place of the ranking."""
    single = config.threshold_of
    if not single:
        return np.float32(config.threshold)
    columns = np.array([single.get(name, config.threshold) for name in scores.names], dtype=np.float32)
    return columns[scores.order]


def _first(mask: Mask, most: int) -> Mask:
    if not most or most >= mask.shape[1]:
        return mask
    return mask & (np.cumsum(mask, axis=1, dtype=np.int32) <= most)


def _fits(mask: Mask, most: int, largest: int, budget: int) -> bool:
    """Whether the budget cannot bind, whatever is picked."""
    count = int(mask.sum(axis=1, dtype=np.int32).max(initial=0))
    return largest * (min(count, most) if most else count) <= budget


def _within(mask: Mask, costs: NDArray[np.int64], most: int, budget: int) -> Mask:
    """The same, place by place: a budget depends on what was taken before."""
    taken = np.zeros_like(mask)
    spent = np.zeros(len(mask), dtype=np.int64)
    count = np.zeros(len(mask), dtype=np.int64)
    for place in range(mask.shape[1]):
        take = mask[:, place] & (spent + costs[:, place] <= budget)
        if most:
            take &= count < most
        taken[:, place] = take
        spent += np.where(take, costs[:, place], 0)
        count += take
        if not mask[:, place:].any():
            break
    return taken
