"""A task, data and a space of settings in; the best setting that keeps its limits on fresh data, with evidence, out.

The data is parted in three, whole groups and near-duplicates together (`split.partition`). On the first part settings
are put in an order, from the surest to keep the limits to the least sure. On the second they are tested in that order,
and those before the first that cannot be shown to keep them are certified: as the order does not depend on the second
part, the chance that any of them breaks a limit is at most 1 - confidence, however many were tried (fixed-sequence
testing; Angelopoulos et al. 2021, "Learn then Test", arXiv 2110.01052). Of the certified the best is chosen. Only the
third part is reported. Where nothing can be certified, the nearest setting and the data that it would take are told.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.bounds import Limit
from openclaw_lab.experiments.cache import Cache
from openclaw_lab.experiments.compare import Comparison, compare
from openclaw_lab.experiments.dataset import as_dataset
from openclaw_lab.experiments.evaluate import Results, check_fits, settings_of
from openclaw_lab.experiments.memo import Memo
from openclaw_lab.experiments.metrics import MetricSpec
from openclaw_lab.experiments.search import TRIALS, Study, drawn
from openclaw_lab.experiments.space import axes_of, default_space, grid, is_grid
from openclaw_lab.experiments.split import SHARES, clusters_of, part_of, partition
from openclaw_lab.experiments.table import Displayed, Table
from openclaw_lab.experiments.task import Task
from openclaw_lab.experiments.tasks import task_named
from openclaw_lab.experiments.trials import Measure, Tried

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Settings that are equally sure on the first part are tested at so many places, from the least useful to the most.
_RUNGS = 10


@dataclass(frozen=True)
class Promise:
    """A limit on fresh data: whether it is shown, by which bound; `needed`: the trials that would show it."""

    limit: Limit
    value: float
    bound: float
    p: float
    trials: float
    holds: bool
    needed: int | None

    def __str__(self) -> str:
        if self.holds:
            return f"{self.limit}: holds ({self.value:.4g} on {self.trials:.0f} trials; at worst {self.bound:.4g})"
        more = (
            f"about {self.needed:,} trials would show it" if self.needed else "no more data of this kind would show it"
        )
        found = f"{self.value:.4g} on {self.trials:.0f} trials leaves {self.bound:.4g} open"
        return f"{self.limit}: not shown ({found}); {more}"


@dataclass(frozen=True, slots=True)
class Part:
    """How the part that is reported was made of the data named `of`, so that it can be made again."""

    of: str
    name: str
    shares: tuple[float, ...]
    seed: int


@dataclass(frozen=True, repr=False)
class Tuned(Displayed):
    """The setting that was chosen. `results` is on the part that nothing was chosen on; `feasible`: every limit holds.

    `against`: the same part under the setting that was started from, paired. `optimism`: by metric, how much better the
    chosen setting looked where it was chosen.
    """

    task: Task
    config: LabConfig
    values: Mapping[str, Any]
    feasible: bool
    promises: tuple[Promise, ...]
    results: Results
    against: Comparison
    optimism: Mapping[str, float]
    tried: tuple[Tried, ...] = field(repr=False)
    certified: frozenset[int] = field(repr=False)
    chosen: int
    objective: str
    confidence: float
    parts: str
    part: Part

    @property
    def table(self) -> Table:
        """A row a metric that counts: where it was chosen, where it is reported, what was lost, its promise."""
        shown, rows = {str(each.limit.metric): str(each) for each in self.promises}, []
        for name in dict.fromkeys([self.objective, *shown]):
            metric, before = self.results.metrics[name], self.tried[self.chosen].validation[name].value
            wish = "minimised" if self._spec(name).better == "lower" else "maximised"
            numbers = [before, metric.value, metric.low, metric.high, metric.n, self.optimism[name]]
            rows.append([name, *numbers, shown.get(name, wish)])
        columns = ["metric", "where chosen", "reported", "low", "high", "n", "lost", "promise"]
        return Table.of_rows(rows, columns, self._title)

    @property
    def frame(self) -> pd.DataFrame:
        """A row a setting tried: values, the metrics that count on the first and second part, p, certified, chosen."""
        import pandas as pd

        names = list(dict.fromkeys([self.objective, *(each.limit.metric for each in self.promises)]))
        rows = []
        for number, each in enumerate(self.tried):
            row: dict[str, Any] = dict(each.values)
            row |= {f"{name}_train": each.train[name].value for name in names}
            row |= {f"{name}_validation": each.validation[name].value for name in names}
            row["p"] = max((promise.limit.p_value(each.validation[promise.limit.metric]) for promise in self.promises),
                           default=math.nan)  # fmt: skip
            row |= {"certified": number in self.certified, "chosen": number == self.chosen}
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def front(self) -> pd.DataFrame:
        """Of the settings those that no other beats in both the objective and the first limit's metric."""
        frame = self.frame
        if not self.promises:
            return frame.loc[[self.chosen]]
        other = self.promises[0].limit
        gain = _sign(self._spec(self.objective)) * frame[f"{self.objective}_validation"].to_numpy()
        cost = (1 if other.most else -1) * frame[f"{other.metric}_validation"].to_numpy()
        kept, best = [], -math.inf
        for row in np.lexsort((-gain, cost)):
            if gain[row] > best:
                kept.append(int(row))
                best = gain[row]
        return frame.iloc[kept]

    def plot(self, ax: Axes | None = None) -> Axes:
        """The settings that were tried: the objective against the first limit's metric, and what was chosen."""
        from openclaw_lab.ui.tuning import plot_tuned

        return plot_tuned(self, ax=ax)

    @property
    def _title(self) -> str:
        changed = ", ".join(f"{name}={value}" for name, value in self.values.items()) or "nothing changed"
        sure = f"with {self.confidence:.0%} confidence" if self.promises else "no limits"
        state = sure if self.feasible else "NOT SHOWN, the nearest setting"
        return f"tuned {self.task.name}: {changed} ({state}; {len(self.tried)} settings tried; {self.parts})"

    def _spec(self, name: str) -> MetricSpec:
        return self.task.spec(name)


