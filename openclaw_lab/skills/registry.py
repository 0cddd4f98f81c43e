"""Skill folders in; which skills there are, which can be used, and which a message calls for, out.

    registry = SkillRegistry.load("skills")
    registry.match("内存用了多少？")        # -> [SkillMatch(name, score, hits, reason)]
    print(registry.status())               # the list that /skills prints

Nothing is dropped silently: `problems` names every file that could not be read, or that was read with a repair.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from openclaw_lab.config import LabConfig, SkillConfig
from openclaw_lab.errors import ConfigError
from openclaw_lab.given import check, listed, path, texts
from openclaw_lab.knobs import nearest
from openclaw_lab.skills.catalogue import Catalogue
from openclaw_lab.skills.matchers import Matcher, scores
from openclaw_lab.skills.requirements import Environment, missing, this_machine
from openclaw_lab.skills.scores import picked
from openclaw_lab.skills.skill import FILE, Skill, SkillProblem, read_skill
from openclaw_lab.skills.status import SkillStatus, StatusList
from openclaw_lab.text import count_tokens

# The skills that ship: sysinfo with its script, and github.
EXAMPLES = Path(__file__).parent / "examples"


@dataclass(frozen=True, slots=True)
class SkillMatch:
    """One skill that a message picks, and why."""

    name: str
    score: float
    hits: int
    reason: str
    skill: Skill = field(repr=False, compare=False)


@dataclass(frozen=True)
class SkillRegistry:
    """The skills, in the order in which they were loaded; of one name, the first."""

    skills: tuple[Skill, ...]
    problems: tuple[SkillProblem, ...] = ()
    environment: Environment = field(default_factory=this_machine, repr=False)

    @classmethod
    def load(cls, *folders: str | Path, environment: Environment | None = None) -> Self:
        """Read every `SKILL.md` in the folders: a skill's own folder, or one that holds skill folders.

        `environment` says which programs and variables are there; left out, this machine's are looked up. A folder that
        is not there is a ConfigError.
        """
        check(environment=(environment or Environment(), Environment, "an Environment, of skills.requirements"))
        found: dict[str, Skill] = {}
        problems: list[SkillProblem] = []
        for folder in map(_folder, folders):
            files, odd = _files(folder)
            problems += odd
            for file in files:
                skill, faults = read_skill(file)
                problems += faults
                if skill and skill.name in found:
                    first = found[skill.name].location
                    problems.append(SkillProblem(str(file), 0, f"name: {skill.name!r} again, first in {first}"))
                elif skill:
                    found[skill.name] = skill
        return cls(tuple(found.values()), tuple(problems), environment or this_machine())

    @classmethod
    def from_records(cls, records: Iterable[tuple[str, str]]) -> Self:
        """Skills made of names and descriptions alone, as in a labelled catalogue."""
        skills, seen = [], set()
        for record in listed("from_records", records):
            pair = isinstance(record, tuple | list) and len(record) == 2
            if not pair or not all(isinstance(each, str) for each in record):
                raise ConfigError("from_records", repr(record), "pairs of a name and a description")
            if record[0] in seen:
                raise ConfigError("from_records", f"the name {record[0]!r} twice", "one description a name")
            seen.add(record[0])
            skills.append(Skill(*record))
        return cls(tuple(skills), (), Environment())

    def __len__(self) -> int:
        return len(self.skills)

    def __iter__(self) -> Iterator[Skill]:
        return iter(self.skills)

    def __contains__(self, name: object) -> bool:
        return any(name in (each, each.name) for each in self.skills)

    def __getitem__(self, name: str) -> Skill:
        for skill in self.skills:
            if skill.name == name:
                return skill
        known = [each.name for each in self.skills]
        raise ConfigError(f"skill {name}", expected="a skill that is there", todo=nearest(str(name), known))

    @functools.cached_property
    def eligible(self) -> tuple[Skill, ...]:
        """The skills whose requirements are met."""
        return tuple(each for each in self.skills if not missing(each.requires, self.environment))

    @functools.cached_property
    def matchable(self) -> tuple[Skill, ...]:
        """Of them, those that a message can pick: neither a tool's companion nor kept from the model."""
        return tuple(each for each in self.eligible if each.user_invocable and each.model_invocable)

    @functools.cached_property
    def catalogue(self) -> Catalogue:
        """What the matchers compare."""
        skills = self.matchable
        return Catalogue(tuple(each.name for each in skills), tuple(each.description for each in skills))

    @functools.cached_property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of each of the matchable skills in a prompt."""
        return tuple(count_tokens(shown(each)) for each in self.matchable)

    def match(
        self, message: str, config: SkillConfig | LabConfig | None = None, matcher: Matcher | None = None
    ) -> list[SkillMatch]:
        """The skills that a message calls for, best first (under `seed`: in order), each with its reason."""
        if not isinstance(message, str):
            raise ConfigError("match", f"a {type(message).__name__}", "a message, a str")
        if matcher is not None and not callable(matcher):
            raise ConfigError("match: matcher", f"a {type(matcher).__name__}", "a function of messages and catalogue")
        settings = _settings(config)
        found = scores([message], self.catalogue, settings, matcher)
        chosen = np.flatnonzero(picked(found, settings, self.tokens if found.limited else ())[0])
        columns = [int(found.order[0, place]) for place in chosen]
        if not found.limited:
            columns.sort()
        skills = self.matchable
        return [
            SkillMatch(
                skills[column].name,
                float(found.score[0, column]),
                int(found.hits[0, column]) if found.hits is not None else 0,
                found.reason(0, column),
                skills[column],
            )
            for column in columns
        ]

    def companions(self, tools: Iterable[str]) -> tuple[Skill, ...]:
        """Skills that no message picks (`user-invocable: false`) and that describe one of these tools."""
        names = texts("companions", tools)
        return tuple(
            each
            for each in self.eligible
            if not each.user_invocable and any(name in f"{each.description}\n{each.body}" for name in names)
        )

    def status(self) -> StatusList:
        """Every skill with what it still needs; `print` it."""
        rows = [SkillStatus(each, missing(each.requires, self.environment)) for each in self.skills]
        return StatusList(tuple(rows), self.problems)


def shown(skill: Skill) -> str:
    """What the prompt says of a skill: its instructions, or its description where it has none."""
    return f"### {skill.name}\n{skill.instructions or skill.description}"


def _settings(config: object) -> SkillConfig:
    if config is None:
        return SkillConfig()
    if isinstance(config, LabConfig):
        return config.skills
    if isinstance(config, SkillConfig):
        return config
    raise ConfigError("config", f"a {type(config).__name__}", "config.skills of a LabConfig")


def _folder(given: object) -> Path:
    folder = path("skills", given, expected="a folder with skills")
    if not os.path.isdir(folder):
        found = f"{folder}: a file" if os.path.exists(folder) else f"{folder}: nothing"
        raise ConfigError("skills", found, "a folder with skills", "check the path")
    return folder


def _files(folder: Path) -> tuple[list[Path], list[SkillProblem]]:
    """The skill files of a folder, and what looks as if it were meant to be one."""
    if os.path.isfile(folder / FILE):  # which a folder closed to us does not stop
        return [folder / FILE], []
    files, odd = [], []
    for each in _entries(folder):
        if not os.path.isdir(each) or each.name.startswith("."):
            continue
        if os.path.isfile(each / FILE):
            files.append(each / FILE)
        else:
            near = [p.name for p in _entries(each) if p.name.lower() in ("skill.md", "skills.md", "skill.markdown")]
            found = f"found {near[0]}{_oddity(each / near[0])}; " if near else ""
            odd.append(SkillProblem(str(each), 0, f"{found}expected a file {FILE}", fatal=bool(near)))
    if not files and not any(each.fatal for each in odd):
        odd.append(SkillProblem(str(folder), 0, f"found no skill; expected folders that hold a {FILE}"))
    return files, odd


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # closed to us
        return []


def _oddity(path: Path) -> str:
    """What is odd about something that has the right name."""
    if path.name != FILE:
        return ""
    return ", a folder" if path.is_dir() else ", a link that leads nowhere" if path.is_symlink() else ""
