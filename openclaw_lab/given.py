"""What a person gives to a public call, checked: what is no such thing is one clear line, before anything is done."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from openclaw_lab.errors import ConfigError, LabError


def listed(name: str, given: object, *, error: type[LabError] = ConfigError) -> list[Any]:
    """The members of a list; a single text or thing is refused with the list that was meant."""
    if isinstance(given, str | Path):
        raise error(name, str(given), "a list", f"{name.rpartition(': ')[2]}=[{str(given)!r}]")
    if not isinstance(given, Iterable) or isinstance(given, Mapping | bytes):
        raise error(name, f"a {type(given).__name__}", "a list")
    return list(given)


def texts(name: str, given: object, *, error: type[LabError] = ConfigError) -> list[str]:
    """The members of a list of texts; the names of a mapping."""
    found = list(given) if isinstance(given, Mapping) else listed(name, given, error=error)
    for each in found:
        if not isinstance(each, str):
            raise error(name, f"a {type(each).__name__} in it", "a list of texts")
    return found


def path(name: str, given: object, *, expected: str = "a path", error: type[LabError] = ConfigError) -> Path:
    """A path that the system can be asked about, whether or not anything is there."""
    if not isinstance(given, str | Path) or not str(given):
        raise error(name, "an empty text" if isinstance(given, str) else given, expected)
    try:
        found = Path(given).expanduser()
        os.lstat(found)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return found
    except (OSError, ValueError, RuntimeError) as fault:  # a name that is too long, a NUL, a home that nobody has
        why = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        raise error(name, f"{str(given)[:40]} ({why})", expected) from None
    return found


def path_of(name: str, given: object) -> Path | None:
    """A file's path, or None."""
    if given is None:
        return None
    found = path(name, given, expected="the path of a file")
    if os.path.isdir(found):
        ending = ".jsonl" if name.endswith(("session", "cassette")) else ""
        todo = f"{name.rpartition(': ')[2]}={str(found / (name.rpartition(': ')[2] + ending))!r}"
        raise ConfigError(name, f"{found}, a folder", "a file", todo)
    return found


def whole(name: str, given: object, *, least: int = 1, error: type[LabError] = ConfigError) -> int:
    """A whole number of at least so much."""
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise error(name, str(given) if given is None else given, f"a whole number, {least} or more")
    return given


def seconds(name: str, given: object, *, most: float = 86_400.0, error: type[LabError] = ConfigError) -> float:
    """A time limit: above 0, at most a day."""
    if not isinstance(given, int | float) or isinstance(given, bool) or not 0 < given <= most or math.isnan(given):
        raise error(name, str(given) if given is None else given, f"seconds, more than 0 and at most {most:,.0f}")
    return float(given)


def check(error: type[LabError] = ConfigError, /, **given: tuple[object, object, str]) -> None:
    """Refuse what is of another type: each is the value, its type (or `callable`), and the words for it."""
    for name, (value, kind, words) in given.items():
        if not (callable(value) if kind is callable else isinstance(value, kind)):  # type: ignore[arg-type]
            raise error(name, f"a {type(value).__name__}", words)


def named_texts(name: str, given: object, *, error: type[LabError] = ConfigError) -> dict[str, str]:
    """Texts by name, such as an environment; None is none."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise error(name, f"a {type(given).__name__}", "values by name")
    for key, value in given.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise error(name, f"a {type(key).__name__}: a {type(value).__name__}", "texts by name")
    return dict(given)
