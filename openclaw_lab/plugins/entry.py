"""What a plugin's file offers: an entry made by `define_plugin_entry`, and the services that it may register."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_lab import given
from openclaw_lab.errors import PluginError
from openclaw_lab.plugins.manifest import Manifest, id_fault
from openclaw_lab.plugins.schema import schema_fault

if TYPE_CHECKING:
    from openclaw_lab.plugins.api import PluginApi

Register = Callable[["PluginApi"], Awaitable[None] | None]
Lifecycle = Callable[[], Awaitable[None] | None]
_OPEN: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Service:
    """Something with a beginning and an end: a connection, a cache, a timer. Both functions may be `async`."""

    id: str
    start: Lifecycle | None = field(default=None, compare=False)
    stop: Lifecycle | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PluginEntry:
    """A plugin's code; `tools`, `config_schema` and `skills` count only without a manifest, as in a notebook."""

    id: str
    name: str
    description: str
    register: Register = field(compare=False)
    tools: tuple[str, ...] | None = None
    config_schema: Mapping[str, Any] = field(default_factory=lambda: _OPEN)
    skills: tuple[Path, ...] = ()
    trusted: bool = False  # the lab's own: its plain hooks and tools are called without a thread and a limit

    @property
    def manifest(self) -> Manifest:
        """What its manifest would say."""
        return Manifest(
            self.id, None, self.name, description=self.description, enabled_by_default=True, tools=self.tools,
            skills=self.skills, config_schema=self.config_schema,
        )  # fmt: skip


def define_plugin_entry(
    *,
    id: str,
    register: Register,
    name: str = "",
    description: str = "",
    tools: Iterable[str] | None = None,
    config_schema: Mapping[str, Any] | None = None,
    skills: Iterable[str | Path] = (),
) -> PluginEntry:
    """A plugin's entry: `register(api)` says what it adds. PluginError for what is no id, function or schema.

    `tools` (names that it may register; None: any), `config_schema` and `skills` (folders) stand for the manifest of a
    plugin that is written in a notebook cell.
    """
    where = f"define_plugin_entry: {id if isinstance(id, str) else 'id'}"
    if not isinstance(id, str) or id_fault(id):
        raise PluginError("define_plugin_entry: id", id, id_fault(str(id)) or "a string")
    if not callable(register):
        raise PluginError(f"{where}: register", f"a {type(register).__name__}", "a function that takes the api")
    if config_schema is not None and (fault := schema_fault(config_schema)):
        raise PluginError(f"{where}: config_schema", fault)
    given.check(
        PluginError, **{f"{where}: name": (name, str, "a text"), f"{where}: description": (description, str, "a text")}
    )
    declared = None if tools is None else tuple(given.texts(f"{where}: tools", tools, error=PluginError))
    wanted = given.listed(f"{where}: skills", skills, error=PluginError)
    folders = tuple(given.path(f"{where}: skills", each, error=PluginError).resolve() for each in wanted)
    return PluginEntry(id, name or id, description, register, declared, config_schema or _OPEN, folders)
