"""PluginApi: what a plugin gets while it registers. Nothing takes effect before `register` has returned without fault.

What a host would refuse and go on (a tool that is not declared or whose name is taken, an unknown hook) is refused here
with a note; registering the same thing twice is the plugin's fault.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from openclaw_lab import given
from openclaw_lab.errors import HookError, PluginError
from openclaw_lab.knobs import nearest
from openclaw_lab.plugins.entry import Lifecycle, Service
from openclaw_lab.plugins.functions import tool_of
from openclaw_lab.plugins.guard import guarded_handler, guarded_tool
from openclaw_lab.plugins.hooks import HOOKS, Handler
from openclaw_lab.plugins.limits import LONGEST_HANDLER, handler_limit
from openclaw_lab.plugins.manifest import Manifest
from openclaw_lab.plugins.schema import schema_fault
from openclaw_lab.plugins.settings import Mask, PluginConfig
from openclaw_lab.plugins.tool import NAMED_OTHERWISE, TOOL_NAME, Tool, is_tool_name
from openclaw_lab.plugins.waiting import Loop
from openclaw_lab.plugins.worker import Worker


@dataclass(slots=True)
class Registered:
    """What one plugin has registered so far."""

    tools: dict[str, Tool] = field(default_factory=dict)
    services: dict[str, Service] = field(default_factory=dict)
    handlers: list[tuple[str, Handler, float, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    closers: list[Callable[[], None]] = field(default_factory=list)


class PluginApi:
    """The handle that `register(api)` gets."""

    def __init__(
        self,
        manifest: Manifest,
        config: PluginConfig,
        *,
        taken: Mapping[str, str],
        environment: Mapping[str, str],
        mask: Mask,
        loop: Loop,
        worker: Worker | None = None,
        call_limit: float = 30.0,
        hook_limits: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.id, self.name, self.version = manifest.id, manifest.name, manifest.version
        self.plugin_config: Mapping[str, Any] = config
        self.environment: Mapping[str, str] = MappingProxyType(dict(environment))
        self.folder = manifest.folder
        self.logger = plugin_logger(manifest.id, mask)
        self.registered = Registered()
        self._declared, self._taken, self._loop, self._mask, self._open = manifest.tools, taken, loop, mask, True
        self._worker, self._call_limit, self._hook_limits = worker, call_limit, hook_limits

    def register_tool(self, tool: Tool | Callable[..., Any], *, name: str = "", description: str = "") -> None:
        """Add a tool: a Tool, or an annotated function (see `tool_of`)."""
        self._check_open("register_tool")
        made = tool if isinstance(tool, Tool) else tool_of(tool, name=name, description=description)
        where = f"tool {made.name}"
        if not is_tool_name(made.name):
            raise PluginError(where, str(made.name), TOOL_NAME, NAMED_OTHERWISE)
        if not isinstance(made.description, str) or not callable(made.run):
            raise PluginError(where, "no description or no function", "a Tool with both")
        if fault := schema_fault(made.parameters):
            raise PluginError(f"{where}: parameters", fault)
        if made.name in self.registered.tools:
            raise PluginError(where, "a second registration", "each tool once")
        if self._declared is not None and made.name not in self._declared:
            self._refuse(f"{where} refused: the manifest's contracts.tools does not declare it")
        elif made.name in self._taken:
            self._refuse(f"{where} refused: the name is taken by {self._taken[made.name]}")
        else:
            self.registered.tools[made.name] = guarded_tool(
                made, self.id, self._loop, self._worker, self._call_limit, self._mask
            )

    def register_service(
        self, service: Service | str, *, start: Lifecycle | None = None, stop: Lifecycle | None = None
    ) -> None:
        """Add a service: a Service, or its id with what starts and stops it."""
        self._check_open("register_service")
        made = service if isinstance(service, Service) else Service(service, start, stop)
        if made.id in self.registered.services:
            raise PluginError(f"service {made.id}", "a second registration", "each service once")
        for part in (made.start, made.stop):
            if part is not None and not callable(part):
                raise PluginError(f"service {made.id}", f"a {type(part).__name__}", "functions to start and to stop")
        self.registered.services[made.id] = made

    def on(self, hook: str, handler: Callable[..., Any], *, priority: float = 0, timeout: float | None = None) -> None:
        """Call `handler(event)` when the hook fires; higher priority first. It may be `async`, and may give text.

        `timeout` in seconds, at most 600; without one 15, after a turn and around a compaction 30, as on the host, and
        the host's config may say otherwise. A plain handler that is late disables the plugin: nothing can stop it, so
        nothing more is asked of it.
        """
        self._check_open("on")
        if not callable(handler):
            raise HookError(f"hook {hook!r}", f"a {type(handler).__name__}", "a function that takes the event")
        if hook not in HOOKS:
            self._refuse(f"hook {hook!r} ignored: the lab fires no such hook; {nearest(str(hook), HOOKS)}")
            return
        if not isinstance(priority, int | float) or priority != priority:
            raise HookError(f"hook {hook}: priority", str(priority), "a number")
        limit = handler_limit(hook)
        if timeout is not None:
            limit = given.seconds(f"hook {hook}: timeout", timeout, most=LONGEST_HANDLER, error=HookError)
        limit = self._hook_limits.get(hook, self._hook_limits.get("", limit))
        made = guarded_handler(handler, self.id, self._loop, self._worker, limit, self._mask)
        self.registered.handlers.append((hook, made, priority, limit))

    def when_closed(self, function: Callable[[], None]) -> None:
        """Call it when the plugin is stopped, after its services, or when it could not be registered."""
        self._check_open("when_closed")
        self.registered.closers.append(function)

    def note(self, text: str) -> None:
        """Add a line to the plugin's report."""
        self.registered.notes.append(self._mask(text))

    def close(self) -> None:
        """No more registrations: `register` has returned, or has taken too long."""
        self._open = False

    def _check_open(self, verb: str) -> None:
        if not self._open:
            raise PluginError(f"plugin {self.id}: {verb}", "a call after register() ended", "one within register(api)")

    def _refuse(self, note: str) -> None:
        self.registered.notes.append(note)
        self.logger.info("%s", note)  # the report says it too

    def __getattr__(self, name: str) -> Any:
        snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
        hint = nearest(snake, [each for each in dir(self) if not each.startswith("_")])
        raise AttributeError(f"the lab's api has no {name}; {hint}")

    def __repr__(self) -> str:
        return f"PluginApi({self.id!r})"


class _MaskFilter(logging.Filter):
    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self._mask = mask

    def filter(self, record: logging.LogRecord) -> bool:
        """Every record passes, its message without secrets."""
        try:
            record.msg, record.args = self._mask(record.getMessage()), ()
        except Exception:
            record.msg, record.args = "a message that cannot be formatted", ()
        if record.exc_info and record.exc_info[1] is not None:
            record.msg = f"{record.msg}: {self._mask(str(record.exc_info[1]))}"
            record.exc_info = record.exc_text = None
        return True


def plugin_logger(plugin_id: str, mask: Mask) -> logging.Logger:
    """The logger of a plugin; the secrets of its config are hidden in what it writes."""
    logger = logging.getLogger(f"openclaw_lab.plugin.{plugin_id}")
    for each in tuple(logger.filters):
        logger.removeFilter(each)
    logger.addFilter(_MaskFilter(mask))
    return logger
