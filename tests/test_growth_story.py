"""Ten sessions of one user with one agent: what is learned is used; without memory the same questions fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest
from agents import HOSTS

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
    ("请记住：发布前先跑一遍冒烟测试。", ("我住在哪个城市？", "杭州"), "Please always answer in English."),
    (("What is my job?", "data engineer"), "Could you explain what a mutex is?"),
    (
        "我搬到成都了，不住杭州了。",
        ("发布之前要先做什么？", "冒烟测试"),
        "教训：上次上线前没备份数据库，回滚花了三个小时。",
    ),
    (("我现在住在哪里？", "成都"), "以后都用中文回答。", "翻译一下：I like rain."),
    ("Actually, I now work as a product manager.", ("我住在哪个城市？", "成都"), ("上线之前有什么教训？", "备份")),
    (("What do I work as?", "product manager"), "我叫小舟。"),
    (("给我的回复应该用什么格式？", "要点"), ("我叫什么？", "小舟"), ("Which language should you answer in?", "中文")),
)


@pytest.mark.parametrize("host", HOSTS)
def test_ten_sessions(tmp_path: Path, host: str) -> None:
    config = lab.LabConfig().with_({"reminders.host": host})
    assert not tell(STORY, None, config).frame["answered"].any()
    with GrowthMemory.open(tmp_path, "a1", config=config) as memory:
        told = tell(STORY, memory, config).frame
        assert told["answered"].all(), told
        tracker = memory.track(by="session")
        rows = tracker.frame[tracker.frame["type"] == "all"]
        assert rows["superseded"].sum() == 3  # the home, the job, the language
        assert rows["confirmed"].sum() == 1  # the name, said again
        assert rows["total"].is_monotonic_increasing
        last = tracker.frame[tracker.frame["period"] == "session-10"].set_index("type")["total"]
        assert last.to_dict() == {"preference": 2, "knowledge": 4, "experience": 1, "all": 7}
        covered, asked = tracker.coverage
        assert covered >= len(told)
        assert "成都" in str([each.content for each in memory.entries()])
        home = next(each for each in memory.entries("knowledge") if "成都" in each.content)
        assert any("杭州" in each.content for each in memory.history(home.uri))  # never a silent loss
        ax = tracker.plot()
        wanted = f"7 memories with 3 corrections after 10 sessions; found for {covered} of {asked} messages"
        assert ax.get_title(loc="left") == wanted
        assert [each.get_label() for each in ax.get_lines()][:3] == ["preference", "knowledge", "experience"]
        drawn = {each.get_label(): -sum(bar.get_height() for bar in each) for each in ax.containers}
        assert drawn == {"said again, confirmed": 1, "corrected, superseded": 3}
        assert [each.get_text().partition("\n")[0] for each in ax.get_xticklabels()] == [
            f"{n:02}" for n in range(1, 11)
        ]
        assert all(label.get_text().lstrip("−").isdigit() for label in ax.get_yticklabels())
        plt.close("all")
        budgets = [{"growth.max_tokens": tokens} for tokens in (0, 60, 100, 500)]
        frame = ask(STORY, memory, budgets, small_talk=["今天天气不错。"]).frame
        assert frame["answered"].is_monotonic_increasing
        # The old job is not said any more.
        assert frame["answered"].tolist()[::3] == [0, frame["questions"].iloc[0] - 1]
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
