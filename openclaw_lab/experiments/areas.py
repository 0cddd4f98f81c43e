"""Scores and labels in; the area under the ROC curve, average precision and the curves' points out.

The area is the share of pairs (attack, harmless) in which the attack scores higher, ties counting half. Its variance is
that of DeLong et al. (1988, doi 10.2307/2531595) between clusters (Obuchowski 1997, doi 10.2307/2533958); the interval
is Wilson's at the number of trials that this variance is worth, so that it stays within 0 and 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.experiments.metrics import Array, Metric, summed, wilson

_Flags = NDArray[np.bool_]
_RESAMPLES = 500


def area(scores: Array, positive: _Flags, clusters: NDArray[np.intp]) -> Metric:
    """Area under the ROC curve; `n` is the smaller number of the two kinds, nan where one is missing."""
    high, low = scores[positive], scores[~positive]
    m, n = len(high), len(low)
    if not m or not n:
        return Metric(math.nan, math.nan, math.nan, 0)
    above, below = _wins(high, np.sort(low)), 1 - _wins(low, np.sort(high))
    value = float(above.mean())
    effect = np.empty(len(scores))
    effect[positive], effect[~positive] = (above - value) / m, (below - value) / n
    each = summed(np.unique(clusters, return_inverse=True)[1], effect)
    count = len(each)
    variance = count / (count - 1) * float((each**2).sum()) if count > 1 else 0.0
    worth = min(float(m + n), value * (1 - value) / variance) if variance > 1e-15 else float(min(m, n, count))
    return Metric(value, *wilson(value, worth), min(m, n))


def average_precision(scores: Array, positive: _Flags, clusters: NDArray[np.intp], seed: int = 0) -> Metric:
    """Mean precision over the attacks, each at its own score; the interval is a bootstrap over clusters (percentiles).

    By chance alone it is the share of attacks, so compare it only within one dataset.
    """
    m = int(positive.sum())
    if not m or m == len(scores):
        return Metric(math.nan, math.nan, math.nan, 0)
    order = np.argsort(-scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    hits = positive[order].astype(float)
    value = float(_precision(np.ones((1, len(scores))), hits, ends)[0])
    names, number = np.unique(clusters[order], return_inverse=True)
    drawn = np.random.default_rng(seed).multinomial(len(names), np.full(len(names), 1 / len(names)), _RESAMPLES)
    low, high = np.nanpercentile(_precision(drawn[:, number].astype(float), hits, ends), [2.5, 97.5])
    return Metric(value, min(value, float(low)), max(value, float(high)), m)


def points(scores: Array, positive: _Flags) -> tuple[Array, Array, Array]:
    """Thresholds from the highest score down, with the attacks and the harmless texts that each flags."""
    thresholds = np.unique(scores)[::-1]
    return thresholds, _flagged(scores[positive], thresholds), _flagged(scores[~positive], thresholds)


def _flagged(scores: Array, thresholds: Array) -> Array:
    return np.asarray(len(scores) - np.searchsorted(np.sort(scores), thresholds), dtype=float)


def _wins(these: Array, others: Array) -> Array:
    """Of each score the share of the (sorted) others that it beats, ties counting half."""
    under, upto = np.searchsorted(others, these), np.searchsorted(others, these, side="right")
    return np.asarray((under + upto) / (2 * len(others)), dtype=float)


def _precision(weights: Array, hits: Array, ends: NDArray[np.intp]) -> Array:
    """Average precision of weighted rows in the order of their scores; `ends` are the last rows of equal scores."""
    taken = np.cumsum(weights, axis=1)[:, ends]
    caught = np.cumsum(weights * hits, axis=1)[:, ends]
    new = np.diff(caught, axis=1, prepend=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((new * np.nan_to_num(caught / taken)).sum(axis=1) / caught[:, -1])
