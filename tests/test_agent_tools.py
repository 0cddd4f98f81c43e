"""The tools that come with an agent: what the shell and the file viewer do, and everything that they must contain."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agents import agent
from hypothesis import given
from hypothesis import strategies as st
from talks import steady

from openclaw_lab.agent.models import calls
from openclaw_lab.agent.shell import shell
from openclaw_lab.agent.view import view_file
from openclaw_lab.errors import ConfigError
from openclaw_lab.plugins.tool import Tool, ToolContext, ToolResult

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses /proc")


def run(tool: Tool, **arguments: Any) -> ToolResult:
    given: Mapping[str, Any] = arguments
    answer = tool.run(given, ToolContext())
    assert isinstance(answer, ToolResult)
    return answer


def python(code: str, folder: Path, **options: Any) -> ToolResult:
    """A Python program through the shell tool."""
    return run(shell([sys.executable], cwd=folder, **options), command=[os.path.basename(sys.executable), "-c", code])


# --- shell --------------------------------------------------------------------------------------------------------


def test_a_program_runs_in_its_folder_and_its_exit_code_is_told(tmp_path: Path) -> None:
    (tmp_path / "文件.txt").write_text("你好")
    assert run(shell(["ls"], cwd=tmp_path), command="ls").text == "文件.txt\n"
    assert run(shell(["cat"], cwd=tmp_path), command="cat '文件.txt'").text == "你好"
    failed = run(shell(["ls"], cwd=tmp_path), command="ls nothing-here")
    assert failed.failed
    assert failed.text.startswith("exit code 2\n")
    assert failed.details["exit_code"] == 2


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf .", "/bin/rm x", "./ls", "../bin/ls", "bin/ls", "LS", "", "   ", [], ["rm", "-rf", "."], "ls\0",
        "sh -c ls", "$(which rm) x", "`rm x`", "env rm x", "X=1 ls",
    ],
)  # fmt: skip
def test_what_is_not_on_the_list_does_not_run(tmp_path: Path, command: Any) -> None:
    (tmp_path / "x").write_text("kept")
    assert run(shell(["ls"], cwd=tmp_path), command=command).failed
    assert (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "command",
    [
        "ls; rm x",
        "ls ;rm x",
        "ls && rm x",
        "ls || rm x",
        "ls | tee y",
        "ls > y",
        "ls >> y",
        "ls < x",
        "ls & rm x",
        "(ls)",
    ],
)
def test_shell_syntax_is_refused_with_a_reason(tmp_path: Path, command: str) -> None:
    (tmp_path / "x").write_text("kept")
    result = run(shell(["ls", "rm", "tee"], cwd=tmp_path), command=command)
    assert result.failed
    assert "means nothing without a shell" in result.text
    assert sorted(os.listdir(tmp_path)) == ["x"]


@pytest.mark.parametrize(
    "argument", ["; rm x", "`rm x`", "$(rm x)", "$HOME", "| rm x", "*", "~", "&& rm x", "a\nrm x", "中文；"]
)
def test_arguments_reach_the_program_as_they_are(tmp_path: Path, argument: str) -> None:
    (tmp_path / "x").write_text("kept")
    result = run(shell(["printf"], cwd=tmp_path), command=["printf", "%s", argument])
    assert (result.text, result.failed) == (argument, False)
    assert (tmp_path / "x").exists()


def test_substitutions_in_a_text_are_not_made(tmp_path: Path) -> None:
    result = run(shell(["echo"], cwd=tmp_path), command="echo '$(id)' \"`id`\" $HOME")
    assert result.text == "$(id) `id` $HOME\n"


def test_nothing_of_our_environment_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "not-to-be-seen")
    text = run(shell(["env"], cwd=tmp_path, env={"MINE": "1"}), command="env").text
    assert "not-to-be-seen" not in text
    assert "MINE=1" in text
    names = {line.partition("=")[0] for line in text.splitlines()}
    assert names == {"PATH", "HOME", "LANG", "MINE", "OPENCLAW_LAB_SHELL_CALL"}


def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert run(shell(["cat"], cwd=tmp_path, timeout=5), command="cat").text == ""


@linux
def test_a_gigabyte_of_output_is_contained(tmp_path: Path) -> None:
    code = "import sys\nfor _ in range(1024): sys.stdout.write('x' * 2**20)"
    begin = time.monotonic()
    result = python(code, tmp_path, longest=10_000)
    assert result.failed
    assert result.details["ended"] == "output"
    assert len(result.text) < 12_000
    assert time.monotonic() - begin < 20


def test_the_beginning_and_the_end_of_a_long_output_are_kept(tmp_path: Path) -> None:
    result = python("print('first'); print('x' * 30000); print('last')", tmp_path, longest=1000)
    assert not result.failed
    assert result.text.startswith("first")
    assert result.text.endswith("last\n")
    assert "bytes left out" in result.text
    assert len(result.text) < 1200


def alive(mark: Path) -> bool:
    """Whether the process that wrote its id is there."""
    pid = int(mark.read_text())
    with contextlib.suppress(OSError):
        return b"Z" not in (Path("/proc") / str(pid) / "stat").read_bytes().rpartition(b")")[2][:3]
    return False


SLEEPER = """
import os, subprocess, sys, time
code = "import os, time, pathlib; {setsid}; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", code])
while not os.path.exists("pid") or not open("pid").read(): time.sleep(0.01)
{then}
"""


@linux
@pytest.mark.parametrize("setsid", ["pass", "os.setsid()"], ids=["group", "own session"])
@pytest.mark.parametrize("then", ["print('done')", "time.sleep(600)"], ids=["parent ends", "parent hangs"])
def test_a_sleeping_grandchild_is_ended(tmp_path: Path, setsid: str, then: str) -> None:
    begin = time.monotonic()
    result = python(SLEEPER.format(setsid=setsid, then=then), tmp_path, timeout=4)
    assert time.monotonic() - begin < 15
    assert result.failed == (then != "print('done')")
    for _ in range(50):
        if not alive(tmp_path / "pid"):
            break
        time.sleep(0.02)
    assert not alive(tmp_path / "pid")


def test_a_program_that_ignores_signals_is_ended(tmp_path: Path) -> None:
    code = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"
    )
    begin = time.monotonic()
    result = python(code, tmp_path, timeout=2)
    assert "stopped after 2 s\nup" in result.text
    assert time.monotonic() - begin < 15


def test_a_program_that_closes_its_output_still_has_to_end(tmp_path: Path) -> None:
    begin = time.monotonic()
    result = python("import os, time\nos.close(1); os.close(2)\ntime.sleep(600)", tmp_path, timeout=1)
    assert result.details["ended"] == "timeout"
    assert time.monotonic() - begin < 15


def test_output_that_is_no_text_is_shown_all_the_same(tmp_path: Path) -> None:
    assert python("import sys\nsys.stdout.buffer.write(b'\\xff\\xfe ok')", tmp_path).text == "\ufffd\ufffd ok"


@pytest.mark.parametrize(
    ("allow", "options"),
    [(["no-such-program"], {}), ("ls", {}), (["./ls"], {}), (["ls"], {"timeout": 0}), (["ls"], {"cwd": "/nowhere"})],
)
def test_what_cannot_be_allowed_is_told_at_once(allow: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="shell"):
        shell(allow, **options)


def test_nothing_is_allowed_by_default(tmp_path: Path) -> None:
    assert "shell" not in agent("echo").tools
    turn = agent([calls(("shell", {"command": "ls"})), "done"]).run("go")
    assert "no tool" in turn.messages[2].text
    assert "allowed: nothing" in run(shell([], cwd=tmp_path), command="ls").text


def test_arguments_of_a_wrong_kind_are_a_result(tmp_path: Path) -> None:
    tools: Any = [shell(["ls"], cwd=tmp_path)]
    for wrong in ({"command": 5}, {}, {"command": "ls", "cwd": "/"}, {"command": [1]}):
        turn = agent([calls(("shell", wrong)), "done"], tools).run("go")
        assert turn.messages[2].failed


# --- files --------------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    (made / "sub").mkdir(parents=True)
    (tmp_path / "outside.txt").write_text("secret")
    (tmp_path / "root-beside").mkdir()
    (tmp_path / "root-beside" / "x").write_text("secret")
    (made / "a.txt").write_text("one\ntwo\n三\n")
    (made / "sub" / "b.txt").write_text("b")
    (made / "link.txt").symlink_to(tmp_path / "outside.txt")
    (made / "folder").symlink_to(tmp_path)
    (made / "inside.txt").symlink_to(made / "a.txt")
    (made / "loop").symlink_to(made / "loop")
    (made / "binary").write_bytes(b"\x7fELF\0\0")
    (made / "latin").write_bytes("Kündigung".encode("latin-1"))
    return made


def test_files_are_shown_a_part_at_a_time(root: Path) -> None:
    tool = view_file(root)
    assert run(tool, path="a.txt").text == "one\ntwo\n三\n"
    assert run(tool, path=str(root / "a.txt"), start=3).text == "三\n"
    assert run(tool, path="a.txt", start=1, lines=2).text == "one\ntwo\n… more from line 3"
    assert run(tool, path="inside.txt").text.startswith("one")
    assert run(tool, path="sub/../a.txt").text.startswith("one")
    assert "3 lines" in run(tool, path="a.txt", start=9).text


def test_a_folder_is_listed(root: Path) -> None:
    assert run(view_file(root), path="sub").text == "b.txt"
    assert "sub/" in run(view_file(root), path=".").text.splitlines()
    for number in range(300):
        (root / "sub" / f"{number}").touch()
    assert "101 more" in run(view_file(root), path="sub").text


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt", "sub/../../outside.txt", "/etc/passwd", "link.txt", "folder/outside.txt", "folder",
        "../root-beside/x", "..", "/", "folder/root/../outside.txt", "~/.ssh/id_rsa", "a.txt\0.png", "loop", "",
        "nothing", "x" * 5000, "/proc/self/environ", "/dev/zero", "binary", "latin", "a.txt/x", "//etc/passwd",
    ],
)  # fmt: skip
def test_what_lies_outside_or_is_no_text_is_refused(root: Path, path: str) -> None:
    result = run(view_file(root), path=path)
    if path == "":
        assert result.text  # the folder itself
    else:
        assert result.failed
    assert "secret" not in result.text
    assert "root:" not in result.text
    assert len(result.text) < 500


def test_special_files_neither_hang_nor_are_read(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert "no regular file" in run(view_file(root), path="pipe").text


def test_a_huge_file_costs_a_part_of_it(root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.write(b"line\n" * 100_000)
        file.truncate(2**34)
    shown = run(view_file(root), path="huge", lines=100_000_000)
    assert len(shown.text) < 101_000
    assert "at most 100,000 bytes" in shown.text
    (root / "wide").write_text("x" * 10**6)
    assert "cut within line 1" in run(view_file(root), path="wide").text
    with (root / "deep").open("wb") as file:
        for _ in range(70):
            file.write(b"y\n" * 2**19)
    assert "MB into the file" in run(view_file(root), path="deep", start=10**9).text


def test_a_link_put_there_afterwards_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the opening, the file becomes a link; or its folder does."""
    real_open = os.open

    def swap(path: Any, *more: Any) -> int:
        if str(path).endswith("a.txt"):
            (root / "a.txt").unlink(missing_ok=True)
            (root / "a.txt").symlink_to(root.parent / "outside.txt")
        if str(path).endswith("b.txt"):
            (root / "sub").rename(root / "old")
            (root / "sub").symlink_to(root.parent)
            (root.parent / "b.txt").write_text("secret")
        return real_open(path, *more)

    monkeypatch.setattr("openclaw_lab.agent.view.os.open", swap)
    for path in ("a.txt", "sub/b.txt"):
        result = run(view_file(root), path=path)
        assert result.failed
        assert "secret" not in result.text


