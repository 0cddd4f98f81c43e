"""The cases drawn from public bug reports of similar tools that concern experiments and notebooks: a check for each."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

import openclaw_lab as lab
from openclaw_lab.experiments import progress as bars
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.secrets import Secrets
from openclaw_lab.injection.verdict import Detection
from openclaw_lab.messages import Span
from openclaw_lab.redaction.spans import Found, Redaction

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("OPENCLAW_LAB_DATA") or ROOT.parent / "shared" / "data")
FILES = [DATA / "cases" / f"{name}.jsonl.gz" for name in ("eval", "notebook")]
Row = Mapping[str, Any]


def one_prediction_over_two_spans_counts_once(row: Row, _: Path) -> None:
    given, expect = row["input"], row["expect"]
    text = "Maria Lopez"
    (start, end, kind), *_rest = given["pred"]

    def redactor(text: str) -> Redaction:
        if text.startswith("["):
            return Redaction(text, ())
        return Redaction("[NAME]", (Found(start, end, kind.lower(), "whole", "[NAME]"),))

    label = Secrets(tuple(Span(*span[:2], "name") for span in given["gold"]))
    sample = Sample("a", text, label)
    metrics = lab.evaluate("redaction", Dataset("one", "redaction", (sample,)), redactor=redactor).metrics
    assert metrics["precision"].n == expect["num_predicted"]
    assert metrics["precision"].value == 1.0
    assert metrics["recall"].n * metrics["recall"].value == expect["recall_hits"]


def a_failure_found_early_stays_when_a_judge_fails(row: Row, _: Path) -> None:
    """A turn that is flagged stays so; one on which the judge fails has no verdict, and none of its neighbours' has."""
    grades = row["input"]["turn_grades"]
    samples = tuple(Sample(str(at), str(grade), 1, group="talk") for at, grade in enumerate(grades))

    def judge(text: str) -> Detection:
        if text == "None":
            raise TimeoutError("the judge did not answer")
        return Detection(1.0 if text == "fail" else 0.0, text == "fail")

    results = lab.evaluate("injection", Dataset("talk", "injection", samples), detector=judge)
    verdicts = results.frame["prediction"]
    assert [None if verdicts.isna()[at] else int(verdicts[at]) for at in range(3)] == [1, None, 0]
    assert results.metrics["unscored"].value == pytest.approx(1 / 3)
    final = "fail" if results.frame.groupby("group")["prediction"].max().iloc[0] == 1 else "pass"
    assert final == row["expect"]["final"]


def numbers_of_a_conversation_go_on(row: Row, _: Path) -> None:
    config = lab.LabConfig().with_({"redaction.placeholders": "numbered"})
    talk = lab.Redactor(config.redaction).conversation()
    for turn in row["input"]["turns"]:
        talk.redact(turn)
    assert talk.restore(row["input"]["restore"]) == row["expect"]["restored"]


def an_agent_runs_in_a_running_loop(_: Row, __: Path) -> None:
    async def cell() -> tuple[str, str]:
        here = lab.Agent(["你好", "done"]).run("hi").text
        return here, (await lab.Agent(["你好", "done"]).arun("hi")).text

    assert asyncio.run(cell()) == ("你好", "你好")


_CELL = """
import warnings
warnings.simplefilter("error")
import openclaw_lab as lab
data = lab.load_dataset("sessions/mini")[:20]
space = {"reminders.interval": [1, 3, 5]}
print(len(lab.sweep("reminders", data, space=space, cache="off").choices))
"""


def two_sweeps_in_one_kernel(_: Row, __: Path) -> None:
    manager, client = start_new_kernel(kernel_name="python3")
    said: list[str] = []
    try:
        for turn in range(2):
            reply = client.execute_interactive(
                _CELL, timeout=60, output_hook=lambda message: said.append(message["content"].get("text", ""))
            )
            assert reply["content"]["status"] == "ok", reply["content"]
            assert "".join(said).split() == ["3"] * (turn + 1)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def one_bar_and_none_that_is_stale(_: Row, __: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with pytest.MonkeyPatch.context() as patch:
        stream = Terminal()
        patch.setattr(sys, "stderr", stream)
        patch.setattr(bars, "_quiet", lambda: False)
        patch.setattr(bars, "_PATIENCE", 0.0)
        cut = bars.progress(range(9), "sweep", "setting")
        assert next(cut) == 0
        with pytest.raises(KeyboardInterrupt):
            cut.throw(KeyboardInterrupt())
        list(bars.progress(range(3), "sweep", "setting"))
        drawn = stream.getvalue()
    assert "\n" not in drawn, "each bar is drawn in place, and is wiped at its end"
    assert drawn.rstrip(" \r").endswith(("\r", "]")) or drawn.endswith("\r")
    quiet = subprocess.run([sys.executable, "-c", _CELL], capture_output=True, text=True, timeout=120)
    assert (quiet.stdout.strip(), quiet.stderr) == ("3", "")


_ENTRIES = """
import sys
import openclaw_lab as lab
with lab.KnowHub.open(sys.argv[1], embedder="hash") as kb:
    if sys.argv[2] == "save":
        for number in range(1100):
            content = f"entry {number} of the store, 条目"
            kb.save(task=f"任务 {number} task", content=content, types=["experience"], score=4)
    print([hit.entry.id for hit in kb.search("entry 777 of the store", top_k=5)])
"""


def more_than_a_thousand_entries_survive_a_restart(_: Row, folder: Path) -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", _ENTRIES, str(folder / "kb"), verb],
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
        ).stdout
        for verb in ("save", "search")
    ]
    assert said[0] == said[1]
    assert len(said[0]) > 10


CHECKS: dict[str, Callable[[Row, Path], None]] = {
    "eva-001": one_prediction_over_two_spans_counts_once,
    "eva-005": a_failure_found_early_stays_when_a_judge_fails,
    "eva-006": numbers_of_a_conversation_go_on,
    "pm-065": an_agent_runs_in_a_running_loop,
    "pm-067": two_sweeps_in_one_kernel,
    "pm-068": one_bar_and_none_that_is_stale,
    "pm-069": more_than_a_thousand_entries_survive_a_restart,
}


def rows() -> dict[str, Row]:
    if not all(file.is_file() for file in FILES):
        return {}
    lines = [line for file in FILES for line in gzip.decompress(file.read_bytes()).decode("utf-8").splitlines()]
    return {row["id"]: row for row in map(json.loads, lines)}


ROWS = rows()


@pytest.mark.skipif(not ROWS, reason="the shared cases are not here: set OPENCLAW_LAB_DATA")
def test_each_case_has_a_check() -> None:
    assert set(ROWS) == set(CHECKS)


@pytest.mark.skipif(not ROWS, reason="the shared cases are not here: set OPENCLAW_LAB_DATA")
@pytest.mark.parametrize("name", CHECKS)
def test_case(name: str, tmp_path: Path) -> None:
    CHECKS[name](ROWS[name], tmp_path)
