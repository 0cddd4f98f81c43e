"""Plugin folders and entries in; their tools, hooks, skills and services out, and a report of one line for each.

A plugin that raises, hangs, exits or registers twice is disabled and reported; the others run. In this process that
holds for what Python can catch: `os._exit`, a crash or an endless loop in C take `isolated` (see `isolation`), and what
hangs is left behind on its thread.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from openclaw_lab import given
from openclaw_lab.errors import LabError, PluginError
from openclaw_lab.knobs import nearest
from openclaw_lab.plugins.api import PluginApi, Registered
from openclaw_lab.plugins.code import entry_of, fault, forget, new_module_name, run_file
from openclaw_lab.plugins.entry import PluginEntry
from openclaw_lab.plugins.folders import no_plugin, plugin_folders
from openclaw_lab.plugins.hooks import HookBus
from openclaw_lab.plugins.isolation import isolated_entry
from openclaw_lab.plugins.limits import Limits
from openclaw_lab.plugins.loaded import STOP_LIMIT, Loaded, close, stop_all
from openclaw_lab.plugins.manifest import Manifest, read_manifest
from openclaw_lab.plugins.report import Report, as_lines
from openclaw_lab.plugins.settings import HostConfig, Mask, PluginConfig, host_config, plugin_config
from openclaw_lab.plugins.sources import Source, entry_given, key_of, same, where
from openclaw_lab.plugins.tool import Tool, ToolContext, ToolResult
from openclaw_lab.plugins.waiting import Loop, finish, limited
from openclaw_lab.plugins.worker import Worker


def load_plugins(
    *sources: Source,
    config: HostConfig | Mapping[str, Any] | str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    reserved: Iterable[str] = (),
    isolated: bool | Collection[str] = False,
    start: bool = True,
    limits: Limits | None = None,
) -> Plugins:
    """Load plugins: folders with a manifest, folders of such folders, names of bundled ones, or entries.

    `config`: a file shaped as `~/.openclaw/openclaw.json`, or such an object. `environment`: what `${NAME}` in a config
    stands for, and what plugins may read; nothing by default. `reserved`: names of tools that no plugin may take.
    `isolated`: all, or those named, run in a process of their own. `limits`: what they may take. `start`: start their
    services. A source that is not there is a PluginError; what is wrong with a plugin stands in `.reports`.
    """
    if isinstance(isolated, str) or not isinstance(isolated, bool | Collection):
        raise PluginError("load_plugins: isolated", str(isolated), "true, false, or a list of plugin ids")
    if not isinstance(isolated, bool):
        given.texts("load_plugins: isolated", isolated, error=PluginError)
    given.check(
        PluginError,
        limits=(limits or Limits(), Limits, "Limits, of openclaw_lab.plugins.limits"),
        start=(start, bool, "true or false"),
    )
    values = given.named_texts("load_plugins: environment", environment, error=PluginError)
    taken = frozenset(given.texts("load_plugins: reserved", reserved, error=PluginError))
    plugins = Plugins(host_config(config), values, taken, isolated, limits or Limits())
    plugins.load(*sources, start=start)
    known = [each.id for each in plugins.reports]
    plugins.tell_unknown()
    for name in isolated if not isinstance(isolated, bool) else ():
        if name not in known:  # a misspelt one would run here unnoticed
            plugins.stop()
            raise PluginError(f"load_plugins: isolated: {name}", expected="a plugin's id", todo=nearest(name, known))
    return plugins


class Plugins:
    """Loaded plugins; `with load_plugins(…) as plugins:` stops their services at the end."""

    def __init__(
        self,
        host: HostConfig,
        environment: Mapping[str, str],
        reserved: frozenset[str],
        isolated: bool | Collection[str],
        limits: Limits,
    ) -> None:
        self.bus = HookBus()
        self._host, self._environment, self._reserved = host, environment, reserved
        self._isolated, self._limits = isolated, limits
        self._sources: list[Source] = []
        self._loaded: dict[str, Loaded] = {}
        self._reports: dict[str, Report] = {}
        self._tools: dict[str, Tool] = {}
        self._lock = threading.RLock()
        # Services must not outlive the last reference, nor the process: a notebook cell may simply be run again.
        weakref.finalize(self, stop_all, self._loaded, STOP_LIMIT)

    # --- what there is --------------------------------------------------------------------------------------------

    @property
    def tools(self) -> Mapping[str, Tool]:
        """Every tool by its name; follows what is loaded later."""
        return MappingProxyType(self._tools)

    @property
    def skills(self) -> tuple[Path, ...]:
        """The skill folders that plugins bring along."""
        return tuple(path for each in self._loaded.values() for path in each.manifest.skills)

    @property
    def services(self) -> Mapping[str, tuple[str, ...]]:
        """The services that run now, by plugin."""
        return {name: tuple(each.id for each in loaded.started) for name, loaded in self._loaded.items()}

    @property
    def manifests(self) -> Mapping[str, Manifest]:
        """The manifests of the plugins that are loaded, by id."""
        return {name: loaded.manifest for name, loaded in self._loaded.items()}

    @property
    def reports(self) -> tuple[Report, ...]:
        """What became of each plugin; `str()` of one is a line."""
        return tuple(map(self._as_of_now, self._reports.values()))

    def _as_of_now(self, report: Report) -> Report:
        """A report, of a plugin whose hook or tool was late with that."""
        loaded = self._loaded.get(report.id)
        if loaded is None or not loaded.late or report.status != "loaded":
            return report
        return replace(report, status="disabled", reason=loaded.late, fault=True)

    def __str__(self) -> str:
        return as_lines(self.reports)

    def __repr__(self) -> str:
        return f"Plugins({', '.join(self._loaded)})"

    # --- loading --------------------------------------------------------------------------------------------------

    def load(self, *sources: Source, start: bool = True) -> tuple[Report, ...]:
        """Load more, in order; the services of what was loaded before are not started again."""
        made: list[Report] = []
        with self._lock:
            for source in sources:
                single = plugin_folders(source) if isinstance(source, str | Path) else [entry_given(source)]
                if source in self._sources:  # an entry that was written anew is the one that counts
                    self._sources[self._sources.index(source)] = source
                else:
                    self._sources.append(source)
                made += [self._load(each, start) for each in single]
                if not single:
                    made.append(self._reports.setdefault(str(source), no_plugin(Path(str(source)))))
        return tuple(made)

    def reload(self, *ids: str) -> tuple[Report, ...]:
        """Unload and load again with the manifests, configs and code of now: all, or those named."""
        with self._lock:
            if not ids:
                for name in reversed(tuple(self._loaded)):
                    self.unload(name)
                self._reports.clear()
                return tuple(report for source in tuple(self._sources) for report in self._again(source))
            return tuple(self._reload(name) for name in ids)

    def _again(self, source: Source) -> tuple[Report, ...]:
        try:
            return self.load(source)
        except PluginError as error:  # the folder is gone
            report = Report(str(source), "disabled", str(source), str(error), fault=True)
            self._reports[report.id] = report
            return (report,)

    def _reload(self, name: str) -> Report:
        for source in self._sources:
            single = plugin_folders(source) if isinstance(source, str | Path) else [entry_given(source)]
            for each in single:
                if key_of(each) == name or self._named(each) == name:
                    if name in self._loaded:
                        self.unload(name)
                    return self._load(each, True)
        raise self._unknown(name)

    @staticmethod
    def _named(source: Path | PluginEntry) -> str:
        try:
            return source.id if isinstance(source, PluginEntry) else read_manifest(source).id
        except LabError:
            return ""

    def unload(self, plugin_id: str, deadline: float = STOP_LIMIT) -> tuple[str, ...]:
        """Stop a plugin's services and take out its tools, hooks and skills; one line for each fault on the way.

        `reload` brings it back.
        """
        given.seconds("unload: deadline", deadline, error=PluginError)
        with self._lock:
            loaded = self._loaded.pop(plugin_id, None) if isinstance(plugin_id, str) else None
            if loaded is None:
                raise self._unknown(plugin_id)
            self._reports.pop(plugin_id, None)
            return self._take_out(loaded, deadline)

    def _take_out(self, loaded: Loaded, deadline: float) -> tuple[str, ...]:
        self.bus.off(loaded.manifest.id)
        for name in loaded.registered.tools:
            self._tools.pop(name, None)
        found = stop_all({loaded.manifest.id: loaded}, deadline)
        forget(loaded.module)
        return found

    def _unknown(self, name: str) -> PluginError:
        todo = nearest(str(name), self._loaded) if self._loaded else "none is loaded"
        return PluginError(f"plugin {name}", expected="a plugin that is loaded", todo=todo)

    def _load(self, source: Path | PluginEntry, start: bool) -> Report:
        key = key_of(source)
        try:
            manifest = source.manifest if isinstance(source, PluginEntry) else read_manifest(source)
            key = manifest.id
            if manifest.id in self._loaded:
                if same(self._loaded[manifest.id].source, source):  # named twice, or found in a folder that was loaded
                    return self._as_of_now(self._reports[manifest.id])
                other = self._reports[manifest.id].source
                raise PluginError(
                    f"{where(source)}: the id {key} is taken by the plugin from {other}, which stays loaded"
                )
            refused = self._host.refusal(manifest)
            report = Report(key, "disabled", where(source), refused) if refused else self._made(source, manifest)
        except LabError as error:
            report = Report(key, "disabled", where(source), str(error), fault=True)
        self._note(key, report)
        return self._started(key) or report if start and report.status == "loaded" else report

    def _note(self, key: str, report: Report) -> None:
        """Keep a report; of two plugins of one id each has its line, and the one that is loaded has the id's."""
        first = self._reports.get(key)
        if report.status == "loaded":
            self._reports.pop(report.source, None)  # what it said before
            if first is not None and first.source != report.source:
                self._reports[first.source] = first
            self._reports[key] = report
        else:
            second = first is not None and (first.source != report.source or key in self._loaded)
            self._reports[report.source if second else key] = report

    def _made(self, source: Path | PluginEntry, manifest: Manifest) -> Report:
        config = plugin_config(manifest, self._host, self._environment)
        mask = Mask(config, manifest.config_schema, self._environment)
        taken = dict.fromkeys(self._reserved, "the host") | {n: f"plugin {t.plugin}" for n, t in self._tools.items()}
        own = isinstance(source, PluginEntry) and source.trusted
        hook_limits = self._host.hook_limits(manifest.id)
        worker = None if own or self._alone(manifest) else Worker(manifest.id)  # a process has limits of its own
        loaded = Loaded(source, manifest, Registered(), Loop(manifest.id), new_module_name(manifest), mask, worker)
        api = PluginApi(
            manifest, config, taken=taken, environment=self._environment, mask=mask, loop=loaded.loop, worker=worker,
            call_limit=self._limits.call, hook_limits=hook_limits,
        )  # fmt: skip
        loaded.registered = api.registered

        def register() -> Any:
            return self._code(source, manifest, loaded, config).register(api)

        try:
            limited(register, loaded.loop, self._limits.register, f"plugin {manifest.id}: register")
        except Exception as error:  # whatever a plugin raises is its own trouble
            close(loaded, 0.1)
            forget(loaded.module)
            reason = mask(fault(error, manifest.folder))
            return Report(manifest.id, "disabled", where(source), reason, fault=True, notes=manifest.notes)
        finally:
            api.close()
        return self._committed(loaded, where(source))

    def _code(
        self, source: Path | PluginEntry, manifest: Manifest, loaded: Loaded, config: PluginConfig
    ) -> PluginEntry:
        if isinstance(source, PluginEntry):
            if self._alone(manifest):
                raise PluginError(f"plugin {manifest.id}: isolated", where(source), "a folder")
            return source
        if self._alone(manifest):
            hook_limits = self._host.hook_limits(manifest.id)
            return isolated_entry(manifest, config, self._environment, self._limits, hook_limits)
        return entry_of(run_file(source, loaded.module), manifest)

    def _alone(self, manifest: Manifest) -> bool:
        """Whether a plugin runs in a process of its own."""
        return self._isolated if isinstance(self._isolated, bool) else manifest.id in self._isolated

    def _committed(self, loaded: Loaded, where: str) -> Report:
        manifest, registered = loaded.manifest, loaded.registered
        self._tools.update(registered.tools)
        for hook, handler, priority, _ in registered.handlers:
            self.bus.on(hook, handler, plugin=manifest.id, priority=priority)
        self._loaded[manifest.id] = loaded
        said = " ".join(registered.notes).split()
        absent = [each for each in manifest.tools or () if each not in registered.tools and each not in said]
        missing = [f"tool {each} is declared but not registered" for each in absent]
        notes = (*manifest.notes, *self._host.notes(manifest.id), *registered.notes, *missing)
        tools, services = tuple(registered.tools), tuple(registered.services)
        return Report(manifest.id, "loaded", where, tools=tools, services=services, notes=notes)

    def tell_unknown(self) -> None:
        """A line for each id of the config that is like the id of a plugin here, and is none: it may be misspelt."""
        known = list(self._reports)
        for name in self._host.named():
            near = nearest(name, known) if name not in known and known else ""
            if near.startswith("did you mean"):
                reason = f"{self._host.source}: plugins name {name}, which is not loaded; {near}"
                self._reports[name] = Report(name, "disabled", self._host.source, reason)

    # --- services -------------------------------------------------------------------------------------------------

    def start(self) -> tuple[Report, ...]:
        """Start the services that do not run; a plugin whose service fails is disabled. The reports of those."""
        with self._lock:
            made = [self._started(name) for name in tuple(self._loaded)]
        return tuple(each for each in made if each)

    def _started(self, plugin_id: str) -> Report | None:
        loaded = self._loaded[plugin_id]
        loaded.loop.open()
        for service in loaded.registered.services.values():
            if service in loaded.started:
                continue
            what = f"service {service.id}: start"
            try:
                if service.start:
                    limited(service.start, loaded.loop, self._limits.start, what)
            except Exception as error:
                reason = loaded.mask(fault(error, loaded.manifest.folder))
                reason = reason if reason.startswith(what) else f"{what}: {reason}"
                del self._loaded[plugin_id]
                self._take_out(loaded, STOP_LIMIT)
                report = replace(
                    self._reports[plugin_id], status="disabled", reason=reason, fault=True, tools=(), services=()
                )  # fmt: skip
                self._reports[plugin_id] = report
                return report
            loaded.started.append(service)
        return None

    def stop(self, deadline: float = STOP_LIMIT) -> tuple[str, ...]:
        """Stop all services, the last started first, within `deadline` seconds in all; one line for each fault.

        A second time does nothing; `start` starts them again.
        """
        given.seconds("stop: deadline", deadline, error=PluginError)
        with self._lock:
            return stop_all(self._loaded, deadline)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- calling --------------------------------------------------------------------------------------------------

    def call(self, name: str, /, *, context: ToolContext | None = None, **arguments: Any) -> ToolResult:
        """Call a tool as an agent would; an `async` one is waited for, also inside a running event loop."""
        answer = self._tool(name, context).run(arguments, context or ToolContext())
        return _result(answer if isinstance(answer, str | ToolResult) else finish(answer))

    async def acall(self, name: str, /, *, context: ToolContext | None = None, **arguments: Any) -> ToolResult:
        """`call` from a coroutine."""
        answer = self._tool(name, context).run(arguments, context or ToolContext())
        return _result(answer if isinstance(answer, str | ToolResult) else await answer)

    def _tool(self, name: str, context: ToolContext | None) -> Tool:
        if context is not None and not isinstance(context, ToolContext):
            raise PluginError("call: context", f"a {type(context).__name__}", "a ToolContext")
        if not isinstance(name, str):
            raise PluginError("call", f"a {type(name).__name__}", "the name of a tool")
        if name not in self._tools:
            raise PluginError(f"tool {name}", expected="a loaded tool", todo=nearest(name, self._tools))
        return self._tools[name]


def _result(answer: str | ToolResult) -> ToolResult:
    return answer if isinstance(answer, ToolResult) else ToolResult(answer)
