"""What the commands share: a parser with one-line errors, checked kinds of arguments, settings by name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TypeAlias

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import LabError
from openclaw_lab.knobs import mask_secrets, nearest


class Parser(argparse.ArgumentParser):
    """Usage errors are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        """One line, and exit code 2."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def count(text: str) -> int:
    """A number of things, as an argument."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"found {text!r}; expected a whole number")
    return int(text)


def positive(text: str) -> int:
    """A number of at least one."""
    if count(text) == 0:
        raise argparse.ArgumentTypeError("found 0; expected at least 1")
    return int(text)


def port(text: str) -> int:
    """A TCP port."""
    if count(text) > 65_535:
        raise argparse.ArgumentTypeError(f"found {text}; expected 0 to 65535")
    return int(text)


def config_named(name: str) -> LabConfig:
    """A preset, or a lab-config.json."""
    return LabConfig.preset(name) if name in ("seed", "tuned") else LabConfig.from_json(Path(name))


def pairs(texts: Sequence[str], option: str) -> list[tuple[str, str]]:
    """`NAME=VALUE` arguments as pairs; what may be a credential is masked in the error."""
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise LabError(option, mask_secrets(text), "NAME=VALUE")
        pairs.append((name, value))
    return pairs


def changes(texts: Sequence[str]) -> dict[str, object]:
    """Settings from the command line, each read as its knob's kind."""
    knobs = LabConfig.knobs()
    changes: dict[str, object] = {}
    for name, text in pairs(texts, "--set"):
        if name not in knobs and name != "reminders.mode":
            raise LabError(
                f"--set {mask_secrets(name)}",
                expected="a known setting",
                todo=nearest(name, [*knobs, "reminders.mode"]),
            )
        changes[name] = knobs[name].parse(text) if name in knobs else text
    return changes
