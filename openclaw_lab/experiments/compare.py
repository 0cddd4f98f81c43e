"""Results of several settings on the same data in; paired differences with intervals and p-values out.

The first setting is the baseline. Samples (or their groups) are resampled together for both settings, so what a hard
sample does to both does not count as noise. Statistics are scipy's: bootstrap (BCa falls back to percentile where the
statistic does not move) and a permutation test that swaps the two settings within a sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.evaluate import Results
from openclaw_lab.experiments.metrics import Array, MetricSpec, numbered, summed
from openclaw_lab.experiments.table import Displayed, Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_RESAMPLES = 2000
_Index = np.ndarray[Any, np.dtype[np.intp]]


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """Paired differences of settings against a baseline."""

    shown: Table
    baseline: str
    task: str

    @property
    def table(self) -> Table:
        """One row a setting and metric."""
        return self.shown

    @property
    def frame(self) -> pd.DataFrame:
        """Columns setting, metric, baseline, value, difference, low, high, p, pairs, better."""
        return self.table.frame

    def plot(self, ax: Axes | None = None) -> Axes:
        """The differences with their intervals; the line at 0 is the baseline."""
        from openclaw_lab.ui.charts import plot_differences

        return plot_differences(self.frame, title=f"{self.task}: difference from {self.baseline}", ax=ax)


def compare(results: Mapping[str, Results], *, seed: int = 0) -> Comparison:
    """Compare settings measured on the same samples; the first is the baseline."""
    if not isinstance(results, Mapping) or not all(isinstance(each, Results) for each in results.values()):
        raise TaskError("compare", f"a {type(results).__name__}", "Results by name, {'seed': a, 'tuned': b}")
    if len(results) < 2:
        raise TaskError("compare", f"{len(results)} result(s)", "at least two, by name")
    (name, base), *others = results.items()
    rows = []
    for other_name, other in others:
        _check_paired(name, base, other_name, other)
        measured = (spec for spec in base.task.metrics if spec.kind == "measured")
        rows += [[other_name, spec.name, *_difference(spec, base, other, seed)] for spec in measured]
    columns = ["setting", "metric", "baseline", "value", "difference", "low", "high", "p", "pairs", "kind", "verdict"]
    title = f"{base.task.name} on {base.data.name}: against {name}"
    return Comparison(Table.of_rows(rows, columns, title), name, base.task.name)


def _check_paired(name: str, base: Results, other_name: str, other: Results) -> None:
    where = f"compare {name!r} with {other_name!r}"
    if base.task.name != other.task.name:
        raise TaskError(where, f"the tasks {base.task.name} and {other.task.name}", "one task")
    ours, theirs = [each.id for each in base.data], [each.id for each in other.data]
    if ours != theirs:
        missing = set(ours) ^ set(theirs)
        found = f"{len(missing)} samples in only one of them" if missing else "the samples in another order"
        raise TaskError(where, found, "the same samples", "evaluate both settings on one dataset")
    if base.data.hash != other.data.hash:
        raise TaskError(where, "samples of other content under the same ids", "the same samples")


def _difference(spec: MetricSpec, base: Results, other: Results, seed: int) -> list[object]:
    """baseline, value, difference, low, high, p, pairs, kind, verdict of one metric."""
    ours, theirs = clustered(spec, base), clustered(spec, other)
    before, after = spec.value(base.measured.tallies), spec.value(other.measured.tallies)
    low, high, p = paired_test(ours, theirs, seed)
    low, high = spec.scale * low, spec.scale * high
    kind = base.metrics[spec.name].kind if base.metrics[spec.name].kind == "circular" else other.metrics[spec.name].kind
    verdict = "circular, no verdict" if kind == "circular" else _verdict(spec, after - before, p)
    return [before, after, after - before, low, high, p, len(ours[0]), kind, verdict]


def _verdict(spec: MetricSpec, difference: float, p: float) -> str:
    if math.isnan(p):
        return "cannot be compared"
    if p >= 0.05 or not difference:
        return "no difference shown"
    if not spec.better:
        return "more" if difference > 0 else "less"
    return "better" if (difference > 0) == (spec.better == "higher") else "worse"


def clustered(spec: MetricSpec, results: Results) -> tuple[Array, Array]:
    """Numerator and denominator a cluster, in an order that both settings share."""
    measured = results.measured
    groups = numbered([sample.group or sample.id for sample in results.data])
    clusters = groups[measured.sample]
    if groups.max() == 0:
        clusters = np.arange(len(measured.sample))
    top, bottom = measured.tallies[spec.numerator], measured.tallies[spec.denominator]
    return summed(clusters, top), summed(clusters, bottom)


def paired_test(ours: tuple[Array, Array], theirs: tuple[Array, Array], seed: int = 0) -> tuple[float, float, float]:
    """95 % interval and two-sided p-value of the difference of two ratios of sums over the same clusters."""
    from scipy import stats

    moved = np.any(np.stack(ours) != np.stack(theirs))
    count = len(ours[0])
    if count < 2 or not ours[1].sum() or not theirs[1].sum():
        return math.nan, math.nan, math.nan
    if not moved:
        return 0.0, 0.0, 1.0
    first = np.arange(count)
    both = np.concatenate([ours[0], theirs[0]]), np.concatenate([ours[1], theirs[1]])

    def ratio(index: _Index, axis: int) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(both[0][index].sum(axis) / both[1][index].sum(axis))

    def difference(index: _Index, paired: _Index, axis: int = -1) -> Array:
        return ratio(paired, axis) - ratio(index, axis)

    def resampled(index: _Index, axis: int = -1) -> Array:
        return np.nan_to_num(difference(index, index + count, axis))

    band = stats.bootstrap(
        (first,), resampled, n_resamples=_RESAMPLES, method="percentile", vectorized=True, batch=200, rng=seed
    ).confidence_interval
    test = stats.permutation_test(
        (first, first + count), difference, permutation_type="samples", vectorized=True, batch=200,
        n_resamples=_RESAMPLES, rng=seed,
    )  # fmt: skip
    return float(band.low), float(band.high), float(test.pvalue)
