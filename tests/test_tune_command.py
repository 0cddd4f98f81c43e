"""openclaw-lab tune, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import openclaw_lab as lab
from openclaw_lab.cli import main


def run(*arguments: str) -> int:
    try:
        return main(["tune", *arguments, "--cache", "off"])
    except SystemExit as end:
        return int(end.code or 0)


def test_a_setting_its_table_and_its_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out = tmp_path / "表.csv", tmp_path / "out"
    code = run(
        "injection", "--vary", "injection.threshold=0.1:0.9:9", "--maximise", "recall", "--limit", "fpr=0.1",
        "--table", str(table), "--out", str(out),
    )  # fmt: skip
    assert code == 0
    said = capsys.readouterr().out
    assert "9 settings tried" in said
    assert "fpr ≤ 0.1: holds" in said
    assert len(pd.read_csv(table)) == 9
    config = lab.LabConfig.from_json(out / "lab-config.json")
    assert f"injection.threshold={config.injection.threshold}" in said
    assert json.loads((out / "evidence.json").read_text("utf-8"))["promises"][0]["holds"] is True


def test_what_cannot_be_shown_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("injection", "--vary", "injection.threshold=0.5,0.9", "--limit", "fpr=0.001") == 1
    assert "NOT SHOWN" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["injektion"], "tune TASK: found injektion; expected a task; did you mean injection?"),
        (["injection", "--vary", "injection.treshold=1"], "did you mean injection.threshold?"),
        (["injection", "--vary", "injection.threshold"], "--vary: found injection.threshold; expected NAME=VALUE"),
        (["injection", "--vary", "injection.threshold=a:b"], "--vary injection.threshold: found a; expected a number"),
        (["injection", "--vary", "injection.threshold=0:1:2:3"], "expected low:high:steps, low:high, or a,b,c"),
        (["injection", "--vary", "injection.threshold=7"], "injection.threshold: found 7"),
        (["injection", "--vary", "reminders.policy=never"], "reminders.policy"),
        (["injection", "--limit", "fpr=much"], "--limit fpr: found much; expected a number"),
        (["injection", "--limit", "fp=0.1"], "metric 'fp'"),
        (["injection", "--maximise", "recall", "--minimise", "fpr"], "not allowed with"),
        (["injection", "--data", "no/such"], "no/such"),
        (["injection", "--data", "sessions/mini"], "sessions rows"),
        (["all", "--data", "injection/mini"], "tune all: found data, settings or metrics of one task"),
        (["injection", "--workers", "0"], "expected at least 1"),
        (["injection", "--confidence", "95"], "a number from 0.5 to below 1"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert "\n" not in error


@pytest.mark.slow
def test_all_tasks_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    run("all")
    said = capsys.readouterr().out
    for task in ("reminders", "skills", "redaction", "injection", "extraction", "retrieval"):
        assert f"tuned {task}: " in said
