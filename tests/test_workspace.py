"""The working copy: what each later run does to a file, by who changed it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from openclaw_lab import files
from openclaw_lab.errors import DataError
from openclaw_lab.notebook import workspace
from openclaw_lab.notebook.workspace import RECORD, prepare

NAME, BESIDE = "00_tour.ipynb", "00_tour.new.ipynb"


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "shipped"
    home.mkdir()
    (home / NAME).write_text("one")
    (home / "notes.txt").write_text("not a notebook")
    monkeypatch.setattr(files, "bundled", lambda name: home)
    return home


@pytest.fixture
def folder(tmp_path: Path, shipped: Path) -> Path:
    return tmp_path / "deep" / "lab"


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.name != RECORD}


def test_first_run_writes_every_notebook_and_nothing_else(folder: Path) -> None:
    done = prepare(folder)
    assert done.folder == folder
    assert done.files == {NAME: "written"}
    assert content(folder) == {NAME: "one"}


# what the user did, whether a new version came, -> the actions and the files afterwards
ROWS = [
    ("nothing", False, {NAME: "current"}, {NAME: "one"}),
    ("nothing", True, {NAME: "updated"}, {NAME: "two"}),
    ("changed", False, {NAME: "kept"}, {NAME: "mine"}),
    ("changed", True, {NAME: "kept", BESIDE: "beside"}, {NAME: "mine", BESIDE: "two"}),
    ("deleted", False, {NAME: "restored"}, {NAME: "one"}),
    ("deleted", True, {NAME: "restored"}, {NAME: "two"}),
    ("damaged record", False, {NAME: "current"}, {NAME: "one"}),
    ("damaged record", True, {NAME: "kept", BESIDE: "beside"}, {NAME: "one", BESIDE: "two"}),
    ("both changed", True, {NAME: "kept", BESIDE: "kept"}, {NAME: "mine", BESIDE: "mine too"}),
]


@pytest.mark.parametrize(("user", "new_version", "actions", "after"), ROWS)
def test_later_run(
    folder: Path, shipped: Path, user: str, new_version: bool, actions: dict[str, str], after: dict[str, str]
) -> None:
    prepare(folder)
    if user == "deleted":
        (folder / NAME).unlink()
    if user in ("changed", "both changed"):
        (folder / NAME).write_text("mine")
    if user == "both changed":
        (folder / BESIDE).write_text("mine too")
    if user == "damaged record":
        (folder / RECORD).write_text("{")
    if new_version:
        (shipped / NAME).write_text("two")
    assert prepare(folder).files == actions
    assert content(folder) == after


def test_a_new_version_is_offered_once_and_the_next_one_replaces_an_unchanged_offer(
    folder: Path, shipped: Path
) -> None:
    prepare(folder)
    (folder / NAME).write_text("mine")
    (shipped / NAME).write_text("two")
    prepare(folder)
    assert prepare(folder).files == {NAME: "kept"}
    (shipped / NAME).write_text("three")
    assert prepare(folder).files == {NAME: "kept", BESIDE: "beside"}
    (folder / BESIDE).unlink()
    assert prepare(folder).files == {NAME: "kept"}
    assert content(folder) == {NAME: "mine"}


def test_a_folder_with_other_files_only_gains_ours(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / NAME).write_text("a stranger's")
    (folder / "other.txt").write_text("x")
    assert prepare(folder).files == {NAME: "kept", BESIDE: "beside"}
    assert content(folder) == {NAME: "a stranger's", "other.txt": "x", BESIDE: "one"}


@pytest.mark.parametrize(
    "record", ["", "[]", "null", "3", '"x"', '{"sha256": []}', '{"sha256": {"00_tour.ipynb": 3}}', "\0", "[" * 99_999]
)
def test_a_damaged_record_makes_every_file_the_users(folder: Path, shipped: Path, record: str) -> None:
    prepare(folder)
    (folder / RECORD).write_text(record)
    (shipped / NAME).write_text("two")
    assert prepare(folder).files[NAME] == "kept"
    assert json.loads((folder / RECORD).read_text())["sha256"].keys() == {BESIDE}


def test_a_folder_or_broken_link_of_that_name_is_kept(folder: Path) -> None:
    (folder / NAME).mkdir(parents=True)
    (folder / BESIDE).symlink_to(folder / "nowhere")
    assert prepare(folder).files == {NAME: "kept", BESIDE: "kept"}


def test_nothing_is_written_when_all_is_current(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(folder)
    monkeypatch.setattr(files, "write_bytes", _refuse)
    assert prepare(folder).files == {NAME: "current"}


def _refuse(path: Path, data: bytes, *, private: bool = False) -> None:
    raise PermissionError(13, "Permission denied", str(path))


def test_a_folder_that_cannot_be_written_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "write_bytes", _refuse)
    with pytest.raises(DataError, match=r"Permission denied.*folder that can be written") as caught:
        prepare(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_line(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    with pytest.raises(DataError, match="folder that can be written"):
        prepare(folder)


@pytest.mark.parametrize("below", ["", "inside"])
def test_a_file_in_the_place_of_the_folder(tmp_path: Path, shipped: Path, below: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="found a file; expected a folder"):
        prepare(tmp_path / "file" / below)


def test_a_broken_installation_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "bundled", lambda name: tmp_path / "nothing")
    with pytest.raises(DataError, match="install openclaw-lab again"):
        prepare(tmp_path / "lab")


def test_summary_names_what_the_user_should_know(folder: Path, shipped: Path) -> None:
    prepare(folder)
    (folder / NAME).write_text("mine")
    (shipped / NAME).write_text("two")
    (shipped / "01_more.ipynb").write_text("more")
    assert prepare(folder).summary() == f"{folder}: 1 kept ({NAME}), 1 beside ({BESIDE}), 1 written"


def test_the_shipped_notebooks_are_numbered() -> None:
    names = [path.name for path in workspace.shipped_notebooks()]
    assert names[0] == NAME
    assert all(name[:2].isdigit() for name in names)


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert prepare(Path("~/工作 区")).folder == tmp_path / "工作 区"
    with pytest.raises(DataError, match="unknown user"):
        prepare(Path("~nobody-of-that-name/x"))
