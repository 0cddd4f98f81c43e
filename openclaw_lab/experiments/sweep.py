"""A task, data and a space of settings in; one row of metrics a setting out. The costly part is done once."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.cache import Cache
from openclaw_lab.experiments.dataset import as_dataset
from openclaw_lab.experiments.evaluate import check_fits, group_numbers, metrics_of, settings_of
from openclaw_lab.experiments.memo import Memo
from openclaw_lab.experiments.metrics import Measured, Metric
from openclaw_lab.experiments.table import Displayed, Table, flat_metrics
from openclaw_lab.experiments.task import Task
from openclaw_lab.experiments.tasks import task_named

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Space = Mapping[str, Iterable[Any]]


@dataclass(frozen=True)
class Choice:
    """One row of a sweep: the config, what was set, and what it gave."""

    config: LabConfig
    values: Mapping[str, Any]
    metrics: Mapping[str, Metric]


@dataclass(frozen=True, repr=False)
class Sweep(Displayed):
    """What every setting of a space gave on one dataset."""

    task: Task
    names: tuple[str, ...]
    choices: tuple[Choice, ...]
    data: str

    @property
    def table(self) -> Table:
        """One row a setting: the values set, then the metrics."""
        import pandas as pd

        rows = [{**choice.values, **flat_metrics(choice.metrics)} for choice in self.choices]
        metrics = tuple(self.choices[0].metrics)
        return Table(pd.DataFrame(rows), f"{self.task.name} on {self.data}", metrics, self.task.columns)

    @property
    def frame(self) -> pd.DataFrame:
        """The table's plain numbers: columns `name`, `name_low`, `name_high`, `name_n` a metric."""
        return self.table.frame

    def best(self, metric: str, subject_to: Mapping[str, float] | None = None) -> Choice:
        """The setting with the best value of a metric among those that keep the limits.

        A limit is the most (for a metric of which less is better) or the least that is allowed. Point estimates only:
        a choice made on the data that is reported is optimistic.
        """
        spec, limits = self.task.spec(metric), subject_to or {}
        sign = -1.0 if spec.better == "lower" else 1.0
        allowed = [choice for choice in self.choices if self._keeps(choice, limits)]
        scored = [choice for choice in allowed if not math.isnan(choice.metrics[metric].value)]
        if not scored:
            raise TaskError(
                f"best {metric}", f"no setting of {len(self.choices)} within {dict(limits)}", "a feasible limit"
            )
        return max(scored, key=lambda choice: sign * choice.metrics[metric].value)

    def _keeps(self, choice: Choice, limits: Mapping[str, float]) -> bool:
        for name, limit in limits.items():
            value = choice.metrics[self.task.spec(name).name].value
            least = self.task.spec(name).better == "higher"
            if not (value >= limit if least else value <= limit):  # nan keeps no limit
                return False
        return True

    def plot(self, ax: Axes | None = None, *, x: str = "", y: str = "", by: str = "") -> Axes:
        """A metric (or two against each other) over the settings."""
        from openclaw_lab.ui.charts import plot_sweep

        return plot_sweep(self, ax=ax, x=x, y=y, by=by)


def _listed(name: str, values: object) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TaskError(f"sweep {name}", values, "a list of values")
    return list(values)


def sweep(
    task: str | Task, data: object, config: LabConfig | None = None, space: Space | None = None, *,
    cache: object = None, **options: Any,
) -> Sweep:  # fmt: skip
    """Measure every combination of the values given for dotted names: `{"reminders.interval": range(1, 11)}`.

    `cache` as in `evaluate`.
    """
    chosen, dataset, base = task_named(task, options), as_dataset(data), settings_of(config)
    check_fits(chosen, dataset)
    if not isinstance(space or {}, Mapping):
        raise TaskError("sweep", space, "lists of values by setting, {'reminders.interval': range(1, 11)}")
    values = {name: _listed(name, each) for name, each in (space or {}).items()}
    if not values or not all(values.values()):
        raise TaskError("sweep", values, "at least one value for at least one setting")
    settings = [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]
    configs = [base.with_(setting) for setting in settings]
    memo, groups = Memo(chosen, dataset, Cache.at(cache)), group_numbers(dataset)
    found = memo.rows(configs, "sweep", functools.partial(_metrics, chosen, groups))
    choices = [
        Choice(
            each, {name: each.get(name) for name in setting}, {name: Metric(*metric) for name, metric in row.items()}
        )
        for setting, each, row in zip(settings, configs, found, strict=True)
    ]
    return Sweep(chosen, tuple(values), tuple(choices), dataset.name)


def _metrics(task: Task, groups: NDArray[np.intp], _: LabConfig, measured: Measured) -> dict[str, list[Any]]:
    """Every metric as plain values."""
    metrics = metrics_of(task, measured, groups)
    return {name: list(dataclasses.astuple(metric)) for name, metric in metrics.items()}
