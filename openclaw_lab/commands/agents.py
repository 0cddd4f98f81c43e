"""Commands about agents and what they are made of: chat, plugins, skills."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from openclaw_lab.commands.arguments import Commands, config_named


def add(commands: Commands) -> None:
    """Add them to the command line."""
    chat = commands.add_parser("chat", help="talk to an agent here; /help lists its commands")
    chat.add_argument("message", nargs="*", help="one message, answered and done (default: what is typed)")
    chat.add_argument("--model", default="echo", help="echo, or litellm:PROVIDER/MODEL (default: echo)")
    chat.add_argument("--cassette", type=Path, help="file that keeps the model's answers, and gives them again")
    chat.add_argument("--cassette-only", action="store_true", help="never ask the model")
    chat.add_argument("--session", type=Path, help="file that the session is logged to and resumed from")
    chat.add_argument("--plugin", action="append", default=[], metavar="PLUGIN", help="a folder or a built-in's name")
    chat.add_argument("--skills", action="append", default=[], metavar="FOLDER", help="a folder of skills")
    chat.add_argument("--knowledge", type=Path, help="a knowledge base to recall from and to /remember in")
    chat.add_argument("--root", action="append", default=[], type=Path, help="offer view_file below this folder")
    chat.add_argument("--allow", action="append", default=[], metavar="PROGRAM", help="offer shell with this program")
    chat.add_argument("--host", default="", help="whose hooks fire: seed, openclaw-2026.3 or openclaw-2026.9")
    chat.add_argument("--config", default="tuned", help="seed, tuned, or a lab-config.json (default: tuned)")
    chat.set_defaults(command=_chat)

    plugins = commands.add_parser("plugins", help="what becomes of plugins; exit 1 when one is at fault")
    plugins.add_argument("folders", nargs="*", metavar="FOLDER", help="a plugin, or a folder of them (default: ours)")
    plugins.add_argument("--config", type=Path, help="a file shaped as ~/.openclaw/openclaw.json")
    plugins.add_argument("--no-code", action="store_true", help="read manifests and configs only")
    plugins.add_argument("--isolated", action="store_true", help="run each plugin in a process of its own")
    plugins.set_defaults(command=_plugins)

    skills = commands.add_parser("skills", help="which skills there are, which can be used, what a message picks")
    skills.add_argument("folders", nargs="*", metavar="FOLDER", help="folders of skills (default: the examples)")
    skills.add_argument("--match", metavar="MESSAGE", help="the skills that a message picks, with the reasons")
    skills.add_argument("--config", default="tuned", help="seed, tuned, or a lab-config.json (default: tuned)")
    skills.set_defaults(command=_skills)


def _chat(options: argparse.Namespace) -> int:
    from openclaw_lab.agent.terminal import chat

    given = {name: value for name, value in vars(options).items() if name not in ("command", "config")}
    return chat(config_named(options.config), dict(os.environ), **given)


def _plugins(options: argparse.Namespace) -> int:
    from openclaw_lab.plugins.status import print_status

    return print_status(options.folders, options.config, dict(os.environ), not options.no_code, options.isolated)


def _skills(options: argparse.Namespace) -> int:
    from openclaw_lab.skills.registry import EXAMPLES, SkillRegistry

    registry = SkillRegistry.load(*(options.folders or [EXAMPLES]))
    if options.match is None:
        print(registry.status())
    else:
        found = registry.match(options.match, config_named(options.config).skills)
        for match in found:
            print(f"{match.name}  {match.score:.2f}  {match.reason}")
        if not found:
            print("no skill matches")
        for each in registry.problems:
            print(each, file=sys.stderr)
    return 1 if any(each.fatal for each in registry.problems) else 0
