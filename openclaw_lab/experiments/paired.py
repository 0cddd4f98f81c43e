"""A metric's sums a cluster under two settings in; interval, p-value, size and power of their difference out.

Clusters (samples, or their groups) are taken together under both settings, so what a hard sample does to both is no
noise. The p-value is McNemar's exact one where clusters are single rows that count 0 or 1 (McNemar 1947, doi
10.1007/BF02295996), else that of swapping the two settings within clusters (all ways, or 9,999 by chance). Intervals
are a percentile bootstrap over clusters. The size of a difference of shares is Cohen's h, of other means the mean
paired difference over its standard deviation (Cohen 1988, Statistical Power Analysis, chapters 6 and 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.experiments.evaluate import Results
from openclaw_lab.experiments.metrics import Array, MetricSpec, numbered, summed

_RESAMPLES, _SWAPS = 2000, 9999
# Of a test at 5 % with a power of 80 %: the normal's quantiles of .975 and .8, added.
_ALPHA = 0.05
_REACH = 1.959964 + 0.841621
_Sums = tuple[Array, Array]
_Index = np.ndarray[Any, np.dtype[np.intp]]


@dataclass(frozen=True, slots=True)
class Paired:
    """A difference of two ratios of sums over the same clusters; nan where there is nothing to compare.

    `error`: its standard error. `effect`: its size, as the module says. `detectable`: the difference that so many
    clusters would have shown in four of five such comparisons; `needed`: the clusters that would show the difference
    found as often (0: none found).
    """

    low: float
    high: float
    p: float
    pairs: int
    error: float = math.nan
    effect: float = math.nan
    detectable: float = math.nan
    needed: int = 0


def clustered(spec: MetricSpec, results: Results, mask: NDArray[np.bool_] | None = None) -> _Sums:
    """Numerator and denominator a cluster, in an order that all settings on the same samples share.

    `mask`: the samples that count.
    """
    measured = results.measured
    groups = numbered([sample.group or sample.id for sample in results.data])
    clusters = groups[measured.sample]
    if groups.max() == 0:
        clusters = np.arange(len(measured.sample))
    top, bottom = measured.tallies[spec.numerator], measured.tallies[spec.denominator]
    if mask is not None:
        kept = mask[measured.sample]
        clusters, top, bottom = numbered(clusters[kept].tolist()), top[kept], bottom[kept]
    return summed(clusters, top), summed(clusters, bottom)


def cluster_names(spec: MetricSpec, results: Results) -> list[str]:
    """The ids of the samples, or of their groups, in the order of `clustered`."""
    names = [sample.group or sample.id for sample in results.data]
    if len(set(names)) > 1:
        return sorted(set(names))
    return [results.data[int(at)].id for at in results.measured.sample]


def paired(ours: _Sums, theirs: _Sums, *, share: bool, seed: int = 0) -> Paired:
    """Compare two settings; `share`: the ratio is one, and its size is told as Cohen's h."""
    count = len(ours[0])
    if count < 2 or not ours[1].sum() or not theirs[1].sum():
        return Paired(math.nan, math.nan, math.nan, count)
    if not np.any(np.stack(ours) != np.stack(theirs)):
        return Paired(0.0, 0.0, 1.0, count, 0.0, 0.0)
    low, high = _interval(ours, theirs, seed)
    p = _mcnemar(ours, theirs) if _single(ours, theirs) else _swapped(ours, theirs, seed)
    moves = _influence(theirs) - _influence(ours)  # of each cluster on the difference
    error = float(moves.std(ddof=1) / math.sqrt(count))
    difference = _ratio(theirs) - _ratio(ours)
    reach, needed = _power(ours, theirs, difference, error)
    return Paired(low, high, p, count, error, _effect(ours, theirs, share), reach, needed)


def paired_test(ours: _Sums, theirs: _Sums, seed: int = 0) -> tuple[float, float, float]:
    """95 % interval and two-sided p-value of the difference of two ratios of sums over the same clusters."""
    found = paired(ours, theirs, share=False, seed=seed)
    return found.low, found.high, found.p


def holm(p_values: list[float]) -> list[float]:
    """p-values corrected for their number, nan left out (Holm 1979, Scandinavian Journal of Statistics 6, 65-70)."""
    known = sorted((p, at) for at, p in enumerate(p_values) if not math.isnan(p))
    corrected, least = [math.nan] * len(p_values), 0.0
    for rank, (p, at) in enumerate(known):
        least = max(least, min(1.0, p * (len(known) - rank)))
        corrected[at] = least
    return corrected


