"""The gate: measures again what an evidence file recorded, and says which metrics are significantly worse."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from talks import steady

import openclaw_lab as lab
from openclaw_lab.cli import main
from openclaw_lab.errors import DataError, LabError, TaskError
from openclaw_lab.experiments.gate import Check, _holm, gate
from openclaw_lab.experiments.metrics import MetricSpec
from openclaw_lab.exports.openclaw import EVIDENCE, export

REMINDERS = "reminders", "sessions/mini"
INJECTION = "injection", "injection/mini"
BLIND = lab.LabConfig().with_({"injection.threshold": 1.0, "reminders.mode": "off"})
MINI = lab.load_dataset("injection/mini")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the default settings give on both bundled datasets."""
    folder = tmp_path_factory.mktemp("gate") / "out"
    evidence = [lab.evaluate(*REMINDERS), lab.evaluate(*INJECTION)]
    return export(lab.LabConfig(), folder, evidence=evidence).folder / EVIDENCE


@pytest.fixture
def changed(recorded: Path, tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], object]], Path]:
    """The evidence file with something changed in it."""

    def change(how: Callable[[dict[str, Any]], object]) -> Path:
        content = json.loads(recorded.read_text("utf-8"))
        how(content)
        path = tmp_path / EVIDENCE
        path.write_text(json.dumps(content), "utf-8")
        return path

    return change


def worse(checks: Sequence[Check]) -> set[str]:
    return {f"{check.task}.{check.metric}" for check in checks if check.worse}