def tune(
    task: str | Task,
    data: object,
    space: Mapping[str, object] | None = None,
    *,
    maximise: str = "",
    minimise: str = "",
    subject_to: Mapping[str, float] | None = None,
    confidence: float = 0.95,
    config: LabConfig | None = None,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
    trials: int = TRIALS,
    storage: str | Path = "",
    cache: object = None,
    **options: Any,
) -> Tuned:
    """Choose the setting of a space (see `space`) that is best in one metric and keeps limits on others.

    Without a space the task's own; without metrics and limits the task's own too (`Task.goal`). A limit is the most
    (of a metric of which less is better, or neither) or the least that is allowed; it counts as kept when its bound,
    not its value, is.

    A space with a range of any numbers is no grid: then `trials` settings are drawn, each batch by what the earlier
    ones gave on the part to learn on (extra `tune`). The same seed draws the same, for any number of workers; a search
    that was interrupted goes on where it stopped, and several machines share one: `storage` is the URL of a database,
    or a file (default: one beside the cache). `cache` as in `evaluate`.
    """
    chosen, dataset, base = task_named(task, options), as_dataset(data), settings_of(config)
    check_fits(chosen, dataset)
    if not isinstance(confidence, float) or not 0.5 <= confidence < 1:
        raise TaskError("tune: confidence", confidence, "a number from 0.5 to below 1")
    objective, sign = _objective(chosen, maximise, minimise)
    if subject_to is None and not maximise and not minimise:
        subject_to = chosen.goal[1]
    limits = [_limit(chosen, name, value) for name, value in (subject_to or {}).items()]
    axes = axes_of(space or default_space(chosen, base), base)
    memo = Memo(chosen, dataset, Cache.at(cache))
    clusters = memo.of_data(clusters_of)
    parts = partition(dataset, shares, seed, clusters)
    names = list(dict.fromkeys([objective, *(limit.metric for limit in limits)]))
    measure = Measure(memo, parts, np.array(clusters, dtype=np.intp), tuple(names), (list(shares), seed))
    fields = [axis.name for axis in axes]
    if is_grid(axes):
        tried = tuple(measure.tried(grid(axes, base), fields))
    else:
        worth = functools.partial(_worth, objective, sign, limits, 1 - confidence)
        about = [measure.about, repr(axes), base.to_dict(), str(limits), objective, sign, confidence]
        study = Study.at(storage, memo.cache, about)
        tried = drawn(axes, base, lambda some: list(measure.tried(some, fields)), worth, trials, seed, study)
    certified = certified_of(tried, objective, sign, limits, 1 - confidence)
    best = best_of(tried, objective, sign, certified) if certified else _nearest(tried, objective, sign, limits)
    promises = tuple(_promise(limit, tried[best], best in certified, 1 - confidence) for limit in limits)
    reported = part_of(dataset, parts.test, "the part that nothing was chosen on")
    results = measure.reported(reported, tried[best].config)
    before = results if tried[best].config == base else measure.reported(reported, base)
    lost = {
        name: (tried[best].validation[name].value - results.metrics[name].value) * _sign(chosen.spec(name))
        for name in names
    }
    changed = {name: value for name, value in tried[best].values.items() if value != base.get(name)}
    return Tuned(
        chosen, tried[best].config, changed, bool(certified), promises, results,
        compare({"before": before, "tuned": results}, cache=memo.cache), lost, tried, frozenset(certified), best,
        objective, confidence, str(parts), Part(dataset.name, reported.name, tuple(shares), seed),
    )  # fmt: skip


