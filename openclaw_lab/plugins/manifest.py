"""A plugin folder in, its Manifest out: `openclaw.plugin.json` read without running any code.

Two shapes are read: OpenClaw's own (`id`, `contracts.tools`, `configSchema`), and that of the first seed document
(`name` and `config`), with notes that say what a real host makes of it. Every fault of a file is one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from openclaw_lab import given
from openclaw_lab.errors import PluginError, excerpt
from openclaw_lab.knobs import nearest
from openclaw_lab.plugins.relaxed_json import read_object
from openclaw_lab.plugins.schema import named_kind, schema_fault
from openclaw_lab.plugins.tool import TOOL_NAME, is_tool_name

FILE = "openclaw.plugin.json"
_EMPTY: Mapping[str, Any] = MappingProxyType({"type": "object", "properties": {}, "additionalProperties": False})
# The fields that hosts read, for spotting a misspelt one; others may stand there, and nobody reads them.
_KNOWN = (
    "id", "name", "description", "version", "categories", "catalog", "kind", "legacyPluginIds", "requiresPlugins",
    "activation", "enabledByDefault", "enabledByDefaultOnPlatforms", "autoEnableWhenConfiguredProviders", "contracts",
    "toolMetadata", "skills", "mcpServers", "channels", "providers", "cliBackends", "cliCommands", "commandAliases",
    "dashboard", "themes", "uiHints", "configGroups", "configContracts", "configSchema", "setup",
)  # fmt: skip
_SEED_ONLY = ("author", "license", "main", "dependencies")
_LONGEST_ID = 100


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a plugin says of itself. `tools` is None where nothing restricts them (the first seed document's shape).

    `active` says whether it is loaded when nobody asks for it by name; `notes` are what a real host would say.
    """

    id: str
    folder: Path | None = None
    name: str = ""
    version: str = ""
    description: str = ""
    on_startup: bool = False
    enabled_by_default: bool = False
    tools: tuple[str, ...] | None = ()
    skills: tuple[Path, ...] = ()
    config_schema: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    notes: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        """Loaded unless the config says otherwise."""
        return self.on_startup or self.enabled_by_default


def read_manifest(folder: str | Path) -> Manifest:
    """The manifest of a plugin folder (or the file itself); a PluginError is one line with every fault."""
    path = given.path("read_manifest", folder, expected="a plugin's folder", error=PluginError)
    file = path if path.name == FILE else path / FILE
    if not _is_file(file):
        raise PluginError(str(file), expected="a plugin's manifest", todo="see openclaw_lab/plugins/examples for one")
    values = read_object(file)
    seed = "id" not in values and isinstance(values.get("name"), str) and isinstance(values.get("config"), Mapping)
    reader = _Reader(values, file.parent.resolve())
    manifest = reader.seed_shape() if seed else reader.shape()
    if reader.faults:
        raise PluginError(f"{file}: {'; '.join(reader.faults)}")
    return manifest


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above that is closed to us
        return False


def manifest_problems(manifest: Manifest, reads: Iterable[str]) -> tuple[str, ...]:
    """Config keys that the code reads and the manifest does not offer; an OpenClaw that is given one will not start."""
    offered = manifest.config_schema.get("properties") or {}
    if manifest.config_schema.get("additionalProperties") is not False:
        return ()
    missing = [name for name in reads if name not in offered]
    return tuple(
        f"{manifest.id}: configSchema.properties.{name}: is missing, but the code reads it and other names are refused"
        for name in missing
    )


