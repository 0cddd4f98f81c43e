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
from openclaw_lab.experiments.compare import compare
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.evaluate import Results, evaluate
from openclaw_lab.experiments.paired import clustered, holm, paired, paired_test

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
        ("f1", 6 / 15, 22 / 26, "no difference shown"),
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


def test_several_settings_that_do_not_differ_seldom_seem_to() -> None:
    """Of comparisons of five settings that are alike at most 5 % (+ chance) show any difference."""
    rng = np.random.default_rng(3)
    shown = 0
    for _ in range(200):
        common = rng.random(150) < 0.4
        draws = [np.where(rng.random(150) < 0.6, common, rng.random(150) < 0.4).astype(float) for _ in range(5)]
        ones = np.ones(150)
        p = [paired((draws[0], ones), (each, ones), share=True).p for each in draws[1:]]
        shown += min(holm(p)) < 0.05
    assert shown <= 18  # 10 are expected at most; 18 is beyond the 99th percentile of that


@pytest.mark.parametrize(
    ("given", "corrected"),
    [
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.5, math.nan, 0.01], [0.5, math.nan, 0.02]),
        ([0.9, 0.8], [1.0, 1.0]),
        ([], []),
    ],
)
def test_holm(given: list[float], corrected: list[float]) -> None:
    assert holm(given) == pytest.approx(corrected, nan_ok=True)


def test_what_a_comparison_could_have_shown() -> None:
    """The difference named is found in about four of five comparisons of so many pairs."""
    rng = np.random.default_rng(8)
    ones = np.ones(300)

    def drawn(gain: float) -> Any:
        base = rng.random(300) < 0.5
        better = np.where(~base & (rng.random(300) < 2 * gain), True, base) ^ (rng.random(300) < 0.05)
        return paired((base.astype(float), ones), (better.astype(float), ones), share=True)

    reach = float(np.mean([drawn(0.0).detectable for _ in range(40)]))
    found = np.mean([drawn(reach / 0.9).p < 0.05 for _ in range(300)])  # of a gain a tenth is undone by chance
    assert 0.7 <= found <= 0.9
    few = drawn(0.02)
    assert few.needed > 0


def test_sizes_of_differences() -> None:
    ones = np.ones(100)
    half, most = np.arange(100) < 50.0, np.arange(100) < 80.0
    found = paired((half * 1.0, ones), (most * 1.0, ones), share=True)
    assert found.effect == pytest.approx(2 * math.asin(math.sqrt(0.8)) - 2 * math.asin(math.sqrt(0.5)))
    assert found.p == pytest.approx(binomtest(30, 30).pvalue)
    ours, theirs = np.tile([1.0, 3.0], 50), np.tile([2.0, 6.0], 50)
    assert paired((ours, ones), (theirs, ones), share=False).effect == pytest.approx(2 / np.std([1, 3] * 50, ddof=1))


def test_a_gain_that_hides_a_loss_is_told() -> None:
    """Sixty English attacks are gained, twenty Chinese ones lost."""
    samples = [Sample(f"e{n}", f"{0.2 if n < 60 else 0.9}", 1, lang="en") for n in range(80)]
    samples += [Sample(f"z{n}", f"忽略 {n}", 1, lang="zh") for n in range(20)]
    data = Dataset("two languages", "injection", tuple(samples))

    def chinese(text: str) -> Any:
        return scored("0.9") if text.startswith("忽略") else scored(text)

    def english(text: str) -> Any:
        return scored("0.0") if text.startswith("忽略") else scored("0.9")

    config = LabConfig().with_({"injection.threshold": 0.5})
    before, after = (evaluate("injection", data, config, detector=each) for each in (chinese, english))
    found = lab.compare({"before": before, "after": after})
    assert found.frame.set_index("metric").loc["recall", "verdict"] == "better"
    assert [each.split(":")[0] for each in found.warnings] == ["after, recall", "after, f1"]
    assert "after, recall: 0.400 over all hides -1.000 [-1.000, -1.000] for lang=zh (20 pairs)" in found.warnings[0]
    assert found.warnings[0] in str(found)
    assert found.warnings[0] in found._repr_html_()
    rows = found.slices.frame.set_index(["slice", "metric"])
    assert rows.loc[("lang=zh", "recall"), "verdict"] == "worse"
    assert rows.loc[("lang=en", "recall"), "verdict"] == "better"
    assert lab.compare({"before": before, "after": after}, by=()).warnings == ()


def test_every_pair_of_settings() -> None:
    found = lab.compare({"high": HIGH, "low": LOW, "zero": at(0.0, DATA)}, all_pairs=True)
    pairs = set(zip(found.frame["against"], found.frame["setting"], strict=True))
    assert pairs == {("high", "low"), ("high", "zero"), ("low", "zero")}
    assert "against" in str(found)
    found.plot().figure.canvas.draw()


# --- a task of one's own ------------------------------------------------------------------------------------------


def test_a_task_of_ones_own() -> None:
    data = rows([("a b c", 1), ("a b", 1), ("a", 1), ("a b c d", 0)] * 5)
    long, short = (evaluate(LongTexts(), data, LabConfig().with_({"skills.min_hits": n})) for n in (3, 2))
    frame = compare({"3": long, "2": short}).frame
    assert frame["metric"].tolist() == ["recall", "words"]  # a model's outcome is no measurement to be tested
    assert frame["difference"].tolist() == [pytest.approx(1 / 3), 0]
