"""A folder in, the same folder with a working copy of the shipped notebooks out; the user's changes are kept.

A record file in the folder holds the sha256 of every notebook as it was written. It does not look into a notebook: a
saved output counts as a change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from openclaw_lab import files
from openclaw_lab.errors import DataError

RECORD = ".openclaw-lab.json"

# written   a new file                         restored  it was deleted and is back
# current   it is the shipped version          updated   unchanged by the user, so the new version replaced it
# kept      the user's own, not touched        beside    the new version of a kept one, as NAME.new.ipynb
Action = Literal["written", "updated", "current", "kept", "restored", "beside"]


@dataclass(frozen=True, slots=True)
class Workspace:
    """A prepared folder (absolute) and what happened to each file in it."""

    folder: Path
    files: Mapping[str, Action]

    def named(self, action: Action) -> list[str]:
        """The names of the files to which this happened, sorted."""
        return sorted(name for name, done in self.files.items() if done == action)

    def summary(self) -> str:
        """One line: how many files of each kind, and the names of those that the user should know about."""
        parts = []
        for action in dict.fromkeys(self.files.values()):
            names = self.named(action)
            told = f" ({', '.join(names)})" if action in ("kept", "beside", "restored") else ""
            parts.append(f"{len(names)} {action}{told}")
        return f"{self.folder}: {', '.join(parts)}"


def prepare(folder: Path = Path("openclaw-lab")) -> Workspace:
    """Bring the shipped notebooks into `folder`, which is made when it is missing.

    Raises DataError when the folder cannot be made, read or written.
    """
    shipped = {path.name: path.read_bytes() for path in shipped_notebooks()}
    folder = _home(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _Copy(folder).all(shipped)
    except (FileExistsError, NotADirectoryError):
        raise DataError(str(folder), "a file", "a folder", "choose another folder") from None
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise DataError(str(folder), found, "a folder that can be written", "choose another folder") from None


def _home(folder: Path) -> Path:
    """The absolute folder, with `~` as the home folder, as a shell would have it."""
    try:
        return Path(folder).expanduser().absolute()
    except RuntimeError:
        raise DataError(str(folder), "an unknown user's home", "a folder", "choose another folder") from None


def shipped_notebooks() -> list[Path]:
    """The notebooks that come with the package, in their order."""
    home = files.bundled("notebooks")
    found = sorted(path for path in home.glob("*.ipynb") if not path.name.startswith("."))
    if not found:
        raise DataError(str(home), "no notebook", "the shipped notebooks", "install openclaw-lab again")
    return found


class _Copy:
    """One pass over a folder: `record` maps a file's name to the hash of what was last written under it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = _load(folder / RECORD)

    def all(self, shipped: Mapping[str, bytes]) -> Workspace:
        before = dict(self.record)
        done: dict[str, Action] = {}
        for name, data in shipped.items():
            done |= self.one(name, data)
        if self.record != before:
            text = json.dumps({"format": 1, "sha256": self.record}, indent=1, sort_keys=True)
            files.write_text(self.folder / RECORD, text + "\n")
        return Workspace(self.folder, done)

    def one(self, name: str, data: bytes) -> dict[str, Action]:
        """Place one notebook; a changed one gets its new version beside it, once for each version."""
        known, present, new = self.record.get(name), _hash_of(self.folder / name), _sha256(data)
        if present is None:
            return self.write(name, data, "restored" if known else "written")
        if present == new:
            self.record[name] = new
            return {name: "current"}
        if present == known:
            return self.write(name, data, "updated")
        beside = f"{Path(name).stem}.new.ipynb"
        if new in (known, self.record.get(beside)):
            return {name: "kept"}
        return {name: "kept", **self.beside(beside, data)}

    def beside(self, name: str, data: bytes) -> dict[str, Action]:
        """Write a new version beside a changed one, unless a file of that name was changed as well."""
        present = _hash_of(self.folder / name)
        if present in (None, self.record.get(name)):
            return self.write(name, data, "beside")
        return {name: "kept"}

    def write(self, name: str, data: bytes, action: Action) -> dict[str, Action]:
        files.write_bytes(self.folder / name, data)
        self.record[name] = _sha256(data)
        return {name: action}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hash_of(path: Path) -> str | None:
    """The hash of a file, "" for a folder or a broken link of that name, None when there is nothing."""
    if path.is_file():
        return _sha256(path.read_bytes())
    return "" if path.is_symlink() or path.exists() else None


def _load(path: Path) -> dict[str, str]:
    """The record; a missing or damaged one is empty, so that every file in the folder counts as the user's."""
    try:
        hashes = json.loads(path.read_bytes())["sha256"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    if not isinstance(hashes, dict):
        return {}
    return {name: value for name, value in hashes.items() if isinstance(value, str)}