class _Reader:
    """One manifest being read; gathers faults and notes."""

    def __init__(self, values: Mapping[str, Any], folder: Path) -> None:
        self._values, self._folder = values, folder
        self.faults: list[str] = []
        self._notes: list[str] = []

    def shape(self) -> Manifest:
        self._misspelt()
        activation = self._part("activation")
        contracts = self._part("contracts")
        schema = self._values.get("configSchema")
        if schema is None:
            self._note("configSchema: is missing: OpenClaw drops the plugin; an empty one is taken")
        return self._made(
            id=self._id("id"),
            on_startup=self._flag(activation, "activation.onStartup"),
            tools=self._tools(contracts),
            schema=_EMPTY if schema is None else self._schema(schema, "configSchema"),
        )

    def seed_shape(self) -> Manifest:
        self._note("id: is missing: OpenClaw drops the plugin; the name is taken")
        self._note("config: OpenClaw reads configSchema only; a schema is made of it")
        self._note("contracts.tools: is missing: OpenClaw refuses every tool; none is refused here")
        unread = [name for name in _SEED_ONLY if name in self._values]
        if unread:
            self._note(f"{', '.join(unread)}: not read by OpenClaw (package.json is)")
        schema = {"type": "object", "properties": dict(self._values["config"]), "additionalProperties": False}
        return self._made(id=self._id("name"), on_startup=True, tools=None, schema=self._schema(schema, "config"))

    def _made(self, *, id: str, on_startup: bool, tools: tuple[str, ...] | None, schema: Mapping[str, Any]) -> Manifest:
        return Manifest(
            id,
            self._folder,
            self._text("name") or id,
            self._text("version"),
            self._text("description"),
            on_startup,
            self._flag(self._values, "enabledByDefault"),
            tools,
            self._skills(),
            schema,
            tuple(self._notes),
        )

    def _fault(self, where: str, found: object, expected: str) -> None:
        shown = f"'{excerpt(found, 60)}'" if isinstance(found, str) else named_kind(found)
        self.faults.append(f"{where}: found {shown}; expected {expected}")

    def _note(self, text: str) -> None:
        self._notes.append(text)

    def _misspelt(self) -> None:
        for name in self._values:
            hint = nearest(name, _KNOWN)
            if name not in _KNOWN and hint.startswith("did you mean"):
                self._note(f"{excerpt(name, 40)}: not read; {hint}")

    def _id(self, name: str) -> str:
        value = self._values.get(name)
        if value is None:
            self.faults.append(f"{name}: is missing; expected the plugin's name")
        elif not isinstance(value, str):
            self._fault(name, value, "a string")
        elif fault := id_fault(value):
            self._fault(name, value, fault)
        else:
            return value
        return "?"

    def _text(self, name: str) -> str:
        value = self._values.get(name, "")
        if isinstance(value, str):
            return value
        self._fault(name, value, "a string")
        return ""

    def _flag(self, values: Mapping[str, Any], path: str) -> bool:
        value = values.get(path.rpartition(".")[2], False)
        if not isinstance(value, bool):
            self._fault(path, value, "true or false")
        return value is True

    def _part(self, name: str) -> Mapping[str, Any]:
        value = self._values.get(name, {})
        if isinstance(value, Mapping):
            return value
        self._fault(name, value, "an object")
        return {}

    def _strings(self, value: object, path: str) -> list[str]:
        if not isinstance(value, list):
            self._fault(path, value, "a list of strings")
            return []
        for index, each in enumerate(value):
            if not isinstance(each, str) or not each.strip():
                self._fault(f"{path}[{index}]", each, "a string with something in it")
        texts = [each for each in value if isinstance(each, str) and each.strip()]
        for each in sorted({each for each in texts if texts.count(each) > 1}):
            self.faults.append(f"{path}: '{excerpt(each, 40)}' is given twice; expected each once")
        return texts

    def _tools(self, contracts: Mapping[str, Any]) -> tuple[str, ...]:
        names = self._strings(contracts.get("tools", []), "contracts.tools")
        for name in names:
            if not is_tool_name(name):
                self._fault("contracts.tools", name, TOOL_NAME)
        return tuple(names)

    def _skills(self) -> tuple[Path, ...]:
        paths = []
        for each in self._strings(self._values.get("skills", []), "skills"):
            target = inside(self._folder, each)
            if target is None:
                self._fault("skills", each, "a folder within the plugin's own")
            elif not target.is_dir():
                self._note(f"skills: {excerpt(each, 60)} is no folder")
            else:
                paths.append(target)
        return tuple(paths)

    def _schema(self, schema: object, path: str) -> Mapping[str, Any]:
        fault = schema_fault(schema)
        if fault or not isinstance(schema, Mapping):
            self.faults.append(f"{path}: {fault}")
            return _EMPTY
        return MappingProxyType(dict(schema))


def id_fault(value: str) -> str:
    """What an id must be, where it is not; empty where it is."""
    parts = PurePosixPath(value).parts
    plain = value.isprintable() and not any(char.isspace() or char in "\\:*?\"'<>|" for char in value)
    if not value or not plain or len(value) > _LONGEST_ID or ".." in parts or value.startswith(("/", ".")):
        return f"a name without spaces and signs, at most {_LONGEST_ID} characters"
    return ""


def inside(folder: Path, relative: str) -> Path | None:
    """A path within a folder, links followed; None when it leads out of it."""
    try:
        target = (folder / relative).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    return target if target.is_relative_to(folder.resolve()) and target != folder.resolve() else None
