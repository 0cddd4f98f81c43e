"""A SKILL.md file in, a Skill out, or a SkillProblem that says file, line and what was expected. Never nothing.

A file that cannot be used gives a problem with `fatal`; one that was read with a repair or a doubt gives the skill and
the problem.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openclaw_lab import given
from openclaw_lab.errors import LabError, excerpt
from openclaw_lab.files import read_text
from openclaw_lab.skills.frontmatter import Fault, Parts, json5_of, parts_of
from openclaw_lab.skills.requirements import Requirements

FILE = "SKILL.md"
_BASE_DIR = "{baseDir}"
_NAME = re.compile(r"[^\s/\\\x00-\x1f]{1,64}")
_SYSTEMS = ("darwin", "linux", "win32")


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. `folder` is None for one that was made from a record; `directory` is what `{baseDir}` becomes."""

    name: str
    description: str
    body: str = ""
    folder: Path | None = None
    requires: Requirements = field(default_factory=Requirements)
    user_invocable: bool = True
    model_invocable: bool = True
    emoji: str = ""
    homepage: str = ""
    install: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def instructions(self) -> str:
        """The body with `{baseDir}` replaced by the skill's folder."""
        return self.body.replace(_BASE_DIR, str(self.folder)) if self.folder else self.body

    @property
    def location(self) -> str:
        """Where its file is; empty when it has none."""
        return str(self.folder / FILE) if self.folder else ""

    def resources(self) -> dict[str, tuple[Path, ...]]:
        """The files of `scripts`, `references` and `assets`, which an agent runs or reads when it needs them."""
        if self.folder is None:
            return {}
        kinds = ((name, self.folder / name) for name in ("scripts", "references", "assets"))
        found = {name: tuple(sorted(p for p in path.rglob("*") if p.is_file())) for name, path in kinds}
        return {name: paths for name, paths in found.items() if paths}


@dataclass(frozen=True, slots=True)
class SkillProblem:
    """One thing that is wrong with a skill file, in one line; `fatal`: the file is not used."""

    file: str
    line: int
    text: str
    fatal: bool = True

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {excerpt(self.text, 300)}{'' if self.fatal else ' (read all the same)'}"


def read_skill(path: str | Path) -> tuple[Skill | None, tuple[SkillProblem, ...]]:
    """The skill of a SKILL.md file (or of the folder that holds it), and all that is wrong with it."""
    path = given.path("read_skill", path, expected=f"a folder with a {FILE}")
    file = path / FILE if path.is_dir() else path
    try:
        text = read_text(file)
    except LabError as error:
        parts = (f"found {error.found}" if error.found else "", f"expected {error.expected}" if error.expected else "")
        why = "; ".join(each for each in parts if each)
        return None, (SkillProblem(str(file), 0, why or str(error)),)
    return skill_of(text, file)


def skill_of(text: str, file: Path) -> tuple[Skill | None, tuple[SkillProblem, ...]]:
    """The skill that a text says, as if it stood in that file."""
    parts = parts_of(text)
    reader = _Reader(parts)
    skill = None if any(each.fatal for each in parts.faults) else reader.skill(file)
    rejected = any(each.fatal for each in reader.faults)
    problems = tuple(SkillProblem(str(file), each.line, each.text, rejected or each.fatal) for each in reader.faults)
    return (None if rejected else skill), problems


