"""A plugin that is loaded, and how it ends: its services in reverse order within a deadline, its tasks, its thread."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from openclaw_lab.plugins.api import Registered
from openclaw_lab.plugins.code import fault
from openclaw_lab.plugins.entry import PluginEntry, Service
from openclaw_lab.plugins.manifest import Manifest
from openclaw_lab.plugins.settings import Mask
from openclaw_lab.plugins.waiting import Loop, limited
from openclaw_lab.plugins.worker import Worker

# Seconds that all services together may take to stop.
STOP_LIMIT = 5.0


@dataclass(slots=True)
class Loaded:
    """One plugin that is loaded, and what it was loaded from."""

    source: Path | PluginEntry
    manifest: Manifest
    registered: Registered
    loop: Loop
    module: str
    mask: Mask
    worker: Worker | None
    started: list[Service] = field(default_factory=list)

    @property
    def late(self) -> str:
        """Which of its calls was late and could not be stopped; empty when none was."""
        return (self.worker.late if self.worker else "") or self.loop.late


def stop_all(loaded: dict[str, Loaded], deadline: float) -> tuple[str, ...]:
    """Stop what runs, in reverse order; each service gets an equal share of what is left of the deadline."""
    faults: list[str] = []
    end = monotonic() + deadline
    left = sum(len(each.started) for each in loaded.values())
    for each in reversed(tuple(loaded.values())):
        while each.started:
            service = each.started.pop()
            share = max((end - monotonic()) / left, 0.01)
            left -= 1
            try:
                if service.stop:
                    limited(service.stop, each.loop, share, f"service {service.id}: stop")
            except Exception as error:
                faults.append(f"[plugin:{each.manifest.id}] {each.mask(fault(error, each.manifest.folder))}")
        if not close(each, max(min(end - monotonic(), 1.0), 0.05)):
            faults.append(f"[plugin:{each.manifest.id}] a task that does not end was left behind")
    return tuple(faults)


def close(loaded: Loaded, limit: float) -> bool:
    """End a plugin's tasks and process; whether all of it ended."""
    for closer in loaded.registered.closers:
        with contextlib.suppress(Exception):
            closer()
    if loaded.worker is not None:
        loaded.worker.close()
    return loaded.loop.close(limit)
