"""The agent in a terminal: slash commands, what is shown of a turn, the command `chat`."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import add, agent, talk

import openclaw_lab as lab
from openclaw_lab.agent.commands import Commands
from openclaw_lab.agent.models import calls
from openclaw_lab.agent.terminal import converse
from openclaw_lab.cli import main
from openclaw_lab.errors import TaskError
from openclaw_lab.plugins.hooks import HookBus, HookEvent, Injection


class Notes:
    """A memory that keeps what it is told."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    def inject(self, message: str) -> str:
        return "\n".join(self.kept)

    def remember(self, text: str) -> str:
        self.kept.append(text)
        return f"kept: {text}"


def terminal(lines: Sequence[str], made: Any = None) -> list[str]:
    """What a terminal shows for some lines."""
    shown: list[str] = []
    converse(made or agent(), lines, shown.append)
    return shown


def test_turns_are_listed_taken_back_and_forked(tmp_path: Path) -> None:
    made = agent()
    talk(made, 3)
    commands = Commands(made)
    assert commands.answer("/steps") == "  1. say 1 [add]\n  2. say 2 [add]\n  3. say 3 [add]"
    assert commands.answer("/rollback") == "Took back 1 turn (4 messages)."
    assert commands.answer("/rollback 2") == "Took back 2 turns (8 messages)."
    assert commands.answer("/steps") == "No turns yet."
    path = tmp_path / "fork.jsonl"
    assert str(path) in str(commands.answer(f"/fork {path}"))
    assert commands.agent is not made
    commands.agent.run("你好")
    assert len(lab.load_sessions(path)[0].messages) == 4
    assert "/rollback" in str(commands.answer("/help"))
    assert "(none)" in str(commands.answer("/skills"))
    assert "Nothing" in str(commands.answer("/compact"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/rollback x", "a number of turns"), ("/rollback 9", "a turn to take back"), ("/rollback 0", "turn"),
        ("/step", "did you mean /steps"), ("/remember", "an empty text"), ("/remember x", r"give Agent\(memory="),
        ("/remember x", "chat --knowledge FOLDER"), ("/fork /tmp", "/fork: found /tmp, a folder; .*/fork /tmp/session"),
        ("/删除", "a known command"), ("/quti", "did you mean /quit"), ("/STEP", "did you mean /steps"),
    ],
)  # fmt: skip
def test_wrong_commands_are_one_line(line: str, said: str) -> None:
    with pytest.raises(TaskError, match=said) as caught:
        Commands(agent()).answer(line)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "line", ["hello", "/usr/bin/ls is a path", "看看 /etc", "remember me?", "1/2", "记住了吗？", "记住：pnpm"]
)
def test_what_is_no_command_is_a_message(line: str) -> None:
    assert Commands(agent()).answer(line) is None


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("/remember use pnpm", "use pnpm"), ("记住：用 pnpm", "用 pnpm"), ("记住，用 pnpm", "用 pnpm"),
        ("Remember this: use pnpm", "use pnpm"), ("remember: use pnpm", "use pnpm"),
        ("请记住：周五不发版", "周五不发版"),
    ],
)  # fmt: skip
def test_a_wish_to_remember_is_kept_and_recalled(line: str, kept: str) -> None:
    notes = Notes()
    made = agent(memory=notes)
    assert Commands(made).answer(line) == f"kept: {kept}"
    assert notes.kept == [kept]


def test_a_plugins_kb_save_remembers_too() -> None:
    saved: list[str] = []

    async def kb_save(task: str, content: str) -> str:
        """Save knowledge."""
        saved.append(content)
        return "saved"

    made = agent([], [kb_save])
    assert made.remember("用 pnpm") == "saved"
    assert saved == ["用 pnpm"]


def test_a_turn_is_shown_as_it_goes() -> None:
    bus = HookBus()
    bus.on("before_prompt_build", lambda event: Injection("x", "reminder"), plugin="p")

    def bad(event: HookEvent) -> None:
        raise ValueError("坏了")

    bus.on("agent_end", bad, plugin="q")
    made = agent([calls(("add", {"a": 1, "b": 2}), ("ad", {})), "三"], plugins=[bus])
    assert terminal(["加一下\n", "\n"], made) == [
        "agent uses [add, ad]",
        "  → 3",
        "  failed: There is no tool 'ad'; did you mean add?",
        "  (put in front of your message: reminder, by p)",
        "  (plugin q: ValueError: 坏了)",
        "agent: 三",
    ]


