"""What a skill needs in, what of it is missing out. What is there is handed in, so that the answer can be reproduced.

`bins` all, `anyBins` at least one program on the path; `env` variables that are set; `config` settings of the host
that are truthy; `os` one of darwin, linux, win32. `always` waives all but `os`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Requirements:
    """What must be there before a skill can be used; all empty: nothing."""

    bins: tuple[str, ...] = ()
    any_bins: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    os: tuple[str, ...] = ()
    always: bool = False


def _nothing(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Environment:
    """What is there: programs, variables, the host's settings, the system's name."""

    has_program: Callable[[str], bool] = _nothing
    variables: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    system: str = "linux"

    @classmethod
    def of(
        cls,
        programs: tuple[str, ...] | list[str] | set[str] = (),
        variables: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        system: str = "linux",
    ) -> Environment:
        """An environment that is made up: for tests, and for "what if gh were installed"."""
        there = frozenset(programs)
        return cls(there.__contains__, variables or {}, settings or {}, system)


def this_machine(settings: Mapping[str, Any] | None = None) -> Environment:
    """What is there on this machine; `settings` are the host's."""
    return Environment(_has_program, os.environ, settings or {}, sys.platform)


def _has_program(name: str) -> bool:
    return shutil.which(name) is not None


def missing(needed: Requirements, there: Environment) -> tuple[str, ...]:
    """What is missing, each as `bin:gh`, `anyBin:a|b`, `env:KEY`, `config:a.b`, `os:darwin`; none: it can be used."""
    wrong_system = needed.os and there.system not in needed.os
    found = [f"os:{'|'.join(needed.os)}"] if wrong_system else []
    if needed.always:
        return tuple(found)
    found += [f"bin:{each}" for each in needed.bins if not there.has_program(each)]
    if needed.any_bins and not any(map(there.has_program, needed.any_bins)):
        found.append(f"anyBin:{'|'.join(needed.any_bins)}")
    found += [f"env:{each}" for each in needed.env if not there.variables.get(each)]
    found += [f"config:{each}" for each in needed.config if not _setting(there.settings, each)]
    return tuple(found)


def _setting(settings: Mapping[str, Any], path: str) -> bool:
    """Whether a dotted setting is there and truthy."""
    value: Any = settings
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return False
        value = value[name]
    return bool(value)
