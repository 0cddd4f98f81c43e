"""The one error tree: every message says where, what was found, what was expected, what to do.

LabError
├── ConfigError      a setting: unknown name, wrong type, out of range
├── DataError        a file or a row of it
├── TaskError        an experiment asked for something that cannot be measured
├── RuleError        a rule file or a pattern in it
├── HookError        a hook name outside the closed set, a handler that broke its contract
├── PluginError      a plugin's manifest, config or code, or what it asks for
├── ExportError      an export that would overwrite or lose something
├── OfflineError     a server that does not answer, or cannot work now
├── RefusedError     a server that answers that it will not
├── BudgetError      a request that could cost more than is left to spend
└── MissingExtra     an optional dependency that is not installed

LabWarning
├── DataWarning      something was left out, and says how much
└── TokenWarning     token counts are an estimate
"""

from __future__ import annotations

import re
from typing import Self

_EXCERPT = 80
# Line breaks of every kind, and what a terminal would obey.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def excerpt(value: object, limit: int = _EXCERPT) -> str:
    """A value as one short line, for messages: never more than `limit` characters, never a line break."""
    text = value if isinstance(value, str) else repr(value)
    head = text[: limit * 4]
    line = " ".join(_CONTROL.sub(" ", head).split())
    if len(line) <= limit and len(head) == len(text):
        return line
    return line[: limit - 1] + "…"


class LabError(Exception):
    """Base of all errors raised on purpose; `str()` is one line.

    `where` names the file, row, field or call; the other parts may be left out when they say nothing.
    """

    def __init__(self, where: str, found: object = None, expected: str = "", todo: str = "") -> None:
        self.where, self.found, self.expected, self.todo = where, found, expected, todo
        parts = [where]
        if found is not None:
            parts.append(f"found {excerpt(found)}")
        if expected:
            parts.append(f"expected {expected}")
        if todo:
            parts.append(todo)
        super().__init__(_CONTROL.sub(" ", "; ".join([": ".join(parts[:2]), *parts[2:]])))

    def advised(self, todo: str) -> Self:
        """The same error with what to do added, where it says nothing of that yet."""
        return self if self.todo else type(self)(self.where, self.found, self.expected, todo)


class ConfigError(LabError):
    """A setting has an unknown name, a wrong type or a value out of range."""


class DataError(LabError):
    """A file, or a row of it, is not what its format says."""


class TaskError(LabError):
    """An experiment was asked for something that cannot be measured."""


class RuleError(LabError):
    """A rule file, or a pattern in it, is not valid or not portable."""


class HookError(LabError):
    """A hook name is outside the closed set, or a handler broke its contract."""


class PluginError(LabError):
    """A plugin's manifest, config or code is not valid, or it asked for what it must not have."""


class ExportError(LabError):
    """An export would overwrite or lose something."""


class OfflineError(LabError):
    """A server does not answer, or cannot work now; the same may succeed later."""


class RefusedError(LabError):
    """A server answered that it will not do what was asked; `status` is its HTTP status."""

    def __init__(self, status: int, where: str, found: str, todo: str = "") -> None:
        super().__init__(where, found, todo=todo)
        self.status = status


class BudgetError(LabError):
    """The next request to a model could cost more than is left of the budget; it was not sent."""


class MissingExtra(LabError):
    """An optional dependency is not installed; the message names the exact install command."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(what, expected=f"the package {package}", todo=f"run: pip install 'openclaw-lab[{extra}]'")


class LabWarning(UserWarning):
    """Base of all warnings."""


class DataWarning(LabWarning):
    """Something was left out of the data; the text says what and how much."""


class TokenWarning(LabWarning):
    """Token counts are an estimate, because the encoding's file is not there."""