def _objective(task: Task, maximise: str, minimise: str) -> tuple[str, float]:
    if maximise and minimise:
        raise TaskError("tune", f"maximise={maximise!r} and minimise={minimise!r}", "one of them")
    name = maximise or minimise or task.goal[0] or (task.headline or tuple(spec.name for spec in task.metrics))[0]
    spec = task.spec(name)
    return name, -1.0 if minimise or (not maximise and spec.better == "lower") else 1.0


def _limit(task: Task, name: str, value: object) -> Limit:
    spec = task.spec(name)
    if spec.kind != "measured":
        raise TaskError(f"tune: subject_to {name}", "a metric of a model of behaviour", "a metric that is measured")
    if not isinstance(value, int | float) or not math.isfinite(value) or (spec.proportion and not 0 <= value <= 1):
        raise TaskError(f"tune: subject_to {name}", value, "a share from 0 to 1" if spec.proportion else "a number")
    return Limit(name, float(value), spec.better != "higher")


def _sign(spec: MetricSpec) -> float:
    return -1.0 if spec.better == "lower" else 1.0


def certified_of(
    tried: Sequence[Tried], objective: str, sign: float, limits: Sequence[Limit], risk: float
) -> list[int]:
    """The settings that keep every limit, shown on the second part in an order that the first part gave."""
    if not limits:
        return list(range(len(tried)))
    found: list[int] = []
    for number in _order(tried, objective, sign, limits):
        if max(limit.p_value(tried[number].validation[limit.metric]) for limit in limits) > risk:
            break
        found.append(number)
    return found


def _worth(objective: str, sign: float, limits: Sequence[Limit], risk: float, tried: Tried) -> float:
    """How promising a setting is by the part to learn on: one that seems to keep the limits by its objective, from 0
    to 1; any other below, by how sure it is that it breaks one.
    """
    doubt = max((limit.p_value(tried.train[limit.metric]) for limit in limits), default=0.0)
    if doubt > risk:
        return -doubt
    gain = sign * tried.train[objective].value
    return -1.0 if math.isnan(gain) else 0.5 + math.atan(gain) / math.pi


def _order(tried: Sequence[Tried], objective: str, sign: float, limits: Sequence[Limit]) -> Iterator[int]:
    """From the surest on the first part to the least sure; none that a surer one beats in the objective."""
    doubt = [max(limit.p_value(each.train[limit.metric]) for limit in limits) for each in tried]
    gain = [_number(sign * each.train[objective].value) for each in tried]
    levels: dict[float, list[int]] = {}
    for number in sorted(range(len(tried)), key=lambda each: (doubt[each], gain[each], each)):
        levels.setdefault(doubt[number], []).append(number)
    best = -math.inf
    for level in levels.values():
        kept = [number for number in level if gain[number] > best]
        distinct = list({gain[number]: number for number in kept}.values())
        rungs = np.unique(np.linspace(0, len(distinct) - 1, min(_RUNGS, len(distinct))).round().astype(int))
        yield from (distinct[rung] for rung in rungs.tolist() if distinct)
        best = max([best, *(gain[number] for number in level)])


def best_of(tried: Sequence[Tried], objective: str, sign: float, among: Sequence[int]) -> int:
    """The setting among some that is best in the objective on the parts to learn and to choose on."""
    return max(among, key=lambda number: (_number(sign * tried[number].both[objective].value), -number))


def _nearest(tried: Sequence[Tried], objective: str, sign: float, limits: Sequence[Limit]) -> int:
    """The setting for which the data says most that it keeps the limits; of equal ones the most useful."""
    return min(
        range(len(tried)),
        key=lambda number: (
            max(limit.p_value(tried[number].both[limit.metric]) for limit in limits),
            -_number(sign * tried[number].both[objective].value),
            number,
        ),
    )


def _promise(limit: Limit, tried: Tried, holds: bool, risk: float) -> Promise:
    counted = tried.validation[limit.metric]
    needed = None if holds else limit.needed(counted, risk)
    return Promise(
        limit, counted.value, limit.bound(counted, risk), limit.p_value(counted), counted.trials, holds, needed
    )


def _number(value: float) -> float:
    return -math.inf if math.isnan(value) else value
