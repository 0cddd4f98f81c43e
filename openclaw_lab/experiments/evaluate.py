"""A task, data and a config in, Results out: metrics with intervals, a row a sample, the errors, a table, a chart."""

from __future__ import annotations

import functools
import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.cache import Cache
from openclaw_lab.experiments.dataset import Dataset, as_dataset
from openclaw_lab.experiments.memo import Memo
from openclaw_lab.experiments.metrics import Measured, Metric
from openclaw_lab.experiments.stream import Stream
from openclaw_lab.experiments.table import Displayed, Table
from openclaw_lab.experiments.task import Task
from openclaw_lab.experiments.tasks import task_named
from openclaw_lab.spending import Bill

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from openclaw_lab.experiments.streamed import Streamed


class Metrics(dict[str, Metric]):
    """Metrics by name; an unknown name is an error that names the nearest one."""

    def __init__(self, task: Task, metrics: Mapping[str, Metric]) -> None:
        super().__init__(metrics)
        self._task = task

    def __missing__(self, name: str) -> Metric:
        self._task.spec(name)
        raise KeyError(name)


@dataclass(frozen=True, repr=False)
class Results(Displayed):
    """What one setting gave on one dataset."""

    task: Task
    data: Dataset
    config: LabConfig
    measured: Measured
    memo: Memo = field(repr=False, compare=False)
    groups: np.ndarray[Any, np.dtype[np.intp]] | None = field(default=None, repr=False, compare=False)

    @functools.cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """Every metric of the task by name, over all samples."""
        return Metrics(self.task, self._metrics(np.ones(len(self.data), dtype=bool)))

    @property
    def prepared(self) -> Any:
        """What the task made of the data before it counted: scores, spans, replays."""
        return self.memo.prepared(self.config)

    @functools.cached_property
    def frame(self) -> pd.DataFrame:
        """One row a sample: what was decided, what was right, and why."""
        return self.task.rows(self.data, self.prepared, self.config)

    @functools.cached_property
    def usage(self) -> Bill | None:
        """What asking a live model took: requests, tokens, dollars, seconds; None where none was asked."""
        return self.task.bill(self.prepared) if self.task.asks(self.config) else None

    def errors(self) -> pd.DataFrame:
        """The samples that went wrong, worst first, with the reason of each decision."""
        return self.task.errors(self.frame)

    def by(self, attribute: str = "dataset") -> Table:
        """The metrics for each value of a sample's attribute (`dataset`, `lang`, `kind`, `group`) or field."""
        rows = self.metrics_by(attribute)
        return Table.of_metrics(rows, attribute, f"{self.task.name} by {attribute}", self.task.columns)

    @property
    def table(self) -> Table:
        """The metrics as a table."""
        helps = {spec.name: spec.help for spec in self.task.metrics}
        rows = [
            [name, metric.value, metric.low, metric.high, metric.n, metric.kind, helps[name]]
            for name, metric in self.metrics.items()
        ]
        columns = ["metric", "value", "low", "high", "n", "kind", "what it is"]
        return Table.of_rows(rows, columns, f"{self.task.name} on {self.data.name}")

    def plot(self, ax: Axes | None = None, *, by: str = "") -> Axes:
        """The headline metrics with their intervals; `by="dataset"` draws one group a value."""
        from openclaw_lab.ui.charts import plot_metrics

        rows = self.metrics_by(by) if by else {"all": self.metrics}
        return plot_metrics(rows, self.task, title=f"{self.task.name}: {self.data.name}", ax=ax)

    def metrics_by(self, attribute: str = "dataset") -> dict[str, Mapping[str, Metric]]:
        """The metrics for each value of a sample's attribute or field, as `by` shows them."""
        values = np.array(self.data.values(attribute), dtype=object)
        return {value: self._metrics(values == value) for value in sorted(set(values))}

    def _metrics(self, chosen: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, Metric]:
        groups = group_numbers(self.data) if self.groups is None else self.groups
        return metrics_of(self.task, self.measured.of(chosen), groups)

    def __str__(self) -> str:
        lines = [f"{self.task.name} on {self.data}"]
        lines += [f"  {name:<24} {metric}" for name, metric in self.metrics.items()]
        lines += [] if self.usage is None else [f"  {'asked':<24} {self.usage}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        beside = [str(self.data)] * bool(self.data.problems) + ([f"asked: {self.usage}"] if self.usage else [])
        return super()._repr_html_() + "".join(f"<p>{html.escape(each)}</p>" for each in beside)


@overload
def evaluate(task: str | Task, data: Stream, config: LabConfig | None = None, **options: Any) -> Streamed: ...
@overload
def evaluate(
    task: str | Task, data: object, config: LabConfig | None = None, *, cache: object = None, **options: Any
) -> Results: ...
def evaluate(
    task: str | Task, data: object, config: LabConfig | None = None, *, cache: object = None, **options: Any
) -> Results | Streamed:
    """Measure one setting on labelled data or recorded sessions.

    `task` is a name or a Task; `data` a Dataset, a bundled name, a path, or a list of Sessions; `options` go to the
    task (`window=5` for "reminders"). Where a live model is asked they may be a `cassette`, limits (`budget`, `price`,
    `concurrency`, `per_minute`: see `spending.Limits`) and what goes to litellm (`api_base`, `max_tokens`, …). `cache`
    is where figures are kept for another time, and found again as long as code, data and settings are what they were:
    "auto" (the user's cache folder), a folder, or "off". Of a `stream`, which is larger than memory, nothing is kept.
    """
    if isinstance(data, Stream):
        from openclaw_lab.experiments.streamed import evaluate_stream

        return evaluate_stream(task_named(task, options), data, settings_of(config))
    chosen, dataset, settings = task_named(task, options), as_dataset(data), settings_of(config)
    check_fits(chosen, dataset)
    memo = Memo(chosen, dataset, Cache.at(cache))
    return Results(chosen, dataset, settings, memo.measured(settings), memo, group_numbers(dataset))


def metrics_of(task: Task, measured: Measured, groups: np.ndarray[Any, np.dtype[np.intp]]) -> dict[str, Metric]:
    """Every metric of a task; samples of one group (a number a sample) are not independent of one another.

    Where all are of one group, the units themselves are taken for independent.
    """
    clusters = groups[measured.sample]
    apart = clusters if len(clusters) and bool((clusters != clusters[0]).any()) else None
    kinds = measured.kinds
    return {spec.name: spec.measure(measured.tallies, apart, kinds.get(spec.name, "measured")) for spec in task.metrics}


def group_numbers(data: Dataset) -> np.ndarray[Any, np.dtype[np.intp]]:
    """The group of each sample as a number from 0; a sample without a group is one of its own."""
    numbers: dict[str, int] = {}
    names = [sample.group or sample.id for sample in data.samples]
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.intp)


def settings_of(config: object) -> LabConfig:
    """The settings that an experiment was given, or the default ones."""
    if config is None or isinstance(config, LabConfig):
        return config or LabConfig()
    raise TaskError(
        "config", f"a {type(config).__name__}", "a LabConfig", "LabConfig.preset('seed').with_({…}) makes one"
    )


def check_fits(task: Task, data: Dataset) -> None:
    """Refuse data of another format, and data without rows."""
    if data.format != task.format:
        raise TaskError(f"task {task.name} on {data.name}", f"{data.format} rows", f"{task.format} rows")
    if not len(data):
        raise TaskError(f"task {task.name} on {data.name}", "no rows", "at least one row")