def test_the_same_run_passes(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checks = gate(recorded)
    assert worse(checks) == set()
    assert {check.task for check in checks} == {"reminders", "injection"}
    assert {check.metric for check in checks} >= {"coverage", "paid_tokens", "recall", "fpr"}
    assert "p_save" not in {check.metric for check in checks}, "a simulated figure is no fact to fail on"
    for check in checks:
        assert check.now == pytest.approx(check.recorded, nan_ok=True)
        assert np.isnan(check.p) or check.p == 1
    assert main(["gate", str(recorded)]) == 0
    assert capsys.readouterr().out.count("ok ") == len(checks)


def test_really_worse_settings_fail(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checks = gate(recorded, config=BLIND)
    assert worse(checks) >= {"reminders.coverage", "reminders.reached"}
    assert not worse(checks) & {"reminders.tokens", "reminders.paid_tokens", "injection.fpr"}, "less cost is no loss"
    BLIND.to_json(tmp_path / "blind.json")
    assert main(["gate", str(recorded), "--config", str(tmp_path / "blind.json")]) == 1
    assert "WORSE reminders.coverage: " in capsys.readouterr().out


def test_a_really_worse_detector_fails(changed: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The record says that the recorded detector found every attack; today's does not."""

    def found_all(content: dict[str, Any]) -> None:
        del content["results"][0]
        tallies = content["results"][0]["tallies"]["recall"]
        tallies["top"] = tallies["bottom"]

    path = changed(found_all)
    assert "injection.recall" in worse(gate(path))
    assert main(["gate", str(path)]) == 1
    assert "WORSE injection.recall: 1.000 -> " in capsys.readouterr().out


def test_better_passes(changed: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    def found_nothing(content: dict[str, Any]) -> None:
        del content["results"][0]
        tallies = content["results"][0]["tallies"]
        for name in ("recall", "f1"):
            if name in tallies:
                tallies[name]["top"] = [0] * len(tallies[name]["top"])

    path = changed(found_nothing)
    (recall,) = (check for check in gate(path) if check.metric == "recall")
    assert (recall.recorded, recall.worse) == (0, False)
    assert recall.now > 0
    assert recall.p < 0.05
    assert main(["gate", str(path)]) == 0
    assert "WORSE" not in capsys.readouterr().out


def test_a_loss_by_chance_passes(changed: Callable[..., Path]) -> None:
    def one_more(content: dict[str, Any]) -> None:
        tallies = content["results"][1]["tallies"]["recall"]
        missed = next(
            at for at, (top, bottom) in enumerate(zip(tallies["top"], tallies["bottom"], strict=True)) if top < bottom
        )
        tallies["top"][missed] += 1

    (recall,) = (check for check in gate(changed(one_more)) if check.metric == "recall")
    assert recall.now < recall.recorded
    assert not recall.worse


# --- the data -----------------------------------------------------------------------------------------------------


def write_rows(path: Path, data: Any) -> Path:
    rows = [{"id": each.id, "text": each.input, "label": each.label, "group": each.group} for each in data]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def test_the_data_may_have_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write_rows(tmp_path / "数据.jsonl", MINI)
    evidence = export(lab.LabConfig(), tmp_path / "out", evidence=[lab.evaluate("injection", path)]).folder / EVIDENCE
    assert "~" in evidence.read_text("utf-8")
    assert worse(gate(evidence)) == set()
    moved = path.rename(tmp_path / "moved.jsonl")
    with pytest.raises(DataError, match="expected an existing file"):
        gate(evidence)
    assert worse(gate(evidence, data=moved)) == set()
    assert main(["gate", str(evidence), "--data", str(moved)]) == 0


def test_other_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = lab.evaluate("injection", write_rows(tmp_path / "a.jsonl", MINI))
    evidence = export(lab.LabConfig(), tmp_path / "out", evidence=[results]).folder / EVIDENCE
    other = write_rows(tmp_path / "b.jsonl", MINI[:-1])
    with pytest.raises(
        TaskError, match=rf"found the data .*b\.jsonl.*expected the recorded data \({results.data.hash}\)"
    ):
        gate(evidence, data=other)
    assert main(["gate", str(evidence), "--data", str(other)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(TaskError, match="found sessions rows; expected injection rows"):
        gate(evidence, data="sessions/mini")


# --- damaged files ------------------------------------------------------------------------------------------------


def first(content: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = content["results"][0]
    return result


def tallies(content: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = first(content)["tallies"]
    return found


DAMAGE: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("no results", lambda c: c.update(results=[]), "found no results; expected at least one measured result"),
    ("results of another kind", lambda c: c.update(results={"a": 1}), "found no results"),
    ("results missing", lambda c: c.pop("results"), "expected an evidence.json that export wrote"),
    ("no format", lambda c: c.pop("format"), "expected an evidence.json that export wrote"),
    ("another format", lambda c: c.update(format=2), "format: found 2; expected the format 1"),
    ("a result that is text", lambda c: c.update(results=["测"]), "result 1 task: found nothing"),
    ("a result that is null", lambda c: c.update(results=[None]), "result 1 task: found nothing"),
    ("a later result", lambda c: c["results"].append({}), "result 3 task: found nothing"),
    ("no task", lambda c: first(c).pop("task"), "result 1 task: found nothing; expected what export wrote there"),
    ("a task that is a number", lambda c: first(c).update(task=5), "result 1 task: found 5"),
    ("an unknown task", lambda c: first(c).update(task="reminder"), "did you mean reminders?"),
    ("no options", lambda c: first(c).pop("options"), "result 1 options: found nothing"),
    ("options of another kind", lambda c: first(c).update(options=[1]), "result 1 options: found [1]"),
    ("an unknown option", lambda c: first(c).update(options={"窗口": 3}), "expected options that the task knows"),
    ("an option that names the data", lambda c: first(c).update(options={"data": "x"}), "options: found data"),
    ("an option out of range", lambda c: first(c).update(options={"window": 0}), "at least 1"),
    ("no data", lambda c: first(c).pop("data"), "result 1 data: found nothing"),
    ("data that is text", lambda c: first(c).update(data="sessions/mini"), "result 1 data: found sessions/mini"),
    ("data without a name", lambda c: first(c)["data"].pop("name"), "result 1 name: found nothing"),
    ("a name that is a list", lambda c: first(c)["data"].update(name=[]), "result 1 name: found []"),
    ("data that is gone", lambda c: first(c)["data"].update(name="会话/没有"), "expected an existing file"),
    ("another hash", lambda c: first(c)["data"].update(hash="0" * 16), "expected the recorded data (0000"),
    ("no config", lambda c: first(c).pop("config"), "configuration: found a NoneType; expected an object"),
    ("a wrong config", lambda c: first(c)["config"]["reminders"].update(interval=0), "reminders.interval"),
    ("an unknown setting", lambda c: first(c)["config"]["reminders"].update(x=0), "reminders.x"),
    ("no tallies", lambda c: first(c).pop("tallies"), "result 1 tallies: found nothing"),
    ("tallies that are a list", lambda c: first(c).update(tallies=[1]), "result 1 tallies: found [1]"),
    ("tallies of no metric", lambda c: [each.update(tallies={}) for each in c["results"]], "no tallies of any metric"),
    ("tallies without a part", lambda c: tallies(c)["coverage"].pop("top"), "coverage: expected tallies that export"),
    ("tallies that are a number", lambda c: tallies(c).update(coverage=1), "coverage: expected tallies that export"),
    ("tallies that are null", lambda c: tallies(c).update(coverage=None), "coverage: expected tallies that export"),
    ("a tally that is text", lambda c: tallies(c)["coverage"].update(top=["x"]), "coverage: expected tallies"),
    ("a tally that is null", lambda c: tallies(c)["coverage"]["top"].__setitem__(0, None), "coverage: exp"),
    ("a tally that is infinite", lambda c: tallies(c)["coverage"]["top"].__setitem__(0, float("inf")), "coverage: exp"),
    ("a tally that is a list", lambda c: tallies(c)["coverage"]["top"].__setitem__(0, [1]), "coverage: exp"),
    ("a huge tally", lambda c: tallies(c)["coverage"]["top"].__setitem__(0, 10**400), "coverage: expected tallies"),
    ("a tally too few", lambda c: tallies(c)["coverage"]["top"].pop(), "tallies; expected 83 of each"),
    ("one tally", lambda c: tallies(c)["coverage"].update(top=3), "found 1 and 83 tallies; expected 83 of each"),
]  # fmt: skip


@pytest.mark.parametrize(("how", "error"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE])
def test_damaged_evidence(
    changed: Callable[..., Path], capsys: pytest.CaptureFixture[str],
    how: Callable[[dict[str, Any]], object], error: str,
) -> None:  # fmt: skip
    path = changed(how)
    assert main(["gate", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("openclaw-lab: ")
    assert shown.err.count("\n") == 1
    assert error in shown.err


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "expected an evidence.json that export wrote"),
        (b"[]", "expected an evidence.json that export wrote"),
        (b'"results"', "expected an evidence.json that export wrote"),
        (b"null", "expected an evidence.json that export wrote"),
        (b'{"format": 1, "results": ', "expected an evidence.json that export wrote"),
        (b"[" * 100_000, "expected an evidence.json that export wrote"),
        ("报告".encode("utf-16"), "UTF-16"),
        (b"\x80\x81", "not UTF-8"),
    ],
)
def test_no_evidence_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, error: str) -> None:
    path = tmp_path / EVIDENCE
    path.write_bytes(content)
    assert main(["gate", str(path)]) == 2
    shown = capsys.readouterr().err
    assert error in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize(("name", "error"), [("nowhere", "expected an existing file"), (".", "found a folder")])
def test_no_file(tmp_path: Path, name: str, error: str) -> None:
    with pytest.raises(DataError, match=error):
        gate(tmp_path / name)


def test_metrics_that_were_not_recorded_are_not_checked(changed: Callable[..., Path]) -> None:
    """A file of an older version, before a metric was invented."""
    path = changed(lambda content: tallies(content).pop("coverage"))
    checks = [check.metric for check in gate(path) if check.task == "reminders"]
    assert "coverage" not in checks
    assert "late" in checks


# --- Holm's correction --------------------------------------------------------------------------------------------

UP, DOWN, NEITHER = (MetricSpec("m", "a", "b", "help", better=better) for better in ("higher", "lower", ""))


def check(p: float, *, lost: bool = True) -> Check:
    return Check("task", "m", 1.0, 0.5, p, lost)


NAN = float("nan")


@pytest.mark.parametrize(
    ("rows", "verdicts"),
    [
        ([], []),
        ([(UP, check(0.04))], [True]),
        ([(UP, check(0.06))], [False]),
        ([(UP, check(0.05))], [True]),
        # .05/2 for the first, .05/1 for the second
        ([(UP, check(0.03)), (UP, check(0.04))], [False, False]),
        ([(UP, check(0.04)), (DOWN, check(0.02))], [True, True]),
        ([(UP, check(0.02)), (DOWN, check(0.06))], [True, False]),
        # .05/3, .05/2, .05: the second fails, so the third does not count either
        ([(UP, check(0.01)), (UP, check(0.03)), (UP, check(0.04))], [True, False, False]),
        ([(UP, check(0.016)), (UP, check(0.024)), (UP, check(0.049))], [True, True, True]),
        # a gain takes part in the correction and is never worse
        ([(UP, check(0.001, lost=False)), (UP, check(0.04))], [False, True]),
        ([(UP, check(0.9, lost=False)), (UP, check(0.04))], [False, False]),
        # what cannot be compared, and what has no better side, takes no part
        ([(UP, check(NAN)), (UP, check(0.04))], [False, True]),
        ([(NEITHER, check(0.5, lost=False)), (UP, check(0.04))], [False, True]),
        ([(UP, check(0.02)), (UP, check(0.02))], [True, True]),
        ([(UP, check(0.03)), (UP, check(0.03))], [False, False]),
    ],
)
def test_holm_by_hand(rows: list[tuple[MetricSpec, Check]], verdicts: list[bool]) -> None:
    assert [each.worse for each in _holm(rows)] == verdicts


@steady
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=12))
def test_holm_is_between_bonferroni_and_none(drawn: list[tuple[float, bool]]) -> None:
    rows = [(UP, check(p, lost=lost)) for p, lost in drawn]
    for (p, lost), each in zip(drawn, _holm(rows), strict=True):
        assert each.worse <= (lost and p <= 0.05)
        assert each.worse >= (lost and p <= 0.05 / len(drawn))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (Check("injection", "recall", 0.9, 0.5, 0.0012, True), "WORSE injection.recall: 0.900 -> 0.500  p=0.0012"),
        (Check("reminders", "tokens", 123.4, 1234, 1.0, False), "ok    reminders.tokens: 123.4 -> 1,234  p=1.0000"),
        (Check("reminders", "precision", NAN, 0.5, NAN, False), "ok    reminders.precision: – -> 0.500"),
    ],
)
def test_a_check_is_one_line(made: Check, text: str) -> None:
    assert str(made) == text


def test_a_summary_for_a_pull_request(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = tmp_path / "摘要.md"
    summary.write_text("# before\n", "utf-8")
    assert main(["gate", str(recorded), "--summary", str(summary)]) == 0
    BLIND.to_json(tmp_path / "blind.json")
    assert main(["gate", str(recorded), "--config", str(tmp_path / "blind.json"), "--summary", str(summary)]) == 1
    written = summary.read_text("utf-8")
    assert written.startswith("# before\n### openclaw-lab gate: no metric of ")
    assert "### openclaw-lab gate: worse in reminders.coverage" in written
    assert "| reminders.coverage | " in written
    assert "**worse**" in written
    assert f"injection/mini ({MINI.hash})" in written
    assert lab.__version__ in written
    lost = next(line for line in written.splitlines() if line.startswith("reminders.coverage lost `"))
    assert lost.count("`") >= 4
    texts = [sample.input[:30] for sample in MINI]
    assert not [text for text in texts if text in written], "no text of the data"


def test_a_gate_is_a_table_too(recorded: Path) -> None:
    found = gate(recorded)
    assert found.ok
    assert list(found.table.frame["metric"]) == [f"{each.task}.{each.metric}" for each in found]
    assert "no metric of" in str(found)
    assert found[0] in found
    assert len(found[:2]) == 2


def test_what_was_tuned_is_gated_on_the_part_that_was_reported(tmp_path: Path) -> None:
    space = {"injection.threshold": [0.3, 0.5, 0.7]}
    tuned = lab.tune("injection", MINI, space, maximise="recall", subject_to={"fpr": 0.2}, seed=3)
    file = export(tuned.config, tmp_path / "out", evidence=[tuned]).folder / EVIDENCE
    found = gate(file)
    assert found.ok
    assert all(check.now == pytest.approx(check.recorded, nan_ok=True) for check in found)
    assert not gate(file, config=BLIND).ok
    content = json.loads(file.read_text("utf-8"))
    content["results"][0]["data"]["part"] = {"shares": [0.4]}
    file.write_text(json.dumps(content), "utf-8")
    with pytest.raises(DataError, match="data part: expected what export wrote there"):
        gate(file)


def test_errors_are_of_the_lab(changed: Callable[..., Path]) -> None:
    with pytest.raises(LabError):
        gate(str(changed(lambda content: content.clear())))
