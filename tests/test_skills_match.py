"""Matchers and the registry: what a message picks, why, and what it never does."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_lab.config import LabConfig, SkillConfig
from openclaw_lab.errors import ConfigError
from openclaw_lab.skills import prompt
from openclaw_lab.skills.catalogue import Catalogue, readable
from openclaw_lab.skills.lexical import seed_words
from openclaw_lab.skills.matchers import scores
from openclaw_lab.skills.phrases import phrases
from openclaw_lab.skills.registry import EXAMPLES, SkillRegistry
from openclaw_lab.skills.requirements import Environment, Requirements
from openclaw_lab.skills.scores import Scores, picked
from openclaw_lab.skills.skill import Skill
from openclaw_lab.text import count_tokens, cut

DATA = Path(os.environ.get("OPENCLAW_LAB_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
MATCHERS = ("seed", "keyword", "bm25", "embedding", "hybrid")
SYSINFO = ("sysinfo", "Query CPU, memory, disk, processes")
GITHUB = ("github", "Use gh for GitHub issues, PR status, CI logs, comments, reviews, releases, and API queries.")
OTHERS = [
    ("weather", "Current weather and forecast for a place: temperature, rain, wind."),
    ("润色", "把中文改得更自然：去掉翻译腔，理顺句子。用户说“润色”“改自然一点”时使用。"),
    ("飞书", "用飞书发送消息和文件，查找用户。"),
    ("pdf", "Split, merge and rotate PDF files."),
]
REGISTRY = SkillRegistry.from_records([SYSINFO, GITHUB, *OTHERS])


def names(registry: SkillRegistry, message: str, **settings: Any) -> list[str]:
    return [each.name for each in registry.match(message, SkillConfig(**settings))]


# --- the seed document's way --------------------------------------------------------------------------------------

SEED = [
    ("show memory usage and disk space", [SYSINFO], ["sysinfo"]),
    ("这段代码有内存泄漏的问题，帮我分析一下", [SYSINFO], []),
    ("this code has a memory leak", [SYSINFO], []),
    ("MEMORY, disk!", [SYSINFO], ["sysinfo"]),
    ("memory-disk_processes", [SYSINFO], []),  # `_` is a word character: only memory stands alone
    ("memory disk-processes", [SYSINFO], ["sysinfo"]),
    ("cpu cpu cpu", [SYSINFO], []),  # three letters are no keyword
    ("check the github issues", [GITHUB], ["github"]),
    ("这代码有 issues", [GITHUB], []),
    ("send word", [("twice", "send send a file")], ["twice"]),  # a repeated keyword counts twice
    ("weather", [("one", "weather")], ["one"]),  # a description of one keyword needs one
    ("hello", [("none", "查看内存、磁盘、进程")], ["none"]),  # none at all: picked by everything
    ("", [("none", "go do it")], ["none"]),
    ("", [SYSINFO], []),
]


@pytest.mark.parametrize(("message", "skills", "expected"), SEED)
def test_seed(message: str, skills: list[tuple[str, str]], expected: list[str]) -> None:
    assert names(SkillRegistry.from_records(skills), message, matcher="seed") == expected


def test_seed_knows_no_limits_but_its_own() -> None:
    many = SkillRegistry.from_records([(f"s{number}", "memory disk") for number in range(9)])
    found = many.match("memory disk", SkillConfig(matcher="seed", top_k=2, threshold=1.0, max_tokens=1))
    assert [each.name for each in found] == [f"s{number}" for number in range(9)]
    assert names(many, "memory disk", matcher="seed", min_hits=3) == [f"s{number}" for number in range(9)]


@given(st.text())
def test_seed_words_are_ascii(text: str) -> None:
    assert all(len(word) > 3 and not set(word) & set(" \t-.,") for word in seed_words(text))


# --- every matcher ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("matcher", [each for each in MATCHERS if each != "seed"])
@pytest.mark.parametrize("message", ["hello", "今天心情不错", "?", "", "   ", "😀"])
def test_no_keyword_is_no_reason(matcher: str, message: str) -> None:
    """What the seed injects into every prompt, the others never do for a message that has nothing to do with it."""
    registry = SkillRegistry.from_records([("磁盘", "查看内存、磁盘、进程"), ("x", "go do it")])
    assert names(registry, message, matcher=matcher) == []


PICKS = [
    ("把中文改自然一点", "润色"),
    ("帮我润色这段话", "润色"),
    ("will it rain tomorrow in Leeds", "weather"),
    ("明天会下雨吗", "weather"),
    ("合并这两个 PDF 文件", "pdf"),
    ("merge these pdf files", "pdf"),
    ("用飞书给他发个消息", "飞书"),
    ("which processes use most memory", "sysinfo"),
    ("show the CI logs of my github PR", "github"),
]


@pytest.mark.parametrize(("message", "expected"), PICKS)
def test_hybrid_finds(message: str, expected: str) -> None:
    found = REGISTRY.match(message)
    assert found, message
    assert found[0].name == expected
    assert found[0].reason


@pytest.mark.parametrize(
    "message", ["thanks, that is all", "你好", "who wrote Hamlet?", "讲个笑话", "《红楼梦》的作者是谁"]
)
def test_hybrid_leaves_alone(message: str) -> None:
    assert REGISTRY.match(message) == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("show me disk space", ["sysinfo"]),
        ("is my CPU overloaded?", ["sysinfo"]),
        ("内存还剩多少", ["sysinfo"]),
        ("电脑怎么这么慢", ["sysinfo"]),
        ("硬盘快满了怎么办", ["sysinfo"]),
        ("who wrote Hamlet?", []),
        ("今天天气怎么样", []),
        ("推荐一本小说", []),
        ("thanks, that is all", []),
        ("谢谢，没事了", []),
    ],
)
def test_examples_are_found_by_plain_requests(message: str, expected: list[str]) -> None:
    registry = SkillRegistry.load(EXAMPLES, environment=Environment.of(["gh", "python3"]))
    assert names(registry, message) == expected


def test_chinese_words_are_shared_in_part() -> None:
    """Case pm-032: a whole run of characters must not be one word; the reason names what is shared."""
    (match, *_) = REGISTRY.match("把中文改自然一点", SkillConfig(matcher="keyword", threshold=0.2))
    assert match.name == "润色"
    assert "自然" in match.reason
    assert match.hits >= 2


@pytest.mark.parametrize("matcher", MATCHERS)
def test_the_same_alone_and_among_others(matcher: str) -> None:
    messages = ["show memory and disk", "明天下雨吗", "", "merge pdf"]
    config = SkillConfig(matcher=matcher)
    together = scores(messages, REGISTRY.catalogue, config)
    for row, message in enumerate(messages):
        alone = scores([message], REGISTRY.catalogue, config)
        assert np.allclose(alone.score[0], together.score[row], atol=2e-3)


@pytest.mark.parametrize("matcher", MATCHERS)
def test_an_empty_registry(matcher: str) -> None:
    assert names(SkillRegistry.from_records([]), "anything", matcher=matcher) == []


@pytest.mark.parametrize("matcher", MATCHERS)
@settings(deadline=None, max_examples=15)
@given(message=st.text(max_size=60))
def test_any_message(matcher: str, message: str) -> None:
    config = SkillConfig(matcher=matcher, embedder="hash", threshold=0.0, top_k=0)
    for match in REGISTRY.match(message, config):
        assert match.reason or not match.score
        assert matcher == "seed" or 0 <= match.score <= 1


def test_a_hash_embedder_and_other_names() -> None:
    assert readable("pdfTools-for_you") == "pdf Tools for you"
    with pytest.raises(ConfigError, match="embedder"):
        REGISTRY.match("x y", SkillConfig(matcher="embedding", embedder="nothing"))
    with pytest.raises(ConfigError, match=r"skills\.model"):
        REGISTRY.match("x y", SkillConfig(model="nowhere.npz"))
    with pytest.raises(ConfigError, match="config"):
        REGISTRY.match("x", 3)  # type: ignore[arg-type]


# --- an own matcher -----------------------------------------------------------------------------------------------


def lengths(messages: Sequence[str], catalogue: Catalogue) -> list[list[float]]:
    return [[min(1.0, len(name) / 10) for name in catalogue.names] for _ in messages]


def test_an_own_matcher() -> None:
    found = REGISTRY.match("x", SkillConfig(threshold=0.65), lengths)
    assert [each.name for each in found] == ["sysinfo", "weather"]
    with pytest.raises(ConfigError, match="1 rows of 6 scores"):
        REGISTRY.match("x", None, lambda messages, catalogue: [[0.1]])
    with pytest.raises(ConfigError, match="not finite"):
        REGISTRY.match("x", None, lambda messages, catalogue: np.full((1, 6), np.nan))


# --- thresholds, limits, budgets ----------------------------------------------------------------------------------

THREE = Scores(("a", "b", "c"), np.array([[0.9, 0.7, 0.5], [0.2, 0.6, 0.6]], dtype=np.float32))
COSTS = [100, 10, 10]


def chosen(config: SkillConfig, costs: Sequence[int] = COSTS) -> list[list[str]]:
    mask = picked(THREE, config, costs)
    return [[THREE.names[THREE.order[row, place]] for place in np.flatnonzero(mask[row])] for row in range(2)]


LIMITS = [
    ({}, [["a", "b", "c"], ["b", "c"]]),
    ({"threshold": 0.6}, [["a", "b"], ["b", "c"]]),
    ({"threshold": 0.95}, [[], []]),
    ({"top_k": 1}, [["a"], ["b"]]),
    ({"top_k": 0}, [["a", "b", "c"], ["b", "c"]]),
    ({"thresholds": ["a=0.95"]}, [["b", "c"], ["b", "c"]]),
    ({"thresholds": ["c=0.55", "a=0.1"], "top_k": 0}, [["a", "b"], ["b", "c", "a"]]),
    ({"thresholds": ["a=0.95"], "top_k": 1}, [["b"], ["b"]]),
    ({"max_tokens": 110}, [["a", "b"], ["b", "c"]]),
    ({"max_tokens": 20}, [["b", "c"], ["b", "c"]]),
    ({"max_tokens": 10, "top_k": 1}, [["b"], ["b"]]),
    ({"max_tokens": 5}, [[], []]),
    ({"max_tokens": 0}, [["a", "b", "c"], ["b", "c"]]),
]


@pytest.mark.parametrize(("values", "expected"), LIMITS)
def test_limits(values: dict[str, Any], expected: list[list[str]]) -> None:
    assert chosen(SkillConfig(**values)) == expected


@pytest.mark.parametrize("bad", ["a", "=0.5", "a=", "a=x", "a=1.5", "a=-1", "a=nan"])
def test_single_thresholds_are_checked(bad: str) -> None:
    with pytest.raises(ConfigError, match=r"skills\.thresholds"):
        SkillConfig(thresholds=(bad,))


matrices = st.integers(1, 6).flatmap(
    lambda width: st.lists(st.lists(st.floats(0, 1, width=32), min_size=width, max_size=width), min_size=1, max_size=5)
)


@given(matrices, st.floats(0, 1), st.integers(0, 4), st.integers(0, 60), st.data())
def test_picked_is_what_a_loop_would_pick(
    rows: list[list[float]], threshold: float, top_k: int, budget: int, data: st.DataObject
) -> None:
    score = np.array(rows, dtype=np.float32)
    costs = data.draw(st.lists(st.integers(1, 40), min_size=score.shape[1], max_size=score.shape[1]))
    made = Scores(tuple(f"s{number}" for number in range(score.shape[1])), score)
    config = SkillConfig(threshold=threshold, top_k=top_k, max_tokens=budget)
    mask = picked(made, config, costs)
    for row in range(len(score)):
        expected: list[int] = []
        for column in sorted(range(score.shape[1]), key=lambda each: (-score[row, each], each)):
            fits = not budget or sum(costs[each] for each in expected) + costs[column] <= budget
            if score[row, column] >= np.float32(threshold) and fits and not (top_k and len(expected) >= top_k):
                expected.append(column)
        assert [int(made.order[row, place]) for place in np.flatnonzero(mask[row])] == expected


# --- who can be picked --------------------------------------------------------------------------------------------


def skill(name: str, **values: Any) -> Skill:
    return Skill(name, "Query CPU memory and disk of the machine", f"Use {name}_tool.", **values)


def test_who_can_be_picked() -> None:
    registry = SkillRegistry(
        (
            skill("plain"),
            skill("companion", user_invocable=False),
            skill("hidden", model_invocable=False),
            skill("lacking", requires=Requirements(bins=("gh",))),
        ),
        (),
        Environment.of([]),
    )
    assert names(registry, "query cpu memory and disk", matcher="seed") == ["plain"]
    assert [each.name for each in registry.companions(["companion_tool"])] == ["companion"]
    assert registry.companions(["plain_tool", "other"]) == ()
    assert registry.status().log().splitlines() == [
        "[skill] plain: ready",
        "[skill] companion: ready",
        "[skill] hidden: ready",
        "[skill] lacking: requires bin:gh — skipping",
    ]


def test_the_status_as_the_seed_prints_it() -> None:
    registry = SkillRegistry(
        (
            Skill("sysinfo", "Query CPU, memory, disk, processes"),
            Skill("feishu-messaging", "Send Feishu messages", user_invocable=False),
            Skill(
                "github", "Use gh", requires=Requirements(bins=("gh",)), install=("brew install gh", "apt install gh")
            ),
        ),
        (),
        Environment.of([]),
    )
    assert str(registry.status()).splitlines() == [
        "Available skills:",
        "  ✅ sysinfo          — Query CPU, memory, disk, processes",
        "  ✅ feishu-messaging — Send Feishu messages (auto-injected)",
        "  ❌ github           — requires: bin:gh (brew install gh / apt install gh)",
    ]


def test_records_are_checked() -> None:
    for bad in (["ab"], [("a",)], [("a", 3)], [("a", "b"), ("a", "c")]):
        with pytest.raises(ConfigError, match="from_records"):
            SkillRegistry.from_records(bad)  # type: ignore[arg-type]


# --- the prompt ---------------------------------------------------------------------------------------------------


def test_the_section() -> None:
    registry = SkillRegistry((skill("a", folder=Path("/s/a")), skill("b")), (), Environment.of([]))
    matches = registry.match("query cpu memory and disk", SkillConfig(matcher="seed"))
    text = prompt.section(matches)
    assert text.startswith(f"{prompt.HEADING}\n\nCRITICAL RULE")
    assert text.endswith("### a\nUse a_tool.\n\n---\n\n### b\nUse b_tool.")
    assert prompt.section([]) == ""
    assert "with the shell tool;" in prompt.critical_rule()
    assert "shell" not in prompt.critical_rule(tools=[])
    assert "直接用 shell 工具运行" in prompt.critical_rule("zh")
    assert "shell" not in prompt.critical_rule("zh", tools=[])
    assert "with the view_file tool" in prompt.critical_rule(tools=["view_file", "other"])
    assert "用 view_file 工具查看" in prompt.critical_rule("zh", tools=["view_file"])
    with pytest.raises(ConfigError, match="critical_rule: language: found fr; expected en or zh"):
        prompt.critical_rule("fr")
    assert prompt.section([registry["a"]], rule="") == "## Available Skills\n\n### a\nUse a_tool."


def test_the_companions_section() -> None:
    registry = SkillRegistry((skill("c", user_invocable=False),), (), Environment.of([]))
    assert prompt.companion_section(registry, ["c_tool"]) == "## Available Skills\n\n### c\nUse c_tool."
    assert prompt.companion_section(registry, ["d_tool"]) == ""


def test_the_list_of_the_host() -> None:
    hidden = skill("hidden", model_invocable=False)
    registry = SkillRegistry(
        (skill("a"), skill("b<"), hidden, skill("c", user_invocable=False)), (), Environment.of([])
    )
    made = prompt.listing(registry)
    assert (made.listed, made.left_out, made.compact) == (3, 0, False)
    assert "<name>b&lt;</name>" in made.text
    assert "hidden" not in made.text
    small = prompt.listing(registry, most_characters=len(made.text) - 1)
    assert (small.listed, small.compact) == (3, True)
    assert "<description>" not in small.text
    tiny = prompt.listing(registry, most_characters=120)
    assert len(tiny.text) <= 120
    assert tiny.left_out > 0
    assert prompt.listing(registry, most_skills=1).listed == 1
    with pytest.raises(ConfigError, match="host"):
        prompt.listing(registry, "seed")


def test_what_both_ways_cost() -> None:
    many = SkillRegistry.from_records(
        [(f"skill-{n}", f"Does thing number {n} with files and folders") for n in range(60)]
    )
    assert count_tokens(prompt.listing(many).text) > 1000
    assert prompt.section(many.match("thank you")) == ""


# --- phrases and words --------------------------------------------------------------------------------------------

PHRASES = [
    ('Make slides. Use when the user says "a deck" or "做个PPT".', ["a deck", "做个PPT"], []),
    ("查天气。不用于气候研究。", ["查天气"], ["气候研究"]),
    ("Edit images. Do not use for videos or gifs.", ["Edit images"], ["videos", "gifs"]),
    ("翻译、润色、校对", ["翻译", "润色", "校对"], []),
    ("", [], []),
    ("?!", [], []),
]


@pytest.mark.parametrize(("text", "wanted", "unwanted"), PHRASES)
def test_phrases(text: str, wanted: list[str], unwanted: list[str]) -> None:
    found = phrases(text)
    assert set(wanted) <= set(found.wanted)
    joined = " | ".join(found.unwanted)
    assert all(each in joined for each in unwanted)
    assert not set(found.wanted) & set(found.unwanted)


@given(st.text())
def test_any_description_has_phrases_or_not(text: str) -> None:
    found = phrases(text)
    assert len(found.wanted) <= 48
    assert all(each.strip() for each in (*found.wanted, *found.unwanted))


def test_cut() -> None:
    assert cut("查看 CPU 占用, 2 times") == ["查看", "cpu", "占用", "times"]
    assert cut("") == []


# --- cases from bug reports ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not (DATA / "cases").is_dir(), reason="the public cases are not here: set OPENCLAW_LAB_DATA")
def test_every_case_is_dealt_with() -> None:
    """Each case has a test that shows its expectation; a new one asks for one more."""
    with gzip.open(DATA / "cases" / "skills.jsonl.gz", "rt", encoding="utf-8") as file:
        ids = {json.loads(line)["id"] for line in file}
    shown = {
        "pm-032": test_chinese_words_are_shared_in_part,
        "pm-036": "test_skills_task.test_a_flat_or_copied_set_is_warned_of",
        "pm-037": "test_skills_task.test_a_matcher_that_never_fires_is_suspect",
        "pm-038": "test_skills_task.test_misses_are_listed_by_kind_with_intervals",
        "pm-076": test_no_keyword_is_no_reason,
    }
    assert ids == set(shown)
    assert LabConfig().skills.matcher == "hybrid"
