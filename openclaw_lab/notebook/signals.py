"""One block of code in which every polite way to stop a program is the same KeyboardInterrupt.

It ends no process by itself; whoever catches the exception stops what it started.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """The handler: raises KeyboardInterrupt at once, or, while it is held, at the end of the held block."""

    def __init__(self) -> None:
        self.holding = self.waiting = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.holding:
            raise KeyboardInterrupt
        self.waiting = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """For a step that must not be cut in two, such as starting a process and keeping hold of it."""
        self.holding = True
        try:
            yield
        finally:
            self.holding = False
        if self.waiting:
            self.waiting = False
            raise KeyboardInterrupt


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt inside the block; after it, all is as before.

    A program started in the background of a script is stopped by SIGINT too. In another thread than the main one,
    where Python delivers no signal, nothing changes.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop) for number in _numbers()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _numbers() -> list[signal.Signals]:
    """The signals that this system knows; a hang-up that is ignored on purpose (nohup) stays ignored."""
    known = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
    return [number for number in known if number.name != "SIGHUP" or signal.getsignal(number) != signal.SIG_IGN]
