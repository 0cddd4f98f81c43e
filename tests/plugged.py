"""Plugin folders for tests, written in one call."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

TOOL = """
from openclaw_lab.plugins.sdk import define_plugin_entry

def {tool}(city: str) -> str:
    \"\"\"Say hello to a city.\"\"\"
    return "hello " + city

entry = define_plugin_entry(id="{id}", register=lambda api: api.register_tool({tool}))
"""


def manifest(id: str, /, *tools: str, **more: Any) -> dict[str, Any]:
    """A manifest that OpenClaw takes."""
    return {
        "id": id,
        "activation": {"onStartup": True},
        "contracts": {"tools": list(tools)},
        "configSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        **more,
    }


def plugin(parent: Path, id: str, code: str | None = None, *tools: str, **more: Any) -> Path:
    """A plugin's folder; without code it has one tool that says hello."""
    named = tools or ((f"{id}_hello",) if code is None else ())
    folder = parent / id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "openclaw.plugin.json").write_text(json.dumps(manifest(id, *named, **more)), encoding="utf-8")
    text = TOOL.format(id=id, tool=named[0]) if code is None else textwrap.dedent(code)
    (folder / "plugin.py").write_text(text, encoding="utf-8")
    return folder


def registering(body: str, start: str = "") -> str:
    """A plugin's code with a `register(api)` of these lines, and others before it."""
    head = "import asyncio, os, sys, threading, time\nfrom openclaw_lab.plugins.sdk import *\n"
    lines = textwrap.indent(textwrap.dedent(body) or "pass", "    ")
    return f"{head}{textwrap.dedent(start)}\ndef register(api):\n{lines}\n"
