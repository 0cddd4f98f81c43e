"""What a plugin may take: time, and in a process of its own memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to import and register, for one service to start, for one call of a tool; memory in isolation (0: any).

    A hook has its own limit, see `PluginApi.on`. Stopping has its own deadline, see `Plugins.stop`.
    """

    register: float = 10.0
    start: float = 10.0
    call: float = 30.0
    memory_mb: int = 0
