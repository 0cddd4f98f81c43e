"""Files are read as UTF-8 or refused in one line, and written whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from openclaw_lab import files
from openclaw_lab.errors import DataError
from openclaw_lab.files import bundled, read_text, write_bytes, write_text


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", ""), (b"abc\r\n", "abc\r\n"), ("配置 🙂".encode(), "配置 🙂"), (b"\xef\xbb\xbfx", "x"), (b"a\x00b", "a\0b")],
)
def test_read_text(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "文件.txt"
    path.write_bytes(content)
    assert read_text(path) == text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("配置".encode("utf-16"), "found UTF-16 text at byte 0; expected UTF-8; save the file as UTF-8"),
        (b"ab" + "配置".encode("gbk"), "found bytes that are not UTF-8 at byte 2; expected UTF-8"),
        (b"\xed\xa0\xbd", "found bytes that are not UTF-8 at byte 0"),
    ],
)
def test_other_encodings(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_text(path)
    assert str(error.value).startswith(f"{path}: {expected}")


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    closed = tmp_path / "closed.txt"
    closed.write_text("x")
    closed.chmod(0)
    cases = {tmp_path: "found a folder; expected a file", tmp_path / "none": "expected an existing file",
             closed / "x": "found Not a directory; expected a readable file"}  # fmt: skip
    if os.access(closed, os.R_OK) is False:
        cases[closed] = "found Permission denied; expected a readable file"
    for path, expected in cases.items():
        with pytest.raises(DataError) as error:
            read_text(path)
        assert str(error.value).startswith(f"{path}: {expected}")


def test_write_text(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "文件.txt"
    write_text(path, "一\r\n二")
    assert path.read_bytes() == "一\r\n二".encode()
    write_bytes(path, b"other")
    assert path.read_bytes() == b"other"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
@pytest.mark.parametrize(("mask", "private", "mode"), [(0o022, False, 0o644), (0o077, False, 0o600), (0, True, 0o600)])
def test_permissions(tmp_path: Path, mask: int, private: bool, mode: int) -> None:
    before = os.umask(mask)
    try:
        write_text(tmp_path / "a.txt", "x", private=private)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == mode


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: BaseException
) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(files.os, step, fail)
    with pytest.raises(type(failure)):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["datasets", "notebooks"])
def test_bundled_folders(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bundled(name).is_dir()
    package = tmp_path / "site-packages" / "openclaw_lab"
    monkeypatch.setattr(files, "_PACKAGE", package)
    assert bundled(name) == tmp_path / "site-packages" / name
    (package / f"_{name}").mkdir(parents=True)
    assert bundled(name) == package / f"_{name}"
