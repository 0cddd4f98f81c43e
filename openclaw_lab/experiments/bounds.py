"""What a limit on a metric needs: counted trials in; p-value, bound and the number of trials that would do out.

A limit holds with a confidence of 95 % when the chance of counting so few errors (so many hits) is at most 5 % for a
rate that breaks it. For shares this is the exact binomial test, and the bound is Clopper's and Pearson's (1934, doi
10.1093/biomet/26.4.404); rows that are not independent of one another count for as many trials as they are worth (Korn
and Graubard 1998, see `metrics`). For means of other numbers it is Student's t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.experiments.metrics import Measured, MetricSpec, trials, variance_of

# More trials are not looked for.
_MOST = 10_000_000


@dataclass(frozen=True, slots=True)
class Counted:
    """A metric over some rows: its value, the trials that it is worth (clusters, of a mean) and its standard error."""

    value: float
    trials: float
    error: float
    share: bool

    @classmethod
    def of(cls, spec: MetricSpec, measured: Measured, clusters: NDArray[np.intp] | None = None) -> Counted:
        """Count a metric over all units of `measured`; units of one cluster are not independent."""
        top, bottom = measured.tallies[spec.numerator], measured.tallies[spec.denominator]
        if spec.proportion:
            value, worth = trials(top, bottom, clusters)
            return cls(value, worth, math.sqrt(value * (1 - value) / worth) if worth else math.nan, True)
        value, variance, count = variance_of(top, bottom, clusters)
        return cls(spec.scale * value, count, spec.scale * math.sqrt(variance) if variance >= 0 else math.nan, False)


@dataclass(frozen=True, slots=True)
class Limit:
    """At most (`most`) or at least `value` of a metric."""

    metric: str
    value: float
    most: bool

    def __str__(self) -> str:
        return f"{self.metric} {'≤' if self.most else '≥'} {self.value:g}"

    def kept(self, value: float) -> bool:
        """Whether a value is within the limit; nan is not."""
        return value <= self.value if self.most else value >= self.value

    def p_value(self, counted: Counted) -> float:
        """How likely data that looks so good is, if the limit is broken: small means that it holds."""
        if not counted.trials or math.isnan(counted.value):
            return 1.0
        if not counted.share:
            return self._of_mean(counted)
        from scipy.special import betainc

        n, k = counted.trials, counted.value * counted.trials
        if self.most:
            return 1.0 if self.value >= 1 or k >= n else float(betainc(n - k, k + 1, 1 - self.value))
        return 1.0 if self.value <= 0 or k <= 0 else float(betainc(k, n - k + 1, self.value))

    def bound(self, counted: Counted, risk: float) -> float:
        """The worst value that the data leaves open, with a chance of `risk` that it is worse still."""
        if not counted.trials or math.isnan(counted.value):
            return math.nan
        n, k = counted.trials, counted.value * counted.trials
        if not counted.share:
            from scipy.special import stdtrit

            half = float(stdtrit(max(1.0, n - 1), 1 - risk)) * counted.error
            return counted.value + half if self.most else counted.value - half
        from scipy.special import betaincinv

        if self.most:
            return 1.0 if k >= n else float(betaincinv(k + 1, n - k, 1 - risk))
        return 0.0 if k <= 0 else float(betaincinv(k, n - k + 1, risk))

    def needed(self, counted: Counted, risk: float) -> int | None:
        """Trials after which the limit would be shown, if the share stayed what it is; None if none would do.

        Of a share within the limit only: a mean, or a share beyond it, gives None.
        """
        if not counted.share or math.isnan(counted.value) or not self.kept(counted.value):
            return None

        def enough(n: int) -> bool:
            return self.p_value(Counted(counted.value, n, 0.0, True)) <= risk

        if not enough(_MOST):
            return None
        low, high = 1, _MOST
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle + 1, high)
        return low

    def _of_mean(self, counted: Counted) -> float:
        from scipy.special import stdtr

        if counted.trials < 2 or math.isnan(counted.error):
            return 1.0
        apart = (self.value - counted.value) * (1 if self.most else -1)
        if counted.error == 0:
            return 0.0 if apart >= 0 else 1.0
        return float(stdtr(counted.trials - 1, -apart / counted.error))
