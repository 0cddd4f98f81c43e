"""Data of which the truth is known, drawn again and again: how often a promise is broken, and how often the naive one.

Scores of harmless texts are uniform, so the share that a threshold flags is known exactly; those of attacks are higher.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openclaw_lab.config import LabConfig
from openclaw_lab.experiments.bounds import Counted, Limit
from openclaw_lab.experiments.metrics import Array, wilson
from openclaw_lab.experiments.table import Table
from openclaw_lab.experiments.trials import Tried
from openclaw_lab.experiments.tune import best_of, certified_of

_THRESHOLDS = 1 - np.geomspace(0.05, 0.0001, 40)


def drawn(chance: np.random.Generator, rows: int, thresholds: Sequence[float]) -> list[Tried]:
    """One draw: thresholds as settings, counted on a part to learn on, a part to choose on, and both."""
    parts = [np.sort(chance.random(rows)) for _ in range(2)]
    parts.append(np.sort(np.concatenate(parts)))
    hits = np.sort(chance.beta(4, 2, rows))
    tried = []
    for threshold in thresholds:
        found = Counted(_above(hits, threshold), rows, 0.0, True)
        counts = [{"fpr": Counted(_above(each, threshold), len(each), 0.0, True), "recall": found} for each in parts]
        tried.append(Tried(LabConfig(), {"threshold": threshold}, *counts))
    return tried


def broken_promises(
    draws: int = 200,
    rows: Sequence[int] = (600, 1200, 2400),
    limit: float = 0.01,
    confidence: float = 0.95,
    seed: int = 0,
) -> Table:
    """For each number of harmless texts a part, how often the true false-alarm rate of what is chosen breaks the limit.

    `naive` takes the best setting whose rate on the data is within the limit. Columns: rows, way, chosen (draws in
    which anything was), broken, low, high (of all draws).
    """
    chance, most, found = np.random.default_rng(seed), Limit("fpr", limit, True), []
    for count in rows:
        broken, chosen = {"promise": 0, "naive": 0}, {"promise": 0, "naive": 0}
        for _ in range(draws):
            tried = drawn(chance, count, _THRESHOLDS.tolist())
            ways = {
                "promise": certified_of(tried, "recall", 1.0, [most], 1 - confidence),
                "naive": [number for number, each in enumerate(tried) if each.both["fpr"].value <= limit],
            }
            for way, among in ways.items():
                if among:
                    chosen[way] += 1
                    broken[way] += 1 - _THRESHOLDS[best_of(tried, "recall", 1.0, among)] > limit
        for way, number in broken.items():
            found.append([count, way, chosen[way] / draws, number / draws, *wilson(number / draws, draws)])
    title = f"How often “fpr ≤ {limit:g}” is broken in {draws} draws with a known truth (simulated)"
    return Table.of_rows(found, ["rows", "way", "chosen", "broken", "low", "high"], title)


def _above(ordered: Array, threshold: float) -> float:
    return 1 - float(np.searchsorted(ordered, threshold)) / len(ordered)
