"""The journal of an agent in, how its memory grew out: a table by day or session and type. Facts only, no judgement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from openclaw_lab.growth.entry import TYPES, MemoryEntry
from openclaw_lab.growth.journal import Event
from openclaw_lab.text import words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = (
    "period", "type", "new", "confirmed", "superseded", "refused", "total", "accessed", "useful", "useless",
    "questions", "covered",
)  # fmt: skip
# Common words from which two memories say the same.
_ALIKE = 0.8


@dataclass(frozen=True)
class GrowthTracker:
    """What happened, and the memories that are live now."""

    events: tuple[Event, ...]
    memories: tuple[MemoryEntry, ...]
    by: Literal["day", "session"] = "day"

    @property
    def frame(self) -> pd.DataFrame:
        """One row a period and type, in order of time.

        `total`: memories of the type at the end of the period. `questions` (whatever a memory was looked for) and
        `covered` (those for which one was found, standing wishes aside) belong to no type: they stand in the rows of
        type "all", which also add the others up.
        """
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=list(COLUMNS))

    def rows(self) -> list[dict[str, object]]:
        """The rows of the frame."""
        periods: dict[str, Counter[tuple[str, str]]] = {}
        for each in self.events:
            counts = periods.setdefault(self._period(each), Counter())
            counts[each.type or "all", each.kind] += 1
            counts["all", "covered"] += int(each.kind == "question" and each.value > 0)
        total: Counter[str] = Counter()
        found: list[dict[str, object]] = []
        for period, counts in periods.items():
            for kind in TYPES[:-1]:
                total[kind] += counts[kind, "new"]
                found.append(_row(period, kind, counts, total[kind]))
            found.append(_summed(period, found[-3:], counts))
        return found

    def plot(self, ax: Axes | None = None) -> Axes:
        """How the memory grew, as a chart: memories by type, what was superseded, questions covered."""
        from openclaw_lab.ui.growth import plot_growth

        return plot_growth(self, ax=ax)

    @property
    def coverage(self) -> tuple[int, int]:
        """Questions for which a memory was found, and all questions."""
        asked = [each for each in self.events if each.kind == "question"]
        return sum(each.value > 0 for each in asked), len(asked)

    @property
    def usefulness(self) -> tuple[int, int]:
        """Reports that a memory helped, and all reports."""
        reports = [each.kind for each in self.events if each.kind in ("useful", "useless")]
        return reports.count("useful"), len(reports)

    @property
    def duplicates(self) -> list[tuple[str, str]]:
        """Pairs of addresses whose memories have four fifths of their words in common."""
        return duplicates_of(self.memories)

    @property
    def never_used(self) -> list[str]:
        """Addresses of memories that no question ever found."""
        return [each.uri for each in self.memories if not each.access_count]

    def _period(self, event: Event) -> str:
        return (event.session or "-") if self.by == "session" else event.at[:10]


def duplicates_of(memories: Sequence[MemoryEntry]) -> list[tuple[str, str]]:
    """Pairs of live memories of one type that say nearly the same."""
    said = [(each, frozenset(words(each.content))) for each in memories]
    holders: dict[str, list[int]] = {}
    for number, (_, own) in enumerate(said):
        for word in own:
            holders.setdefault(word, []).append(number)
    shared = Counter(pair for found in holders.values() if len(found) <= _COMMON for pair in combinations(found, 2))
    found = []
    for (one, other), both in shared.items():
        (first, own), (second, more) = said[one], said[other]
        if first.type == second.type and len(own & more) >= _ALIKE * len(own | more) and both:
            found.append((first.uri, second.uri))
    return sorted(found)


# A word that more memories have tells nothing of two being alike.
_COMMON = 200


def _row(period: str, kind: str, counts: Counter[tuple[str, str]], total: int) -> dict[str, object]:
    own = {name: counts[kind, name] for name in COLUMNS if name not in ("period", "type", "total")}
    return {"period": period, "type": kind, **own, "total": total, "questions": 0, "covered": 0}


def _summed(period: str, rows: Sequence[dict[str, object]], counts: Counter[tuple[str, str]]) -> dict[str, object]:
    added = {name: sum(int(str(row[name])) for row in rows) for name in COLUMNS if name not in ("period", "type")}
    asked = {"questions": counts["all", "question"], "covered": counts["all", "covered"]}
    return {"period": period, "type": "all", **added, **asked}
