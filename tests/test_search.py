"""Spaces that are no grid: what is drawn, again and after an interruption, and what it is worth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import pytest

import openclaw_lab as lab
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments import search
from openclaw_lab.experiments.space import When, axes_of
from openclaw_lab.experiments.trials import Tried

pytest.importorskip("optuna", reason="the extra tune is not installed")

SPACE = {
    "reminders.policy": ["interval", "event"],
    "reminders.interval": When({"reminders.policy": ["interval"]}, lab.Range(1, 30)),
    "reminders.min_gap": When({"reminders.policy": ["event"]}, lab.Range(1, 9)),
}


def drawn(trials: int = 24, seed: int = 0, **options: Any) -> Any:
    return lab.tune("reminders", "sessions/mini", SPACE, maximise="precision", trials=trials, seed=seed, **options)


def table(found: Any) -> str:
    return str(found.frame.to_csv())


@pytest.fixture(scope="module")
def whole() -> str:
    return table(drawn())


def test_the_same_seed_draws_the_same(whole: str) -> None:
    assert table(drawn()) == whole
    assert table(drawn(seed=1)) != whole


def test_a_field_is_drawn_only_where_it_matters(whole: str) -> None:
    frame, base = drawn().frame, lab.LabConfig()
    event = frame["reminders.policy"] == "event"
    assert event.any()
    assert not event.all()
    assert set(frame.loc[event, "reminders.interval"]) == {base.reminders.interval}
    assert set(frame.loc[~event, "reminders.min_gap"]) == {base.reminders.min_gap}
    assert not frame.duplicated(["reminders.policy", "reminders.interval", "reminders.min_gap"]).any()


def test_what_is_started_from_is_tried_first() -> None:
    first = drawn(trials=4).frame.iloc[0]
    base = lab.LabConfig()
    assert first["reminders.policy"] == base.reminders.policy


@pytest.mark.parametrize("done", [5, 8, 13])
def test_a_search_goes_on_where_it_stopped(done: int, whole: str, tmp_path: Path) -> None:
    """A part of a batch is ended as it would have been."""
    drawn(trials=done, storage=tmp_path / "one.sqlite")
    assert table(drawn(storage=tmp_path / "one.sqlite")) == whole


_KILLED = """
import os, sys
import openclaw_lab as lab
from openclaw_lab.experiments import search
write, turns = search._write, [0]
def written(study, point, value):
    turns[0] += 1
    if turns[0] > 11:
        os.kill(os.getpid(), 9)
    write(study, point, value)
search._write = written
sys.path.insert(0, sys.argv[2])
from test_search import drawn
drawn(storage=sys.argv[1])
"""


def test_a_search_that_is_killed_goes_on(whole: str, tmp_path: Path) -> None:
    file = tmp_path / "搜索.sqlite"
    command = [sys.executable, "-c", _KILLED, str(file), str(Path(__file__).parent)]
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == -9
    assert table(drawn(storage=f"sqlite:///{file}")) == whole


def test_it_finds_what_a_grid_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of a hundred points of a smooth hill is found with a third of the tries."""
    base = lab.LabConfig()
    axes = axes_of({"injection.threshold": lab.Range(0.0, 1.0), "skills.threshold": lab.Range(0, 1)}, base)

    def worth(tried: Tried) -> float:
        at = tried.config
        return -((at.injection.threshold - 0.31) ** 2) - (at.skills.threshold - 0.77) ** 2

    def measure(configs: list[lab.LabConfig]) -> list[Tried]:
        return [Tried(config, {}, {}, {}, {}) for config in configs]

    best = [
        max(worth(each) for each in search.drawn(axes, base, measure, worth, 64, seed, search.Study("", "s")))
        for seed in range(3)
    ]
    assert sorted(best)[1] > -0.005  # the median of three searches; a grid of 8 × 8 leaves 0.005 on the mean


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "tune: trials: found 0; expected a whole number, at least 2"),
        ({"trials": 2.5}, "tune: trials"),
        ({"storage": 3}, "tune: storage: found 3; expected the URL of a database, or a file"),
        ({"storage": "nosuch://user:hunter2@nowhere/x"}, "tune: storage: found nosuch"),
        ({"storage": "/no/such/folder/x.sqlite"}, "tune: storage"),
    ],
)
def test_wrong_use_is_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message) as error:
        drawn(**{"trials": 4, **options})
    assert "\n" not in str(error.value)
    assert "hunter2" not in str(error.value)


def test_without_optuna_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(lab.LabError, match=r"openclaw-lab\[tune\]"):
        drawn()


@pytest.mark.slow
def test_workers_draw_the_same(whole: str) -> None:
    with joblib.parallel_config(n_jobs=2):
        assert table(drawn()) == whole
