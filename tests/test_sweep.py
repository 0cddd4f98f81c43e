"""sweep: every setting gives what evaluate gives, the costly part is done once, the best one within limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.axes import Axes
from tasks import LongTexts, rows, scored

import openclaw_lab as lab
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import ConfigError, TaskError
from openclaw_lab.experiments.evaluate import evaluate
from openclaw_lab.experiments.sweep import sweep
from openclaw_lab.experiments.table import flat_metrics

mpl.use("Agg")

DATA = rows([(f"{n * 0.05:.2f}", 1) for n in range(1, 13)] + [(f"{n * 0.03:.2f}", 0) for n in range(1, 13)])
THRESHOLDS = [0.0, 0.1, 0.2, 0.3, 0.5, 1.0]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def thresholds() -> Any:
    return sweep("injection", DATA, None, {"injection.threshold": THRESHOLDS}, detector=scored)


def test_every_setting_is_what_evaluate_gives() -> None:
    done = thresholds()
    assert done.names == ("injection.threshold",)
    assert done.frame["injection.threshold"].tolist() == THRESHOLDS
    for choice, (_, row) in zip(done.choices, done.frame.iterrows(), strict=True):
        alone = evaluate("injection", DATA, choice.config, detector=scored)
        assert choice.metrics == alone.metrics or str(choice.metrics) == str(alone.metrics)
        pd.testing.assert_series_equal(
            row[1:], pd.Series(flat_metrics(alone.metrics)), check_names=False, check_dtype=False
        )


def test_every_setting_of_the_reminders_too() -> None:
    sessions = lab.load_dataset("sessions/mini")[:12]
    space = {"reminders.host": ["seed", "openclaw-2026.9"], "reminders.mode": ["off", "minimal"]}
    done = lab.sweep("reminders", sessions, LabConfig.preset("seed"), space, window=2)
    assert [tuple(choice.values.values()) for choice in done.choices] == [
        ("seed", "off"), ("seed", "minimal"), ("openclaw-2026.9", "off"), ("openclaw-2026.9", "minimal"),
    ]  # fmt: skip
    for choice in done.choices:
        assert str(choice.metrics) == str(evaluate("reminders", sessions, choice.config, window=2).metrics)


def test_the_costly_part_is_done_once() -> None:
    task = LongTexts()
    done = sweep(task, DATA, None, {"skills.min_hits": range(1, 6), "growth.max_results": [1, 2]})
    assert task.prepared == 1
    assert len(done.choices) == 10
    assert done.choices[3].values == {"skills.min_hits": 2, "growth.max_results": 2}
    assert done.choices[3].config == LabConfig().with_(done.choices[3].values)


def test_a_base_config_is_kept() -> None:
    base = LabConfig().with_({"growth.max_tokens": 7})
    done = sweep("injection", DATA, base, {"injection.threshold": [0.1]}, detector=scored)
    assert done.choices[0].config == base.with_({"injection.threshold": 0.1})


@pytest.mark.parametrize(
    ("space", "values"),
    [
        ({"injection.threshold": (0, 1)}, [0.0, 1.0]),
        ({"injection.threshold": iter([0.25])}, [0.25]),
        ({"reminders.events": [["feedback"], []]}, [("feedback",), ()]),
        ({"reminders.mode": ["off", "normal"]}, ["off", "normal"]),
    ],
)
def test_the_values_are_those_of_the_config(space: dict[str, Any], values: list[Any]) -> None:
    done = sweep("injection", DATA, None, space, detector=scored)
    assert [next(iter(choice.values.values())) for choice in done.choices] == values
    assert isinstance(done.plot(), Axes)


# --- the best -----------------------------------------------------------------------------------------------------


def test_best() -> None:
    done = thresholds()
    assert done.best("recall").values == {"injection.threshold": 0.0}
    assert done.best("fpr").metrics["fpr"].value == 0
    chosen = done.best("recall", {"fpr": 0.25})
    assert chosen.values == {"injection.threshold": 0.3}
    assert chosen.metrics["fpr"].value <= 0.25
    assert all(
        choice.metrics["recall"].value <= chosen.metrics["recall"].value
        for choice in done.choices
        if choice.metrics["fpr"].value <= 0.25
    )
    assert done.best("fpr", {"recall": 0.5}).metrics["recall"].value >= 0.5


@pytest.mark.parametrize(
    ("metric", "limits", "expected"),
    [
        ("recall", {"fpr": -0.1}, "best recall: found no setting of 6 within {'fpr': -0.1}; expected a feasible limit"),
        ("fpr", {"recall": 1.1}, "found no setting of 6 within {'recall': 1.1}"),
        ("recal", {}, "did you mean recall?"),
        ("recall", {"fprr": 0.1}, "did you mean fpr?"),
        ("recall", {"fpr": float("nan")}, "found no setting of 6"),
    ],
)
def test_no_best(metric: str, limits: dict[str, float], expected: str) -> None:
    with pytest.raises(TaskError) as error:
        thresholds().best(metric, limits)
    assert expected in str(error.value)


def test_a_metric_that_cannot_be_measured_has_no_best() -> None:
    done = sweep("injection", rows([("0.1", 0)]), None, {"injection.threshold": [0.1, 0.2]}, detector=scored)
    with pytest.raises(TaskError, match="best recall"):
        done.best("recall")


# --- shown --------------------------------------------------------------------------------------------------------


def test_what_jupyter_shows() -> None:
    done = thresholds()
    bundle = done._repr_mimebundle_()
    assert {"text/html", "text/plain", "text/csv"} <= set(bundle)
    assert bundle["text/html"].count("<tr") == 1 + len(THRESHOLDS)
    assert bundle["text/plain"] == str(done) == repr(done)
    assert "recall_low" in bundle["text/csv"]
    assert "recall_low" not in bundle["text/html"]


def test_every_setting_of_a_simulated_metric_is_marked() -> None:
    done = sweep(LongTexts(), DATA, None, {"skills.min_hits": [1, 2, 3]})
    assert done.frame["chance_kind"].tolist() == ["simulated"] * 3
    assert "recall_kind" not in done.frame
    assert "chance (simulated)" in done._repr_mimebundle_()["text/html"]
    assert done.plot(y="chance").get_ylabel() == "chance (simulated)"
    frame = lab.sweep("reminders", "sessions/mini", None, {"reminders.mode": ["off", "minimal"]}).frame
    assert frame["p_save_kind"].tolist() == ["simulated"] * 2


@pytest.mark.parametrize(
    "options", [{}, {"y": "fpr"}, {"x": "fpr", "y": "recall"}, {"x": "injection.threshold", "y": "f1"}]
)
def test_plot(options: dict[str, str]) -> None:
    axes = thresholds().plot(**options)
    assert isinstance(axes, Axes)
    axes.figure.canvas.draw()


def test_plot_by_a_second_setting() -> None:
    done = sweep(
        "injection", DATA, None, {"injection.threshold": [0.1, 0.2], "skills.min_hits": [1, 2]}, detector=scored
    )
    own = plt.subplots()[1]
    assert done.plot(ax=own) is own
    legend = own.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["skills.min_hits = 1", "skills.min_hits = 2"]


# --- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [None, {}, {"injection.threshold": []}])
def test_an_empty_space(space: Any) -> None:
    with pytest.raises(TaskError, match="at least one value for at least one setting"):
        sweep("injection", DATA, None, space)


@pytest.mark.parametrize("values", [0.5, None, "seed"])
def test_what_is_no_list_of_values(values: Any) -> None:
    with pytest.raises(TaskError, match=r"sweep injection\.detector.*expected a list of values"):
        sweep("injection", DATA, None, {"injection.detector": values})
    with pytest.raises(TaskError, match="expected lists of values by setting"):
        sweep("injection", DATA, None, ["injection.detector"])  # type: ignore[arg-type]


def test_unknown_settings_and_bad_values_before_any_work() -> None:
    task = LongTexts()
    for space, expected in [
        ({"skills.minhits": [1]}, "did you mean skills.min_hits"),
        ({"skills.min_hits": [1, 0]}, "skills.min_hits: found 0"),
        ({"reminders.mode": ["often"]}, "reminders.mode: found often"),
    ]:
        with pytest.raises(ConfigError, match=expected):
            sweep(task, DATA, None, space)
    assert task.prepared == 0
    with pytest.raises(TaskError, match="injection rows"):
        sweep("reminders", DATA, None, {"skills.min_hits": [1]})
