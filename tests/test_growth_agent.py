"""An agent with a growth memory: recalled before a turn, taught after it, under every host; off, not a byte changes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import HOSTS
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_server import serving, text

import openclaw_lab as lab
from openclaw_lab.agent.reply import Reply, Request
from openclaw_lab.growth.memory import GrowthMemory
from openclaw_lab.plugins.hooks import HookBus, Injection

ON = lab.LabConfig().with_({"growth.calibrated": True})
OFF = ON.with_({"growth.enabled": False})


class Recording:
    """A model that answers the same, and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def __call__(self, request: Request) -> Reply:
        self.sent.append(repr([request.system, request.messages]))
        return Reply("好的")


def opened(folder: Path, config: lab.LabConfig = ON) -> GrowthMemory:
    return GrowthMemory.open(folder, "a1", config=config)


def known(memory: GrowthMemory) -> list[str]:
    """What it knows, the conversations themselves left out."""
    return [each.content for each in memory.entries() if each.type != "session"]


TEACHES = [
    ("以后回复请用要点，不要大段文字。", "怎么给我写周报？", "要点"),
    ("I prefer answers as short bullet points.", "how should you answer me?", "bullet points"),
]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(("said", "asked", "word"), TEACHES)
def test_what_one_session_teaches_the_next_one_knows(
    tmp_path: Path, host: str, said: str, asked: str, word: str
) -> None:
    with opened(tmp_path) as memory:
        first = lab.Agent(Recording(), memory=memory, host=host, config=ON, id="s1")
        first.run(said)
        assert [str(each).split(":")[0] for each in first.learning.learned] == ["new"]  # type: ignore[union-attr]
        model = Recording()
        second = lab.Agent(model, memory=memory, host=host, config=ON, id="s2")
        turn = second.run(asked)
        assert word in model.sent[0]
        assert "<knowhub-experiences>" in model.sent[0]
        assert all(word not in each.text for each in turn.messages)  # recalled text stays out of the session
        assert len(known(memory)) == 1  # and is not learned again
        assert second.learning is not None
        assert second.learning.faults == []


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("how", ["enabled", "learn"])
def test_switched_off(tmp_path: Path, host: str, how: str) -> None:
    config = OFF if how == "enabled" else ON.with_({"growth.learn": "off"})
    with opened(tmp_path) as memory:
        memory.remember("The user prefers tea", type="preference")
        with_memory, without = Recording(), Recording()
        one = lab.Agent(with_memory, memory=memory, host=host, config=config, id="s")
        other = lab.Agent(without, host=host, config=config, id="s")
        for message in ("I prefer coffee from now on.", "我喜欢什么？", "what do I prefer?"):
            one.run(message)
            other.run(message)
        assert (with_memory.sent == without.sent) is (how == "enabled")
        assert (len(known(memory)) > 1) is (how == "enabled")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=40).filter(str.strip), min_size=1, max_size=3), st.sampled_from(HOSTS))
def test_off_not_a_byte_changes_whatever_is_said(messages: list[str], host: str) -> None:
    class Full:
        def inject(self, message: str, **_: Any) -> str:
            raise AssertionError("not asked")

        def extract(self, messages: object, **_: Any) -> list[object]:
            return []

    one, other = Recording(), Recording()
    with_memory = lab.Agent(one, memory=Full(), host=host, config=OFF, id="s")
    without = lab.Agent(other, host=host, config=OFF, id="s")
    for each in messages:
        with_memory.run(each)
        without.run(each)
    assert one.sent == other.sent


def test_only_what_is_new_is_read_and_what_plugins_put_in_is_not(tmp_path: Path) -> None:
    bus = HookBus()
    bus.on("before_prompt_build", lambda _: Injection("I prefer answers in Latin.", "start"), plugin="p")
    with opened(tmp_path) as memory:
        agent = lab.Agent(Recording(), memory=memory, plugins=[bus], config=ON, id="s1")
        agent.run("我住在杭州。")
        agent.run("谢谢")
        agent.run("我住在杭州。")
        learned = [str(each).split(":")[0] for each in agent.learning.learned]  # type: ignore[union-attr]
        assert learned == ["new", "confirmed"]
        assert [each.content for each in memory.entries("knowledge")] == ["我住在杭州。"]
        assert memory.entries("preference") == []


def test_before_a_compaction(tmp_path: Path) -> None:
    config = ON.with_({"growth.learn": "before_compaction"})
    with opened(tmp_path, config) as memory:
        agent = lab.Agent(Recording(), memory=memory, config=config, id="s1")
        for message in ("请记住：服务器在东京", "好", "行", "嗯"):
            agent.run(message)
        assert known(memory) == []
        assert agent.compact(1)
        assert [each.content for each in memory.entries("knowledge")] == ["服务器在东京"]


def test_rolled_back_forked_resumed_and_async(tmp_path: Path) -> None:
    with opened(tmp_path / "kb") as memory:
        path = tmp_path / "s.jsonl"
        with lab.Agent(Recording(), memory=memory, config=ON, session=path) as agent:
            agent.run("I live in Porto.")
            agent.rollback()
            assert len(known(memory)) == 1  # what was learned stays
            agent.run("I live in Lisbon now.")
            model = Recording()
            fork = agent.fork(model=model)
            asyncio.run(fork.arun("Where do I live?"))
            assert "Lisbon" in model.sent[0]
        with lab.Agent(Recording(), memory=memory, config=ON, session=path) as again:
            again.run("My birthday is on 5 May.")
        assert {each.content for each in memory.entries("knowledge")} >= {"My birthday is on 5 May."}


def test_without_conversation_access_nothing_is_learned_on_2026_9(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        for host, kept in (("openclaw-2026.9", 0), ("openclaw-2026.3", 1)):
            agent = lab.Agent(Recording(), memory=memory, host=host, config=ON, conversation_access=False)
            agent.run("I live in Porto.")
            assert len(known(memory)) == kept


def test_a_memory_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def inject(self, message: str, **_: Any) -> str:
            raise OSError("盘坏了")

        def extract(self, messages: object, **_: Any) -> list[object]:
            raise OSError("盘坏了")

    agent = lab.Agent(Recording(), memory=Broken(), config=ON)
    assert agent.run("你好").text == "好的"
    assert agent.learning is not None
    assert agent.learning.faults == ["OSError: 盘坏了"]
    assert [each.getMessage() for each in caplog.records] == [
        "nothing recalled: OSError: 盘坏了",
        "nothing learned: OSError: 盘坏了",
    ]


def test_a_model_learns_while_the_user_goes_on(tmp_path: Path) -> None:
    config = ON.with_({"extraction.extractor": "litellm:openai/tiny"})

    class Slow:
        def __init__(self) -> None:
            self.read: list[str] = []

        def inject(self, message: str, **_: Any) -> str:
            return ""

        def extract(self, messages: Any, *, session: str, extractor: str) -> list[object]:
            with serving(lambda body: text("x")):
                self.read.append(f"{extractor} {len(messages)}")
            return []

    memory = Slow()
    agent = lab.Agent(Recording(), memory=memory, config=config)
    agent.run("一")
    agent.run("二")
    agent.close()
    assert memory.read == ["litellm:openai/tiny 2", "litellm:openai/tiny 4"]


def test_what_matters_little_is_not_kept(tmp_path: Path) -> None:
    config = ON.with_({"extraction.min_importance": 5})
    with opened(tmp_path, config) as memory:
        agent = lab.Agent(Recording(), memory=memory, config=config)
        agent.run("I live in Porto.")
        agent.run("Remember this: the gate code is blue.")
        assert known(memory) == ["the gate code is blue."]