@steady
@given(
    st.lists(
        st.sampled_from(["..", ".", "sub", "folder", "a.txt", "link.txt", "outside.txt", "/", "root", "etc", "passwd"]),
        max_size=7,
    )
)
def test_no_path_leads_outside(parts: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        (root / "sub").mkdir(parents=True)
        (Path(folder) / "outside.txt").write_text("secret")
        (root / "a.txt").write_text("fine")
        (root / "link.txt").symlink_to("../outside.txt")
        (root / "folder").symlink_to("..")
        text = run(view_file(root), path="/".join(parts)).text
        assert "secret" not in text
        assert "outside.txt\n" not in text.replace(repr("/".join(parts)), "")


def test_roots_must_be_there(tmp_path: Path) -> None:
    for wrong in ([], [tmp_path / "nothing"], tmp_path / "nothing"):
        with pytest.raises(ConfigError, match="view_file"):
            view_file(wrong)


def test_both_in_an_agent(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("use {baseDir}")
    script = [calls(("view_file", {"path": "SKILL.md"}), ("shell", {"command": "ls"})), "done"]
    turn = agent(script, [view_file(tmp_path), shell(["ls"], cwd=tmp_path)]).run("go")  # type: ignore[list-item]
    assert [each.text for each in turn.messages[2:4]] == ["use {baseDir}", "SKILL.md\n"]
