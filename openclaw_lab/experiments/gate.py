"""Recorded evidence in, a verdict out: is any metric of this run significantly worse than the recorded one?

The same data is measured again with the recorded settings (or others), and each metric is compared pair by pair with
the recorded tallies; p-values are Holm-corrected over all metrics of the file (Holm 1979).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import DataError, TaskError
from openclaw_lab.experiments.evaluate import Results, evaluate
from openclaw_lab.experiments.metrics import MetricSpec, shown
from openclaw_lab.experiments.paired import clustered, paired_test
from openclaw_lab.exports.evidence import FORMAT
from openclaw_lab.files import read_text

_ALPHA = 0.05
_OWN = ("detector", "redactor")  # options that an evidence file can only name
Part = TypeVar("Part", str, dict[str, Any])


@dataclass(frozen=True, slots=True)
class Check:
    """One metric against its recorded value."""

    task: str
    metric: str
    recorded: float
    now: float
    p: float
    worse: bool

    def __str__(self) -> str:
        word = "WORSE" if self.worse else "ok"
        p = "" if np.isnan(self.p) else f"  p={self.p:.4f}"
        return f"{word:<6}{self.task}.{self.metric}: {shown(self.recorded)} -> {shown(self.now)}{p}"


def gate(
    file: str | Path, *, data: str | Path | None = None, config: LabConfig | None = None, **options: Any
) -> list[Check]:
    """Measure again what an evidence file recorded; `data`, `config` and task options replace the recorded ones.

    What was measured with a detector or redactor of your own needs it again: `gate(file, detector=mine)`.
    """
    path = Path(file)
    entries = _entries(path)
    raw = [
        row
        for number, entry in enumerate(entries, 1)
        for row in _again(f"{path} result {number}", entry, data, config, options)
    ]
    if not raw:
        raise DataError(str(path), "no tallies of any metric", "at least one measured metric")
    return _holm(raw)


def _entries(path: Path) -> list[Mapping[str, Any]]:
    try:
        content = json.loads(read_text(path))
        written, entries = content["format"], content["results"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DataError(str(path), expected="an evidence.json that export wrote") from None
    if written != FORMAT:
        raise DataError(f"{path} format", written, f"the format {FORMAT}", "export again with this version")
    if not isinstance(entries, list) or not entries:
        raise DataError(str(path), "no results", "at least one measured result", "export with evidence=[results]")
    return entries


def _again(
    where: str,
    entry: Mapping[str, Any],
    data: str | Path | None,
    config: LabConfig | None,
    given: Mapping[str, Any],
) -> list[tuple[MetricSpec, Check]]:
    task, options = _part(where, entry, "task", str), _part(where, entry, "options", dict)
    source = _part(where, entry, "data", dict)
    name, digest = _part(where, source, "name", str), _part(where, source, "hash", str)
    recorded, settings = _part(where, entry, "tallies", dict), config or LabConfig.from_dict(entry.get("config"))
    if options.keys() & {"task", "data", "config"}:
        raise DataError(f"{where} options", ", ".join(options), "options that the task knows")
    for own in _OWN:
        if isinstance(options.get(own), str) and own not in given:
            found = f"a {own} of your own ({options[own]})"
            raise TaskError(where, found, "the built-in one", f"gate it in Python: lab.gate(file, {own}=yours)")
    results = evaluate(task, data or name, settings, **{**options, **given})
    if results.data.hash != digest:
        raise TaskError(where, f"the data {results.data.name} ({results.data.hash})", f"the recorded data ({digest})")
    return [_check(where, spec, recorded, results) for spec in results.task.metrics if spec.name in recorded]


def _part(where: str, entry: object, name: str, kind: type[Part]) -> Part:
    found = entry.get(name) if isinstance(entry, Mapping) else None
    if not isinstance(found, kind):
        raise DataError(f"{where} {name}", "nothing" if found is None else found, "what export wrote there")
    return found


def _check(where: str, spec: MetricSpec, recorded: Mapping[str, Any], results: Results) -> tuple[MetricSpec, Check]:
    try:
        top, bottom = (np.asarray(recorded[spec.name][side], dtype=float) for side in ("top", "bottom"))
        known = bool(np.isfinite(top).all() and np.isfinite(bottom).all())
    except (KeyError, TypeError, ValueError, OverflowError):
        known = False
    if not known:
        raise DataError(f"{where} {spec.name}", expected="tallies that export wrote")
    ours = clustered(spec, results)
    if top.shape != ours[0].shape or bottom.shape != ours[1].shape:
        raise DataError(f"{where} {spec.name}", f"{top.size} and {bottom.size} tallies", f"{len(ours[0])} of each")
    before = spec.scale * float(top.sum() / bottom.sum()) if bottom.sum() else float("nan")
    now = spec.value(results.measured.tallies)
    p = paired_test((top, bottom), ours)[2]
    lost = (now < before) if spec.better == "higher" else (now > before) if spec.better == "lower" else False
    return spec, Check(results.task.name, spec.name, before, now, p, lost)


def _holm(rows: list[tuple[MetricSpec, Check]]) -> list[Check]:
    """Worse only when the loss stays significant among all metrics that could have lost."""
    tested = [check.p for spec, check in rows if spec.better and not np.isnan(check.p)]
    order = sorted(range(len(tested)), key=lambda index: tested[index])
    significant: set[float] = set()
    for rank, index in enumerate(order):
        if tested[index] > _ALPHA / (len(tested) - rank):
            break
        significant.add(tested[index])
    return [Check(c.task, c.metric, c.recorded, c.now, c.p, c.worse and c.p in significant) for _, c in rows]
