"""Bytes by key in one SQLite file: safe with several processes, bounded in size, private to its user.

A key is made of everything that a figure depends on: the code, the data, the settings (`memo`). What is kept is figures
alone, never a text of the data. What cannot be read or written is computed again: a cache never stops an experiment.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from openclaw_lab.errors import TaskError

# Bytes that are kept; what was not used for longest goes first, until so much of the room is taken.
MOST = 256 << 20
_KEPT = 0.8
NAME = "results.sqlite"
_PATIENCE = 10.0  # seconds that one process waits for another
_AT_ONCE = 500  # keys that SQLite is asked for with one statement
_default: object = "auto"


def use(where: object) -> None:
    """Where experiments keep figures when they are not told: "auto" (the user's cache folder), "off" or a folder."""
    global _default
    Cache.at(where)  # anything else is refused
    _default = where


def key_of(*parts: object) -> str:
    """A name for everything that a figure depends on; parts are plain values."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Cache:
    """What was computed; one without a path keeps nothing."""

    def __init__(self, path: Path | None, most: int = MOST) -> None:
        self.path, self._most = path, most

    @classmethod
    def at(cls, where: object = None) -> Cache:
        """The user's ("auto"), one in a folder of your own, or none ("off"); without a word what `use` said."""
        where = _default if where is None else where
        if isinstance(where, Cache):
            return where
        if where == "off":
            return cls(None)
        if where == "auto":
            return cls(_own_folder() / NAME)
        if isinstance(where, str | Path) and where:
            return cls(Path(where).expanduser() / NAME)
        raise TaskError("cache", where, '"auto", "off" or a folder')

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """What is known of some keys."""
        found: dict[str, bytes] = {}
        with _open(self.path if keys else None) as store:
            if store is None:
                return found
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                found |= dict(store.execute(f"SELECT key, value FROM kept WHERE key IN ({marks})", some).fetchall())
            store.executemany("UPDATE kept SET used = ? WHERE key = ?", [(time.time(), key) for key in found])
        return found

    def put(self, values: Mapping[str, bytes]) -> None:
        """Keep some values by their keys; where there is no more room, what was not used for longest is forgotten."""
        with _open(self.path if values else None) as store:
            if store is None:
                return
            now = time.time()
            rows = [(key, value, now, len(value)) for key, value in values.items()]
            store.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", rows)
            (size,) = store.execute("SELECT COALESCE(SUM(size), 0) FROM kept").fetchone()
            if size <= self._most:
                return
            for key, gone in store.execute("SELECT key, size FROM kept ORDER BY used, key").fetchall():
                if size <= self._most * _KEPT:
                    return
                store.execute("DELETE FROM kept WHERE key = ?", (key,))
                size -= gone

    def clear(self) -> None:
        """Forget everything."""
        with _open(self.path) as store:
            if store:
                store.execute("DELETE FROM kept")

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        with _open(self.path) as store:
            return int(store.execute("SELECT COALESCE(SUM(size), 0) FROM kept").fetchone()[0]) if store else 0


@contextlib.contextmanager
def _open(path: Path | None) -> Iterator[sqlite3.Connection | None]:
    """The store within one transaction; None where there is none or where it cannot be used."""
    store = None if path is None else _connected(path)
    if store is None:
        yield None
        return
    with contextlib.closing(store), contextlib.suppress(sqlite3.Error), store:
        yield store


def _connected(path: Path) -> sqlite3.Connection | None:
    store = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        store = sqlite3.connect(path, timeout=_PATIENCE)
        store.execute("PRAGMA journal_mode = WAL")
        store.execute("PRAGMA synchronous = NORMAL")
        store.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB, used REAL, size INT)")
    except (OSError, sqlite3.Error):
        if store is not None:
            store.close()
        return None
    return store


def _own_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("openclaw-lab", appauthor=False)
