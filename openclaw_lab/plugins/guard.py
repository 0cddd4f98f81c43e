"""What a plugin registered in, the same made safe to call out: faults become answers, not the caller's trouble."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from openclaw_lab.errors import HookError, PluginError, excerpt
from openclaw_lab.plugins.hooks import PROMPT_HOOKS, TOOL_HOOK, Handler, HookEvent, Injection, Verdict
from openclaw_lab.plugins.schema import Checker
from openclaw_lab.plugins.settings import Mask
from openclaw_lab.plugins.tool import Answer, Tool, ToolContext, ToolResult
from openclaw_lab.plugins.waiting import Loop
from openclaw_lab.plugins.worker import Worker

_LONGEST = 500


def guarded_tool(tool: Tool, plugin: str, loop: Loop, worker: Worker | None, limit: float, mask: Mask) -> Tool:
    """A tool whose arguments are checked and whose faults are failed results, being late (`limit` seconds) among them.

    A plain one runs on the plugin's worker, where there is one; an `async` one on the plugin's loop.
    """
    check = Checker(tool.parameters)

    def run(arguments: Mapping[str, Any], context: ToolContext) -> Answer | Awaitable[Answer]:
        wrong = check(arguments) if isinstance(arguments, Mapping) else ["arguments: expected an object"]
        if wrong:
            return _failed(tool.name, "; ".join(wrong), mask)
        try:
            if worker is None:
                given = tool.run(arguments, context)
            else:
                given = worker.run(lambda: tool.run(arguments, context), limit, f"tool {tool.name}")
        except (Exception, SystemExit) as error:
            return _failed(tool.name, words(error), mask)
        if inspect.isawaitable(given):
            return _later(tool.name, given, loop, limit, mask)
        return _answer(tool.name, given, mask)

    return replace(tool, run=run, plugin=plugin)


async def _later(name: str, given: Awaitable[Any], loop: Loop, limit: float, mask: Mask) -> Answer:
    try:
        future = asyncio.wrap_future(loop.submit(given))
        done, _ = await asyncio.wait([future], timeout=limit)
        if not done:
            future.cancel()
            raise await asyncio.to_thread(loop.lateness, limit, f"tool {name}")
        return _answer(name, future.result(), mask)
    except (Exception, SystemExit) as error:
        return _failed(name, words(error), mask)


def _answer(name: str, given: Any, mask: Mask) -> Answer:
    if isinstance(given, str | ToolResult):
        return given
    return _failed(name, f"found a {type(given).__name__}; expected text or a ToolResult", mask)


def _failed(name: str, fault: str, mask: Mask) -> ToolResult:
    return ToolResult(f"{name}: {mask(excerpt(fault, _LONGEST))}", failed=True)


def words(error: BaseException) -> str:
    """An error in one line."""
    text = excerpt(str(error), _LONGEST)
    return text if isinstance(error, PluginError) and text else f"{type(error).__name__}: {text}".removesuffix(": ")


def guarded_handler(
    handler: Callable[..., Any], plugin: str, loop: Loop, worker: Worker | None, limit: float, mask: Mask
) -> Handler:
    """A handler that answers with an Injection, a Verdict or nothing, within `limit` seconds.

    Text and `{"prependContext": …}` are made into an Injection, `{"block": True, "blockReason": …}` and `{"params": …}`
    into a Verdict. A plain one runs on the plugin's worker, where there is one.
    """

    def run(event: HookEvent) -> Any:
        try:
            what = f"{plugin} on {event.hook}"
            if worker is None or inspect.iscoroutinefunction(handler):
                given = handler(event)
            else:
                given = worker.run(lambda: handler(event), limit, what)
            if inspect.isawaitable(given):
                given = loop.wait(given, limit, what)
        except (Exception, SystemExit) as error:
            raise HookError(mask(words(error))) from None
        return _injection(given, event, plugin)

    return run


def _injection(given: Any, event: HookEvent, plugin: str) -> Any:
    """Anything else is given back as it is: the bus says what is wrong with it."""
    if event.hook == TOOL_HOOK and isinstance(given, Mapping):
        return Verdict.of(given)
    if event.hook not in PROMPT_HOOKS:
        return given
    if isinstance(given, Mapping) and isinstance(given.get("prependContext"), str):
        given = given["prependContext"]
    if isinstance(given, str):
        return Injection(given, plugin) if given else None
    return given