def _ratio(sums: _Sums) -> float:
    return float(sums[0].sum() / sums[1].sum())


def _influence(sums: _Sums) -> Array:
    """How much each cluster moves a ratio, times their number (the ratio estimator's linear part)."""
    return np.asarray((sums[0] - _ratio(sums) * sums[1]) / sums[1].mean())


def _power(ours: _Sums, theirs: _Sums, difference: float, error: float) -> tuple[float, int]:
    """The difference that would be shown, and the clusters that would show the one found.

    Rows that count 0 or 1: a gain changes further rows beside those that change to and fro, so the spread grows with it
    (Connor 1987, Biometrics 43, 207-211); the exact test wants one row more. Else the spread is taken as it is.
    """
    count, square = len(ours[0]), _REACH**2
    if not _single(ours, theirs):
        reach = _REACH * error
        return reach, math.ceil(count * (reach / difference) ** 2) if difference else 0
    rows = float(ours[1].sum())
    restless = max(0.0, float((ours[0] != theirs[0]).sum()) / rows - abs(difference))
    root = math.sqrt(square**2 + 4 * (rows + square) * square * restless)
    reach = (square + root) / (2 * (rows + square)) + 1 / rows
    if not difference:
        return reach, 0
    gain = abs(difference)
    wanted = square * (restless + gain - gain**2) / gain**2 + 1 / gain
    return reach, math.ceil(wanted * count / rows)


def _effect(ours: _Sums, theirs: _Sums, share: bool) -> float:
    before, after = _ratio(ours), _ratio(theirs)
    if share:
        angles = [2 * math.asin(math.sqrt(min(max(each, 0.0), 1.0))) for each in (before, after)]
        return angles[1] - angles[0]
    spread = float((_influence(theirs) - _influence(ours)).std(ddof=1))
    return (after - before) / spread if spread else math.nan


def _single(ours: _Sums, theirs: _Sums) -> bool:
    """Whether each cluster is one row that counts in both settings or in none, for 0 or 1."""
    same = bool((ours[1] == theirs[1]).all())
    return same and bool(np.isin(np.concatenate([ours[1], ours[0], theirs[0]]), (0, 1)).all())


def _mcnemar(ours: _Sums, theirs: _Sums) -> float:
    from scipy.stats import binomtest

    gained, lost = int((theirs[0] > ours[0]).sum()), int((theirs[0] < ours[0]).sum())
    return float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def _interval(ours: _Sums, theirs: _Sums, seed: int) -> tuple[float, float]:
    from scipy import stats

    count = len(ours[0])
    both = [np.concatenate(pair) for pair in zip(ours, theirs, strict=True)]

    def difference(index: _Index, axis: int = -1) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            after, before = (both[0][at].sum(axis) / both[1][at].sum(axis) for at in (index + count, index))
            changed: Array = np.nan_to_num(np.asarray(after - before))
        return changed

    band = stats.bootstrap(
        (np.arange(count),), difference, n_resamples=_RESAMPLES, method="percentile", vectorized=True, batch=200,
        rng=seed,
    ).confidence_interval  # fmt: skip
    return float(band.low), float(band.high)


def _swapped(ours: _Sums, theirs: _Sums, seed: int) -> float:
    """Swap the settings within clusters; those in which they agree change nothing, and are only added."""
    from scipy import stats

    moved = (ours[0] != theirs[0]) | (ours[1] != theirs[1])
    rest = [[float(side[~moved].sum()) for side in sums] for sums in (ours, theirs)]
    count = int(moved.sum())
    if count < 2:  # both ways of swapping one cluster are as far from 0
        return 1.0
    both = [np.concatenate([ours[side][moved], theirs[side][moved]]) for side in (0, 1)]

    def ratio(index: _Index, axis: int, own: list[float]) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((both[0][index].sum(axis) + own[0]) / (both[1][index].sum(axis) + own[1]))

    def difference(index: _Index, other: _Index, axis: int = -1) -> Array:
        return ratio(other, axis, rest[1]) - ratio(index, axis, rest[0])

    test = stats.permutation_test(
        (np.arange(count), np.arange(count) + count), difference, permutation_type="samples", vectorized=True,
        batch=500, n_resamples=_SWAPS, rng=seed,
    )  # fmt: skip
    return float(test.pvalue)
