"""What a plugin may take: time, and in a process of its own memory."""

from __future__ import annotations

from dataclasses import dataclass

from openclaw_lab.errors import PluginError
from openclaw_lab.given import seconds, whole

# Seconds that a handler may take where nobody says otherwise, and at most, as on the host.
_HANDLER, _SLOW_HANDLER = 15.0, 30.0
_SLOW = frozenset({"agent_end", "before_compaction", "after_compaction"})
LONGEST_HANDLER = 600.0


def handler_limit(hook: str) -> float:
    """Seconds that a handler of a hook may take where nobody says otherwise."""
    return _SLOW_HANDLER if hook in _SLOW else _HANDLER


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to import and register, for one service to start, for one call of a tool; memory in isolation (0: any).

    A hook has its own limit, see `PluginApi.on`. Stopping has its own deadline, see `Plugins.stop`.
    """

    register: float = 10.0
    start: float = 10.0
    call: float = 30.0
    memory_mb: int = 0

    def __post_init__(self) -> None:
        for name in ("register", "start", "call"):
            seconds(f"Limits: {name}", getattr(self, name), error=PluginError)
        whole("Limits: memory_mb", self.memory_mb, least=0, error=PluginError)
