"""Skills and what they need in, the list that /skills prints out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from openclaw_lab.errors import excerpt
from openclaw_lab.skills.skill import Skill, SkillProblem

_WIDTH = 60


@dataclass(frozen=True, slots=True)
class SkillStatus:
    """One skill, and what is missing before it can be used."""

    skill: Skill
    missing: tuple[str, ...]

    @property
    def ready(self) -> bool:
        """Whether it can be used."""
        return not self.missing

    def log_line(self) -> str:
        """The line that is logged when skills are loaded."""
        if self.ready:
            return f"[skill] {self.skill.name}: ready"
        return f"[skill] {self.skill.name}: requires {', '.join(self.missing)} — skipping"

    def line(self, width: int) -> str:
        """The line of the list, names as wide as the longest."""
        mark = "✅" if self.ready else "❌"
        return f"  {mark} {self.skill.name:<{width}} — {self._said()}"

    def _said(self) -> str:
        if not self.ready:
            install = f" ({' / '.join(self.skill.install)})" if self.skill.install else ""
            return f"requires: {', '.join(self.missing)}{install}"
        said = excerpt(self.skill.description, _WIDTH)
        return said if self.skill.user_invocable else f"{said} (auto-injected)"


@dataclass(frozen=True, slots=True)
class StatusList:
    """All skills, and all that was wrong with their files."""

    rows: tuple[SkillStatus, ...]
    problems: tuple[SkillProblem, ...] = ()

    def __iter__(self) -> Iterator[SkillStatus]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def log(self) -> str:
        """One line a skill, as it is logged at the start."""
        return "\n".join(each.log_line() for each in self.rows)

    def __str__(self) -> str:
        width = max((len(each.skill.name) for each in self.rows), default=0)
        lines = ["Available skills:", *(each.line(width) for each in self.rows)]
        if not self.rows:
            lines.append("  (none)")
        return "\n".join([*lines, *(f"  ⚠️ {each}" for each in self.problems)])
