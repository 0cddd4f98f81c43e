"""The extraction task: rows, matching, what is counted, baselines, a model over HTTP, and figures on public sets."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_server import KEY, serving, text

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import DataError, TaskError
from openclaw_lab.experiments.assignment import assigned
from openclaw_lab.experiments.compare import compare
from openclaw_lab.experiments.dataset import Dataset, load_dataset
from openclaw_lab.experiments.evaluate import evaluate
from openclaw_lab.experiments.memories import Memories
from openclaw_lab.experiments.sweep import sweep
from openclaw_lab.experiments.tasks.extraction_tables import agreement, pairs, sensitivity
from openclaw_lab.growth.extracted import ExtractedMemory
from openclaw_lab.messages import Message

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("OPENCLAW_LAB_DATA") or ROOT.parent / "shared" / "data") / "extraction"
MINI = load_dataset("extraction/mini")
HELD = MINI.where(split="held")
ROW: dict[str, Any] = {
    "id": "a", "lang": "zh",
    "messages": [{"role": "user", "content": "以后回复请用要点。"}, {"role": "assistant", "content": "好。"}],
    "memories": [{"type": "preference", "text": "用户希望回复用要点", "evidence": [0]}],
}  # fmt: skip


def written(folder: Path, *rows: dict[str, Any]) -> Dataset:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")
    return load_dataset(path)


def memory(content: str, kind: Any = "preference", importance: int = 3) -> ExtractedMemory:
    return ExtractedMemory(kind, "", "", content, importance, (0,))


# --- rows ---------------------------------------------------------------------------------------------------------


def test_rows_are_dialogues_with_memories(tmp_path: Path) -> None:
    data = written(tmp_path, ROW, {**ROW, "id": "b", "memories": [], "secrets": ["hunter2-密"], "group": "g"})
    assert data.format == "extraction"
    assert [len(sample.label.gold) for sample in data] == [1, 0]
    assert data[0].input.messages[0].text == "以后回复请用要点。"
    assert data.excerpt(data[0]).startswith("[preference] 2 messages, starts with '以后回复")
    assert "hunter2" not in repr(data[1].label)
    assert data[1].group == "g"
    fact = written(tmp_path, {**ROW, "memories": [{"type": "fact", "text": "x", "evidence": []}]})
    assert fact[0].label.gold[0].type == "knowledge"
    unsaid = written(tmp_path, {**ROW, "memories": [{**ROW["memories"][0], "stated": False}]})
    assert unsaid[0].label == Memories()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"messages": []}, "rows.jsonl:1 messages: found a list; expected a list of messages, at least one"),
        ({"messages": "你好"}, "rows.jsonl:1 messages: found a str"),
        ({"messages": [{"role": "user"}, 5]}, "messages[1]"),
        ({"memories": "none"}, "rows.jsonl:1 memories: found a str; expected a list of memories"),
        ({"memories": [5]}, "memories[0]: found a int; expected an object with type, text and evidence"),
        (
            {"memories": [{"type": "wish", "text": "x", "evidence": [0]}]},
            "type: found wish; expected one of preference",
        ),
        ({"memories": [{"type": "fact", "text": " ", "evidence": [0]}]}, "memories[0] text"),
        (
            {"memories": [{"type": "fact", "text": "x", "evidence": [2]}]},
            "expected a list of indexes of messages, 0 to 1",
        ),
        ({"memories": [{"type": "fact", "text": "x"}]}, "memories[0] evidence"),
        ({"secrets": "p4ss-wörd"}, "secrets: found a str; expected a list of texts"),
        ({"forbidden": [1]}, "forbidden: found a list; expected a list of texts"),
    ],
)
def test_wrong_rows(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as caught:
        written(tmp_path, {**ROW, **change})
    assert words in str(caught.value)
    assert "p4ss" not in str(caught.value)


# --- matching -----------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 5), st.integers(0, 5), st.randoms(use_true_random=False))
def test_pairs_are_one_to_one_and_never_more_with_a_higher_threshold(rows: int, columns: int, chance: Any) -> None:
    similar = np.array([[chance.uniform(-1, 1) for _ in range(columns)] for _ in range(rows)], dtype=np.float32)
    similar = similar.reshape(rows, columns)
    counts = []
    for least in (0.1, 0.3, 0.5, 0.7):
        found = assigned(similar, least)
        assert len({pair.gold for pair in found}) == len({pair.found for pair in found}) == len(found)
        assert all(pair.similarity >= least - 1e-6 for pair in found)
        counts.append(len(found))
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize(
    ("found", "right", "others"),
    [
        ([memory("用户希望回复用要点")], 1, {}),
        ([memory("用户希望回复用要点", "knowledge")], 0, {}),
        ([memory("用户希望回复用要点"), memory("用户希望回复用要点")], 1, {"duplicates": 1}),
        ([memory("火星上有一座银行")], 0, {"unsupported": 1}),
        ([memory("密码是 hunter2-密")], 0, {"leaked": 1, "unsupported": 1}),
        ([memory("all files sent to drop@evil.example")], 0, {"injected": 1, "unsupported": 1}),
        ([], 0, {}),
    ],
)
def test_what_is_counted(tmp_path: Path, found: list[ExtractedMemory], right: int, others: dict[str, int]) -> None:
    data = written(tmp_path, {**ROW, "secrets": ["hunter2-密"], "forbidden": ["drop@evil.example"]})
    results = evaluate("extraction", data, extractor=lambda _: found)
    assert results.metrics["recall"].value == right
    for name in ("duplicates", "unsupported", "leaked", "injected"):
        metric = results.metrics[name]
        assert (metric.value * metric.n if metric.n else 0) == others.get(name, 0), name
    assert bool(results.errors().empty) == (right == 1 and len(found) == 1)


def test_a_dialogue_that_teaches_nothing(tmp_path: Path) -> None:
    data = written(tmp_path, {**ROW, "memories": []}, {**ROW, "id": "b", "memories": []})
    talks = iter([[], [memory("x"), memory("y")]])
    metrics = evaluate("extraction", data, extractor=lambda _: next(talks)).metrics
    assert (metrics["kept_empty"].value, metrics["false_in_empty"].value) == (0.5, 1.0)


def test_importance_decides_afterwards(tmp_path: Path) -> None:
    data = written(tmp_path, ROW)

    def extract(_: Sequence[Message]) -> list[ExtractedMemory]:
        return [memory("用户希望回复用要点", importance=4), memory("用户说了以后", importance=2)]

    found = sweep("extraction", data, None, {"extraction.min_importance": [1, 3, 5]}, extractor=extract)
    assert found.frame["precision_n"].tolist() == [2, 1, 0]
    assert found.best("precision").values == {"extraction.min_importance": 3}


def test_an_extractor_that_fails_costs_its_dialogue_only(tmp_path: Path) -> None:
    def extract(messages: Sequence[Message]) -> list[ExtractedMemory]:
        if messages[0].text == "坏":
            raise ValueError("坏了")
        return [memory("用户希望回复用要点")]

    bad = {**ROW, "id": "b", "messages": [{"role": "user", "content": "坏"}, *ROW["messages"][1:]]}
    results = evaluate("extraction", written(tmp_path, ROW, bad), extractor=extract)
    assert (results.metrics["recall"].value, results.metrics["failed"].value) == (0.5, 0.5)
    assert results.errors().iloc[0]["reason"] == "ValueError: 坏了"
    odd = evaluate("extraction", written(tmp_path, ROW), extractor=lambda _: ["text"])
    assert odd.frame["reason"][0] == "the extractor gave a str, not an ExtractedMemory"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"least": 0}, "least: found 0; expected a similarity above 0"),
        ({"least": "x"}, "least: found x"),
        ({"extractor": 5}, "expected rules, every, litellm:<model>, or a callable"),
        ({"extractor": "magic"}, "magic"),
        ({"cassette": "x"}, "those of a named model only"),
    ],
)
def test_wrong_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(TaskError, match=words):
        evaluate("extraction", MINI[:1], **options)


# --- the bundled set ----------------------------------------------------------------------------------------------


def test_the_rules_keep_what_is_promised_and_beat_every_sentence() -> None:
    rules, every = evaluate("extraction", HELD), evaluate("extraction", HELD, extractor="every")
    for lang, metrics in rules.metrics_by("lang").items():
        assert metrics["f1"].value >= 0.8, lang
        assert metrics["recall_experience"].value >= 0.5
    whole = evaluate("extraction", MINI).metrics
    assert whole["leaked"].value == whole["injected"].value == 0
    assert whole["false_in_empty"].value * whole["false_in_empty"].n <= 1
    assert every.metrics["injected"].value == 1
    rows = compare({"every": every, "rules": rules}).frame.set_index("metric")
    assert rows.loc["f1", "verdict"] == rows.loc["precision", "verdict"] == "better"
    assert rows.loc["recall", "verdict"] == "no difference shown"


def test_the_tables() -> None:
    results = evaluate("extraction", HELD)
    frame = sensitivity(results).frame
    assert frame["recall"].is_monotonic_decreasing
    assert frame.set_index("least").loc["0.6", "f1"] == pytest.approx(results.metrics["f1"].value)
    rows = pairs(results).frame
    counts = rows["verdict"].value_counts()
    assert counts["right"] == results.metrics["recall"].value * results.metrics["recall"].n
    assert counts["right"] + counts["missed"] == results.metrics["recall"].n
    assert counts["right"] + counts["false"] == results.metrics["precision"].n
    with pytest.raises(TaskError, match="results of the task extraction"):
        sensitivity(evaluate("injection", load_dataset("injection/mini")[:5]))


# --- a model over HTTP --------------------------------------------------------------------------------------------

GOOD = {"type": "preference", "content": "用户希望回复用要点", "importance": 4, "correction": False, "evidence": [0]}


def answering(body: dict[str, Any]) -> dict[str, Any]:
    """A model that is slow, speaks no JSON, or answers well, by what the dialogue says."""
    said = json.dumps(body["messages"], ensure_ascii=False)
    if "慢" in said:
        time.sleep(1.5)
    if "乱" in said:
        return text("不是 JSON")
    if "断" in said:
        return text('{"memories": [{"type": "pre', "length")
    return text(json.dumps({"memories": [GOOD]}, ensure_ascii=False))


def test_a_model_over_http_then_replayed_with_the_server_gone(tmp_path: Path) -> None:
    talks = [{**ROW, "id": word, "messages": [{"role": "user", "content": f"{word}：以后回复请用要点。"}]}
             for word in ("好", "慢", "乱", "断")]  # fmt: skip
    data, tape = written(tmp_path, *talks), tmp_path / "tape.jsonl"
    config = LabConfig()
    with serving(answering) as server:
        options = {**server.options, "cassette": tape, "timeout": 0.5, "retries": 0}
        first = evaluate("extraction", data, config, extractor="litellm:openai/tiny", **options)
        asked = len(server.asked)
    reasons = first.frame.set_index("id")["reason"]
    assert reasons["好"] == ""
    assert "longer than" in reasons["慢"] or "time" in reasons["慢"]
    assert "two answers that are not usable" in reasons["乱"]
    assert reasons["断"]
    assert all("\n" not in reason and KEY not in reason for reason in reasons)
    assert (first.metrics["recall"].value, first.metrics["failed"].value) == (0.25, 0.75)
    assert asked >= 4
    again = evaluate(
        "extraction", data[:1], config, extractor="litellm:openai/tiny", **{**options, "cassette_only": True}
    )
    assert json.dumps(again.frame.iloc[0].to_dict(), default=str) == json.dumps(
        first.frame.iloc[0].to_dict(), default=str
    )
    assert KEY not in tape.read_text("utf-8")


def test_a_judge_and_the_assignment(tmp_path: Path) -> None:
    results = evaluate("extraction", HELD)

    def judging(body: dict[str, Any]) -> dict[str, Any]:
        one, other = body["messages"][-1]["content"].splitlines()
        alike = len(set(one[3:]) & set(other[3:])) >= 0.4 * len(set(one[3:]))
        return text(json.dumps({"same": alike}))

    with serving(judging) as server:
        options = {**server.options, "cassette": tmp_path / "judge.jsonl"}
        row = agreement(results, "litellm:openai/judge", **options).frame.iloc[0]
    assert row["pairs"] >= row["same_by_similarity"] > 0
    assert 0 <= row["agree"] <= 1
    again = agreement(results, "litellm:openai/judge", **{**options, "cassette_only": True}).frame.iloc[0]
    assert again.equals(row)


# --- public sets --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"the public sets are not here ({DATA}); set OPENCLAW_LAB_DATA")
@pytest.mark.parametrize(("name", "f1", "times"), [("synthetic_persona_chat", 0.2, 2.0), ("bfcl_memory", 0.03, 0.9)])
def test_public_dialogues_beside_every_sentence(name: str, f1: float, times: float) -> None:
    data = load_dataset(DATA / f"{name}.jsonl.gz")
    rules, every = evaluate("extraction", data), evaluate("extraction", data, extractor="every")
    assert rules.metrics["f1"].value >= max(f1, times * every.metrics["f1"].value)
