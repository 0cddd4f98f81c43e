"""The README's program prints what the README says it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def block(language: str, after: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README[README.index(after) :], re.DOTALL)
    assert found
    return found.group(1)


def test_the_ten_lines_print_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block("python", "## In ten lines"), "README.md", "exec"), {})
    printed = capsys.readouterr().out.replace(str(tmp_path), "…")
    assert printed == block("text", "## In ten lines")


def test_there_are_exactly_two_commands() -> None:
    commands = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    assert [command.count("\n") for command in commands] == [1, 1]
    assert "openclaw-lab start" in commands[0]
    assert "pytest" in commands[1]
