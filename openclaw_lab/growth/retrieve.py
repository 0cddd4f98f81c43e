"""Found memories in, those that go into the prompt out: ranked, unlike one another, within the budget of their type.

Rank = what the search says + recency_weight · 2^(-age / half_life) + importance_weight · (importance - 1) / 4
       - diversity · likeness to a memory that is chosen already (share of common words).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from openclaw_lab.config import GrowthConfig
from openclaw_lab.growth.entry import MemoryEntry, MemoryType
from openclaw_lab.injection.prompt import escape_for_prompt
from openclaw_lab.text import count_tokens, words

RETRIEVED: tuple[MemoryType, ...] = ("preference", "knowledge", "experience")


@dataclass(frozen=True, slots=True)
class Recalled:
    """One memory that was found. `similarity` is the cosine, `level` the calibrated one, `score` its rank."""

    entry: MemoryEntry
    similarity: float
    level: float
    score: float
    why: str
    asked: bool = True

    @property
    def line(self) -> str:
        """How it stands in the prompt: one line, escaped."""
        return f"- {escape_for_prompt(' '.join(self.entry.content.split()))}"

    @property
    def tokens(self) -> int:
        """Tokens of its line."""
        return count_tokens(f"{self.line}\n")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A memory that was found and does not go into the prompt, and why."""

    entry: MemoryEntry
    reason: str


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What was found for a question: the memories that fit, best first, and those left out."""

    query: str
    memories: tuple[Recalled, ...]
    dropped: tuple[Dropped, ...] = ()

    def of(self, kind: MemoryType) -> tuple[Recalled, ...]:
        """Those of one type, best first."""
        return tuple(each for each in self.memories if each.entry.type == kind)


def budgets(config: GrowthConfig) -> Mapping[MemoryType, int]:
    """Tokens of each type; never more than all together."""
    given = {
        "preference": config.preference_budget,
        "knowledge": config.knowledge_budget,
        "experience": config.experience_budget,
        "session": 0,
    }
    return {kind: min(given[kind], config.max_tokens) for kind in (*RETRIEVED, "session")}


# After so many times the memories that may be kept it does not matter any more what is like what.
_UNLIKE = 2


def ranked(found: Sequence[Recalled], config: GrowthConfig, moment: datetime | None = None) -> list[Recalled]:
    """The memories in the order in which they are chosen; each costs what is like it its rank."""
    when = moment or datetime.now(UTC)
    waiting = [replace(each, score=each.score + _own_rank(each.entry, config, when)) for each in found]
    said = {each.entry.id: frozenset(words(each.entry.content)) for each in waiting} if config.diversity else {}
    likeness = dict.fromkeys(said, 0.0)
    chosen: list[Recalled] = []
    while waiting:
        best = max(waiting, key=lambda each: _order(each, config.diversity * likeness.get(each.entry.id, 0.0)))
        waiting.remove(best)
        chosen.append(best)
        for each in waiting if said and len(chosen) <= _UNLIKE * config.max_results else ():
            key = each.entry.id
            likeness[key] = max(likeness[key], _common(said[key], said[best.entry.id]))
    return chosen


def _order(each: Recalled, cost: float) -> tuple[bool, str, float, str]:
    """Corrections first, the newest of them first of all: they must not be crowded out by what they correct."""
    correction = each.entry.correction
    return correction, each.entry.updated_at if correction else "", each.score - cost, each.entry.id


def _own_rank(entry: MemoryEntry, config: GrowthConfig, moment: datetime) -> float:
    days = max((moment - _time(entry.updated_at or entry.created_at, moment)).total_seconds() / 86_400, 0.0)
    recency: float = config.recency_weight * 0.5 ** (days / config.half_life)
    return recency + config.importance_weight * (entry.importance - 1) / 4


def _time(text: str, otherwise: datetime) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return otherwise
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _common(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


def within_budgets(query: str, found: Sequence[Recalled], config: GrowthConfig) -> Retrieval:
    """Keep, in order, what fits into the budget of its type and into `max_results`; say why the rest does not."""
    left = dict(budgets(config))
    kept: list[Recalled] = []
    dropped: list[Dropped] = []
    for each in found:
        kind = each.entry.type
        if len(kept) == config.max_results:
            dropped.append(Dropped(each.entry, f"more than {config.max_results} memories"))
            continue
        tokens = each.tokens
        if tokens > left[kind] and not (each.entry.correction and left[kind] == budgets(config)[kind]):
            dropped.append(Dropped(each.entry, f"{tokens} tokens, {left[kind]} left of the {kind} budget"))
        else:
            left[kind] = max(left[kind] - tokens, 0)
            kept.append(each)
    return Retrieval(query, tuple(kept), tuple(dropped))
