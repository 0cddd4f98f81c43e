"""Figures that are kept: found again as long as code, data and settings are what they were, and never otherwise."""

from __future__ import annotations

import dataclasses
import multiprocessing
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openclaw_lab as lab
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments import code
from openclaw_lab.experiments.cache import NAME, Cache, key_of, use
from openclaw_lab.experiments.code import code_version, modules_of
from openclaw_lab.experiments.memo import Memo
from openclaw_lab.experiments.tasks import TASKS, task_named
from openclaw_lab.injection.verdict import Detection

DATA = {
    "reminders": "sessions/mini", "skills": "skills/mini", "redaction": "redaction/mini", "injection": "injection/mini",
    "extraction": "extraction/mini", "retrieval": "retrieval/mini",
}  # fmt: skip
VARIED = {
    "reminders": {"reminders.interval": 7}, "skills": {"skills.threshold": 0.7},
    "redaction": {"redaction.off": ["jwt"]}, "injection": {"injection.threshold": 0.3},
    "extraction": {"extraction.min_importance": 4}, "retrieval": {"knowhub.lexical_weight": 0.25},
}  # fmt: skip
TASK = "openclaw_lab.experiments.tasks."


def figures(results: Any) -> dict[str, str]:
    return {name: str(metric) for name, metric in results.metrics.items()}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks that prepared, in order."""
    seen: list[str] = []
    for name in TASKS:
        kind = type(task_named(name, {"model": "simulated"} if name == "live" else None))
        prepare = kind.prepare

        def noted(self: Any, data: Any, config: Any, prepare: Any = prepare) -> Any:
            seen.append(self.name)
            return prepare(self, data, config)

        monkeypatch.setattr(kind, "prepare", noted)
    return seen


# --- what is found again ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", DATA)
def test_a_second_time_costs_nothing_and_says_the_same(task: str, tmp_path: Path, asked: list[str]) -> None:
    data = lab.load_dataset(DATA[task])[:150]
    plain = lab.evaluate(task, data, cache="off")
    first = lab.evaluate(task, data, cache=tmp_path)
    before = len(asked)
    again = lab.evaluate(task, data, cache=tmp_path)
    assert figures(plain) == figures(first) == figures(again)
    assert len(asked) == before
    assert again.errors().astype(str).equals(plain.errors().astype(str))  # with the reasons, made when asked for
    other = lab.LabConfig().with_(VARIED[task])
    assert figures(lab.evaluate(task, data, other, cache=tmp_path)) == figures(lab.evaluate(task, data, other))


@pytest.mark.parametrize("task", DATA)
def test_a_task_reads_no_section_that_it_does_not_name(task: str) -> None:
    """So a key holds everything that a figure depends on."""

    class Closed:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{task} reads {name}")

    chosen, data, config = task_named(task), lab.load_dataset(DATA[task])[:40], lab.LabConfig()
    for section in dataclasses.fields(config):
        if section.name not in chosen.reads:
            object.__setattr__(config, section.name, Closed())
    prepared = chosen.prepare(data, config)
    chosen.decided_by(prepared, config)
    chosen.measure(prepared, config)
    assert len(chosen.rows(data, prepared, config)) == 40


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"skills.top_k": 1}, True),  # another section
        ({"injection.threshold": 0.4}, False),
        ({"injection.off": ["jail-eu"]}, False),
        ({}, True),
    ],
)
def test_what_a_key_depends_on(change: dict[str, Any], same: bool, tmp_path: Path) -> None:
    memo = Memo(task_named("injection"), lab.load_dataset("injection/mini")[:9], Cache.at(tmp_path))
    base = lab.LabConfig()
    assert (memo.key("measured", base) == memo.key("measured", base.with_(change))) is same


def test_data_and_options_are_part_of_a_key(tmp_path: Path) -> None:
    cache, config, data = Cache.at(tmp_path), lab.LabConfig(), lab.load_dataset("sessions/mini")
    one = data.samples[0]
    others = [
        data[1:],
        dataclasses.replace(data, samples=(dataclasses.replace(one, lang="xx"), *data.samples[1:])),
        dataclasses.replace(data, samples=(dataclasses.replace(one, group="xx"), *data.samples[1:])),
    ]
    keys = {Memo(task_named("reminders"), each, cache).key("measured", config) for each in [data, *others]}
    keys.add(Memo(task_named("reminders", {"window": 5}), data, cache).key("measured", config))
    assert len(keys) == 5
    renamed = dataclasses.replace(data, name="another name")
    assert Memo(task_named("reminders"), renamed, cache).key("measured", config) in keys


def test_a_file_of_rules_that_changes_is_read_again(tmp_path: Path) -> None:
    rules = tmp_path / "own.json"
    config = lab.LabConfig().with_({"redaction.rules": str(rules)})
    data = lab.load_dataset("redaction/mini")[:60]
    found = []
    for pattern in ("zzzz", "[a-z]"):
        rule = '[{"id": "own", "type": "own", "pattern": "%s", "replacement": "[X]", "note": "a test"}]'
        rules.write_text(rule % pattern)
        found.append(lab.evaluate("redaction", data, config, cache=tmp_path / "kept").metrics["false_redactions"].value)
    assert found[0] < found[1]


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("injection", {"detector": lambda text: Detection(0.0, False)}),
        ("redaction", {"redactor": str.upper}),
        ("skills", {"matcher": lambda messages, catalogue: np.zeros((len(messages), len(catalogue)))}),
        ("extraction", {"extractor": lambda messages: []}),
    ],
)
def test_what_is_your_own_is_computed_each_time(task: str, options: dict[str, Any], tmp_path: Path) -> None:
    memo = Memo(task_named(task, options), lab.load_dataset(DATA[task])[:5], Cache.at(tmp_path))
    assert memo.key("measured", lab.LabConfig()) == ""


def test_a_task_of_your_own_is_computed_each_time(tmp_path: Path) -> None:
    kind = type(task_named("injection"))
    own = type("Own", (kind,), {"__module__": "__main__"})()
    assert Memo(own, lab.load_dataset("injection/mini")[:5], Cache.at(tmp_path)).key("measured", lab.LabConfig()) == ""


def test_no_text_of_the_data_is_kept(tmp_path: Path) -> None:
    data = lab.load_dataset("redaction/mini")[:300]
    lab.tune("redaction", data, {"redaction.off": [(), ("jwt",)]}, cache=tmp_path)
    attacks = lab.load_dataset("injection/mini")
    lab.tune("injection", attacks, cache=tmp_path)
    lab.evaluate("injection", attacks, cache=tmp_path).errors()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    with sqlite3.connect(tmp_path / NAME) as store:
        kept += b"".join(_plain(value) for (value,) in store.execute("SELECT value FROM kept"))
    store.close()
    secrets = [sample.input[span.start : span.end] for sample in data for span in sample.label.spans]
    words = [*secrets, *(sample.input[:40] for sample in attacks)]
    assert [word for word in words if len(word) > 9 and word.encode() in kept] == []
    assert (tmp_path / NAME).stat().st_mode & 0o077 == 0


def _plain(value: bytes) -> bytes:
    import io
    import zipfile

    if not value.startswith(b"PK"):
        return value
    with zipfile.ZipFile(io.BytesIO(value)) as held:
        return b"".join(held.read(name) for name in held.namelist())


# --- the state of the code ----------------------------------------------------------------------------------------


def test_a_changed_rule_makes_only_its_own_figures_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "openclaw_lab"
    shutil.copytree(Path(lab.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "_*s"))
    monkeypatch.setattr(code, "_ROOT", package)
    before = {task: code_version(TASK + task) for task in DATA}
    rules = next((package / "redaction" / "rules").glob("*.json"))
    rules.write_text(rules.read_text("utf-8") + "\n", "utf-8")
    changed = {task for task in DATA if code_version(TASK + task) != before[task]}
    assert "redaction" in changed
    assert not changed & {"injection", "skills"}
    before = {task: code_version(TASK + task) for task in DATA}
    file = package / "injection" / "views.py"
    file.write_text(file.read_text("utf-8") + "\n", "utf-8")
    changed = {task for task in DATA if code_version(TASK + task) != before[task]}
    assert "injection" in changed
    assert not changed & {"redaction", "skills"}


def test_what_a_task_runs_is_found() -> None:
    found = modules_of(TASK + "injection")
    assert {"openclaw_lab.injection.classifier", "openclaw_lab.rules.sieve", "openclaw_lab.config"} <= found
    assert not {name for name in found if ".redaction" in name or ".transcripts" in name}


# --- the store ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [3, "", [], 0.5])
def test_what_is_no_place(where: Any) -> None:
    with pytest.raises(TaskError, match=r'cache: found .*; expected "auto", "off" or a folder'):
        Cache.at(where)
    with pytest.raises(TaskError, match="cache"):
        use(where)


def test_damage_costs_the_figures_alone(tmp_path: Path) -> None:
    data = lab.load_dataset("injection/mini")[:60]
    first = lab.evaluate("injection", data, cache=tmp_path)
    with sqlite3.connect(tmp_path / NAME) as store:
        store.execute("UPDATE kept SET value = substr(value, 1, 40)")
    store.close()
    assert figures(lab.evaluate("injection", data, cache=tmp_path)) == figures(first)
    (tmp_path / NAME).write_bytes(b"no database at all" * 99)
    assert figures(lab.evaluate("injection", data, cache=tmp_path)) == figures(first)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    cache = Cache.at(tmp_path / "file")
    cache.put({"a": b"1"})
    assert cache.get(["a"]) == {}
    assert cache.size == 0


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / NAME, most=10_000)
    for number in range(9):
        cache.put({str(number): bytes(1000)})
        time.sleep(0.002)
    cache.get(["0"])
    time.sleep(0.002)
    cache.put({"9": bytes(1000), "10": bytes(1000)})
    kept = cache.get([str(number) for number in range(11)])
    assert set(kept) == {"0", "4", "5", "6", "7", "8", "9", "10"}
    assert cache.size == 8000
    cache.clear()
    assert cache.size == 0


def _put(place: tuple[str, int]) -> int:
    cache, number = Cache(Path(place[0])), place[1]
    for turn in range(20):
        cache.put({key_of(number, turn): bytes([number]) * 100})
    return len(cache.get([key_of(number, turn) for turn in range(20)]))


def test_several_processes_at_once(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.map(_put, [(str(tmp_path / NAME), number) for number in range(4)]) == [20] * 4
    assert Cache(tmp_path / NAME).size == 4 * 20 * 100


# --- interrupted, and with several workers --------------------------------------------------------------------------

_INTERRUPTED = """
import os, sys
import openclaw_lab as lab
from openclaw_lab.experiments import memo
from openclaw_lab.experiments.tasks.redaction import RedactionTask
memo._OFTEN = 0.0
measure, turns = RedactionTask.measure, [0]
def counted(self, prepared, config):
    turns[0] += 1
    print("measured", flush=True)
    if turns[0] == int(sys.argv[2]):
        {stop}
    return measure(self, prepared, config)
