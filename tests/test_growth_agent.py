"""An agent with a growth memory: recalled before a turn, taught after it, under every host; off, not a byte changes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from agents import HOSTS
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_server import serving, text

import openclaw_lab as lab
from openclaw_lab.agent.reply import Reply, Request
from openclaw_lab.agent.turn import Turn
from openclaw_lab.growth.memory import GrowthMemory
from openclaw_lab.plugins.hooks import HookBus, Injection

ON = lab.LabConfig().with_({"growth.calibrated": True})
OFF = ON.with_({"growth.enabled": False})


class Recording:
    """A model that answers the same, and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def __call__(self, request: Request) -> Reply:
        self.sent.append(repr([request.system, request.messages, request.tools]))
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


@pytest.mark.parametrize("host", HOSTS)
def test_only_what_is_new_is_read_and_what_plugins_put_in_is_not(tmp_path: Path, host: str) -> None:
    bus = HookBus()
    bus.on("before_prompt_build", lambda _: Injection("I prefer answers in Latin.", "start"), plugin="p")
    with opened(tmp_path) as memory:
        agent = lab.Agent(Recording(), memory=memory, plugins=[bus], config=ON, host=host, id="s1")
        agent.run("我住在杭州。")
        agent.run("谢谢")
        agent.run("我住在杭州。")
        learned = [str(each).split(":")[0] for each in agent.learning.learned]  # type: ignore[union-attr]
        assert learned == ["new", "confirmed"]
        assert [each.content for each in memory.entries("knowledge")] == ["我住在杭州。"]
        assert memory.entries("preference") == []


def test_before_a_compaction_and_at_the_end(tmp_path: Path) -> None:
    config = ON.with_({"growth.learn": "before_compaction"})
    with opened(tmp_path, config) as memory:
        agent = lab.Agent(Recording(), memory=memory, config=config, id="s1")
        for message in ("我的办公室在五楼。", "好", "行", "嗯"):
            agent.run(message)
        assert known(memory) == []
        assert agent.compact(1)
        assert known(memory) == ["我的办公室在五楼。"]
        agent.run("My birthday is on 5 May.")
        assert len(known(memory)) == 1
        agent.close()
        assert len(known(memory)) == 2


@pytest.mark.parametrize(
    "said", ["请记住：服务器在东京", "帮我看看。记住，服务器在东京。", "remember this: 服务器在东京"]
)
def test_what_is_asked_to_be_remembered_is_kept_at_once(tmp_path: Path, said: str) -> None:
    for learn, kept in (("before_compaction", 1), ("off", 0)):
        config = ON.with_({"growth.learn": learn})
        with opened(tmp_path / learn, config) as memory:
            agent = lab.Agent(Recording(), memory=memory, config=config)
            agent.run("我住在杭州吗？")
            assert known(memory) == []
            agent.run(said)
            assert sum("服务器在东京" in each for each in known(memory)) == kept


def test_the_layers_of_a_session_are_kept_when_it_ends(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        for again in range(2):
            with lab.Agent(Recording(), memory=memory, config=ON, session=tmp_path / "s.jsonl", id="s1") as agent:
                agent.run("我住在杭州。")
                assert memory.read("agent://a1/sessions/s1", "summary") is None or again
                agent.run(f"好的，第 {again} 次")
        raw, summary = (memory.read("agent://a1/sessions/s1", layer) for layer in ("raw", "summary"))
        assert raw is not None
        assert summary is not None
        assert raw.content.splitlines()[::2] == ["user: 我住在杭州。", "user: 好的，第 0 次",
                                                 "user: 我住在杭州。", "user: 好的，第 1 次"]  # fmt: skip
        assert summary.version <= 2, "a version a session, not a turn"


def test_rolled_back_resumed_and_async(tmp_path: Path) -> None:
    with opened(tmp_path / "kb") as memory:
        path = tmp_path / "s.jsonl"
        with lab.Agent(Recording(), memory=memory, config=ON, session=path) as agent:
            agent.run("I live in Porto.")
            agent.run("谢谢")
            agent.rollback(2)
            assert len(known(memory)) == 1  # what was learned stays
            agent.run("I live in Lisbon now.")
            asyncio.run(agent.arun("I prefer short answers."))
            agent.run("好")
            agent.rollback()
            agent.run("行")
        with lab.Agent(Recording(), memory=memory, config=ON, session=path) as again:
            again.run("My birthday is on 5 May.")
        assert {each.content for each in memory.entries("knowledge")} >= {"My birthday is on 5 May."}
        rows = memory.track("session").frame
        assert rows[rows["type"] == "all"]["confirmed"].sum() == 0, "what was read is not read again"
        home = next(each for each in memory.entries() if "Lisbon" in each.content)
        assert [each.content for each in memory.history(home.uri)] == ["I live in Porto.", "I live in Lisbon now."]


def test_a_fork_knows_and_does_not_learn_the_same_again(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        agent = lab.Agent(Recording(), memory=memory, config=ON)
        agent.run("I live in Porto.")
        agent.run("I moved to Lisbon.")
        model = Recording()
        fork = agent.fork(model=model)
        asyncio.run(fork.arun("Where do I live?"))
        assert "Lisbon" in model.sent[0]
        fork.run("我喜欢喝茶。")
        fork.close()
        agent.close()
        assert len(known(memory)) == 2
        assert [each.version for each in memory.entries("knowledge")] == [2]


def test_a_turn_taken_a_step_at_a_time_teaches_too(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        agent = lab.Agent(Recording(), memory=memory, config=ON)
        for each in agent.step("I live in Porto."):
            if isinstance(each, Turn):
                break
        assert known(memory) == ["I live in Porto."]


def test_a_slow_memory_does_not_hold_up_the_event_loop() -> None:
    class Slow:
        def inject(self, message: str, **_: Any) -> str:
            time.sleep(0.2)
            return ""

        def extract(self, messages: object, **_: Any) -> list[object]:
            time.sleep(0.2)
            return []

    async def ticks() -> int:
        agent = lab.Agent(Recording(), memory=Slow(), config=ON)
        turn, count = asyncio.ensure_future(agent.arun("你好")), 0
        while not turn.done():
            await asyncio.sleep(0.01)
            count += 1
        assert turn.result().text == "好的"
        return count

    assert asyncio.run(ticks()) >= 10


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

        def extract(self, messages: Any, *, session: str, extractor: str, layers: bool) -> list[object]:
            with serving(lambda body: text("x")):
                self.read.append(f"{extractor} {len(messages)}{' layers' * layers}")
            return []

    memory = Slow()
    agent = lab.Agent(Recording(), memory=memory, config=config)
    agent.run("一")
    agent.run("二")
    agent.close()
    assert memory.read == ["litellm:openai/tiny 2", "litellm:openai/tiny 4", "litellm:openai/tiny 4 layers"]


def test_what_matters_little_is_not_kept(tmp_path: Path) -> None:
    config = ON.with_({"extraction.min_importance": 5})
    with opened(tmp_path, config) as memory:
        agent = lab.Agent(Recording(), memory=memory, config=config)
        agent.run("I live in Porto.")
        agent.run("Remember this: the gate code is blue.")
        assert known(memory) == ["the gate code is blue."]
