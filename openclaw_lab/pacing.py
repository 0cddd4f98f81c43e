"""Requests a minute in, the moment at which each may be sent out: evenly spread, and none while a server says wait.

In any sixty seconds no more than `per_minute` requests are let go. Clock and sleep can be put in, so that a test need
not wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# Seconds of sleep after which a wait looks whether it was called off, or put off.
_LOOK = 0.5


class Pace:
    """One for all threads of a run; without `per_minute` only what a server asks for is waited."""

    def __init__(
        self,
        per_minute: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._clock, self._sleep, self._lock = clock, sleep, threading.Lock()
        self._next = self._held = float("-inf")

    def hold(self, seconds: float) -> None:
        """Let nothing go for so long."""
        with self._lock:
            self._held = max(self._held, self._clock() + seconds)

    def wait(self, stop: threading.Event | None = None) -> bool:
        """Wait for one's turn; False when `stop` was set meanwhile, and the turn is lost."""
        slot = self._turn()
        while (left := slot - self._clock()) > 0:
            if stop is not None and stop.is_set():
                return False
            self._sleep(min(left, _LOOK))
            if self._held > slot:  # put off: take another turn, after the pause
                slot = self._turn()
        return stop is None or not stop.is_set()

    def _turn(self) -> float:
        with self._lock:
            slot = max(self._clock(), self._next, self._held)
            self._next = slot + self._gap
            return slot
