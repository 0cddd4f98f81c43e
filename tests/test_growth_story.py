"""Ten sessions of one user with one agent: what is learned is used; without memory the same questions fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

import openclaw_lab as lab
from openclaw_lab.agent.reply import Reply, Request
from openclaw_lab.growth.memory import GrowthMemory

matplotlib.use("Agg")


@dataclass(frozen=True)
class Asked:
    """A question, and the word without which an answer is wrong."""

    text: str
    word: str


# What is said in each session; an Asked is a question, all else teaches or passes the time.
STORY: tuple[tuple[str | Asked, ...], ...] = (
    ("以后回复请用要点，不要大段文字。", "我叫小舟，住在杭州。"),
    (Asked("帮我写一段自我介绍，我叫什么名字？", "小舟"), "今天天气不错。"),
    ("I work as a data engineer at a shipping company.", Asked("周报要怎么排版？", "要点")),
    ("请记住：发布前先跑一遍冒烟测试。", Asked("我住在哪个城市？", "杭州")),
    (Asked("What is my job?", "data engineer"), "Could you explain what a mutex is?"),
    ("我搬到成都了，不住杭州了。", Asked("发布之前要先做什么？", "冒烟测试")),
    (Asked("我现在住在哪里？", "成都"), "翻译一下：I like rain."),
    ("Actually, I now work as a product manager.", Asked("我住在哪个城市？", "成都")),
    (Asked("What do I work as?", "product manager"),),
    (Asked("给我的回复应该用什么格式？", "要点"), Asked("我叫什么？", "小舟")),
)


def reader(request: Request) -> Reply:
    """A model that knows only what stands in its prompt: it reads its instructions back."""
    return Reply(request.system)


def told(config: lab.LabConfig, folder: Path, memory_on: bool) -> tuple[list[bool], GrowthMemory]:
    memory = GrowthMemory.open(folder, "a1", config=config)
    right: list[bool] = []
    for number, session in enumerate(STORY, start=1):
        given = memory if memory_on else None
        with lab.Agent(reader, memory=given, config=config, id=f"s{number:02}") as agent:
            right += _session(agent, session)
    return right, memory


def _session(agent: lab.Agent, session: Sequence[str | Asked]) -> list[bool]:
    found = []
    for each in session:
        turn = agent.run(each.text if isinstance(each, Asked) else each)
        if isinstance(each, Asked):
            found.append(each.word in turn.text)
    return found


@pytest.mark.parametrize("host", ["openclaw-2026.3", "openclaw-2026.9"])
def test_ten_sessions(tmp_path: Path, host: str) -> None:
    config = lab.LabConfig().with_({"reminders.host": host})
    off, _ = told(config, tmp_path / "off", memory_on=False)
    right, memory = told(config, tmp_path / "on", memory_on=True)
    with memory:
        assert not any(off)
        assert all(right), right
        tracker = memory.track(by="session")
        rows = tracker.frame[tracker.frame["type"] == "all"]
        assert rows["superseded"].sum() >= 2  # the home and the job
        assert rows["total"].is_monotonic_increasing
        covered, asked = tracker.coverage
        assert covered >= len(right)
        assert "成都" in str([each.content for each in memory.entries()])
        home = next(each for each in memory.entries("knowledge") if "成都" in each.content)
        assert any("杭州" in each.content for each in memory.history(home.uri))  # never a silent loss
        ax = tracker.plot()
        assert f"found for {covered} of {asked} questions" in ax.get_title(loc="left")
        assert [each.get_label() for each in ax.get_lines()][:3] == ["preference", "knowledge", "experience"]
        plt.close("all")


def test_a_memory_without_anything_draws_too(tmp_path: Path) -> None:
    with GrowthMemory.open(tmp_path, "a1", embedder="hash") as memory:
        assert memory.track().plot().get_title(loc="left").startswith("0 memories after 0 days")
        plt.close("all")
