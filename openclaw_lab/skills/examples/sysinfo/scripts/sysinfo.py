"""A part's name in (cpu, memory, disk, processes, all), one line of JSON out. Reads only; the standard library only."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_MB = 1024 * 1024


def cpu() -> dict[str, Any]:
    """CPUs and load."""
    load: list[float | None] = [round(each, 2) for each in os.getloadavg()]
    return {"count": os.cpu_count(), **dict(zip(("loadAvg1m", "loadAvg5m", "loadAvg15m"), load, strict=True))}


def memory() -> dict[str, Any]:
    """Memory of the machine; what is available is known on Linux only."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    available = _available()
    used = None if available is None else round(100 * (total - available) / total)
    return {"totalMB": total // _MB, "availableMB": available and available // _MB, "usedPct": used}


def _available() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def disk(path: str = "/") -> dict[str, Any]:
    """The file system of a path."""
    usage = shutil.disk_usage(path)
    part = {"path": path, "totalGB": round(usage.total / 1024**3, 1), "freeGB": round(usage.free / 1024**3, 1)}
    return {**part, "usedPct": round(100 * (usage.total - usage.free) / usage.total)}


def processes() -> dict[str, Any] | None:
    """How many there are, and the five with most memory; Linux only."""
    if not Path("/proc/self/statm").exists():
        return None
    found = sorted(_processes(), key=lambda each: -each["rssMB"])
    return {"count": len(found), "top": found[:5]}


def _processes() -> Iterator[dict[str, Any]]:
    page = os.sysconf("SC_PAGE_SIZE")
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            resident = int((folder / "statm").read_text("ascii").split()[1])
            name = (folder / "comm").read_text("utf-8", "replace").strip()
        except (OSError, IndexError, ValueError):  # it ended meanwhile
            continue
        yield {"pid": int(folder.name), "name": name, "rssMB": resident * page // _MB}


PARTS: dict[str, Callable[[], Any]] = {"cpu": cpu, "memory": memory, "disk": disk, "processes": processes}


def main(arguments: list[str]) -> int:
    """Print what was asked for; 2 for a part that does not exist."""
    part = arguments[0] if arguments else "all"
    if part != "all" and part not in PARTS:
        print(f"sysinfo: found {part!r}; expected {', '.join(PARTS)} or all", file=sys.stderr)
        return 2
    found = {name: read() for name, read in PARTS.items()} if part == "all" else PARTS[part]()
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
