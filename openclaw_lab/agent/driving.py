"""A loop that asks for answers in, what it returns out: driven by a plain call or by an event loop.

A plain call works inside a running event loop too, as in a notebook's cell: what must be awaited runs in a loop of its
own, in another thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from openclaw_lab.agent.turn import Step

T = TypeVar("T")
Look = Callable[[Step], object]


def drive(loop: Generator[Any, Any, T], look: Look | None = None) -> T:
    """Run a loop to its end, here and now; `look` sees each Step."""
    steps = stepped(loop)
    try:
        while True:
            each = next(steps)
            if look is not None:
                look(each)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()  # when `look` raised: the loop must know that nobody goes on with it


def stepped(loop: Generator[Any, Any, T]) -> Generator[Step, None, T]:
    """Run a loop here and now, a Step at a time."""
    answer: Any = None
    advance: Any = loop.send
    try:
        while True:
            ask = advance(answer)
            answer, advance = None, loop.send
            if type(ask) is Step:
                yield ask
                continue
            try:
                answer = ask()
                if isinstance(answer, Awaitable):
                    answer = settled(answer)
            except BaseException as error:
                answer, advance = error, loop.throw
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        loop.close()


async def adrive(loop: Generator[Any, Any, T], look: Look | None = None) -> T:
    """Run a loop to its end without blocking the event loop: plain calls run in a thread."""
    answer: Any = None
    advance: Any = loop.send
    try:
        while True:
            ask = advance(answer)
            answer, advance = None, loop.send
            if type(ask) is Step:
                if look is not None:
                    look(ask)
                continue
            try:
                answer = await asyncio.to_thread(ask)
                if isinstance(answer, Awaitable):
                    answer = await answer
            except BaseException as error:
                answer, advance = error, loop.throw
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        loop.close()


def settled(answer: Awaitable[T]) -> T:
    """What an awaitable gives, waited for from plain code."""
    loop = _background()
    if threading.get_ident() == getattr(loop, "_thread_id", None):  # an `async` tool that runs an agent of its own
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(contextvars.copy_context().run, asyncio.run, _awaited(answer)).result()
    return asyncio.run_coroutine_threadsafe(_awaited(answer), loop).result()


async def _awaited(answer: Awaitable[T]) -> T:
    return await answer


_LOCK = threading.Lock()
_LOOPS: list[asyncio.AbstractEventLoop] = []


def _background() -> asyncio.AbstractEventLoop:
    """One event loop for the process, so that a client made in it can be used again."""
    with _LOCK:
        if not _LOOPS:
            made = asyncio.new_event_loop()
            threading.Thread(target=made.run_forever, name="openclaw-lab-agent", daemon=True).start()
            _LOOPS.append(made)
        return _LOOPS[0]
