"""compare: paired differences by hand, what cannot be paired, p-values under the null."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from scipy.stats import binomtest, kstest
from tasks import LongTexts, rows, scored

import openclaw_lab as lab
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.compare import clustered, compare, paired_test
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.evaluate import Results, evaluate

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def at(threshold: float, data: Dataset) -> Results:
    return evaluate("injection", data, LabConfig().with_({"injection.threshold": threshold}), detector=scored)


# 12 attacks scored 0.05 … 0.6, 12 harmless texts scored 0.01 … 0.12.
DATA = rows([(f"{n * 0.05:.2f}", 1) for n in range(1, 13)] + [(f"{n * 0.01:.2f}", 0) for n in range(1, 13)])
HIGH, LOW = at(0.5, DATA), at(0.1, DATA)


def row(results: Mapping[str, Results], metric: str) -> dict[str, Any]:
    frame = compare(results).frame
    found: dict[str, Any] = frame[frame["metric"] == metric].iloc[0].to_dict()
    return found


@pytest.mark.parametrize(
    ("metric", "before", "after", "verdict"),
    [
        ("recall", 3 / 12, 11 / 12, "better"),
        ("fpr", 0 / 12, 3 / 12, "no difference shown"),
        ("precision", 3 / 3, 11 / 14, None),
        ("f1", 6 / 15, 22 / 26, "better"),
        ("accuracy", 15 / 24, 20 / 24, None),
        ("unscored", 0, 0, "no difference shown"),
    ],
)
def test_differences_by_hand(metric: str, before: float, after: float, verdict: str | None) -> None:
    found = row({"high": HIGH, "low": LOW}, metric)
    assert found["setting"] == "low"
    assert (found["baseline"], found["value"]) == (pytest.approx(before), pytest.approx(after))
    assert found["difference"] == pytest.approx(after - before)
    assert found["low"] <= found["difference"] <= found["high"]
    assert 0 < found["p"] <= 1
    assert found["pairs"] == 24
    assert verdict is None or found["verdict"] == verdict


def test_the_p_value_of_few_pairs_is_the_exact_sign_test() -> None:
    """Eight attacks are gained and none lost: 2 · 2^-8, as McNemar's exact test has it."""
    only = rows([(f"{n * 0.05:.2f}", 1) for n in range(1, 13)])
    found = row({"high": at(0.5, only), "low": at(0.1, only)}, "recall")
    assert found["p"] == pytest.approx(binomtest(8, 8).pvalue, rel=0.6)
    few = rows([(f"{n * 0.1:.1f}", 1) for n in range(1, 10)])
    found = row({"high": at(0.9, few), "low": at(0.4, few)}, "recall")
    assert found["p"] == pytest.approx(binomtest(5, 5).pvalue)


def test_the_other_way_round_is_the_negative() -> None:
    there, back = row({"a": HIGH, "b": LOW}, "recall"), row({"b": LOW, "a": HIGH}, "recall")
    assert back["difference"] == -there["difference"]
    assert (back["low"], back["high"]) == (
        pytest.approx(-there["high"], abs=0.05),
        pytest.approx(-there["low"], abs=0.05),
    )
    assert (there["verdict"], back["verdict"]) == ("better", "worse")


def test_a_setting_against_itself() -> None:
    frame = compare({"one": HIGH, "two": at(0.5, DATA)}).frame
    assert frame["metric"][frame["difference"].isna()].tolist() == ["over_defence"], "no text that looks like an attack"
    frame = frame.dropna(subset=["difference"])
    assert (frame["difference"] == 0).all()
    assert (frame["low"] == 0).all()
    assert (frame["p"] == 1).all()
    assert set(frame["verdict"]) == {"no difference shown"}


def test_the_same_numbers_every_time() -> None:
    first, second = compare({"a": HIGH, "b": LOW}).frame, compare({"a": HIGH, "b": LOW}).frame
    assert first.equals(second)
    assert not first.equals(compare({"a": HIGH, "b": LOW}, seed=1).frame)


def test_several_settings_are_all_compared_with_the_first() -> None:
    comparison = lab.compare({"high": HIGH, "low": LOW, "zero": at(0.0, DATA)})
    assert comparison.baseline == "high"
    assert comparison.frame["setting"].unique().tolist() == ["low", "zero"]
    assert "against high" in str(comparison)
    assert repr(comparison) == str(comparison)
    axes = comparison.plot()
    assert isinstance(axes, Axes)
    own = plt.subplots()[1]
    assert comparison.plot(own) is own
    axes.figure.canvas.draw()


