"""What an agent's prompt says of skills: those that a message picks, or the list of all that a newer host makes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from openclaw_lab.config import LabConfig
from openclaw_lab.plugins.tool import Tool
from openclaw_lab.skills.prompt import HEADING, companion_section, critical_rule, listing
from openclaw_lab.skills.prompt import section as matched_section
from openclaw_lab.skills.registry import SkillRegistry
from openclaw_lab.text import language

SkillMode = Literal["match", "list"]


def section(
    registry: SkillRegistry, message: str, config: LabConfig, tools: Iterable[Tool], mode: SkillMode = "match"
) -> str:
    """`match`: the instructions of the skills that a message picks, and of those that come with the tools offered.
    `list`: every skill by name, description and place, as OpenClaw 2026.9 has it; the model reads the file itself.
    """
    if mode == "list":
        return listing(registry).text
    names = [each.name for each in tools]
    rule = critical_rule(language(message), tools=names)
    picked = matched_section(registry.match(message, config.skills), rule=rule)
    companions = companion_section(registry, names)
    if picked and companions:
        return f"{picked}\n\n---\n\n{companions.removeprefix(HEADING).lstrip()}"
    return picked or companions
