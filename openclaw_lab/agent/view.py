"""The `view_file` tool: text files inside the allowed folders, a part at a time.

A path is followed to where it really leads before it is compared with the folders; the file is compared again once it
is open, so that nobody can swap it in between.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from openclaw_lab.errors import ConfigError
from openclaw_lab.given import path
from openclaw_lab.plugins.tool import Tool, ToolContext, ToolResult

# Lines shown when none are asked for, bytes shown at most, bytes read to come to the first line asked for.
_LINES, _SHOWN, _READ = 500, 100_000, 64 * 2**20
_LISTED = 200


def view_file(roots: str | Path | Iterable[str | Path]) -> Tool:
    """A tool that shows files below the folders `roots`; a relative path is taken from the first of them."""
    listed = [roots] if isinstance(roots, str | Path) else list(roots) if isinstance(roots, Iterable) else [roots]
    if not all(isinstance(each, str | Path) for each in listed):
        raise ConfigError("view_file: roots", roots, "folders that are there")
    folders = tuple(path("view_file: roots", each, expected="folders that are there").resolve() for each in listed)
    if not folders or not all(each.is_dir() for each in folders):
        raise ConfigError("view_file: roots", ", ".join(map(str, listed)) or "nothing", "folders that are there")

    def run(arguments: Mapping[str, Any], _: ToolContext) -> ToolResult:
        start, lines = int(arguments.get("start", 1)), int(arguments.get("lines", _LINES))
        if start < 1 or lines < 1:
            return _refused(arguments["path"], "start and lines are 1 or more")
        return _view(arguments["path"], folders, start, lines)

    properties = {
        "path": {"type": "string", "description": "the file; in a folder, its entries are listed"},
        "start": {"type": "integer", "description": "first line, from 1"},
        "lines": {"type": "integer", "description": f"how many lines (default {_LINES})"},
    }
    schema = {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}
    shown = ", ".join(map(str, folders))
    return Tool("view_file", f"Show a text file, or list a folder, below {shown}.", schema, run)


def _refused(path: object, why: str) -> ToolResult:
    return ToolResult(f"view_file: {str(path)[:200]!r}: {why}", failed=True)


def _view(asked: str, folders: tuple[Path, ...], start: int, lines: int) -> ToolResult:
    try:
        real = (folders[0] / asked).resolve(strict=True)
        if not _inside(real, folders):
            return _refused(asked, "outside the allowed folders")
        if real.is_dir():
            return _listing(real)
        # Not through a link put there since, and without waiting for a pipe's other end.
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError, RuntimeError) as error:
        known = isinstance(error, OSError) and error.strerror
        return _refused(asked, str(known or error))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return _refused(asked, "no regular file")
        if not _inside(_opened(handle, real), folders):
            return _refused(asked, "outside the allowed folders")
        return _part(asked, file, start, lines)


def _inside(path: Path, folders: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(each) for each in folders)


def _opened(handle: int, real: Path) -> Path:
    """Where an open file is, as far as the system tells."""
    try:
        return Path(os.readlink(f"/proc/self/fd/{handle}"))
    except OSError:
        return real.resolve()


def _listing(folder: Path) -> ToolResult:
    names = sorted(each.name + ("/" if each.is_dir() else "") for each in folder.iterdir())
    more = [f"… {len(names) - _LISTED:,} more"] if len(names) > _LISTED else []
    return ToolResult("\n".join([*names[:_LISTED], *more]), details={"folder": True})


def _part(path: str, file: Any, start: int, lines: int) -> ToolResult:
    """The lines asked for, as far as they fit."""
    if b"\0" in file.peek(8192)[:8192]:
        return _refused(path, "a binary file")
    number, shown, read, kept = 0, 0, 0, bytearray()
    cut = ""
    while line := file.readline(_SHOWN + 1):
        number, read = number + 1, read + len(line)
        if read > _READ and number < start:
            return _refused(path, f"line {start} is more than {_READ // 2**20} MB into the file")
        if number < start:
            continue
        if shown == lines:
            cut = f"… more from line {number}"
            break
        room = _SHOWN - len(kept)
        kept += line[:room]
        shown += 1
        if len(line) > room:
            cut = f"… cut within line {number}: at most {_SHOWN:,} bytes are shown at a time"
            break
    if not kept and start > 1:
        return _refused(path, f"it has {number} lines")
    try:
        text = bytes(kept).decode("utf-8", "replace" if cut else "strict")
    except UnicodeDecodeError:
        return _refused(path, "no UTF-8 text")
    return ToolResult(f"{text.removesuffix(chr(10))}\n{cut}" if cut else text, details={"start": start, "lines": shown})
