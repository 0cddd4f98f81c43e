"""Limits on metrics: p-values and bounds against scipy's exact binomial, means, and how many trials would do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from openclaw_lab.experiments.bounds import Counted, Limit
from openclaw_lab.experiments.metrics import Measured, MetricSpec

FPR, RECALL = Limit("fpr", 0.01, most=True), Limit("recall", 0.8, most=False)
SHARE, MEAN = MetricSpec("share", "top", "all", "a share"), MetricSpec("mean", "top", "all", "a mean", proportion=False)


def share(hits: int, of: int) -> Counted:
    return Counted(hits / of, of, 0.0, True)


def measured(top: list[float], sample: list[int] | None = None) -> Measured:
    tallies = {"top": np.array(top, dtype=float), "all": np.ones(len(top))}
    return Measured(tallies, np.array(sample or range(len(top)), dtype=np.intp))


@given(st.integers(1, 2000), st.data(), st.floats(0.001, 0.999))
def test_p_values_are_those_of_the_exact_test(of: int, data: st.DataObject, limit: float) -> None:
    hits = data.draw(st.integers(0, of))
    for most, side in ((True, "less"), (False, "greater")):
        exact = stats.binomtest(hits, of, limit, alternative=side).pvalue
        assert Limit("m", limit, most).p_value(share(hits, of)) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("hits", "of", "risk"), [(0, 299, 0.05), (3, 500, 0.05), (17, 40, 0.1), (0, 5, 0.01), (5, 5, 0.05)]
)
def test_bounds_are_clopper_and_pearsons(hits: int, of: int, risk: float) -> None:
    interval = stats.binomtest(hits, of).proportion_ci(1 - 2 * risk, "exact")
    assert Limit("m", 0.5, True).bound(share(hits, of), risk) == pytest.approx(interval.high)
    assert Limit("m", 0.5, False).bound(share(hits, of), risk) == pytest.approx(interval.low)


@pytest.mark.parametrize(
    ("limit", "counted", "needed"),
    [
        (FPR, share(0, 10), 299),
        (FPR, share(2, 100), None),
        (RECALL, share(10, 10), 14),
        (RECALL, share(7, 10), None),
        (FPR, Counted(math.nan, 0, 0.0, True), None),
        (FPR, Counted(0.001, 50, 0.1, False), None),
    ],
)
def test_how_many_trials_would_do(limit: Limit, counted: Counted, needed: int | None) -> None:
    found = limit.needed(counted, 0.05)
    assert found == needed
    if found:
        assert limit.p_value(Counted(counted.value, found, 0, True)) <= 0.05
        assert limit.p_value(Counted(counted.value, found - 1, 0, True)) > 0.05


def test_rows_of_one_cluster_count_as_one() -> None:
    alone = Counted.of(SHARE, measured([0.0] * 300))
    together = Counted.of(SHARE, measured([0.0] * 300), np.arange(300) // 10)
    assert (alone.trials, together.trials) == (300, 30)
    assert FPR.p_value(alone) < 0.05 < FPR.p_value(together)


def test_means_and_what_cannot_be_said() -> None:
    few = Counted.of(MEAN, measured([1.0, 2.0, 3.0, 2.0]))
    exact = stats.ttest_1samp([1.0, 2.0, 3.0, 2.0], 3.0, alternative="less").pvalue
    assert Limit("tokens", 3.0, True).p_value(few) == pytest.approx(exact)
    assert Limit("tokens", 3.0, True).bound(few, 0.05) > few.value
    for nothing in (Counted.of(SHARE, measured([])), Counted.of(MEAN, measured([])), Counted.of(MEAN, measured([1.0]))):
        assert Limit("m", 0.5, True).p_value(nothing) == 1.0
    assert Limit("m", 2.0, True).p_value(Counted.of(MEAN, measured([1.0, 1.0]))) == 0.0
    assert str(FPR) == "fpr ≤ 0.01"
    assert str(RECALL) == "recall ≥ 0.8"
