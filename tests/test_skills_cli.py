"""`openclaw-lab skills`: the status list, what a message picks, and one line for each broken file."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_lab.cli import main


def written(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "SKILL.md").write_text(text, "utf-8")


def test_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skills"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Available skills:"
    assert any("sysinfo" in line for line in lines)


def test_what_a_message_picks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "a", "---\nname: a\ndescription: memory disk\n---\nx")
    written(tmp_path / "b", "---\nname: b\ndescription: 天气\n---\nx")
    assert main(["skills", str(tmp_path), "--match", "memory of the disk", "--config", "seed"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["a", "b"]
    assert "2 of 2 keywords: memory, disk" in lines[0]


def test_a_broken_file_is_one_line_and_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "good", "---\nname: good\ndescription: x\n---\nx")
    written(tmp_path / "bad", "---\nname: bad\n---\nx")
    assert main(["skills", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "  ✅ good — x" in lines
    assert len([line for line in lines if "bad" in line]) == 1


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    (tmp_path / "空").mkdir()
    for name, found in (("none", "nothing"), ("file", "a file")):
        assert main(["skills", str(tmp_path / name)]) == 2
        assert capsys.readouterr().err == (
            f"openclaw-lab: skills: found {tmp_path / name}: {found}; expected a folder with skills; check the path\n"
        )
    assert main(["skills", str(tmp_path / "空")]) == 1
    assert "空: found no skill; expected folders that hold a SKILL.md" in capsys.readouterr().out