def test_an_error_does_not_end_the_conversation() -> None:
    shown = terminal(["hello", "/nope", "again"], agent(["a"]))
    assert shown[0] == "agent: a"
    assert shown[1].startswith("error: command /nope")
    assert shown[2].startswith("error: scripted model")


# --- the command ----------------------------------------------------------------------------------------------------


def test_chat_answers_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "hello", "你好"]) == 0
    assert capsys.readouterr().out == "agent: You said: hello 你好\n"


def test_chat_reads_what_is_typed_and_goes_on_from_its_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = str(tmp_path / "s.jsonl")
    for typed in ("first\n/steps\n/exit\nnever\n", "second\n/steps\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert main(["chat", "--session", log, "--host", "seed"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("  1. first\n  2. second\n")
    assert "never" not in out


def test_chat_offers_the_tools_it_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        "openclaw_lab.agent.agent.Agent.run", lambda self, message, **more: seen.append(self) or _stop()
    )
    assert main(["chat", "--root", str(tmp_path), "--allow", "ls", "hello"]) == 1
    assert set(seen[0].tools) == {"view_file", "shell"}
    capsys.readouterr()


def _stop() -> Any:
    raise TaskError("stopped")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "gpt-4"], "litellm:provider/model"), (["--host", "openclaw"], "did you mean"),
        (["--allow", "no-such-program"], "installed"), (["--root", "/nowhere"], "folders that are there"),
        (["--skills", "/nowhere"], "a folder with skills"), ([" "], "an empty message"),
        (["--plugin", "/nowhere"], "nowhere"), (["--cassette-only"], "the path of one"), (["--config", "nope"], "nope"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", *arguments, *(["hello"] if arguments != [" "] else [])]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert said in err


def test_chat_tells_of_skills_and_plugins_that_are_not_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "坏的").mkdir()
    (tmp_path / "坏的" / "SKILL.md").write_text("---\nname: 坏的\n---\n正文", "utf-8")
    (tmp_path / "空").mkdir()
    given = ["--skills", str(tmp_path), "--skills", str(tmp_path / "空"), "--plugin", str(tmp_path / "空")]
    assert main(["chat", *given, "你好"]) == 0
    out, err = capsys.readouterr()
    assert out == "agent: You said: 你好\n"
    lines = err.splitlines()
    assert [line.split(maxsplit=1)[0] for line in lines] == ["[plugin:空]", "[skill]", "[skill]"]
    assert "坏的/SKILL.md:1: description: found nothing" in err
    assert f"{tmp_path / '空'}: found no skill" in err
    assert "read all the same" not in err


@pytest.mark.parametrize("line", ["/HELP", "/Help", " /help "])
def test_commands_may_be_in_capitals(line: str) -> None:
    assert "/quit" in str(Commands(agent()).answer(line))


def test_chat_remembers_in_a_knowledge_base(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with lab.KnowHub.open(tmp_path / "kb", embedder="hash"):
        pass
    monkeypatch.setattr("sys.stdin", io.StringIO("/remember 用 pnpm 安装依赖\n"))
    lab.LabConfig().with_({"knowhub.embedder": "hash"}).to_json(tmp_path / "config.json")
    assert main(["chat", "--knowledge", str(tmp_path / "kb"), "--config", str(tmp_path / "config.json")]) == 0
    assert "created" in capsys.readouterr().out
    with lab.KnowHub.open(tmp_path / "kb", embedder="hash") as kb:
        assert [each.content for each in kb.entries()] == ["用 pnpm 安装依赖"]


def test_chat_from_a_cassette_needs_no_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tape = str(tmp_path / "tape.jsonl")
    assert main(["chat", "--cassette", tape, "hello"]) == 0
    assert main(["chat", "--cassette", tape, "--cassette-only", "hello"]) == 0
    assert main(["chat", "--cassette", tape, "--cassette-only", "other"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == out[1] == "agent: You said: hello"
    assert "no answer to this request" in out[2]


def test_a_tool_of_the_agent_is_a_plain_function() -> None:
    assert agent().tools["add"].description == "Add two numbers."
    assert add(1, 2) == 3
