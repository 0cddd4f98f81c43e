"""A task on a dataset, with what was computed of it before: in this session, and in the cache.

A figure is found again by the code and libraries that made it (`code`), the task and its options, the content of the
data, and those sections of the config that the task reads. So a changed redaction rule makes the figures of the
redaction task anew, and leaves those of the injection task.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import time
import zipfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from openclaw_lab.config import LabConfig
from openclaw_lab.experiments.cache import Cache, key_of
from openclaw_lab.experiments.code import code_version
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.metrics import Measured
from openclaw_lab.experiments.parallel import spread, workers
from openclaw_lab.experiments.progress import progress
from openclaw_lab.experiments.task import Task

T = TypeVar("T")
# Seconds from one keeping of the rows of a long table to the next.
_OFTEN = 2.0
# Whose answers are not ours to repeat: a model that is asked, or one from a folder that may change.
_OUTSIDE = ("litellm:", "hf:", "judge")


class Memo:
    """Everything of one task on one dataset is asked here."""

    def __init__(self, task: Task, data: Dataset, cache: Cache | None = None) -> None:
        self.task, self.data, self.cache = task, data, cache or Cache(None)
        self._prepared: dict[Hashable, Any] = {}

    def prepared(self, config: LabConfig) -> Any:
        """What the task prepares for a config, made once."""
        name = self.task.prepared_by(config)
        if name not in self._prepared:
            self._prepared[name] = self._recalled(config, repr(name))
        return self._prepared[name]

    def measured(self, config: LabConfig) -> Measured:
        """The tallies under a config."""
        key = self.key("measured", config)
        known = self.cache.get([key]) if key else {}
        if key in known and (arrays := _arrays(known[key])) is not None:
            about = arrays.pop("about")
            return Measured(arrays, arrays.pop("sample"), about)
        measured = self.task.measure(self.prepared(config), config)
        if key:
            arrays = {**measured.tallies, "sample": measured.sample}
            self.cache.put({key: _bytes(arrays, dict(measured.kinds))})
        return measured

    def rows(
        self, configs: Sequence[LabConfig], what: str, make: Callable[[LabConfig, Measured], Any], *more: object
    ) -> list[Any]:
        """`make` of each config and its tallies: plain values, which are found again by `what` and `more`.

        Each preparation is made once, equal decisions are measured once; with several workers each takes a preparation.
        """
        keys = [self.key(what, config, *more) for config in configs]
        known = self.cache.get([key for key in keys if key])
        found: dict[int, Any] = {at: json.loads(known[key]) for at, key in enumerate(keys) if key and key in known}
        groups: dict[Hashable, list[int]] = {}
        for at, config in enumerate(configs):
            if at not in found:
                groups.setdefault(self.task.prepared_by(config), []).append(at)
        for some in _saved_often(self._made(groups, configs, make, what), self.cache, keys):
            found |= some
        return [found[at] for at in range(len(configs))]

    def key(self, what: str, config: LabConfig, *more: object) -> str:
        """The name of a figure; empty where it may not be kept."""
        if self.cache.path is None or not self._repeatable(config):
            return ""
        return key_of(what, self.about, self._read(config), *more)

    def of_data(self, make: Callable[[Dataset], T]) -> T:
        """What a function makes of the data alone: plain values."""
        key = key_of(make.__name__, self.data.fingerprint, code_version(make.__module__)) if self.cache.path else ""
        known = self.cache.get([key]) if key else {}
        if key in known:
            return json.loads(known[key])  # type: ignore[no-any-return]
        value = make(self.data)
        if key:
            self.cache.put({key: json.dumps(value).encode()})
        return value

    def _read(self, config: LabConfig) -> list[object]:
        """The settings that the task reads, and what stands in the files that they name."""
        sections = [getattr(config, name).to_dict() for name in self.task.reads]
        named = (value for section in sections for value in section.values() if isinstance(value, str) and value)
        return [*sections, *(content for value in named if (content := _content(value)))]

    @functools.cached_property
    def about(self) -> list[object]:
        """The code, the task and its options, and the data."""
        module = type(self.task).__module__
        return [code_version(module), module, type(self.task).__name__, self.task.options(), self.data.fingerprint]

    def _repeatable(self, config: LabConfig) -> bool:
        """Whether nothing but our own code, the data and plain settings are behind a figure."""
        if not type(self.task).__module__.startswith("openclaw_lab.") or not self.task.repeatable(config):
            return False
        values = (value for name in self.task.reads for value in getattr(config, name).to_dict().values())
        return not any(isinstance(value, str) and value.startswith(_OUTSIDE) for value in values)

    def _recalled(self, config: LabConfig, name: str) -> Any:
        files = self._read(config)[len(self.task.reads) :]
        key = self.key("prepared", config) and key_of("prepared", self.about, name, files)
        known = self.cache.get([key]) if key else {}
        if key in known and (arrays := _arrays(known[key])) is not None:
            return self.task.unpacked(self.data, config, {**arrays, **arrays.pop("about")})
        prepared = self.task.prepare(self.data, config)
        packed = self.task.packed(prepared) if key else None
        if packed is not None:
            arrays = {name: each for name, each in packed.items() if isinstance(each, np.ndarray)}
            plain = {name: each for name, each in packed.items() if name not in arrays}
            self.cache.put({key: _bytes(arrays, plain)})
        return prepared

    def _made(
        self, groups: Mapping[Hashable, list[int]], configs: Sequence[LabConfig],
        make: Callable[[LabConfig, Measured], Any], what: str,
    ) -> Iterator[dict[int, Any]]:  # fmt: skip
        label = f"{what} {self.task.name}"
        if len(groups) > 1 and workers() > 1:
            work = functools.partial(_group, self.task, self.data, make)
            batches = [[(at, configs[at]) for at in group] for group in groups.values()]
            for rows in spread(work, batches, label, "preparation"):
                yield dict(rows)
            return
        for group in groups.values():  # before the settings are counted: one bar at a time
            self.prepared(configs[group[0]])
        made = _Rows(self.task, make)
        order = [at for group in groups.values() for at in group]
        for at in progress(order, label, "setting"):
            yield {at: made.of(self.prepared(configs[at]), configs[at])}


class _Rows:
    """Rows of settings, where settings that decide alike share one measurement."""

    def __init__(self, task: Task, make: Callable[[LabConfig, Measured], Any]) -> None:
        self._task, self._make = task, make
        self._known: dict[Hashable, Any] = {}

    def of(self, prepared: Any, config: LabConfig) -> Any:
        decided = self._task.decided_by(prepared, config)
        name = (self._task.prepared_by(config), decided)
        if decided is not None and name in self._known:
            return self._known[name]
        self._known[name] = self._make(config, self._task.measure(prepared, config))
        return self._known[name]


def _group(
    task: Task, data: Dataset, make: Callable[[LabConfig, Measured], Any], group: Sequence[tuple[int, LabConfig]]
) -> list[tuple[int, Any]]:
    prepared, made = task.prepare(data, group[0][1]), _Rows(task, make)
    return [(at, made.of(prepared, config)) for at, config in group]


def _saved_often(rows: Iterator[dict[int, Any]], cache: Cache, keys: Sequence[str]) -> Iterator[dict[int, Any]]:
    """The rows as they come; what there is goes to the cache now and then, and also when somebody interrupts."""
    waiting: dict[str, bytes] = {}
    last = time.monotonic()
    try:
        for some in rows:
            waiting |= {keys[at]: json.dumps(row).encode() for at, row in some.items() if keys[at]}
            if time.monotonic() - last > _OFTEN:
                cache.put(waiting)
                waiting, last = {}, time.monotonic()
            yield some
    finally:
        cache.put(waiting)


def _content(name: str) -> str:
    """Names the content of a file that a setting names; empty where it names none."""
    try:
        path = Path(name).expanduser()
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    except (OSError, ValueError, RuntimeError):
        return ""


def _bytes(arrays: Mapping[str, Any], about: Mapping[str, Any]) -> bytes:
    held = io.BytesIO()
    about_bytes = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    np.savez_compressed(held, **{**arrays, "about": about_bytes})
    return held.getvalue()


def _arrays(kept: bytes) -> dict[str, Any] | None:
    """None where the bytes are damaged."""
    try:
        with np.load(io.BytesIO(kept), allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        return {**arrays, "about": json.loads(arrays["about"].tobytes())}
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile):
        return None
