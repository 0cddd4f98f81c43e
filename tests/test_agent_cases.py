"""The cases drawn from public bug reports of similar tools that concern the agent: each row has a check here."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import HOSTS, adding, agent, talk

import openclaw_lab as lab
from openclaw_lab.agent.host import silent_hosts
from openclaw_lab.agent.models import calls
from openclaw_lab.agent.reminding import Reminding
from openclaw_lab.agent.reply import Reply, Request
from openclaw_lab.plugins.hooks import HookBus, Injection

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("OPENCLAW_LAB_DATA") or ROOT.parent / "shared" / "data")
FILE = DATA / "cases" / "agent.jsonl.gz"


def recall_stays_out_of_the_transcript(tmp_path: Path) -> None:
    block, sizes = "我们用 pnpm <always> & never npm", []

    def model(request: Request) -> Reply:
        out = request.messages
        assert sum(each.text.count("pnpm") for each in out) == 1
        sizes.append(len(out[0].text))
        return adding(request)

    made = agent(model, memory=lambda message: block, session=tmp_path / "s.jsonl")
    talk(made)
    assert len(set(sizes)) == 1
    assert "pnpm" not in (tmp_path / "s.jsonl").read_text("utf-8")
    assert not [each for each in made.messages if "pnpm" in each.text]


def reminder_tokens_are_told(tmp_path: Path) -> None:
    normal = {"reminders.policy": "interval", "reminders.interval": 3}
    totals = {}
    for name, changes in {"off": {"reminders.policy": "off"}, "normal": normal}.items():
        config = lab.LabConfig().with_(changes)
        asked: list[int] = []

        def model(request: Request, asked: list[int] = asked) -> Reply:
            asked.append(sum(len(each.text) for each in request.messages))
            return Reply("ok")

        made = agent(model, config=config, plugins=[Reminding(config.reminders)])
        by_turn = [turn.injected_tokens for turn in talk(made, 50)]
        totals[name] = sum(by_turn), sum(asked)
        assert sum(size > 0 for size in by_turn) == (0 if name == "off" else 17)
    plain: list[int] = []

    def bare(request: Request) -> Reply:
        plain.append(sum(len(each.text) for each in request.messages))
        return Reply("ok")

    talk(agent(bare), 50)
    assert totals["off"] == (0, sum(plain))
    assert totals["normal"][0] > 0


def a_weak_model_does_not_search_for_ever(tmp_path: Path) -> None:
    ran: list[int] = []

    def kb_search(query: str) -> str:
        """Search the knowledge base."""
        ran.append(1)
        return "search results: nothing new"

    def weak(request: Request) -> Reply:
        seen = "search results" in request.system + request.prompt + request.last.text
        return calls(("kb_search", {"query": "the same"})) if seen else Reply("answered")

    made = agent(weak, [kb_search], memory=lambda message: "search results: use pnpm")
    turn = made.run("install it")
    assert len(ran) == 3
    assert turn.stop_reason == "loop"
    assert turn.calls <= 5


def a_fork_of_a_nested_agent_has_no_duplicates(tmp_path: Path) -> None:
    forks: list[Any] = []
    inner = agent()

    def ask() -> str:
        """Ask the inner agent and fork it."""
        inner.run("inside")
        forks.append(inner.fork(session=tmp_path / f"{len(forks)}.jsonl"))
        return "ok"

    outer = agent([calls(("ask", {})), "x"], [ask])
    outer.run("go")
    forks[0].run("a new input")
    users = [each.text for each in forks[0].messages if each.role == "user"]
    assert users == ["inside", "a new input"]
    assert len(lab.load_sessions(tmp_path / "0.jsonl")[0].messages) == len(forks[0].messages) == 8


def the_seeds_counter_never_fires_where_the_hook_comes_once_a_turn(tmp_path: Path) -> None:
    fired = {}
    for host in HOSTS:
        config = lab.LabConfig.preset("seed").with_({"reminders.mode": "normal", "reminders.host": host})
        # Four model calls a turn: three tool calls and the answer.
        rounds = [*(calls(("add", {"a": each, "b": 0})) for each in range(3)), Reply("done")]
        made = agent([*rounds] * 20, config=config, plugins=[Reminding(config.reminders)])
        talk(made)
        found = [each.injection.kind for each in made.trace.injections if each.injection]
        fired[host] = found.count("reminder")
    assert fired == {"seed": 20, "openclaw-2026.3": 0, "openclaw-2026.9": 0}
    normal = lab.LabConfig.preset("seed").with_({"reminders.mode": "normal"})
    assert silent_hosts(normal.reminders) == ("openclaw-2026.3", "openclaw-2026.9")


CHECKS: dict[str, Callable[[Path], None]] = {
    "pm-051": recall_stays_out_of_the_transcript,
    "pm-053": reminder_tokens_are_told,
    "pm-055": a_weak_model_does_not_search_for_ever,
    "pm-060": a_fork_of_a_nested_agent_has_no_duplicates,
    "pm-079": the_seeds_counter_never_fires_where_the_hook_comes_once_a_turn,
}
ELSEWHERE = {"pm-058": "how a long text is cut for the embedder: the knowledge base's own tests"}


def test_every_row_has_a_check_or_a_place() -> None:
    if not FILE.is_file():
        pytest.skip("the cases are not here: set OPENCLAW_LAB_DATA to the folder that holds cases/agent.jsonl.gz")
    with gzip.open(FILE, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert {row["id"] for row in rows} == CHECKS.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize(("case", "check"), CHECKS.items(), ids=list(CHECKS))
def test_case(case: str, check: Callable[[Path], None], tmp_path: Path) -> None:
    check(tmp_path)


def test_recall_by_a_hook_stays_out_too(tmp_path: Path) -> None:
    """As the first case, by the other way into a prompt."""
    bus = HookBus()
    bus.on("before_prompt_build", lambda event: Injection("我们用 pnpm", "experiences"), plugin="kb")
    made = agent(plugins=[bus], session=tmp_path / "s.jsonl")
    turns = talk(made)
    assert len({turn.injected_tokens for turn in turns}) == 1
    assert "pnpm" not in (tmp_path / "s.jsonl").read_text("utf-8")
