"""Results on plain texts and on the same texts in disguise in; what each disguise costs out, pair by pair.

plain = lab.evaluate("injection", texts, config)
disguised = lab.evaluate("injection", obfuscated(texts), config)
robustness(plain, disguised)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.curves import share
from openclaw_lab.experiments.evaluate import Results
from openclaw_lab.experiments.metrics import Array, Metric, numbered, summed
from openclaw_lab.experiments.paired import paired_test
from openclaw_lab.experiments.table import Table, flat_metrics


@dataclass(frozen=True, slots=True)
class _Pairs:
    """For each disguised text with a score on both sides: what it is, and whether it is flagged plain and disguised."""

    value: NDArray[np.object_]
    disguise: NDArray[np.object_]
    attack: NDArray[np.bool_]
    plain: NDArray[np.bool_]
    disguised: NDArray[np.bool_]
    clusters: NDArray[np.intp]


def robustness(plain: Results, disguised: Results, by: str = "dataset", seed: int = 0) -> Table:
    """A row a disguise and value of `by`, the costliest first: recall plain and in disguise, and the points lost.

    `lost` is recall plain less recall in disguise, on the same attacks, with a paired bootstrap interval and the
    p-value of a permutation test; `fpr` and `fpr_plain` are those of the harmless texts in the same disguise. Texts
    that a disguise leaves as they are, or that have no score on either side, are in no row. Base64 comes with an order
    to decode and obey, which may itself be flagged: there, recall may grow.
    """
    import pandas as pd

    pairs = _paired(plain, disguised, by)
    rows = []
    for value, kind in sorted(set(zip(pairs.value.tolist(), pairs.disguise.tolist(), strict=True))):
        here = (pairs.value == value) & (pairs.disguise == kind)
        metrics = {
            "recall_plain": share(pairs.plain[here], pairs.attack[here], pairs.clusters[here]),
            "recall": share(pairs.disguised[here], pairs.attack[here], pairs.clusters[here]),
        }
        lost, p = _lost(pairs, here & pairs.attack, seed)
        false = {
            "fpr_plain": share(pairs.plain[here], ~pairs.attack[here], pairs.clusters[here]),
            "fpr": share(pairs.disguised[here], ~pairs.attack[here], pairs.clusters[here]),
        }
        rows.append(
            {by: value, "disguise": kind, **flat_metrics({**metrics, "lost": lost}), "p": p, **flat_metrics(false)}
        )
    columns = [by, "disguise", "recall_plain", "recall", "lost", "p", "fpr_plain", "fpr"]
    frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)
    frame = frame.sort_values([by, "lost"], ascending=[True, False], kind="stable", ignore_index=True)
    return Table(frame, "Recall that a disguise costs", ("recall_plain", "recall", "lost", "fpr_plain", "fpr"))


def _lost(pairs: _Pairs, here: NDArray[np.bool_], seed: int) -> tuple[Metric, float]:
    """Recall plain less recall disguised over the chosen attacks, and the p-value."""
    n = int(here.sum())
    clusters = np.unique(pairs.clusters[here], return_inverse=True)[1]
    count = summed(clusters, np.ones(n))
    before, after = _sums(clusters, pairs.plain[here]), _sums(clusters, pairs.disguised[here])
    value = float(before.sum() - after.sum()) / n if n else np.nan
    low, high, p = paired_test((after, count), (before, count), seed)
    return Metric(value, low, high, n), p


def _sums(clusters: NDArray[np.intp], flags: NDArray[np.bool_]) -> Array:
    return summed(clusters, flags.astype(float))


def _paired(plain: Results, disguised: Results, by: str) -> _Pairs:
    where = "robustness"
    for results in (plain, disguised):
        if results.task.name != "injection":
            raise TaskError(where, f"results of the task {results.task.name}", "results of the injection task")
    if plain.config.injection != disguised.config.injection:
        raise TaskError(where, "results of two settings", "one setting on plain and on disguised texts")
    place = {sample.id: number for number, sample in enumerate(plain.data.samples)}
    originals = [str(sample.fields.get("original", "")) for sample in disguised.data.samples]
    strange = [each for each in originals if each not in place]
    if strange:
        raise TaskError(
            where, f"{len(strange)} texts whose original is not there", "obfuscated(...) of the plain texts"
        )
    of = np.array([place[each] for each in originals], dtype=np.intp)
    threshold = plain.config.injection.threshold
    known = ~np.isnan(plain.prepared.scores[of]) & ~np.isnan(disguised.prepared.scores)
    kinds = [str(sample.fields["disguise"]) for sample in disguised.data.samples]
    return _Pairs(
        np.array(disguised.data.values(by), dtype=object)[known],
        np.array(kinds, dtype=object)[known],
        (disguised.prepared.attack == 1)[known],
        plain.prepared.flagged(threshold)[of][known],
        disguised.prepared.flagged(threshold)[known],
        numbered([sample.group or sample.id for sample in disguised.data.samples])[known],
    )
