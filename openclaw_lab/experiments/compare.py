"""Results of several settings on the same data in; paired differences with intervals and corrected p-values out.

The first setting is the baseline. All p-values of one comparison are corrected together (Holm), and verdicts stand on
the corrected ones. A gain over all samples that hides a loss in one language or source is told (`warnings`); so is what
the data could have shown where no difference is shown (`detectable`, `needed`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import html
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.cache import Cache, key_of
from openclaw_lab.experiments.code import code_version
from openclaw_lab.experiments.evaluate import Results
from openclaw_lab.experiments.metrics import Array, MetricSpec, shown
from openclaw_lab.experiments.paired import Paired, clustered, holm, paired
from openclaw_lab.experiments.table import Displayed, Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_ALPHA = 0.05
# Slices are looked at by these, where they have from two to so many values, of so many pairs at least.
_SLICES, _MOST, _LEAST = ("lang", "dataset"), 24, 12
_NARROW = ["setting", "metric", "baseline", "value", "difference", "low", "high", "p_holm", "verdict"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric of one setting against another, over all samples or those of a slice."""

    setting: str
    against: str
    metric: str
    baseline: float
    value: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    effect: float
    pairs: int
    detectable: float
    needed: int
    kind: str
    verdict: str
    slice: str = ""


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """Paired differences of settings, over all samples (`differences`) and over slices of them (`sliced`)."""

    differences: tuple[Difference, ...]
    sliced: tuple[Difference, ...]
    task: str
    data: str
    baseline: str
    warnings: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """A row a setting and metric; `frame` has more columns."""
        return Table(self.frame[_columns(self.frame)], self._title)

    @property
    def frame(self) -> pd.DataFrame:
        """Columns setting, against, metric, baseline, value, difference, low, high, p, p_holm, effect, pairs,
        detectable, needed, kind, verdict (see `paired` for what the numbers are).
        """
        return _frame(self.differences).drop(columns="slice")

    @property
    def slices(self) -> Table:
        """The headline metrics of the task for each language and source: as `frame`, with the slice."""
        frame = _frame(self.sliced)
        return Table(frame[["slice", *_columns(frame)]], f"{self._title}, by slice")

    def plot(self, ax: Axes | None = None) -> Axes:
        """The differences with their intervals; the line at 0 is the baseline."""
        from openclaw_lab.ui.charts import plot_differences

        return plot_differences(self.frame, title=f"{self.task}: difference from {self.baseline}", ax=ax)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a reader should know: losses that a gain hides, and what the data could not have shown."""
        return (*self.warnings, *self._power)

    @property
    def _power(self) -> tuple[str, ...]:
        """Of the first metric in which something moved and nothing is shown."""
        for each in self.differences:
            if each.verdict == "no difference shown" and each.difference and not math.isnan(each.detectable):
                return (
                    f"{each.setting}, {each.metric}: {each.pairs:,} pairs show a difference of {shown(each.detectable)}"
                    f" in four of five comparisons; {each.needed:,} would show {shown(abs(each.difference))}",
                )
        return ()

    @property
    def _title(self) -> str:
        return f"{self.task} on {self.data}: against {self.baseline}"

    def __str__(self) -> str:
        return "\n".join([str(self.table), *self.notes])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return super()._repr_html_() + lines


def compare(
    results: Mapping[str, Results], *, seed: int = 0, all_pairs: bool = False, by: Sequence[str] = _SLICES,
    cache: object = None,
) -> Comparison:  # fmt: skip
    """Compare settings measured on the same samples; the first is the baseline, or with `all_pairs` each of all.

    `by`: the attributes or fields of a sample whose values make slices; `cache` as in `evaluate`.
    """
    if not isinstance(results, Mapping) or not all(isinstance(each, Results) for each in results.values()):
        raise TaskError("compare", f"a {type(results).__name__}", "Results by name, {'seed': a, 'tuned': b}")
    if len(results) < 2:
        raise TaskError("compare", f"{len(results)} result(s)", "at least two, by name")
    names = list(results)
    pairs = list(itertools.combinations(names, 2)) if all_pairs else [(names[0], other) for other in names[1:]]
    for one, other in pairs:
        _check_paired(one, results[one], other, results[other])
    kept = Cache.at(cache)
    key = _key(results, by, seed, all_pairs) if kept.path and set(by) <= set(_SLICES) else ""
    known = kept.get([key]) if key else {}
    if key in known:
        return _recalled(known[key])
    found = _compared(results, pairs, seed, by)
    if key:
        kept.put({key: json.dumps(dataclasses.asdict(found)).encode()})
    return found


def _compared(
    results: Mapping[str, Results], pairs: Sequence[tuple[str, str]], seed: int, by: Sequence[str]
) -> Comparison:
    names = list(results)
    first = results[names[0]]
    specs = [spec for spec in first.task.metrics if spec.kind == "measured"]
    differences = _judged(
        [_difference(spec, one, other, results, None, seed) for one, other in pairs for spec in specs], first
    )
    headline = [spec for spec in specs if spec.name in first.task.headline]
    sliced = [
        dataclasses.replace(_difference(spec, one, other, results, mask, seed), slice=name)
        for name, mask in _slices(first, by)
        for one, other in pairs
        for spec in headline
    ]
    judged = _judged(sliced, first)
    return Comparison(
        differences, judged, first.task.name, first.data.name,
        names[0] if all(one == names[0] for one, _ in pairs) else "each other",
        tuple(_hidden(differences, judged, first)),
    )  # fmt: skip


def _key(results: Mapping[str, Results], by: Sequence[str], *more: object) -> str:
    """The name of a comparison in the cache: by the code, the tallies and the slices."""
    digest = hashlib.sha256()
    for name, each in results.items():
        digest.update(repr((name, each.task.name, each.data.name, sorted(each.measured.kinds.items()))).encode())
        for column, values in [*each.measured.tallies.items(), ("sample", each.measured.sample)]:
            digest.update(column.encode() + np.ascontiguousarray(values).tobytes())
    data = next(iter(results.values())).data
    about = [(sample.id, sample.group) for sample in data.samples]
    digest.update(repr(about).encode("utf-8", "surrogatepass"))
    digest.update(repr([data.values(name) for name in by]).encode("utf-8", "surrogatepass"))
    return key_of("compare", code_version(__name__), digest.hexdigest(), list(by), *more)


def _recalled(kept: bytes) -> Comparison:
    plain = json.loads(kept)
    rows = {name: tuple(Difference(**each) for each in plain[name]) for name in ("differences", "sliced")}
    return Comparison(**{**plain, **rows, "warnings": tuple(plain["warnings"])})


def _check_paired(name: str, base: Results, other_name: str, other: Results) -> None:
    where = f"compare {name!r} with {other_name!r}"
    if base.task.name != other.task.name:
        raise TaskError(where, f"the tasks {base.task.name} and {other.task.name}", "one task")
    ours, theirs = [each.id for each in base.data], [each.id for each in other.data]
    if ours != theirs:
        missing = set(ours) ^ set(theirs)
        found = f"{len(missing)} samples in only one of them" if missing else "the samples in another order"
        raise TaskError(where, found, "the same samples", "evaluate both settings on one dataset")
    if base.data.hash != other.data.hash:
        raise TaskError(where, "samples of other content under the same ids", "the same samples")


def _slices(results: Results, by: Sequence[str]) -> list[tuple[str, NDArray[np.bool_]]]:
    """The slices that are worth a look, as masks over samples."""
    found = []
    for attribute in by:
        values = np.array(results.data.values(attribute), dtype=object)
        each = sorted(set(values))
        if 2 <= len(each) <= _MOST:
            found += [(f"{attribute}={value}", values == value) for value in each]
    return found


def _difference(
    spec: MetricSpec, one: str, other: str, results: Mapping[str, Results], mask: NDArray[np.bool_] | None, seed: int
) -> Difference:
    base, theirs = results[one], results[other]
    ours, sums = clustered(spec, base, mask), clustered(spec, theirs, mask)
    before, after = (_value(spec, each) for each in (ours, sums))
    found: Paired = paired(ours, sums, share=spec.proportion, seed=seed)
    kinds = [each.metrics[spec.name].kind for each in (base, theirs)]
    kind = kinds[0] if kinds[0] == "circular" else kinds[1]
    scale = spec.scale
    return Difference(
        other, one, spec.name, before, after, after - before, scale * found.low, scale * found.high, found.p, math.nan,
        found.effect, found.pairs, scale * found.detectable, found.needed, kind, "",
    )  # fmt: skip


def _value(spec: MetricSpec, sums: tuple[Array, Array]) -> float:
    return spec.scale * float(sums[0].sum() / sums[1].sum()) if sums[1].sum() else math.nan


def _judged(differences: Sequence[Difference], results: Results) -> tuple[Difference, ...]:
    """With p-values corrected for how many there are, and verdicts."""
    corrected = holm([math.nan if each.kind == "circular" else each.p for each in differences])
    return tuple(
        dataclasses.replace(each, p_holm=p, verdict=_verdict(results.task.spec(each.metric), each, p))
        for each, p in zip(differences, corrected, strict=True)
    )


def _verdict(spec: MetricSpec, each: Difference, p: float) -> str:
    if each.kind == "circular":
        return "circular, no verdict"
    if math.isnan(p):
        return "cannot be compared"
    if p >= _ALPHA or not each.difference:
        return "no difference shown"
    if not spec.better:
        return "more" if each.difference > 0 else "less"
    return "better" if (each.difference > 0) == (spec.better == "higher") else "worse"


def _hidden(differences: Sequence[Difference], sliced: Sequence[Difference], results: Results) -> list[str]:
    """The slices that lose where all samples together do not."""
    pooled = {(each.setting, each.against, each.metric): each for each in differences}
    found = []
    for each in sliced:
        spec = results.task.spec(each.metric)
        sign = 1.0 if spec.better == "higher" else -1.0
        whole = pooled[each.setting, each.against, each.metric]
        lost = spec.better and sign * each.difference < 0 <= sign * whole.difference and each.pairs >= _LEAST
        if lost and (each.verdict == "worse" or (each.high < 0 if sign > 0 else each.low > 0)):
            found.append(
                f"{each.setting}, {each.metric}: {shown(whole.difference)} over all hides {shown(each.difference)}"
                f" [{shown(each.low)}, {shown(each.high)}] for {each.slice} ({each.pairs} pairs)"
            )
    return found


def _frame(rows: Sequence[Difference]) -> pd.DataFrame:
    import pandas as pd

    columns = [each.name for each in dataclasses.fields(Difference)]
    return pd.DataFrame([dataclasses.astuple(each) for each in rows], columns=columns)


def _columns(frame: pd.DataFrame) -> list[str]:
    """What a narrow table shows; against what, only where that differs."""
    several = frame["against"].nunique() > 1
    return [*_NARROW[:1], "against", *_NARROW[1:]] if several else _NARROW
