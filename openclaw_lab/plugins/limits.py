"""What a plugin may take: time, and in a process of its own memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to import and register, and for one service to start; in isolation, seconds a call and memory (0: any).

    Stopping has its own deadline, see `Plugins.stop`.
    """

    register: float = 10.0
    start: float = 10.0
    call: float = 30.0
    memory_mb: int = 0
