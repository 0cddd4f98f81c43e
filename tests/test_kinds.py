"""What a figure rests on follows it everywhere: a person's labels, rules, or rules that the setting itself obeys."""

from __future__ import annotations

from pathlib import Path

import pytest

import openclaw_lab as lab
from openclaw_lab.experiments.dataset import Dataset

SESSIONS = lab.load_dataset("sessions/mini")
EVENT = lab.LabConfig()
INTERVAL = EVENT.with_({"reminders.policy": "interval", "reminders.interval": 3})
ABOUT_OPPORTUNITIES = ("coverage", "late", "reached", "precision", "repeats")


@pytest.mark.parametrize(
    ("config", "opportunities", "kind"),
    [
        (EVENT, "auto", "measured"),
        (EVENT, "labels", "measured"),
        (EVENT, "rules", "circular"),
        (INTERVAL, "rules", "rules"),
        (INTERVAL, "auto", "measured"),
    ],
)
def test_kind(config: lab.LabConfig, opportunities: str, kind: str) -> None:
    results = lab.evaluate("reminders", SESSIONS, config, opportunities=opportunities)
    assert {results.metrics[name].kind for name in ABOUT_OPPORTUNITIES} == {kind}
    assert results.metrics["reminders"].kind == results.metrics["tokens"].kind == "measured"
    assert results.metrics["p_save"].kind == "simulated"
    assert (kind in str(results.metrics["coverage"])) == (kind != "measured")
    by_language = results.by("lang").frame
    assert ("coverage_kind" in by_language) == (kind != "measured")


def unlabelled() -> Dataset:
    from dataclasses import replace

    from openclaw_lab.experiments.dataset import from_sessions

    return from_sessions([replace(sample.input, opportunities=None) for sample in SESSIONS[:20]], "mine")


def test_one_unlabelled_session_with_opportunities_is_enough() -> None:
    mixed = [*(sample.input for sample in SESSIONS[:5]), *(sample.input for sample in unlabelled()[5:])]
    assert lab.evaluate("reminders", mixed, INTERVAL).metrics["coverage"].kind == "rules"


def test_nothing_circular_gets_a_verdict(tmp_path: Path) -> None:
    data = unlabelled()
    event, interval = lab.evaluate("reminders", data, EVENT), lab.evaluate("reminders", data, INTERVAL)
    compared = lab.compare({"interval": interval, "event": event})
    rows = compared.frame.set_index("metric")
    assert set(rows.loc[list(ABOUT_OPPORTUNITIES), "verdict"]) == {"circular, no verdict"}
    assert "circular" not in rows.loc["tokens", "verdict"]
    assert "coverage (circular)" in event.by("dataset")._repr_html_()
    assert "coverage (circular)" in [label.get_text() for label in event.plot().get_yticklabels()]
    report = (lab.export(EVENT, tmp_path / "out", evidence=[event, compared]).folder / "REPORT.md").read_text("utf-8")
    assert "| circular |" in report
    assert "no evidence for it" in report
    assert "不能作为证据" in report


def test_late_has_no_better_or_worse() -> None:
    labelled = {"a": lab.evaluate("reminders", SESSIONS, INTERVAL), "b": lab.evaluate("reminders", SESSIONS, EVENT)}
    frame = lab.compare(labelled).frame.set_index("metric")
    assert frame.loc["late", "verdict"] in ("more", "less", "no difference shown")
