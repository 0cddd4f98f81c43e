"""The bundled dialogues are what their datasheet says: counts, evidence, nothing real, nothing that leaks by itself."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from growing import ROWS

from openclaw_lab.files import bundled


def test_counts() -> None:
    assert len(ROWS) == len({row["id"] for row in ROWS}) == 100
    assert Counter(row["lang"] for row in ROWS) == {"en": 50, "zh": 50}
    assert Counter(each["type"] for row in ROWS for each in row["memories"]) == {
        "preference": 33, "knowledge": 37, "experience": 16,
    }  # fmt: skip
    assert sum(not row["memories"] for row in ROWS) == 26
    kinds = Counter((row["lang"], row["kind"]) for row in ROWS)
    assert all(kinds["en", kind] == kinds["zh", kind] >= 3 for _, kind in kinds)
    assert kinds["en", "nothing"] == 10
    assert {row["split"] for row in ROWS} == {"tune", "held"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_dialogue_hangs_together(row: dict) -> None:  # type: ignore[type-arg]
    messages, asked = row["messages"], set()
    for each in messages:
        asked |= {call["id"] for call in each.get("tool_calls", ())}
        assert each["role"] != "tool" or each["tool_call_id"] in asked
        assert each["content"] or each.get("tool_calls")
    for memory in row["memories"]:
        assert set(memory) <= {"type", "text", "evidence", "superseded"}
        assert memory["text"].strip()
        assert memory["evidence"]
        assert all(messages[index]["role"] in ("user", "tool") for index in memory["evidence"])
    said = "\n".join(each["content"] for each in messages)
    for text in row.get("secrets", []):
        assert text in said
        assert not any(text in memory["text"] for memory in row["memories"])
    assert all(text in said for text in row.get("forbidden", []))
    assert (row["kind"] in ("secret",)) == ("secrets" in row)
    assert (row["kind"] == "injected") == ("forbidden" in row)


def test_hosts_are_reserved_for_examples() -> None:
    text = (bundled("datasets") / "extraction/mini.jsonl").read_text("utf-8")
    hosts = re.findall(r"(?:https?://|@)([a-z0-9.-]+)", text)
    assert hosts
    assert all(host.endswith(".example") for host in hosts)