RedactionTask.measure = counted
off = [(), *((name,) for name in ("jwt", "jwe", "sk-key", "github-token", "npm-token", "slack-token"))]
space = {{"redaction.off": off}}
found = lab.tune("redaction", lab.load_dataset("redaction/mini")[:120], space, cache=sys.argv[1])
print(found.frame.to_csv())
"""


@pytest.mark.parametrize(
    ("stop", "turn"),
    [
        ("os._exit(9)", 4),
        pytest.param("os._exit(9)", 2, marks=pytest.mark.slow),
        pytest.param("raise KeyboardInterrupt", 2, marks=pytest.mark.slow),
        pytest.param("raise KeyboardInterrupt", 6, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_search_pays_nothing_twice(stop: str, turn: int, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_INTERRUPTED.format(stop=stop))

    def run(folder: str, at: int) -> tuple[int, Sequence[str], str]:
        command = [sys.executable, str(script), str(tmp_path / folder), str(at)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        lines = done.stdout.splitlines()
        return (
            done.returncode,
            [line for line in lines if line == "measured"],
            "\n".join(line for line in lines if line != "measured"),
        )

    whole = run("whole", 0)
    cut = run("cut", turn)
    rest = run("cut", 0)
    assert whole[0] == 0
    assert cut[0] != 0
    assert rest[2] == whole[2]
    # the one that was cut is the only one that is measured again, and the chosen one is counted on the last part too
    assert len(cut[1]) - 1 + len(rest[1]) <= len(whole[1]) + 1
