"""What a person gives to an Agent, checked: what is no such thing is one clear line, before anything is opened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from openclaw_lab.agent.host import HostProfile, host_profile
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import ConfigError, TaskError


def config_of(given: object) -> LabConfig:
    """A LabConfig as it is, the preset of a name, or the default."""
    if given is None:
        return LabConfig()
    if isinstance(given, str):
        return LabConfig.preset(given)
    if not isinstance(given, LabConfig):
        raise ConfigError("config", f"a {type(given).__name__}", "a LabConfig, or the name of a preset")
    return given


def host_of(given: object, config: LabConfig) -> HostProfile:
    """A host by its name, or a profile of one's own; the config's where none is given."""
    if isinstance(given, str):
        return host_profile(given or config.reminders.host)
    if not isinstance(given, HostProfile):
        raise ConfigError("host", f"a {type(given).__name__}", "a host's name, or a HostProfile")
    return given


def listed(name: str, given: object) -> list[Any]:
    """The members of a list; a single text or thing is refused with the list that was meant."""
    if isinstance(given, str | Path):
        raise ConfigError(name, str(given), "a list", f"{name}=[{str(given)!r}]")
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise ConfigError(name, f"a {type(given).__name__}", "a list")
    return list(given)


def path_of(name: str, given: object) -> Path | None:
    """A file's path, or None."""
    if given is None:
        return None
    if not isinstance(given, str | Path) or not str(given):
        raise ConfigError(name, "an empty text" if given == "" else given, "the path of a file")
    path = Path(given).expanduser()
    if os.path.isdir(path):
        raise ConfigError(name, f"{path}, a folder", "a file", f"{name}={str(path / 'session.jsonl')!r}")
    return path


def number(name: str, given: object) -> int:
    """A whole number of at least 1."""
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise ConfigError(name, given, "a whole number, 1 or more")
    return given


def count(verb: str, given: object) -> int:
    """How many turns, for a verb of the session; the verb says how many there may be."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise TaskError(verb, given, "a number of turns")
    return given


def check_rest(**given: tuple[object, object, str]) -> None:
    """Refuse what is of another type: each is the value, its type (or `callable`), and the words for it."""
    for name, (value, kind, words) in given.items():
        if not (callable(value) if kind is callable else isinstance(value, kind)):  # type: ignore[arg-type]
            raise ConfigError(name, f"a {type(value).__name__}", words)