def test_what_cannot_be_measured_cannot_be_compared() -> None:
    harmless = rows([("0.1", 0), ("0.6", 0), ("0.2", 0)])
    found = row({"a": at(0.5, harmless), "b": at(0.1, harmless)}, "recall")
    assert math.isnan(found["difference"])
    assert math.isnan(found["p"])
    assert found["verdict"] == "cannot be compared"
    compare({"a": at(0.5, harmless), "b": at(0.1, harmless)}).plot().figure.canvas.draw()
    one = rows([("0.5", 1)])
    assert row({"a": at(0.9, one), "b": at(0.1, one)}, "recall")["verdict"] == "cannot be compared"


def test_groups_are_resampled_together() -> None:
    """Twenty rows of two groups are two pairs, not twenty."""
    data = Dataset("g", "injection", tuple(Sample(str(n), "0.3", 1, group=str(n % 2)) for n in range(20)))
    found = row({"a": at(0.5, data), "b": at(0.1, data)}, "recall")
    assert (found["difference"], found["pairs"], found["verdict"]) == (1.0, 2, "no difference shown")
    top, bottom = clustered(HIGH.task.spec("recall"), at(0.1, data))
    assert (top.tolist(), bottom.tolist()) == ([10, 10], [10, 10])


# --- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ({}, "compare: found 0 result(s); expected at least two, by name"),
        ({"a": HIGH}, "compare: found 1 result(s); expected at least two, by name"),
        ({"a": HIGH, "b": at(0.5, DATA[:20])}, "compare 'a' with 'b': found 4 samples in only one of them"),
        (
            {"a": HIGH, "b": at(0.5, DATA.where(label=0))},
            "found 12 samples in only one of them; expected the same samples",
        ),
        (
            {"a": HIGH, "b": at(0.5, Dataset("r", "injection", DATA.samples[::-1]))},
            "compare 'a' with 'b': found the samples in another order",
        ),
        (
            {"a": HIGH, "b": at(0.5, rows([("0.3", 1)] * 24))},
            "compare 'a' with 'b': found samples of other content under the same ids",
        ),
        (
            {"a": HIGH, "b": evaluate(LongTexts(), DATA)},
            "compare 'a' with 'b': found the tasks injection and long texts; expected one task",
        ),
    ],
)
def test_what_cannot_be_paired(results: dict[str, Results], expected: str) -> None:
    with pytest.raises(TaskError) as error:
        compare(results)
    assert expected in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("wrong", [[HIGH, LOW], HIGH, None, {"a": HIGH, "b": 3}])
def test_what_is_no_results_by_name(wrong: Any) -> None:
    with pytest.raises(TaskError, match=r"compare.*expected"):
        compare(wrong)


# --- the null -----------------------------------------------------------------------------------------------------


def test_p_is_uniform_where_nothing_differs() -> None:
    rng = np.random.default_rng(11)
    found = []
    for _ in range(120):
        shared = rng.random(120) < 0.5
        ours, theirs = (np.where(rng.random(120) < 0.5, shared, rng.random(120) < 0.5).astype(float) for _ in "ab")
        bottom = rng.integers(1, 4, 120).astype(float)
        found.append(paired_test((ours * bottom, bottom), (theirs * bottom, bottom), seed=int(rng.integers(1e6))))
    p = np.array([each[2] for each in found])
    assert kstest(p, "uniform").pvalue > 0.01
    assert 0.005 <= (p < 0.05).mean() <= 0.11
    covered = np.mean([low <= 0 <= high for low, high, _ in found])
    assert 0.88 <= covered <= 0.99


def test_a_real_difference_is_found() -> None:
    rng = np.random.default_rng(5)
    ones = np.ones(200)
    ours, theirs = (rng.random(200) < 0.5).astype(float), (rng.random(200) < 0.7).astype(float)
    low, high, p = paired_test((ours, ones), (theirs, ones))
    assert p < 0.01
    assert 0 < low < 0.2 < high


# --- a task of one's own ------------------------------------------------------------------------------------------


def test_a_task_of_ones_own() -> None:
    data = rows([("a b c", 1), ("a b", 1), ("a", 1), ("a b c d", 0)] * 5)
    long, short = (evaluate(LongTexts(), data, LabConfig().with_({"skills.min_hits": n})) for n in (3, 2))
    frame = compare({"3": long, "2": short}).frame
    assert frame["metric"].tolist() == ["recall", "words"]  # a model's outcome is no measurement to be tested
    assert frame["difference"].tolist() == [pytest.approx(1 / 3), 0]
