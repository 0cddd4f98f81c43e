"""One block of code in which every polite way to stop a program is the same KeyboardInterrupt.

It ends no process by itself; whoever catches the exception stops what it started.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


@contextmanager
def stoppable() -> Iterator[None]:
    """Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt inside the block; after it, all is as before.

    A program started in the background of a script is stopped by SIGINT too. In another thread than the main one,
    where Python delivers no signal, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in _numbers()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _numbers() -> list[signal.Signals]:
    """The signals that this system knows; a hang-up that is ignored on purpose (nohup) stays ignored."""
    known = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
    return [number for number in known if number.name != "SIGHUP" or signal.getsignal(number) != signal.SIG_IGN]


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
