"""Settings in; what each gives on the part to learn on, on the part to choose on and on both, out."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import LabConfig
from openclaw_lab.experiments.bounds import Counted
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.evaluate import Results, group_numbers
from openclaw_lab.experiments.memo import Memo
from openclaw_lab.experiments.metrics import Measured
from openclaw_lab.experiments.split import Parts
from openclaw_lab.experiments.task import Task

_Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Tried:
    """One setting: what was set, and its metrics on the part to learn on, to choose on, and on both."""

    config: LabConfig
    values: Mapping[str, Any]
    train: Mapping[str, Counted]
    validation: Mapping[str, Counted]
    both: Mapping[str, Counted]


@dataclass(frozen=True)
class Measure:
    """What settings give on the part to learn on, on the part to choose on, and on both."""

    memo: Memo
    parts: Parts
    clusters: NDArray[np.intp]
    metrics: tuple[str, ...]
    name: object  # of the parts, as a figure is found again by it

    @property
    def about(self) -> list[object]:
        """Everything that the figures depend on beside the settings."""
        return [*self.memo.about, list(self.metrics), self.name]

    def tried(self, configs: Sequence[LabConfig], names: Sequence[str]) -> Iterator[Tried]:
        """Every setting measured; `names` are those of the settings that vary."""
        masks = _masks(self.parts, len(self.memo.data))
        make = functools.partial(_counts, self.memo.task, self.clusters, self.metrics, masks)
        rows = self.memo.rows(configs, "tune", make, self.metrics, self.name)
        for config, row in zip(configs, rows, strict=True):
            found = ({name: Counted(*each) for name, each in part.items()} for part in row)
            yield Tried(config, {name: config.get(name) for name in names}, *found)

    def reported(self, part: Dataset, config: LabConfig) -> Results:
        """What a setting gives on the part that nothing was chosen on."""
        memo, mask = self.memo, np.zeros(len(self.memo.data), dtype=bool)
        mask[self.parts.test] = True
        measured = memo.measured(config).of(mask)
        measured = dataclasses.replace(measured, sample=(np.cumsum(mask) - 1)[measured.sample])
        return Results(memo.task, part, config, measured, Memo(memo.task, part, memo.cache), group_numbers(part))


def _masks(parts: Parts, count: int) -> tuple[_Mask, ...]:
    train, validation = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    train[parts.train], validation[parts.validation] = True, True
    return train, validation, train | validation


def _counts(
    task: Task, clusters: NDArray[np.intp], metrics: Sequence[str], masks: Sequence[_Mask], _: LabConfig,
    measured: Measured,
) -> list[dict[str, list[Any]]]:  # fmt: skip
    """The metrics on each part as plain values."""
    counted = []
    for mask in masks:
        part = measured.of(mask)
        own = clusters[part.sample]
        found = {name: Counted.of(task.spec(name), part, own) for name in metrics}
        counted.append({name: list(dataclasses.astuple(each)) for name, each in found.items()})
    return counted