class _Reader:
    """Reads the values of one file, and gathers what is wrong with them."""

    def __init__(self, parts: Parts) -> None:
        self._values, self._parts = parts.values, parts
        self.faults = list(parts.faults)

    def _fault(self, name: str, text: str, fatal: bool = True) -> None:
        self.faults.append(Fault(self._parts.lines.get(name.partition(".")[0], 1), f"{name}: {text}", fatal))

    def skill(self, file: Path) -> Skill:
        """The skill, as far as the values allow."""
        name, description = self._name(), self._description()
        openclaw = self._openclaw()
        if not self._parts.body.strip():
            self.faults.append(Fault(max(self._parts.lines.values(), default=1), "no instructions below", False))
        return Skill(
            name=name,
            description=description,
            body=self._parts.body,
            folder=file.parent.absolute(),
            requires=self._requires(openclaw),
            user_invocable=self._flag("user-invocable", True),
            model_invocable=not self._flag("disable-model-invocation", False),
            emoji=str(openclaw.get("emoji") or ""),
            homepage=str(self._values.get("homepage") or openclaw.get("homepage") or ""),
            install=self._install(openclaw),
            values=dict(self._values),
        )

    def _name(self) -> str:
        value = self._values.get("name")
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            self._fault("name", f"found {'nothing' if not value else excerpt(value, 60)}; expected a name")
            return ""
        if not _NAME.fullmatch(value.strip()):
            self._fault("name", f"found {excerpt(value, 60)!r}; expected 1 to 64 characters without space or slash")
        return value.strip()

    def _description(self) -> str:
        value = self._values.get("description")
        if not isinstance(value, str) or not value.strip():
            found = "nothing" if value in (None, "") or isinstance(value, str) else f"a {type(value).__name__}"
            self._fault("description", f"found {found}; expected what the skill is for and when to use it")
            return ""
        return " ".join(value.split())

    def _flag(self, name: str, default: bool) -> bool:
        value = self._values.get(name, default)
        if isinstance(value, str) and value.strip().lower() in ("true", "false", "yes", "no"):
            return value.strip().lower() in ("true", "yes")
        if not isinstance(value, bool):
            self._fault(name, f"found {excerpt(value, 40)!r}; expected true or false")
            return default
        return value

    def _openclaw(self) -> Mapping[str, Any]:
        """`metadata.openclaw` (older files: `metadata.clawdbot`): nested YAML, one line of JSON, or a string of it."""
        value = self._values.get("metadata")
        if isinstance(value, str) and value.strip().startswith("{"):
            value = json5_of(value)
            if value is None:
                self._fault("metadata", "found a string that is no JSON; expected an object")
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self._fault("metadata", f"found a {type(value).__name__}; expected an object")
            return {}
        for key in ("openclaw", "clawdbot", "clawdis"):
            found = value.get(key)
            if isinstance(found, Mapping):
                return found
            if found is not None:
                self._fault(f"metadata.{key}", f"found a {type(found).__name__}; expected an object")
        return {}

    def _requires(self, openclaw: Mapping[str, Any]) -> Requirements:
        value = openclaw.get("requires")
        if value is not None and not isinstance(value, Mapping):
            self._fault("metadata.openclaw.requires", f"found a {type(value).__name__}; expected an object")
            value = None
        needed = value or {}
        known = {"bins", "anyBins", "env", "config"}
        for name in needed:
            if name not in known:
                self._fault(f"metadata.openclaw.requires.{name}", f"expected one of {', '.join(sorted(known))}", False)
        systems = self._texts("os", openclaw)
        for each in systems:
            if each not in _SYSTEMS:
                self._fault("metadata.openclaw.os", f"found {each!r}; expected one of {', '.join(_SYSTEMS)}")
        lists = (self._texts(name, needed, "requires.") for name in ("bins", "anyBins", "env", "config"))
        bins, any_bins, env, config = lists
        return Requirements(bins, any_bins, env, config, systems, openclaw.get("always") is True)

    def _texts(self, name: str, among: Mapping[str, Any], prefix: str = "") -> tuple[str, ...]:
        value = among.get(name)
        if value is None:
            return ()
        if isinstance(value, str) and value:
            return (value,)
        if isinstance(value, list) and all(isinstance(each, str) and each for each in value):
            return tuple(value)
        self._fault(f"metadata.openclaw.{prefix}{name}", f"found {excerpt(value, 60)}; expected a list of names")
        return ()

    def _install(self, openclaw: Mapping[str, Any]) -> tuple[str, ...]:
        """How what is missing is installed, each in words."""
        value = openclaw.get("install")
        if not isinstance(value, list):
            return ()
        found = []
        for each in value:
            if isinstance(each, Mapping):
                package = each.get("formula") or each.get("package") or each.get("module") or each.get("id")
                found.append(f"{each.get('kind', 'install')} install {package}" if package else str(each.get("label")))
        return tuple(found)
