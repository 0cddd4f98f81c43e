"""Numbers with their uncertainty: tallies per unit in, Metric(value, low, high, n) out.

Every metric here is a ratio of two sums over units (rows, sessions or runs): recall is hits over attacks, F1 is
2·TP over (2·TP + FP + FN), reminders per session is reminders over sessions. So one interval serves all of them.

    each unit counts for 0 or 1       Wilson's interval (Wilson 1927, doi 10.1080/01621459.1927.10502953)
    units count several times         Wilson's interval at the effective sample size n_eff = p(1-p)/Var(p), Var(p) being
                                      the ratio estimator's between clusters (Cochran 1977, Sampling Techniques, §6.4;
                                      Franco et al. 2019, doi 10.1093/jssam/smy019), times (z/t)² with (clusters − 1)
                                      degrees of freedom (Korn and Graubard 1998, Survey Methodology 24, 193–201)
    not a proportion                  ratio ± t · √Var, t with (clusters − 1) degrees of freedom
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# measured   against what a person labelled, or counted
# rules      against what rules found, because nobody labelled it
# circular   against what rules found, by a setting that acts on the same rules: no evidence for it
# simulated  by a model of behaviour
Kind = Literal["measured", "rules", "circular", "simulated"]
Better = Literal["higher", "lower", ""]
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Metric:
    """A value with its 95 % interval and its denominator `n`; nan where there is nothing to measure.

    `kind` is "simulated" when the value comes from a model of behaviour: then low and high do not say how sure that
    model is. They are its sensitivity band where a metric has one, else the interval over the samples, as for a fact.
    """

    value: float
    low: float
    high: float
    n: int
    kind: Kind = "measured"

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"– (n={self.n})"
        mark = "" if self.kind == "measured" else f", {self.kind}"
        return f"{shown(self.value)} [{shown(self.low)}, {shown(self.high)}] (n={self.n}{mark})"


def shown(value: float) -> str:
    """A number with about three significant digits, never in scientific notation."""
    if math.isnan(value):
        return "–"
    digits = 3 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
    return f"{value:,.{digits}f}"


@dataclass(frozen=True, slots=True)
class Measured:
    """Tallies by name, one number a unit; `sample[u]` is the index of the sample that unit u belongs to."""

    tallies: Mapping[str, Array]
    sample: NDArray[np.intp]
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # of the metrics that are not simply measured

    def of(self, chosen: NDArray[np.bool_]) -> Measured:
        """The units of the chosen samples."""
        if chosen.all():
            return self
        kept = chosen[self.sample]
        tallies = {name: values[kept] for name, values in self.tallies.items()}
        return Measured(tallies, self.sample[kept], self.kinds)


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """How a metric is made from tallies: the sum of one column over the sum of another (None: 1 a unit), times a scale.

    `band` names the numerators whose lowest and highest result make the band of a simulated metric.
    """

    name: str
    numerator: str
    denominator: str
    help: str
    unit: str = ""
    scale: float = 1.0
    better: Better = ""
    proportion: bool = True
    band: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """Whether this is a fact or the outcome of a model."""
        return "simulated" if self.band else "measured"

    def value(self, tallies: Mapping[str, Array]) -> float:
        """The point estimate alone."""
        return self.scale * _ratio(tallies[self.numerator].sum(), tallies[self.denominator].sum())

    def measure(
        self, tallies: Mapping[str, Array], clusters: NDArray[np.intp] | None = None, kind: Kind = "measured"
    ) -> Metric:
        """The metric over all units; units with the same cluster number are not independent of one another."""
        top, bottom = tallies[self.numerator], tallies[self.denominator]
        n = round(float(bottom.sum()))
        if self.band:
            ends = [self.scale * _ratio(tallies[name].sum(), bottom.sum()) for name in self.band]
            low, high = (min(ends), max(ends)) if n else (math.nan, math.nan)
            return Metric(self.value(tallies), low, high, n, "simulated")
        low, high = interval(top, bottom, clusters, proportion=self.proportion)
        return Metric(self.value(tallies), self.scale * low, self.scale * high, n, kind)


def interval(
    top: Array, bottom: Array, clusters: NDArray[np.intp] | None = None, *, proportion: bool = True
) -> tuple[float, float]:
    """95 % interval of sum(top)/sum(bottom) over clusters; (nan, nan) where the data cannot give one."""
    top, bottom = _together(top, bottom, clusters)
    if not len(bottom):
        return math.nan, math.nan
    if proportion:
        return wilson(*trials(top, bottom))
    ratio, variance, m = variance_of(top, bottom)
    if m == 1:
        return math.nan, math.nan
    half = _t_quantile(m - 1) * math.sqrt(variance)
    return (max(0.0, ratio - half) if bool((top >= 0).all()) else ratio - half), ratio + half


def trials(top: Array, bottom: Array, clusters: NDArray[np.intp] | None = None) -> tuple[float, float]:
    """A share, and the number of independent trials that it is worth; (nan, 0) where there are none."""
    top, bottom = _together(top, bottom, clusters)
    if not len(bottom):
        return math.nan, 0.0
    ratio, variance, m = variance_of(top, bottom)
    if bool((bottom == 1).all()) and bool(((top == 0) | (top == 1)).all()):
        return ratio, float(m)
    return ratio, _effective_size(ratio, variance, float(bottom.sum()), m)


def variance_of(top: Array, bottom: Array, clusters: NDArray[np.intp] | None = None) -> tuple[float, float, int]:
    """A ratio of sums, its variance between clusters (nan where there is one), and how many clusters there are."""
    top, bottom = _together(top, bottom, clusters)
    m, total = len(bottom), float(bottom.sum())
    if not m:
        return math.nan, math.nan, 0
    ratio = float(top.sum()) / total
    return ratio, (m / (m - 1) * float(((top - ratio * bottom) ** 2).sum()) / total**2 if m > 1 else math.nan), m


def _together(top: Array, bottom: Array, clusters: NDArray[np.intp] | None) -> tuple[Array, Array]:
    """The sums of each cluster that has anything to count."""
    if clusters is not None:
        top, bottom = summed(clusters, top), summed(clusters, bottom)
    counted = bottom > 0
    return top[counted], bottom[counted]


def _effective_size(ratio: float, variance: float, total: float, clusters: int) -> float:
    """Independent trials that the clusters are worth: never more than were made; fewer where the variance itself is
    known from few clusters (Korn and Graubard 1998).
    """
    if clusters == 1:
        return total
    if variance == 0:
        return float(clusters)
    return min(total, ratio * (1 - ratio) / variance * (_Z / _t_quantile(clusters - 1)) ** 2)


def wilson(p: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % score interval of a proportion."""
    if n <= 0:
        return 0.0, 1.0
    spread = _Z * _Z / n
    centre = (p + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * math.sqrt(p * (1 - p) / n + spread / (4 * n))
    return (0.0 if p == 0 else max(0.0, centre - half)), (1.0 if p == 1 else min(1.0, centre + half))


def _t_quantile(freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def _ratio(top: float, bottom: float) -> float:
    # Shares of a session add up to 0.9999…; a count divided by them must stay a count.
    return float(top) / round(float(bottom), 9) if bottom else math.nan


def numbered(values: NDArray[np.object_] | list[str]) -> NDArray[np.intp]:
    """Names as numbers from 0, equal names alike."""
    return np.unique(np.asarray(values, dtype=object), return_inverse=True)[1]


def summed(numbers: NDArray[np.intp], values: NDArray[Any], count: int = 0) -> Array:
    """The sum of the values of each number from 0; at least `count` sums."""
    return np.asarray(np.bincount(numbers, np.asarray(values, dtype=float), count), dtype=float)
