"""Matched skills in, the section of the system prompt out; and the list that OpenClaw 2026.9 makes of all skills.

Two ways to tell a model of skills: the seed document injects the instructions of the matched ones; the real host lists
every eligible skill by name, description and location, and the model reads the file when it needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from openclaw_lab.errors import ConfigError
from openclaw_lab.given import listed, texts, whole
from openclaw_lab.skills.registry import SkillMatch, SkillRegistry, shown
from openclaw_lab.skills.skill import Skill

HEADING = "## Available Skills"
_RULE = {
    "en": (
        'CRITICAL RULE: when a skill is listed under "Available Skills", follow its instructions yourself. {}; do not '
        "hand the task to a worker, and do not rewrite the scripts.",
        "Run its scripts and commands directly with the shell tool",
        "Read its files with the view_file tool, and say so when a step needs a tool that you lack",
        "Use the tools that you have, and say so when a step needs one that you lack",
    ),
    "zh": (
        "CRITICAL RULE：凡列在 Available Skills 下的技能，请自己照其说明去做。{}；不要转交给 worker，也不要重写脚本。",
        "其中的脚本和命令直接用 shell 工具运行",
        "其中的文件用 view_file 工具查看；某一步缺少所需工具时，请说明",
        "请使用现有的工具；某一步缺少所需工具时，请说明",
    ),
}


def critical_rule(language: str = "en", *, tools: Iterable[str] = ("shell",)) -> str:
    """What the model is told of skills, in the language `en` or `zh`; of `shell` and `view_file` only what it has."""
    if language not in ("en", "zh"):
        raise ConfigError("critical_rule: language", str(language), "en or zh")
    rule, run, read, use = _RULE[language]
    names = texts("critical_rule: tools", tools)
    return rule.format(run if "shell" in names else read if "view_file" in names else use)


# OpenClaw 2026.9: skills.limits.maxSkillsInPrompt and maxSkillsPromptChars.
MOST_SKILLS, MOST_CHARACTERS = 150, 18_000


def section(matches: Sequence[SkillMatch] | Sequence[Skill], *, rule: str | None = None) -> str:
    """The instructions of the matched skills, `{baseDir}` replaced, below the rule (None: the English one, for a
    shell); empty when none matched.
    """
    skills = [each.skill if isinstance(each, SkillMatch) else each for each in listed("section", matches)]
    if not all(isinstance(each, Skill) for each in skills):
        raise ConfigError("section", "what is no skill", "what match() gives, or Skills")
    if not skills:
        return ""
    bodies = "\n\n---\n\n".join(shown(each) for each in skills)
    return "\n\n".join(filter(None, [HEADING, critical_rule() if rule is None else rule, bodies]))


def companion_section(registry: SkillRegistry, tools: Iterable[str]) -> str:
    """The instructions of the skills that come with these tools."""
    return section(registry.companions(tools), rule="")


@dataclass(frozen=True, slots=True)
class Listing:
    """The list as the host writes it, and what the limits did to it."""

    text: str
    listed: int
    left_out: int
    compact: bool


def listing(
    registry: SkillRegistry,
    host: str = "openclaw-2026.9",
    most_skills: int = MOST_SKILLS,
    most_characters: int = MOST_CHARACTERS,
) -> Listing:
    """All eligible skills that the model may see: first in full, over the limit without descriptions, then fewer.

    `user-invocable: false` hides a skill from the slash commands only; `disable-model-invocation` from this list.
    """
    most_skills = whole("listing: most_skills", most_skills, least=0)
    most_characters = whole("listing: most_characters", most_characters, least=0)
    if host != "openclaw-2026.9":
        raise ConfigError("host", str(host), "openclaw-2026.9, the host that lists skills")
    skills = [each for each in registry.eligible if each.model_invocable]
    kept = skills[:most_skills]
    full = _listed(kept, True)
    if len(full) <= most_characters:
        return Listing(full, len(kept), len(skills) - len(kept), False)
    while kept and len(_listed(kept, False)) > most_characters:
        kept = kept[: len(kept) - max(1, len(kept) // 20)]
    return Listing(_listed(kept, False), len(kept), len(skills) - len(kept), True)


def _listed(skills: Sequence[Skill], descriptions: bool) -> str:
    if not skills:
        return ""
    lines = ["<available_skills>"]
    for each in skills:
        lines += ["  <skill>", f"    <name>{escape(each.name)}</name>"]
        if descriptions:
            lines.append(f"    <description>{escape(each.description)}</description>")
        lines += [f"    <location>{escape(each.location)}</location>", "  </skill>"]
    return "\n".join([*lines, "</available_skills>"])
