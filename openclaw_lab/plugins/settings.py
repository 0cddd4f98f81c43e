"""A host's config and a plugin's own `config.json` in; whether the plugin is wanted, and its checked settings, out.

The host's file has the shape of `~/.openclaw/openclaw.json` (`plugins.entries.<id>.config`); it wins over the plugin's
`config.json`, which wins over the schema's defaults. `${NAME}` stands for a value of the environment that the caller
hands over. No message shows a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from openclaw_lab import given
from openclaw_lab.errors import PluginError
from openclaw_lab.knobs import nearest
from openclaw_lab.plugins.limits import LONGEST_HANDLER
from openclaw_lab.plugins.manifest import Manifest
from openclaw_lab.plugins.relaxed_json import read_object
from openclaw_lab.plugins.schema import Checker, dotted, named_kind, with_defaults

OWN = "config.json"
# What a host takes in `plugins`, and in each of its entries: with anything else it does not start.
_PARTS = ("enabled", "allow", "deny", "load", "slots", "entries")
_ENTRY = ("enabled", "hooks", "subagent", "llm", "config")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")
_SECRET = re.compile(r"secret|token|passw|credential|api_?key|private_?key|密钥|密码", re.IGNORECASE)
# Shorter ones would blot out half of every message.
_SHORTEST_SECRET = 4


@dataclass(frozen=True, slots=True)
class HostConfig:
    """The `plugins` part of a host's config, the file that it is from (for messages), and what stands beside it."""

    plugins: Mapping[str, Any] = field(default_factory=dict, repr=False)
    source: str = "config"
    beside: tuple[str, ...] = ()

    def entry(self, plugin_id: str) -> Mapping[str, Any]:
        """What it says of one plugin; empty where nothing."""
        entry = self.plugins.get("entries", _NOTHING).get(plugin_id, _NOTHING)
        return self._object(entry, f"entries.{plugin_id}")

    def refusal(self, manifest: Manifest, *, asked: bool = False) -> str:
        """Why a plugin is not to be loaded; empty when it is. `asked`: named by hand, so that it need not be active."""
        wanted = self._flag(self.entry(manifest.id), f"entries.{manifest.id}.enabled")
        if self._flag(self.plugins, "enabled") is False:
            return f"plugins.enabled is false in {self.source}"
        if manifest.id in self._names("deny"):
            return f"plugins.deny names it in {self.source}"
        if wanted is False:
            return f"plugins.entries.{manifest.id}.enabled is false in {self.source}"
        if self._names("allow") and manifest.id not in self._names("allow"):
            return f"plugins.allow does not name it in {self.source}"
        if wanted is True or asked or manifest.active:
            return ""
        return f"neither enabledByDefault nor activation.onStartup; set plugins.entries.{manifest.id}.enabled to true"

    def notes(self, plugin_id: str) -> tuple[str, ...]:
        """What of a plugin's settings stands where no host reads it."""
        where = f"{self.source}: plugins.entries.{plugin_id}"
        unknown = [each for each in self.entry(plugin_id) if each not in _ENTRY]
        notes = [f"{where}.{each}: not read, OpenClaw does not start; {nearest(str(each), _ENTRY)}" for each in unknown]
        if plugin_id in self.beside:
            notes.append(
                f"{self.source}: {plugin_id}: not read; settings belong into plugins.entries.{plugin_id}.config"
            )
        return tuple(notes)

    def hook_limits(self, plugin_id: str) -> dict[str, float]:
        """Seconds that a plugin's handlers may take, by hook, and under "" for all others; empty where it says none."""
        path = f"entries.{plugin_id}.hooks"
        hooks = self._object(self.entry(plugin_id).get("hooks", _NOTHING), path)
        times = self._object(hooks.get("timeouts", _NOTHING), f"{path}.timeouts")
        given = {"": ("timeoutMs", hooks.get("timeoutMs"))} | {n: (f"timeouts.{n}", t) for n, t in times.items()}
        limits: dict[str, float] = {}
        for hook, (name, value) in given.items():
            if value is None:
                continue
            if type(value) not in (int, float) or not 0 < value <= 1000 * LONGEST_HANDLER:
                found = str(value) if isinstance(value, int | float) else named_kind(value)
                expected = f"more than 0 and at most {1000 * LONGEST_HANDLER:,.0f} ms"
                raise PluginError(f"{self.source}: plugins.{path}.{name}", found, expected)
            limits[hook] = value / 1000
        return limits

    def _flag(self, values: Mapping[str, Any], path: str) -> bool | None:
        """A true or false, where it is given."""
        value = values.get("enabled")
        if value is not None and not isinstance(value, bool):
            raise PluginError(f"{self.source}: plugins.{path}", named_kind(value), "true or false")
        return value

    def named(self) -> tuple[str, ...]:
        """The ids that it names anywhere, each once."""
        entries = self.plugins.get("entries", _NOTHING)
        return tuple(dict.fromkeys([*map(str, entries), *self._names("allow"), *self._names("deny")]))

    def _names(self, name: str) -> tuple[str, ...]:
        value = self.plugins.get(name, ())
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise PluginError(f"{self.source}: plugins.{name}", named_kind(value), "a list of plugin ids")
        return tuple(value)

    def _object(self, value: object, path: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise PluginError(f"{self.source}: plugins.{path}".rstrip("."), named_kind(value), "an object")
        return value


def host_config(config: HostConfig | Mapping[str, Any] | str | Path | None) -> HostConfig:
    """From a file, from an object of that shape, or nothing at all."""
    if isinstance(config, HostConfig):
        return config
    if config is None:
        return HostConfig()
    source = "config"
    if isinstance(config, str | Path):
        source = str(config)
        config = read_object(given.path("config", config, expected="a file", error=PluginError))
    if not isinstance(config, Mapping):
        raise PluginError("config", f"a {type(config).__name__}", "a file, or an object with plugins")
    made = HostConfig(config.get("plugins", _NOTHING), source, tuple(map(str, config)))
    made._object(made.plugins, "")
    made._object(made.plugins.get("entries", _NOTHING), "entries")
    for name in made.plugins:  # newer hosts may take more names than these
        near = nearest(str(name), _PARTS)
        if name not in _PARTS and near.startswith("did you mean"):
            raise PluginError(f"{source}: plugins.{name}", expected="a name that a host takes", todo=near)
    for name in config if "plugins" not in config else ():
        if name in _PARTS[1:3] or name == "entries" or nearest(str(name), ["plugins"]).startswith("did you mean"):
            todo = "plugins: {entries: {<id>: {config: {…}}}}"
            raise PluginError(f"{source}: {name}", expected="plugins, as in openclaw.json", todo=todo)
    return made


class PluginConfig(Mapping[str, Any]):
    """A plugin's settings. Reading a name that the manifest's schema can never let through is an error."""

    def __init__(self, values: Mapping[str, Any], manifest: Manifest) -> None:
        self._values, self._id = dict(values), manifest.id
        closed = manifest.config_schema.get("additionalProperties") is False
        self._offered = set(manifest.config_schema.get("properties") or ()) if closed else None

    def __getitem__(self, name: str) -> Any:
        if self._offered is not None and name not in self._offered:
            raise PluginError(
                f"plugin {self._id}: plugin_config[{name!r}]", expected="a name of the manifest's configSchema",
                todo=nearest(name, self._offered) if self._offered else "the schema offers none",
            )  # fmt: skip
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"PluginConfig({', '.join(self._values)})"


def plugin_config(manifest: Manifest, host: HostConfig, environment: Mapping[str, str]) -> PluginConfig:
    """The settings of one plugin, checked against its schema, with defaults; PluginError names path and file."""
    given = host.entry(manifest.id).get("config", _NOTHING)
    where = f"plugins.entries.{manifest.id}.config"
    if not isinstance(given, Mapping):
        raise PluginError(f"{host.source}: {where}", named_kind(given), "an object")
    own = _own(manifest)
    values = {**_filled(own, OWN, environment), **_filled(given, where, environment)}
    complete = with_defaults(manifest.config_schema, values)
    found = Checker(manifest.config_schema)(complete, where)
    if found:
        sources = [host.source] if given else []
        sources += [str(manifest.folder / OWN)] if own and manifest.folder else []
        raise PluginError(f"{' and '.join(sources) or f'plugin {manifest.id}'}: {'; '.join(found)}")
    return PluginConfig(complete, manifest)


def _own(manifest: Manifest) -> Mapping[str, Any]:
    path = manifest.folder / OWN if manifest.folder else None
    return read_object(path) if path and path.exists() else _NOTHING


def _filled(value: Any, where: str, environment: Mapping[str, str]) -> Any:
    """The value with `${NAME}` replaced in its strings."""
    if isinstance(value, str):
        for name in _VARIABLE.findall(value):
            if name not in environment:
                raise PluginError(where, f"${{{name}}}", "a value of the environment", f"set {name}")
        return _VARIABLE.sub(lambda match: environment[match.group(1)], value)
    if isinstance(value, Mapping):
        return {name: _filled(each, dotted(where, [name]), environment) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, dotted(where, [index]), environment) for index, each in enumerate(value)]
    return value


class Mask:
    """Hides the secrets of one plugin in whatever is shown of it: settings whose names, or schema, tell of one."""

    def __init__(self, config: Mapping[str, Any], schema: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        found = set(_secrets(dict(config), schema, False)) | {v for k, v in environment.items() if _SECRET.search(k)}
        self._secrets = sorted((each for each in found if len(each) >= _SHORTEST_SECRET), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without them."""
        for each in self._secrets:
            text = text.replace(each, "***")
        return text


def _marked(schema: object) -> bool:
    return isinstance(schema, Mapping) and (schema.get("format") == "password" or schema.get("writeOnly") is True)


def _secrets(value: Any, schema: Any, secret: bool) -> Iterator[str]:
    if isinstance(value, str) and secret:
        yield value
    elif isinstance(value, Mapping):
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        for name, each in value.items():
            inner = properties.get(name) if isinstance(properties, Mapping) else None
            yield from _secrets(each, inner, secret or _marked(inner) or bool(_SECRET.search(str(name))))
    elif isinstance(value, list):
        for each in value:
            yield from _secrets(each, None, secret)
