"""The other end of `isolation`: loads one plugin in this process and answers what is asked, a line of JSON each."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from openclaw_lab.errors import HookError, PluginError
from openclaw_lab.plugins.api import PluginApi
from openclaw_lab.plugins.code import entry_of, fault, new_module_name, run_file
from openclaw_lab.plugins.hooks import PROMPT_HOOKS, TOOL_HOOK, Injection, Verdict
from openclaw_lab.plugins.manifest import read_manifest
from openclaw_lab.plugins.settings import Mask, PluginConfig
from openclaw_lab.plugins.tool import ToolContext, ToolResult
from openclaw_lab.plugins.waiting import Loop, finish, limited
from openclaw_lab.plugins.wire import EventsIn

# What the folder that it is started in is called; it is removed with the process.
HOME = "openclaw-plugin-"


def main(reads: int, writes: int) -> None:
    """Serve until the caller is gone; then end, with everything that was started here."""
    for each in (reads, writes):
        os.set_inheritable(each, False)
    asked: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(reads, asked, Path.cwd()), daemon=True).start()
    with os.fdopen(writes, "w", encoding="utf-8") as out:
        served: _Served | None = None
        while True:
            question = asked.get()
            try:
                if served is None:
                    _limit(int(question["memory_mb"]))
                    served = _Served(question)
                    answer = served.listed()
                else:
                    answer = served.answer(question, out.write)
            except BaseException as error:
                answer = {"fault": fault(error, Path(question.get("folder", "/nowhere")))}
            out.write(json.dumps(answer, default=str) + "\n")
            out.flush()


def _listen(reads: int, asked: queue.Queue[dict[str, Any]], home: Path) -> None:
    """On a thread, so that the end of the caller is seen while the plugin works."""
    with os.fdopen(reads, encoding="utf-8") as lines:
        for line in lines:
            asked.put(json.loads(line))
    if home.name.startswith(HOME):
        shutil.rmtree(home, ignore_errors=True)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(0, signal.SIGKILL)


def _limit(memory_mb: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_mb:
        resource.setrlimit(resource.RLIMIT_AS, (memory_mb * 2**20, memory_mb * 2**20))


class _Served:
    """The plugin, loaded and registered."""

    def __init__(self, setup: Mapping[str, Any]) -> None:
        manifest = read_manifest(setup["folder"])
        config = PluginConfig(setup["config"], manifest)
        mask = Mask(config, manifest.config_schema, setup["environment"])
        self._events = EventsIn()
        self._loop, self._limit = Loop(manifest.id), float(setup["limit"])
        self._api = PluginApi(
            manifest, config, taken={}, environment=setup["environment"], mask=mask, loop=self._loop,
            hook_limits=setup["hook_limits"],
        )  # fmt: skip
        folder = manifest.folder or Path(setup["folder"])

        def register() -> Any:
            return entry_of(run_file(folder, new_module_name(manifest)), manifest).register(self._api)

        limited(register, self._loop, self._limit, "register")
        self._api.close()

    def listed(self) -> dict[str, Any]:
        """What it has registered."""
        made = self._api.registered
        tools = [
            {"name": each.name, "description": each.description, "parameters": dict(each.parameters)}
            for each in made.tools.values()
        ]
        hooks = [(name, priority, limit) for name, _, priority, limit in made.handlers]
        return {"tools": tools, "services": list(made.services), "hooks": hooks, "notes": made.notes}

    def answer(self, asked: Mapping[str, Any], write: Any) -> dict[str, Any]:
        """Call a tool, or a hook's handler; start or stop a service."""
        if asked["do"] == "call":
            return self._call(asked, write)
        if asked["do"] == "hook":
            return self._hook(asked)
        service = self._api.registered.services[asked["name"]]
        function = service.start if asked["do"] == "start" else service.stop
        if function:
            limited(function, self._loop, 3600.0, f"service {service.id}")  # the caller's limit is the one that counts
        return {}

    def _hook(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        _, handler, _, _ = self._api.registered.handlers[asked["index"]]
        given: object = handler(self._events.read(asked))
        if given is None:
            return {}
        if isinstance(given, Verdict) and asked["hook"] == TOOL_HOOK:
            return {"verdict": asdict(given)}
        builds = asked["hook"] in PROMPT_HOOKS
        if not builds or not isinstance(given, Injection) or not isinstance(given.text, str):
            wanted = "an Injection of text, or None" if builds else "no answer"
            raise HookError(f"hook {asked['hook']}", f"a {type(given).__name__}", wanted)
        return {"text": given.text, "kind": str(given.kind)}

    def _call(self, asked: Mapping[str, Any], write: Any) -> dict[str, Any]:
        tool = self._api.registered.tools.get(asked["name"])
        if tool is None:
            raise PluginError(f"tool {asked['name']}", expected="a tool that is registered")

        def delta(text: str) -> None:
            write(json.dumps({"delta": text}) + "\n")

        context = ToolContext(asked["session"], asked["agent"], asked["call"], delta if asked["deltas"] else None)
        given = tool.run(asked["arguments"], context)
        result = given if isinstance(given, str | ToolResult) else finish(given)
        result = ToolResult(result) if isinstance(result, str) else result
        return {"text": result.text, "failed": result.failed, "details": dict(result.details)}
