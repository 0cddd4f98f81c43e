"""Run something with a time limit, from a plain function or a coroutine, whether or not an event loop is running here.

What outlasts its limit is left behind on a thread that dies with the process: Python cannot stop a thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from openclaw_lab.errors import PluginError

# Seconds that a loop which is not blocked takes at most to say so, on a machine with much else to do.
_PROMPT = 1.0


class Loop:
    """One plugin's event loop, on a thread of its own that starts at the first use; closing it cancels its tasks.

    What is awaited there too long is cancelled. `late` says what could not be, since it blocks the loop: every later
    call fails at once.
    """

    def __init__(self, name: str) -> None:
        self.late = ""
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, awaitable: Awaitable[Any]) -> concurrent.futures.Future[Any]:
        """Start it there."""
        with self._lock:
            if self._closed:
                if inspect.iscoroutine(awaitable):
                    awaitable.close()
                raise PluginError(f"plugin {self._name}", "a call after it was stopped", "a plugin that runs")
            if self.late:
                if inspect.iscoroutine(awaitable):
                    awaitable.close()
                raise PluginError(f"plugin {self._name} is disabled: {self.late}")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name=f"plugin-{self._name}", daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._loop)

    def wait(self, awaitable: Awaitable[Any], limit: float, what: str) -> Any:
        """Its result; PluginError when it takes longer than `limit` seconds, and it is cancelled."""
        future = self.submit(awaitable)
        try:
            return future.result(limit)
        except concurrent.futures.CancelledError:
            raise PluginError(what, "cancelled") from None
        except TimeoutError:
            if future.done():  # its own TimeoutError
                raise
            future.cancel()
            raise self.lateness(limit, what) from None

    def lateness(self, limit: float, what: str) -> PluginError:
        """The error for what was cancelled after `limit` seconds; asks the loop whether it still runs."""
        said = f"{what}: took longer than {limit:g} s"
        loop, answered = self._loop, threading.Event()
        if loop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(answered.set)
            if not answered.wait(_PROMPT):
                said += " and blocks the event loop"
                self.late = said
        return PluginError(said)

    def open(self) -> None:
        """Take calls again after a close."""
        with self._lock:
            self._closed = False

    def close(self, limit: float) -> bool:
        """Cancel what runs there and end; whether it ended within `limit` seconds. A second time does nothing."""
        with self._lock:
            loop, thread, self._loop, self._thread, self._closed = self._loop, self._thread, None, None, True
        if loop is None or thread is None:
            return True
        if thread is threading.current_thread():  # a finaliser that happens to run there cannot wait for it
            for task in asyncio.all_tasks(loop):
                task.cancel()
            loop.stop()
            return True
        try:
            done = bool(asyncio.run_coroutine_threadsafe(_cancel_all(limit), loop).result(limit + 0.1))
        except (TimeoutError, concurrent.futures.CancelledError):
            done = False
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        thread.join(limit if done else 0.0)
        return done


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    try:
        return await awaitable
    except SystemExit as error:  # else it would end the loop
        raise PluginError("sys.exit", error.code, "a plugin that returns") from None


async def _cancel_all(limit: float) -> bool:
    """Whether all ended."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    return not tasks or not (await asyncio.wait(tasks, timeout=limit))[1]


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.set_exception_handler(lambda *_: None)  # a forgotten task's fault is no matter of the user's screen
    try:
        loop.run_forever()
    finally:
        with contextlib.suppress(Exception, asyncio.CancelledError):
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def limited(function: Callable[[], Any], loop: Loop, limit: float, what: str) -> Any:
    """What a function gives (awaited when that is awaitable) within `limit` seconds; whatever it raises is raised."""
    box: list[tuple[bool, Any]] = []
    ended = threading.Event()

    def run() -> None:
        try:
            box.append((True, function()))
        except BaseException as error:  # SystemExit and the like too: it must not end silently
            box.append((False, error))
        ended.set()

    try:
        threading.Thread(target=run, name=what, daemon=True).start()
    except RuntimeError:  # the interpreter is ending, and starts no more threads
        run()
    if not ended.wait(limit):
        raise PluginError(f"{what}: took longer than {limit:g} s")
    good, value = box[0]
    if good:
        return loop.wait(value, limit, what) if inspect.isawaitable(value) else value
    if isinstance(value, SystemExit):
        raise PluginError(what, f"sys.exit({value.code!r})", "a plugin that returns")
    if isinstance(value, Exception):
        raise value
    raise PluginError(what, f"{type(value).__name__}: {value}")


def finish(awaitable: Awaitable[Any]) -> Any:
    """Its result, from a plain function; also where an event loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_outcome(awaitable))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, asyncio.run, _outcome(awaitable)).result()


async def _outcome(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
