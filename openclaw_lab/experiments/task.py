"""What an experiment is: a Task says how rows become tallies, and which metrics are made of them.

Write your own by subclassing Task in a notebook and handing the object wherever a task's name is taken.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.metrics import Measured, MetricSpec
from openclaw_lab.knobs import nearest
from openclaw_lab.spending import Bill

if TYPE_CHECKING:
    import pandas as pd


class Task(ABC):
    """One experiment. `prepare` does the costly part once; `measure` is array arithmetic for each setting."""

    name: ClassVar[str]
    format: ClassVar[str]  # which rows it reads, a name in formats.FORMATS
    section: ClassVar[str]  # the section of LabConfig that it measures
    metrics: ClassVar[tuple[MetricSpec, ...]]
    headline: ClassVar[tuple[str, ...]] = ()  # the metrics that a chart shows, most important first
    goal: ClassVar[tuple[str, Mapping[str, float]]] = ("", {})  # what to tune for, and within which limits, by default
    columns: ClassVar[tuple[str, ...]] = ()  # the metrics that a wide table shows (all when empty); its frame has all
    reads: ClassVar[tuple[str, ...]] = ()  # every section that its figures depend on; without, no figure is kept

    @abstractmethod
    def prepare(self, data: Dataset, config: LabConfig) -> Any:
        """Everything that `measure` needs and that does not change with the settings it is called with."""

    def options(self) -> dict[str, Any]:
        """What this task was made with, for the record; empty when made with its defaults."""
        return {}

    def repeatable(self, config: LabConfig) -> bool:
        """Whether its options and the config say everything of it, so that its figures may be kept for another time."""
        return bool(self.reads)

    def packed(self, prepared: Any) -> Mapping[str, Any] | None:
        """What of a preparation can be kept for another time: arrays and plain values by name, no text of the data."""
        return None

    def unpacked(self, data: Dataset, config: LabConfig, packed: Mapping[str, Any]) -> Any:
        """A preparation from what was kept of it."""
        raise NotImplementedError

    def prepared_by(self, config: LabConfig) -> Hashable:
        """The part of the config that `prepare` reads; settings that share it share one preparation."""
        return ()

    def decided_by(self, prepared: Any, config: LabConfig) -> Hashable | None:
        """What names the tallies of `measure` without making them: settings of the same name share one measurement."""
        return None

    def asks(self, config: LabConfig) -> bool:
        """Whether a live model is asked."""
        return False

    def bill(self, prepared: Any) -> Bill:
        """What asking took: requests, tokens, dollars, seconds."""
        return Bill()

    @abstractmethod
    def measure(self, prepared: Any, config: LabConfig) -> Measured:
        """The tallies under a setting."""

    @abstractmethod
    def rows(self, data: Dataset, prepared: Any, config: LabConfig) -> pd.DataFrame:
        """One row a sample, in order, with `id` and what was decided why."""

    def errors(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows that went wrong, worst first."""
        return frame[~frame["correct"].astype(bool)]

    def spec(self, name: str) -> MetricSpec:
        """The metric of that name."""
        for each in self.metrics:
            if each.name == name:
                return each
        known = [each.name for each in self.metrics]
        raise TaskError(f"metric {name!r} of task {self.name}", expected="a known metric", todo=nearest(name, known))
