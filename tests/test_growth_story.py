"""Ten sessions of one user with one agent: what is learned is used; without memory the same questions fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest

import openclaw_lab as lab
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.story import ask, tell
from openclaw_lab.growth.memory import GrowthMemory

matplotlib.use("Agg")


# What is said in each session; a pair is a question and the word that an answer takes.
STORY: tuple[tuple[str | tuple[str, str], ...], ...] = (
    ("以后回复请用要点，不要大段文字。", "我叫小舟，住在杭州。"),
    (("帮我写一段自我介绍，我叫什么名字？", "小舟"), "今天天气不错。"),
    ("I work as a data engineer at a shipping company.", ("周报要怎么排版？", "要点")),
    ("请记住：发布前先跑一遍冒烟测试。", ("我住在哪个城市？", "杭州")),
    (("What is my job?", "data engineer"), "Could you explain what a mutex is?"),
    ("我搬到成都了，不住杭州了。", ("发布之前要先做什么？", "冒烟测试")),
    (("我现在住在哪里？", "成都"), "翻译一下：I like rain."),
    ("Actually, I now work as a product manager.", ("我住在哪个城市？", "成都")),
    (("What do I work as?", "product manager"),),
    (("给我的回复应该用什么格式？", "要点"), ("我叫什么？", "小舟")),
)


@pytest.mark.parametrize("host", ["openclaw-2026.3", "openclaw-2026.9"])
def test_ten_sessions(tmp_path: Path, host: str) -> None:
    config = lab.LabConfig().with_({"reminders.host": host})
    assert not tell(STORY, None, config).frame["answered"].any()
    with GrowthMemory.open(tmp_path, "a1", config=config) as memory:
        told = tell(STORY, memory, config).frame
        assert told["answered"].all(), told
        tracker = memory.track(by="session")
        rows = tracker.frame[tracker.frame["type"] == "all"]
        assert rows["superseded"].sum() >= 2  # the home and the job
        assert rows["total"].is_monotonic_increasing
        covered, asked = tracker.coverage
        assert covered >= len(told)
        assert "成都" in str([each.content for each in memory.entries()])
        home = next(each for each in memory.entries("knowledge") if "成都" in each.content)
        assert any("杭州" in each.content for each in memory.history(home.uri))  # never a silent loss
        ax = tracker.plot()
        assert f"found for {covered} of {asked} questions" in ax.get_title(loc="left")
        assert [each.get_label() for each in ax.get_lines()][:3] == ["preference", "knowledge", "experience"]
        plt.close("all")
        budgets = [{"growth.max_tokens": tokens} for tokens in (0, 60, 100, 500)]
        frame = ask(STORY, memory, budgets, small_talk=["今天天气不错。"]).frame
        assert frame["answered"].is_monotonic_increasing
        assert frame["answered"].tolist()[::3] == [
            0,
            frame["questions"].iloc[0] - 1,
        ]  # the old job is not said any more
        assert (frame["tokens"] <= frame["growth.max_tokens"]).all()


@pytest.mark.parametrize("odd", [("only one",), ("q", ""), ("a", "b", "c"), (1, 2)])
def test_a_story_that_is_none(odd: Any) -> None:
    with pytest.raises(TaskError, match="a message, or a question and the word"):
        tell([[odd]], None)
    with pytest.raises(TaskError, match="no settings"):
        ask([["x"]], None, [])  # type: ignore[arg-type]


def test_a_memory_without_anything_draws_too(tmp_path: Path) -> None:
    with GrowthMemory.open(tmp_path, "a1", embedder="hash") as memory:
        assert memory.track().plot().get_title(loc="left").startswith("0 memories after 0 days")
        plt.close("all")
