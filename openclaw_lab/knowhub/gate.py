"""How much runs at once: calls of the knowledge base run on a few threads, some wait, the rest is told to come again.

Waiting costs no thread, so that `/health` answers whatever the load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

Value = TypeVar("Value")


class BusyError(Exception):
    """Too many requests are waiting already."""


class Gate:
    """At most `workers` calls run and `waiting` more wait."""

    def __init__(self, workers: int, waiting: int) -> None:
        self._workers, self._most = workers, workers + waiting
        self._inside = 0
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, call: Callable[[], Value]) -> Value:
        """What the call returns, run on a thread; BusyError when the queue is full."""
        if self._inside >= self._most:
            raise BusyError
        self._limiter = self._limiter or anyio.CapacityLimiter(self._workers)
        self._inside += 1
        try:
            return await anyio.to_thread.run_sync(call, limiter=self._limiter)
        finally:
            self._inside -= 1
