"""One worker, several, or a cluster: the same tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import joblib
import pytest

import openclaw_lab as lab
from openclaw_lab.experiments.parallel import spread, workers
from openclaw_lab.injection.verdict import Detection

FEW = {
    "reminders": (
        "sessions/mini",
        {"reminders.policy": ["interval", "token_gap"], "reminders.host": ["seed", "openclaw-2026.9"]},
    ),
    "skills": ("skills/mini", {"skills.matcher": ["keyword", "bm25"], "skills.threshold": [0.2, 0.5]}),
    "redaction": ("redaction/mini", {"redaction.off": [(), ("jwt",)], "redaction.placeholders": ["type", "numbered"]}),
    "injection": ("injection/mini", {"injection.detector": ["seed", "rules"], "injection.threshold": [0.3, 0.5]}),
    "extraction": ("extraction/mini", {"extraction.min_importance": [1, 4]}),
}  # fmt: skip


def tables(task: str) -> str:
    name, space = FEW[task]
    data = lab.load_dataset(name)[:200]
    swept = lab.sweep(task, data, space=space).frame.to_csv()
    tuned = lab.tune(task, data, space)
    frame = lab.evaluate(task, data).frame.drop(columns=["text", "mistakes"], errors="ignore").astype(str)
    return "\n".join([swept, tuned.frame.to_csv(), str(tuned), frame.to_csv()])


@pytest.fixture(scope="module")
def alone() -> dict[str, str]:
    return {task: tables(task) for task in FEW}


@pytest.fixture
def no_library_warnings() -> Iterator[None]:
    """What libraries warn of while they start and stop processes is theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("no_library_warnings")
@pytest.mark.parametrize("number", [2, 8])
def test_any_number_of_workers_makes_the_same_tables(number: int, alone: dict[str, str]) -> None:
    with joblib.parallel_config(n_jobs=number):
        assert workers() == number
        assert {task: tables(task) for task in FEW} == alone


@pytest.mark.slow
@pytest.mark.usefixtures("no_library_warnings")
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_makes_the_same_tables(alone: dict[str, str]) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra cluster is not installed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        assert workers() == 2
        assert {task: tables(task) for task in FEW} == alone


def _twice(number: int) -> int:
    return 2 * number


@pytest.mark.filterwarnings("ignore")
def test_results_come_in_order() -> None:
    items = list(range(40))
    with joblib.parallel_config("threading", n_jobs=4):
        assert list(spread(_twice, items, "count", "number")) == [2 * each for each in items]
    assert list(spread(_twice, [], "count", "number")) == []
    assert workers() == 1


@pytest.mark.filterwarnings("ignore")
def test_a_detector_of_your_own_is_spread_too() -> None:
    data = lab.load_dataset("injection/mini")[:300]

    def detector(text: str) -> Detection:
        if "忽略" in text:
            raise ValueError("not this one")
        return Detection(min(1.0, len(text) / 1000), False)

    plain = lab.evaluate("injection", data, detector=detector).frame
    with joblib.parallel_config("threading", n_jobs=2):
        spread_out: Any = lab.evaluate("injection", data, detector=detector).frame
    assert spread_out.equals(plain)
    assert plain["score"].isna().any()
