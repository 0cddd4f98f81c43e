"""Recorded evidence in, a verdict out: is any metric of this run significantly worse than the recorded one?

The same data is measured again with the recorded settings (or others), and each metric is compared pair by pair with
the recorded tallies; p-values are Holm-corrected over all metrics of the file (Holm 1979).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np

from openclaw_lab import __version__
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import DataError, TaskError
from openclaw_lab.experiments.dataset import Dataset, load_dataset
from openclaw_lab.experiments.evaluate import Results, evaluate
from openclaw_lab.experiments.metrics import MetricSpec, shown
from openclaw_lab.experiments.paired import cluster_names, clustered, holm, paired_test
from openclaw_lab.experiments.split import part_of, partition
from openclaw_lab.experiments.table import Displayed, Table
from openclaw_lab.exports.evidence import FORMAT
from openclaw_lab.files import read_text

_ALPHA = 0.05
_NAMED = 8  # samples that a summary names
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
    p_holm: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    data: str = ""
    lost: tuple[str, ...] = ()  # samples (or groups of them) of which less is right than was recorded

    def __str__(self) -> str:
        word = "WORSE" if self.worse else "ok"
        p = "" if math.isnan(self.p) else f"  p={self.p:.4f}"
        return f"{word:<6}{self.task}.{self.metric}: {shown(self.recorded)} -> {shown(self.now)}{p}"


@dataclass(frozen=True, repr=False)
class Gate(Sequence[Check], Displayed):
    """The checks of one evidence file, in order."""

    checks: tuple[Check, ...]
    file: str

    @property
    def ok(self) -> bool:
        """Whether no metric is significantly worse."""
        return not any(check.worse for check in self.checks)

    @overload
    def __getitem__(self, index: int) -> Check: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Check]: ...
    def __getitem__(self, index: int | slice) -> Check | Sequence[Check]:
        return self.checks[index]

    def __len__(self) -> int:
        return len(self.checks)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    @property
    def table(self) -> Table:
        """A row a metric: what was recorded, what is measured now, p before and after Holm's correction."""
        rows = [
            [f"{c.task}.{c.metric}", c.recorded, c.now, c.low, c.high, c.n, c.p, c.p_holm, "worse" if c.worse else "ok"]
            for c in self.checks
        ]
        columns = ["metric", "recorded", "now", "low", "high", "n", "p", "p_holm", "verdict"]
        return Table.of_rows(rows, columns, f"{self.file}: {self._verdict}")

    @property
    def markdown(self) -> str:
        """A summary for a pull request: no text of the data, only numbers, and the ids of samples that were lost."""
        lines = [
            f"### openclaw-lab gate: {self._verdict}",
            "",
            "| metric | recorded | now | 95 % | n | p (Holm) | |",
            "| --- | ---: | ---: | --- | ---: | ---: | --- |",
        ]
        for c in self.checks:
            p = "–" if math.isnan(c.p_holm) else f"{c.p_holm:.4f}"
            figures = f"{shown(c.recorded)} | {shown(c.now)} | {shown(c.low)} – {shown(c.high)} | {c.n:,} | {p}"
            lines.append(f"| {_cell(f'{c.task}.{c.metric}')} | {figures} | {'**worse**' if c.worse else 'ok'} |")
        for check in self.checks:
            if check.worse and check.lost:
                named = ", ".join(f"`{_cell(each)}`" for each in check.lost[:_NAMED])
                more = f" and {len(check.lost) - _NAMED} more" if len(check.lost) > _NAMED else ""
                lines += ["", f"{check.task}.{check.metric} lost {named}{more}"]
        data = dict.fromkeys(check.data for check in self.checks)
        lines += ["", f"{', '.join(map(_cell, data))}; openclaw-lab {__version__}; evidence `{_cell(self.file)}`", ""]
        return "\n".join(lines)

    @property
    def _verdict(self) -> str:
        worse = [f"{check.task}.{check.metric}" for check in self.checks if check.worse]
        return f"worse in {', '.join(worse)}" if worse else f"no metric of {len(self.checks)} is worse"


def _cell(text: str) -> str:
    """Text that breaks no table of Markdown."""
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")


def gate(
    file: str | Path, *, data: str | Path | None = None, config: LabConfig | None = None, cache: object = None,
    **options: Any,
) -> Gate:  # fmt: skip
    """Measure again what an evidence file recorded; `data`, `config` and task options replace the recorded ones.

    What was measured with a detector or redactor of your own needs it again: `gate(file, detector=mine)`. `cache` as in
    `evaluate`.
    """
    path = Path(file)
    entries = _entries(path)
    raw = [
        row
        for number, entry in enumerate(entries, 1)
        for row in _again(f"{path} result {number}", entry, data, config, cache, options)
    ]
    if not raw:
        raise DataError(str(path), "no tallies of any metric", "at least one measured metric")
    return Gate(tuple(_holm(raw)), path.name)


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
    cache: object,
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
    whole = _part_again(where, source, load_dataset(data or name) if source.get("part") else None)
    results = evaluate(task, whole or data or name, settings, cache=cache, **{**options, **given})
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
    metric = results.metrics[spec.name]
    sign = 1.0 if spec.better == "higher" else -1.0
    moved = sign * (ours[0] - top) < 0 if spec.better else np.zeros(len(top), dtype=bool)
    names = np.array(cluster_names(spec, results), dtype=object)
    return spec, Check(
        results.task.name, spec.name, before, now, p, lost, math.nan, metric.low, metric.high, metric.n,
        f"{results.data.name} ({results.data.hash})", tuple(names[moved].tolist()),
    )  # fmt: skip


def _part_again(where: str, source: Mapping[str, Any], data: Dataset | None) -> Dataset | None:
    """The part of the data that was reported, parted again as it was."""
    if data is None:
        return None
    try:
        shares, seed, name = source["part"]["shares"], source["part"]["seed"], source["part"]["name"]
        return part_of(data, partition(data, shares, seed).test, str(name))
    except (KeyError, TypeError):
        raise DataError(f"{where} data part", expected="what export wrote there") from None


def _holm(rows: list[tuple[MetricSpec, Check]]) -> list[Check]:
    """Worse only when the loss stays significant among all metrics that could have lost."""
    corrected = holm([check.p if spec.better else math.nan for spec, check in rows])
    return [
        replace(check, p_holm=p, worse=check.worse and not math.isnan(p) and p <= _ALPHA)
        for (_, check), p in zip(rows, corrected, strict=True)
    ]
