"""What plugins are loaded from: folders by path or name, entries, functions `register(api)`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from openclaw_lab.errors import PluginError
from openclaw_lab.plugins.api import PluginApi
from openclaw_lab.plugins.entry import PluginEntry, define_plugin_entry

Source = str | Path | PluginEntry | Callable[[PluginApi], Any]


def entry_given(source: object) -> PluginEntry:
    """An entry, or one made of a function register(api)."""
    if isinstance(source, PluginEntry):
        return source
    if callable(source):
        return define_plugin_entry(id=getattr(source, "__name__", "plugin").strip("<>"), register=source)
    raise PluginError("load_plugins", f"a {type(source).__name__}", "a folder, an entry or a function register(api)")


def where(source: Path | PluginEntry) -> str:
    """The place of a plugin, for a report."""
    return str(source) if isinstance(source, Path) else "an entry given as an object"


def same(one: Path | PluginEntry, other: Path | PluginEntry) -> bool:
    """Whether two are one: the same folder, or the same object, since entries of one id may differ in their code."""
    return one is other or (isinstance(one, Path) and one == other)


def key_of(source: Path | PluginEntry) -> str:
    """What a plugin is called before its manifest is read."""
    return source.name if isinstance(source, Path) else source.id
