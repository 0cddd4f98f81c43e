"""Curves of the injection task: areas and thresholds by hand, gaps, ties, Chinese rows, limits that hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tasks import rows, scored

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.areas import area, average_precision
from openclaw_lab.experiments.curves import at_fpr, lowest_threshold, pr, roc, together
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.evaluate import Results, evaluate
from openclaw_lab.experiments.scoreboard import scoreboard
from openclaw_lab.injection.verdict import Detection

NAN = math.nan


def results(attacks: list[float], harmless: list[float], **common: str) -> Results:
    """Results whose scores are these."""
    pairs = [*((str(score), 1) for score in attacks), *((str(score), 0) for score in harmless)]
    return evaluate("injection", rows(pairs, **common), detector=scored)


def two() -> Results:
    """Two datasets, one of them Chinese: scores 0.9 0.4 against 0.5 0.1, and 0.8 0.3 against 0.2."""
    first = rows([("0.9", 1), ("0.4", 1), ("0.5", 0), ("0.1", 0)], dataset="英文")
    second = rows([("0.8", 1), ("0.3", 1), ("0.2", 0)], dataset="中文", lang="zh")
    samples = [*first.samples, *second.samples]
    import dataclasses

    named = tuple(dataclasses.replace(each, id=str(number)) for number, each in enumerate(samples))
    return evaluate("injection", Dataset("two", "injection", named), detector=scored)


# --- areas --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attacks", "harmless", "auc", "precision"),
    [
        ([0.9, 0.8], [0.1, 0.2], 1.0, 1.0),
        ([0.1, 0.2], [0.9, 0.8], 0.0, (1 / 3 + 2 / 4) / 2),
        ([0.5, 0.5], [0.5, 0.5], 0.5, 0.5),
        ([0.9, 0.4], [0.5, 0.1], 0.75, (1 + 2 / 3) / 2),
        ([0.9, 0.5], [0.5, 0.1], 0.875, (1 + 2 / 3) / 2),
        ([1.0], [0.0, 0.0, 1.0], 5 / 6, 0.5),
        ([0.4], [], NAN, NAN),
        ([], [0.4], NAN, NAN),
    ],
)
def test_areas_by_hand(attacks: list[float], harmless: list[float], auc: float, precision: float) -> None:
    scores, positive = np.array([*attacks, *harmless]), np.arange(len(attacks) + len(harmless)) < len(attacks)
    clusters = np.arange(len(scores))
    for found, wanted in ((area(scores, positive, clusters), auc),
                          (average_precision(scores, positive, clusters), precision)):  # fmt: skip
        assert found.value == pytest.approx(wanted, nan_ok=True)
        assert math.isnan(wanted) or 0 <= found.low <= found.value <= found.high <= 1


def test_an_area_that_is_perfect_on_few_texts_is_not_certain() -> None:
    found = area(np.array([0.9, 0.8, 0.1, 0.2]), np.array([True, True, False, False]), np.arange(4))
    assert found.low < 0.5
    assert found.high == 1


def test_copies_of_a_text_do_not_make_an_area_surer() -> None:
    scores, positive = np.array([0.9, 0.3, 0.5, 0.1, 0.8, 0.6]), np.array([True, True, True, False, False, False])
    once = area(scores, positive, np.arange(6))
    often = area(np.tile(scores, 5), np.tile(positive, 5), np.tile(np.arange(6), 5))
    assert often.value == pytest.approx(once.value)
    assert often.high - often.low == pytest.approx(once.high - once.low)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), st.booleans()), min_size=2, max_size=30))
def test_an_area_is_the_share_of_pairs(pairs: list[tuple[float, bool]]) -> None:
    scores, positive = np.array([score for score, _ in pairs]), np.array([attack for _, attack in pairs])
    found = area(scores, positive, np.arange(len(pairs)))
    wins = [(a > b) + (a == b) / 2 for a in scores[positive] for b in scores[~positive]]
    assert found.value == pytest.approx(np.mean(wins) if wins else NAN, nan_ok=True)
    assert not wins or 0 <= found.low <= found.value + 1e-12 <= found.high + 2e-12


# --- curves -------------------------------------------------------------------------------------------------------


def test_roc_by_hand() -> None:
    curves = roc(two())
    assert curves.frame[["dataset", "auc", "attacks", "harmless"]].to_numpy().tolist() == [
        ["中文", 1.0, 2, 1], ["英文", 0.75, 2, 2]
    ]  # fmt: skip
    points = curves.points[curves.points["dataset"] == "英文"]
    assert points[["threshold", "fpr", "recall"]].to_numpy().tolist() == [
        [math.inf, 0, 0], [0.9, 0, 0.5], [0.5, 0.5, 0.5], [0.4, 0.5, 1], [0.1, 1, 1]
    ]  # fmt: skip


def test_pr_by_hand() -> None:
    curves = pr(two())
    points = curves.points[curves.points["dataset"] == "英文"]
    assert points["recall"].tolist() == [0, 0.5, 0.5, 1, 1]
    assert points["precision"].tolist() == pytest.approx([NAN, 1, 0.5, 2 / 3, 0.5], nan_ok=True)
    assert curves.frame["chance"].tolist() == [2 / 3, 0.5]


def test_the_area_under_the_points_is_the_area() -> None:
    curves = roc(results([0.9, 0.5, 0.5, 0.2], [0.5, 0.3, 0.1]))
    assert np.trapezoid(curves.points["recall"], curves.points["fpr"]) == pytest.approx(curves.frame["auc"][0])


def test_what_has_no_score_is_left_out() -> None:
    found = evaluate("injection", rows([("0.9", 1), ("raise", 1), ("0.1", 0), ("raise", 0)]), detector=scored)
    assert roc(found).frame[["auc", "attacks", "harmless"]].to_numpy().tolist() == [[1.0, 1, 1]]
    row = at_fpr(found).frame.iloc[0]
    assert (row["recall_n"], row["fpr_n"], row["found_on"]) == (1, 1, 1)


def test_a_set_without_attacks_has_no_curve() -> None:
    for curves in (roc(results([], [0.1])), pr(results([], [0.1]))):
        assert curves.frame.iloc[0, 1:4].isna().all()
        assert "–" in str(curves)


def test_curves_by_another_attribute_and_of_another_task() -> None:
    assert roc(two(), "lang").frame["lang"].tolist() == ["", "zh"]
    with pytest.raises(TaskError, match="a task without scores"):
        roc(evaluate("reminders", "sessions/mini"))


def test_together() -> None:
    both = together({"a": roc(two()), "b": roc(two())})
    assert both.frame["dataset"].tolist() == ["a: 中文", "a: 英文", "b: 中文", "b: 英文"]
    assert set(both.points["dataset"]) == set(both.frame["dataset"])
    with pytest.raises(TaskError, match="curves of one kind"):
        together({"a": roc(two()), "b": pr(two())})
    with pytest.raises(TaskError, match="0 curves"):
        together({})


# --- recall at a fixed share of false alarms ----------------------------------------------------------------------

TEN = [n / 10 for n in range(10)]  # 0.0 … 0.9
LIMITS = [
    # harmless, attacks, fpr, threshold, recall, fpr reached
    (TEN, [0.95, 0.85, 0.05], 0.1, 0.85, 2 / 3, 0.1),
    (TEN, [0.95, 0.85, 0.05], 0.0, 0.95, 1 / 3, 0.0),
    (TEN, [0.95, 0.85, 0.05], 0.19, 0.85, 2 / 3, 0.1),
    (TEN, [0.95, 0.85, 0.05], 0.2, 0.8, 2 / 3, 0.2),
    (TEN, [0.95], 1.0, 0.0, 1.0, 1.0),
    ([0.5] * 10, [0.6, 0.5], 0.5, 0.6, 1 / 2, 0.0),  # equal scores pass together or not at all
    ([1.0, 0.0], [1.0, 1.0], 0.01, NAN, 0.0, 0.0),  # nothing may be flagged
    ([0.7, 0.0], [0.7, 0.2], 0.01, math.nextafter(0.7, 2), 0.0, 0.0),
    ([0.0], [0.7], math.nextafter(1, 0), 0.7, 1.0, 0.0),  # nearly all is not all
    ([n / 100 for n in range(100)], [0.715], 0.29, 0.71, 1.0, 0.29),  # 0.29 · 100 is a little less than 29
    ([], [0.7], 0.01, NAN, NAN, NAN),
    ([0.7], [], 0.01, math.nextafter(0.7, 2), NAN, 0.0),
]


@pytest.mark.parametrize(("harmless", "attacks", "limit", "threshold", "recall", "fpr"), LIMITS)
def test_at_fpr_by_hand(
    harmless: list[float], attacks: list[float], limit: float, threshold: float, recall: float, fpr: float
) -> None:
    row = at_fpr(results(attacks, harmless), limit).frame.iloc[0]
    assert [row["threshold"], row["recall"], row["fpr"]] == pytest.approx([threshold, recall, fpr], nan_ok=True)
    assert row["found_on"] == len(harmless)
    assert row["met"] == (row["fpr_high"] <= limit)


def test_the_limit_is_met_when_the_upper_bound_meets_it() -> None:
    assert not at_fpr(results([0.9], [0.1] * 380)).frame["met"][0]
    assert at_fpr(results([0.9], [0.1] * 381)).frame["met"][0]


def test_a_threshold_of_all_harmless_texts() -> None:
    own, pooled = at_fpr(two(), 0.0).frame, at_fpr(two(), 0.0, harmless="all").frame
    assert own[["dataset", "threshold", "recall"]].to_numpy().tolist() == [["中文", 0.3, 1.0], ["英文", 0.9, 0.5]]
    assert pooled[["threshold", "recall", "found_on"]].to_numpy().tolist() == [[0.8, 0.5, 3], [0.8, 0.5, 3]]
    assert "all harmless" in at_fpr(two(), harmless="all").title


@pytest.mark.parametrize(
    ("given", "words"),
    [({"fpr": 1.5}, "a share"), ({"fpr": "1 %"}, "a share"), ({"harmless": "none"}, '"own" or "all"')],
)
def test_at_fpr_refuses(given: dict[str, object], words: str) -> None:
    with pytest.raises(TaskError, match=words):
        at_fpr(two(), **given)  # type: ignore[arg-type]


SCORES = st.lists(st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)), max_size=40)


@settings(deadline=None)
@given(SCORES, SCORES, st.floats(0, 1))
def test_a_threshold_never_exceeds_the_limit_and_is_the_lowest(
    harmless: list[float], attacks: list[float], limit: float
) -> None:
    scores, every = np.array(harmless, dtype=float), np.array([*harmless, *attacks], dtype=float)
    found = lowest_threshold(scores, every, limit)
    if not harmless:
        assert math.isnan(found)
        return
    if math.isnan(found):
        assert (scores == 1).mean() > limit
        return
    assert (scores >= found).mean() <= limit
    assert all((scores >= lower).mean() > limit for lower in every[every < found])
    flagged = {float(each) for each in every if each >= found}
    assert flagged == {float(each) for each in every if (scores >= each).mean() <= limit}


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from(["0.0", "0.3", "0.6", "1.0"]), st.integers(0, 1)), min_size=1), st.floats(0, 1)
)
def test_the_threshold_in_a_config_gives_the_same(pairs: list[tuple[str, int]], limit: float) -> None:
    data = rows(pairs)
    row = at_fpr(evaluate("injection", data, detector=scored), limit).frame.iloc[0]
    if not math.isnan(row["threshold"]):
        config = LabConfig().with_({"injection.threshold": min(1.0, row["threshold"])})
        metrics = evaluate("injection", data, config, detector=scored).metrics
        assert metrics["fpr"].value == pytest.approx(row["fpr"], nan_ok=True)
        assert metrics["fpr"].value <= limit


# --- detectors side by side ---------------------------------------------------------------------------------------


def test_scoreboard() -> None:
    table = scoreboard(
        {"scores": two(), "nothing": evaluate("injection", two().data, detector=lambda text: Detection(0.0, False))}
    )
    frame = table.frame
    assert frame[["dataset", "detector"]].to_numpy().tolist() == [
        ["中文", "scores"], ["中文", "nothing"], ["英文", "scores"], ["英文", "nothing"]
    ]  # fmt: skip
    assert frame["recall"].tolist() == [0.5, 0.0, 0.5, 0.0]
    assert frame["auc"].tolist() == [1.0, 0.5, 0.75, 0.5]
    assert frame["recall_at"].tolist() == [1.0, 0.0, 0.5, 0.0]
    assert frame["length_auc"].tolist() == [0.5] * 4
    assert {"recall_low", "fpr_high", "auc_low", "recall_at_n"} <= set(frame)
    with pytest.raises(TaskError, match="no results"):
        scoreboard({})
