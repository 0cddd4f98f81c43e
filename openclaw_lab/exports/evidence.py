"""Results in, the content of evidence.json out: what was measured, on which data, with which versions.

It holds the tallies of every sample too, so that a later run can be compared with it pair by pair (`gate`). It holds no
text of the data and no credential.
"""

from __future__ import annotations

import importlib.metadata
import math
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import openclaw_lab
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import ExportError
from openclaw_lab.experiments.compare import Comparison
from openclaw_lab.experiments.evaluate import Results
from openclaw_lab.experiments.metrics import Metric
from openclaw_lab.experiments.paired import clustered
from openclaw_lab.experiments.tune import Part, Promise, Tuned

FORMAT = 1
_WHOLE = "all samples; nothing was held out"
_PACKAGES = ("numpy", "scipy", "pandas", "rjieba", "tiktoken")


def evidence_of(config: LabConfig, items: Sequence[object] | Results | Comparison | Tuned) -> dict[str, Any]:
    """The content of evidence.json for a config and what was measured of it."""
    if isinstance(items, Results | Comparison | Tuned):
        items = [items]
    tuned = [each for each in items if isinstance(each, Tuned)]
    splits = {id(each.results): (f"{each.parts}; reported on the last", each.part) for each in tuned}
    items = [part for each in items for part in ((each.results, each.against) if isinstance(each, Tuned) else (each,))]
    results = [each for each in items if isinstance(each, Results)]
    comparisons = [each for each in items if isinstance(each, Comparison)]
    for each in items:
        if not isinstance(each, Results | Comparison):
            raise ExportError("evidence", type(each).__name__, "Results, a Comparison or a Tuned")
    return {
        "format": FORMAT,
        "openclaw_lab": openclaw_lab.__version__,
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "config": config.digest(),
        "results": [_result(config, each, *splits.get(id(each), (_WHOLE, None))) for each in results],
        "promises": [_promise(each, promise) for each in tuned for promise in each.promises],
        "comparisons": [_comparison(each) for each in comparisons],
    }


def _promise(tuned: Tuned, promise: Promise) -> dict[str, Any]:
    limit = promise.limit
    return {
        "task": tuned.task.name, "metric": limit.metric, "most" if limit.most else "least": limit.value,
        "confidence": tuned.confidence, "holds": promise.holds, "bound": _plain(promise.bound),
        "trials": promise.trials, "settings_tried": len(tuned.tried),
    }  # fmt: skip


def _result(config: LabConfig, results: Results, split: str, part: Part | None) -> dict[str, Any]:
    section = results.task.section
    return {
        "task": results.task.name,
        "options": results.task.options(),
        "data": {
            "name": _without_home(part.of if part else results.data.name),
            "hash": results.data.hash,
            "samples": len(results.data),
            "left_out": len(results.data.problems),
            "split": split,
            **({"part": {"shares": list(part.shares), "seed": part.seed, "name": part.name}} if part else {}),
        },
        "config": results.config.to_dict(masked=True),
        "of_this_config": results.config.digest(section) == config.digest(section),
        "metrics": {
            name: {**metric_json(metric), "help": results.task.spec(name).help}
            for name, metric in results.metrics.items()
        },
        "tallies": {spec.name: _tallies(clustered(spec, results)) for spec in results.task.metrics if not spec.band},
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    rows = comparison.frame.to_dict("records")
    plain = [{str(name): _plain(value) for name, value in row.items()} for row in rows]
    return {"task": comparison.task, "baseline": comparison.baseline, "seed": 0, "rows": plain}


def metric_json(metric: Metric) -> dict[str, Any]:
    """A metric as JSON; what cannot be measured is null."""
    numbers = {"value": metric.value, "low": metric.low, "high": metric.high}
    return {**{name: _plain(value) for name, value in numbers.items()}, "n": metric.n, "kind": metric.kind}


def _tallies(pair: tuple[Any, Any]) -> Mapping[str, list[float | None]]:
    top, bottom = ([_short(value) for value in side.tolist()] for side in pair)
    return {"top": top, "bottom": bottom}


def _short(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) else round(value, 9)


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _without_home(name: str) -> str:
    """A path without the user's name in it."""
    home, path = Path.home(), Path(name)
    inside = home != Path("/") and path.is_relative_to(home)
    return str(Path("~") / path.relative_to(home)) if inside else name
