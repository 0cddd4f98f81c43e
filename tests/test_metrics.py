"""Intervals and metrics: against scipy, by simulation, at the extremes, and what holds for any tallies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from openclaw_lab.experiments.metrics import Measured, Metric, MetricSpec, interval, numbered, shown, summed, wilson

SHARE = MetricSpec("share", "top", "bottom", "a share", better="higher")
RATE = MetricSpec("rate", "top", "bottom", "a rate", scale=100.0, proportion=False)
BAND = MetricSpec("chance", "top", "bottom", "a chance", band=("a", "b", "top"))
INSIDE = 1e-9


def floats(*values: float) -> Any:
    return np.array(values, dtype=float)


@pytest.mark.parametrize("n", [1, 2, 5, 30, 1000])
def test_wilson_is_scipys(n: int) -> None:
    for hits in {0, 1, n // 3, n - 1, n}:
        expected = binomtest(hits, n).proportion_ci(method="wilson")
        assert wilson(hits / n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)
        top = floats(*([1] * hits + [0] * (n - hits)))
        assert interval(top, np.ones(n)) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_rows_that_do_not_count_do_not_count() -> None:
    top, bottom = floats(1, 0, 0, 0, 0, 0), floats(1, 1, 0, 0, 0, 1)
    assert interval(top, bottom) == interval(floats(1, 0, 0), floats(1, 1, 1))
    assert SHARE.measure({"top": top, "bottom": bottom}).n == 3


def test_clusters_of_one_row_change_nothing() -> None:
    top, bottom = floats(1, 0, 1, 1), np.ones(4)
    assert interval(top, bottom, np.array([3, 1, 0, 2])) == interval(top, bottom)


def test_rows_that_repeat_each_other_are_worth_one() -> None:
    """Ten groups of ten equal rows say what ten rows say."""
    one = floats(1, 1, 1, 0, 0, 1, 0, 1, 1, 0)
    clusters = np.repeat(np.arange(10), 10)
    low, high = interval(np.repeat(one, 10), np.ones(100), clusters)
    narrow = interval(np.repeat(one, 10), np.ones(100))
    assert high - low > 2.5 * (narrow[1] - narrow[0])
    assert (low, high) == pytest.approx(interval(one, np.ones(10)), abs=0.08)


def test_rows_that_cancel_out_are_worth_no_more_than_they_are() -> None:
    clusters = np.repeat(np.arange(50), 2)
    top = np.tile(floats(1, 0), 50)
    low, high = interval(top, np.ones(100), clusters)
    assert low <= 0.5 <= high
    assert high - low > 0.15


# --- coverage -----------------------------------------------------------------------------------------------------


def _covered(draw: Any, truth: float, spec: MetricSpec, rounds: int = 600) -> float:
    """The share of simulated sets whose interval holds the truth."""
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(rounds):
        top, bottom, clusters = draw(rng)
        metric = spec.measure({"top": top, "bottom": bottom}, clusters)
        hits += metric.low <= truth <= metric.high
    return hits / rounds


@pytest.mark.parametrize(("p", "spread"), [(0.5, 2.0), (0.8, 4.0), (0.15, 6.0)])
def test_coverage_of_clustered_proportions(p: float, spread: float) -> None:
    """60 groups of one to eight rows that share a chance drawn from a beta distribution."""

    def draw(rng: Any) -> tuple[Any, Any, Any]:
        sizes = rng.integers(1, 9, 60)
        clusters = np.repeat(np.arange(60), sizes)
        chances = rng.beta(p * spread, (1 - p) * spread, 60)[clusters]
        return (rng.random(len(clusters)) < chances).astype(float), np.ones(len(clusters)), clusters

    assert 0.92 <= _covered(draw, p, SHARE) <= 0.985


def test_coverage_of_few_clusters() -> None:
    """Six groups: their variance is itself uncertain, which a normal quantile would ignore (coverage below 0.89)."""

    def draw(rng: Any) -> tuple[Any, Any, Any]:
        clusters = np.repeat(np.arange(6), rng.integers(1, 9, 6))
        chances = rng.beta(0.5, 0.5, 6)[clusters]
        return (rng.random(len(clusters)) < chances).astype(float), np.ones(len(clusters)), clusters

    assert 0.92 <= _covered(draw, 0.5, SHARE, 1500) <= 0.98


@pytest.mark.parametrize("p", [0.02, 0.5, 0.9])
def test_coverage_of_plain_proportions(p: float) -> None:
    def draw(rng: Any) -> tuple[Any, Any, None]:
        return (rng.random(80) < p).astype(float), np.ones(80), None

    assert 0.92 <= _covered(draw, p, SHARE) <= 0.99


def test_coverage_of_ratios() -> None:
    """Events per session of 40 sessions whose rates differ; the scale is part of the metric."""

    def draw(rng: Any) -> tuple[Any, Any, None]:
        calls = rng.integers(5, 60, 40).astype(float)
        return rng.poisson(calls * rng.gamma(4, 0.05, 40)).astype(float), calls, None

    assert 0.92 <= _covered(draw, 20.0, RATE) <= 0.98


def test_coverage_of_f1() -> None:
    """2·TP over (2·TP + FP + FN): units that count for 0, 1 or 2."""
    recall, fpr, n = 0.7, 0.2, 150

    def draw(rng: Any) -> tuple[Any, Any, None]:
        attack = rng.random(n) < 0.5
        flagged = rng.random(n) < np.where(attack, recall, fpr)
        return 2.0 * (flagged & attack), 2.0 * (flagged & attack) + (flagged != attack), None

    truth = 2 * recall / (2 * recall + fpr + 1 - recall)
    assert 0.92 <= _covered(draw, truth, SHARE) <= 0.985


# --- extremes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clusters", [None, np.arange(20), np.repeat(np.arange(5), 4)])
def test_all_or_nothing_still_has_an_interval(clusters: Any) -> None:
    none = SHARE.measure({"top": np.zeros(20), "bottom": np.ones(20)}, clusters)
    every = SHARE.measure({"top": np.ones(20), "bottom": np.ones(20)}, clusters)
    assert (none.value, none.low, every.value, every.high) == (0, 0, 1, 1)
    assert 0.1 < none.high < 0.6
    assert every.low == pytest.approx(1 - none.high)


@pytest.mark.parametrize("spec", [SHARE, RATE])
def test_nothing_to_measure(spec: MetricSpec) -> None:
    for tallies in ({"top": floats(), "bottom": floats()}, {"top": np.zeros(3), "bottom": np.zeros(3)}):
        metric = spec.measure(tallies)
        assert math.isnan(metric.value)
        assert math.isnan(metric.low)
        assert math.isnan(metric.high)
        assert metric.n == 0
        assert str(metric) == "– (n=0)"


def test_one_unit_gives_a_rate_without_an_interval() -> None:
    metric = RATE.measure({"top": floats(3), "bottom": floats(10)})
    assert (metric.value, metric.n) == (30.0, 10)
    assert math.isnan(metric.low)
    assert str(metric) == "30.0 [–, –] (n=10)"


def test_a_rate_of_counts_is_not_negative() -> None:
    metric = RATE.measure({"top": floats(0, 0, 0, 9), "bottom": floats(1, 1, 1, 1)})
    assert metric.low == 0
    assert metric.high > 225


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.12345, "0.123"), (0, "0.000"), (-0.5, "-0.500"), (12.345, "12.3"), (1234.5, "1,234"), (math.nan, "–"),
     (9.9996, "10.000"), (1e9, "1,000,000,000"), (math.inf, "inf")],
)  # fmt: skip
def test_shown(value: float, text: str) -> None:
    assert shown(value) == text


def test_a_metric_as_text() -> None:
    assert str(Metric(0.5, 0.25, 0.75, 8)) == "0.500 [0.250, 0.750] (n=8)"
    assert str(Metric(0.5, 0.25, 0.75, 8, "simulated")) == "0.500 [0.250, 0.750] (n=8, simulated)"


# --- simulated metrics --------------------------------------------------------------------------------------------


def test_a_band_is_the_lowest_and_highest_of_its_models() -> None:
    tallies = {"top": floats(0.5, 0.5), "a": floats(0.9, 0.9), "b": floats(0.1, 0.3), "bottom": floats(1, 1)}
    metric = BAND.measure(tallies)
    assert (metric.value, metric.low, metric.high, metric.n) == (0.5, pytest.approx(0.2), pytest.approx(0.9), 2)
    assert (metric.kind, BAND.kind, SHARE.kind) == ("simulated", "simulated", "measured")


def test_a_band_of_nothing() -> None:
    metric = BAND.measure({name: np.zeros(2) for name in ("top", "a", "b", "bottom")})
    assert math.isnan(metric.value)
    assert math.isnan(metric.low)
    assert "simulated" not in str(metric)


# --- what always holds --------------------------------------------------------------------------------------------

units = st.lists(
    st.integers(0, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(0, 5))), max_size=30
)


def columns(rows: list[tuple[int, int, int]]) -> tuple[Any, Any, Any]:
    return tuple(np.array([row[i] for row in rows], dtype=float if i < 2 else int) for i in range(3))  # type: ignore[return-value]


@settings(deadline=None)
@given(units, st.booleans(), st.sampled_from([SHARE, RATE]))
def test_the_value_lies_within_its_interval(rows: list[tuple[int, int, int]], grouped: bool, spec: MetricSpec) -> None:
    top, bottom, clusters = columns(rows)
    metric = spec.measure({"top": top, "bottom": bottom}, clusters if grouped else None)
    assert metric.n == bottom.sum()
    if not bottom.sum():
        assert math.isnan(metric.value)
        return
    assert metric.value == pytest.approx(spec.scale * top.sum() / bottom.sum())
    if math.isnan(metric.low):
        assert spec is RATE
        return
    assert metric.low - INSIDE <= metric.value <= metric.high + INSIDE
    assert metric.low >= 0
    if spec is SHARE:
        assert metric.high <= 1


@settings(deadline=None)
@given(units, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_names_of_clusters_do_not_matter(
    rows: list[tuple[int, int, int]], random: Any
) -> None:
    mixed = random.sample(rows, len(rows))
    renamed = [(top, bottom, 5 - cluster) for top, bottom, cluster in mixed]
    results = []
    for each in (rows, mixed, renamed):
        top, bottom, clusters = columns(each)
        metric = SHARE.measure({"top": top, "bottom": bottom}, clusters)
        results.append([metric.value, metric.low, metric.high, metric.n])
    assert results[1] == pytest.approx(results[0], nan_ok=True)
    assert results[2] == pytest.approx(results[0], nan_ok=True)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 40))
def test_more_of_the_same_narrows_the_interval(n: int, hits: int) -> None:
    p = min(hits, n) / n
    low, high = wilson(p, n)
    tighter = wilson(p, n * 4)
    assert low - INSIDE <= tighter[0] <= p <= tighter[1] <= high + INSIDE


def test_of_keeps_the_units_of_the_chosen_samples() -> None:
    measured = Measured({"top": floats(1, 2, 3, 4)}, np.array([0, 0, 1, 2]))
    chosen = measured.of(np.array([True, False, True]))
    assert chosen.tallies["top"].tolist() == [1, 2, 4]
    assert chosen.sample.tolist() == [0, 0, 2]
    assert measured.of(np.ones(3, dtype=bool)) is measured


def test_numbered_and_summed() -> None:
    assert numbered(["b", "a", "b"]).tolist() == [1, 0, 1]
    assert numbered(["一", "二", "一"]).tolist() == [0, 1, 0]
    assert summed(np.array([0, 2, 0]), floats(1, 2, 3)).tolist() == [4, 0, 2]
    assert summed(np.array([], dtype=int), floats(), 2).tolist() == [0, 0]
