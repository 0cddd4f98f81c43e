"""The gate of the rules: what it lets through is all that can hit; nothing is slow, however long or odd."""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_lab.config import INJECTION_VIEWS, InjectionConfig
from openclaw_lab.experiments.dataset import load_dataset
from openclaw_lab.injection import needs, patterns
from openclaw_lab.injection.needs import derive, finder, need_of, phrase_of
from openclaw_lab.injection.patterns import RuleScorer, Weighted
from openclaw_lab.injection.phrases import rarest
from openclaw_lab.injection.views import lower, views

FOLDER = Path(patterns.__file__).with_name("rules")
ROWS = json.loads((FOLDER / "rules.json").read_text("utf-8"))
WEIGHTS = json.loads((FOLDER / "weights.json").read_text("utf-8"))["rules"]
RULES = [
    Weighted(row["id"], row["type"], WEIGHTS[row["id"]]["weight"], row["pattern"], row.get("flags", ""),
             need_of(row["pattern"], row.get("flags", "")))
    for row in ROWS
]  # fmt: skip
SCORER = RuleScorer(InjectionConfig(detector="rules"))


def ungated(text: str) -> set[tuple[str, int, int]]:
    """Every hit in every reading, with neither a gate nor a short way for plain texts."""
    return {
        (each.hit.rule, each.hit.start, each.hit.end)
        for view in views(text, INJECTION_VIEWS)
        for each in SCORER.hits(view, RULES)
    }


def gated(text: str) -> set[tuple[str, int, int]]:
    return {(each.hit.rule, each.hit.start, each.hit.end) for each in SCORER.weighed(text)}


LABELLED = [sample.input for name in ("mini", "train") for sample in load_dataset(f"injection/{name}")]


def test_the_gate_changes_no_result_on_the_labelled_texts() -> None:
    for text in random.Random(0).sample(LABELLED, 150):
        assert gated(text[:1500]) == ungated(text[:1500])


WORDS = sorted({key.strip(needs.PART) for rule in RULES for key in rule.need})
PIECES = st.sampled_from(WORDS) | st.sampled_from(re.findall(r"\w+|\W", " ".join(LABELLED[:60]).lower()))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(PIECES, st.sampled_from(["", " ", "  ", "-", "\n", ": ", "_", "。", "\u200b", "’", "…", " “"])),
        max_size=30,
    )
)
def test_the_gate_changes_no_result_on_texts_of_what_rules_look_for(pieces: list[tuple[str, str]]) -> None:
    text = "".join(itertools.chain.from_iterable(pieces))
    assert gated(text) == ungated(text)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=120))
def test_the_gate_changes_no_result_on_any_text(text: str) -> None:
    assert gated(text) == ungated(text)


def test_most_rules_are_not_searched_in_a_plain_text() -> None:
    for text in ("the build failed because the lock file was stale, so i ran it once more", "请把报告按日期排序再导出"):
        assert SCORER._held(text) == []


@pytest.mark.parametrize(
    ("pattern", "holds", "lacks"),
    [
        (r"ignore\s{1,4}(?:all|any)\s{1,4}rules", "ignore all rules", "ignore all orders"),
        (r"send\w{0,3}\s{1,4}money", "sending money", "sending gifts"),
        (r"(?:foo|bar)\s{0,4}(?:to|for)\s{1,4}you", "footo you", "to you"),
        (r"<\|(?:user|tool)[a-z]{0,9}\|>", "<|user|>", "user >"),
        (r"忽略[^。]{0,9}指令", "忽略所有指令", "忽略所有"),
        (r"(?:^|\n)system:", "a\nsystem: b", "a tool: b"),
    ],
)
def test_a_need_is_what_each_match_holds(pattern: str, holds: str, lacks: str) -> None:
    found = re.compile(finder(derive(pattern)).encode())
    assert found.search(f"\n{holds}\n".encode())
    assert not found.search(f"\n{lacks}\n".encode())


def test_a_rule_without_a_need_is_always_looked_for() -> None:
    assert derive(r"\w{3}") == ()
    assert derive(r"\Bfoo") == ()


def test_stored_needs_are_those_that_are_derived() -> None:
    for row in ROWS[::25]:
        assert need_of(row["pattern"], row.get("flags", "")) == derive(row["pattern"], row.get("flags", ""))


@pytest.mark.parametrize(
    ("pattern", "rare", "phrase"),
    [
        (
            r"do\s{1,4}not\b[^.\n]{0,40}tell\s{1,4}(?:the|any)\s{1,4}user",
            "tell",
            r"tell(?:[\x09-\x0d\x20]|",
        ),
        (r"(?:ignore|forget)[^.\n]{0,40}(?:rules|orders)", "rules", "(?:rules|orders)"),
        (r"(?:send.{0,9}mail|忽略\s{0,2}指令)", "mail", r"(?:mail|(?:\xe5\xbf\xbd)(?:\xe7\x95\xa5)(?:[\x09-\x0d"),
        (r"[^\n]{5,90}", "a", ""),
    ],
)
def test_of_what_stands_together_the_rarest_is_looked_for(pattern: str, rare: str, phrase: str) -> None:
    found = rarest(pattern, "", lambda each: 0.0 if rare in each else 1.0)
    assert found.startswith(phrase) if phrase else not found


def test_stored_phrases_are_in_every_hit() -> None:
    for rule in RULES:
        phrase = re.compile(phrase_of(rule.pattern, rule.flags).encode("latin1"), re.DOTALL | re.MULTILINE)
        for text in LABELLED[::7]:
            for match in rule.compiled.finditer(lower(text)):
                assert phrase.search(match.group().encode("utf-8", "surrogatepass")), rule.id


# Pieces that patterns half match; and what the readings look for.
_PIECES = [
    "a", "a ", "i ", "- ", "\n", "你", "上传至", "把 ", "curl ", "toon ", "推翻", "انسَ ", "add ", "ignore the ",
    "you are ", "send all ", "[", "<!-- ", "忽略", "' ", "%41", "&a", "a.", "a b ", "0110", "aB3/", ".- ", "e\u0301",
    "1a", "\u200b",
]  # fmt: skip


@pytest.mark.parametrize("piece", _PIECES)
def test_no_repeated_piece_makes_a_long_text_slow(piece: str) -> None:
    text = (piece * 40_000)[:40_000]
    SCORER(text[:1000])
    begin = time.process_time()
    SCORER(text)
    assert time.process_time() - begin < 3  # on a loaded machine; 0.5 s on a quiet one


def test_a_megabyte_of_any_characters_is_read_in_seconds() -> None:
    chance = random.Random(0)
    text = "".join(chr(chance.randrange(0x110000)) for _ in range(1_000_000))
    begin = time.process_time()
    SCORER(lower(text))
    assert time.process_time() - begin < 30
