"""Found memories in, those that go into the prompt out: ranked, unlike one another, within the budget of their type.

Rank = what the search says + recency_weight · 2^(-age / half_life) + importance_weight · (importance - 1) / 4
       - diversity · likeness to a memory that is kept already (share of common words).
"""

from __future__ import annotations

import functools
from bisect import insort
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
        return _tokens(self.line)

    @property
    def least_tokens(self) -> int:
        """Tokens that its line has at least, without counting them: none reaches over a space into the next word."""
        return len(self.entry.content.split()) + 1


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


def within_budgets(
    query: str, found: Sequence[Recalled], config: GrowthConfig, moment: datetime | None = None
) -> Retrieval:
    """Keep, the highest rank first, what fits into the budget of its type and into `max_results`.

    Each one kept costs what is like it its rank; of the rest, the reason is said. Ranks only fall, so the likeness of
    a memory is looked at when its turn comes, not before.
    """
    when, limits = moment or datetime.now(UTC), budgets(config)
    ranked = [replace(each, score=each.score + _own_rank(each.entry, config, when)) for each in found]
    waiting = sorted((*_order(each, 0.0), number) for number, each in enumerate(ranked))
    left, costs, seen = dict(limits), [0.0] * len(ranked), [0] * len(ranked)
    kept: list[Recalled] = []
    dropped: list[Dropped] = []
    said: list[frozenset[str]] = []
    spoken: dict[int, frozenset[str]] = {}
    while waiting:
        number = waiting.pop()[-1]
        each = ranked[number]
        kind, room = each.entry.type, left[each.entry.type]
        excused = each.entry.correction and room == limits[kind]  # the newest correction is cut short instead
        if len(kept) == config.max_results:
            dropped.append(Dropped(each.entry, f"more than {config.max_results} memories"))
            continue
        if each.least_tokens > room and not excused:
            dropped.append(Dropped(each.entry, _too_long(f"at least {each.least_tokens}", room, kind)))
            continue
        if config.diversity and number not in spoken:
            spoken[number] = _words(each.entry.content)
        likeness = max((_common(spoken[number], other) for other in said[seen[number] :]), default=0.0)
        seen[number] = len(said)
        if config.diversity * likeness > costs[number]:
            costs[number] = config.diversity * likeness
            insort(waiting, (*_order(each, costs[number]), number))
            continue
        tokens = each.tokens
        if tokens > room and not excused:
            dropped.append(Dropped(each.entry, _too_long(str(tokens), room, kind)))
            continue
        left[kind] = max(room - tokens, 0)
        kept.append(each)
        if config.diversity:
            said.append(spoken[number])
    return Retrieval(query, tuple(kept), tuple(dropped))


# The same memories are looked at turn after turn, and in a sweep setting after setting.
@functools.lru_cache(maxsize=8192)
def _tokens(line: str) -> int:
    return count_tokens(f"{line}\n")


@functools.lru_cache(maxsize=8192)
def _words(content: str) -> frozenset[str]:
    return frozenset(words(content))


def _too_long(tokens: str, room: int, kind: MemoryType) -> str:
    return f"{tokens} tokens, {room} left of the {kind} budget"


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
    both = len(one & other)
    return both / (len(one) + len(other) - both) if both else 0.0
