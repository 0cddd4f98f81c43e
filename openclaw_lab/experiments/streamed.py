"""A task and a stream of rows in; the same metrics as of a Dataset out, with the memory of one block and a few numbers
a row.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import DataError, TaskError
from openclaw_lab.experiments.evaluate import Metrics, check_fits, metrics_of
from openclaw_lab.experiments.metrics import Kind, Measured, Metric
from openclaw_lab.experiments.parallel import spread_lazily
from openclaw_lab.experiments.samples import Dataset
from openclaw_lab.experiments.stream import Stream, digest_of
from openclaw_lab.experiments.table import Displayed, Table
from openclaw_lab.experiments.task import Task
from openclaw_lab.knobs import nearest

if TYPE_CHECKING:
    import pandas as pd

# Mistakes that are kept with their texts, and bad rows that are told one by one.
MISTAKES, _PROBLEMS = 500, 20
_BY = ("dataset", "lang", "kind")
_ALONE = ("retrieval", "skills")  # what is asked of a corpus


@dataclass(frozen=True, repr=False)
class Streamed(Displayed):
    """What one setting gave on a stream. `mistakes`: the first ones with their texts, worst first."""

    task: Task
    name: str
    config: LabConfig
    measured: Measured
    groups: NDArray[np.int64] = field(repr=False)
    slices: Mapping[str, tuple[tuple[str, ...], NDArray[np.int32]]] = field(repr=False)
    mistakes: pd.DataFrame = field(repr=False)
    hash: str = ""
    left_out: int = 0
    problems: tuple[DataError, ...] = ()

    def __len__(self) -> int:
        return len(self.groups)

    @functools.cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """Every metric of the task by name, over all rows."""
        numbers = np.unique(self.groups, return_inverse=True)[1]
        return Metrics(self.task, metrics_of(self.task, _wide(self.measured), numbers))

    def by(self, attribute: str = "dataset") -> Table:
        """The metrics for each value of `dataset`, `lang` or `kind`."""
        if attribute not in self.slices:
            raise TaskError(f"by {attribute!r}", expected="dataset, lang or kind", todo=nearest(attribute, _BY))
        values, codes = self.slices[attribute]
        numbers = np.unique(self.groups, return_inverse=True)[1]
        rows = {
            value: metrics_of(self.task, _wide(self.measured.of(codes == code)), numbers)
            for value, code in sorted((value, code) for code, value in enumerate(values))
        }
        return Table.of_metrics(rows, attribute, f"{self.task.name} by {attribute}", self.task.columns)

    def errors(self) -> pd.DataFrame:
        """The mistakes that were kept: of a long stream the first ones, worst first."""
        return self.mistakes

    @property
    def table(self) -> Table:
        """The metrics as a table."""
        rows = [[name, each.value, each.low, each.high, each.n, each.kind] for name, each in self.metrics.items()]
        return Table.of_rows(rows, ["metric", "value", "low", "high", "n", "kind"], self._title)

    @property
    def _title(self) -> str:
        left_out = f", {self.left_out:,} bad rows left out" if self.left_out else ""
        return f"{self.task.name} on {self.name}: {len(self):,} rows{left_out} (hash {self.hash})"


def evaluate_stream(task: Task, stream: Stream, config: LabConfig) -> Streamed:
    """Measure a setting block by block; blocks are spread over workers as rows are."""
    if task.format in _ALONE:
        raise TaskError(f"task {task.name} on a stream", f"{task.format} rows", "rows that stand alone", "load_dataset")
    gathered = _Gathered(task)
    work = functools.partial(_measured, task, config)
    for part in spread_lazily(work, gathered.noted(stream.blocks(gathered.problems)), f"stream {task.name}"):
        gathered.add(part)
    return gathered.streamed(stream.name, config)


@dataclass(frozen=True)
class _Part:
    """What a block comes to."""

    measured: Measured
    mistakes: pd.DataFrame | None


def _measured(task: Task, config: LabConfig, block: tuple[Dataset, bool]) -> _Part:
    data, wanted = block
    prepared = task.prepare(data, config)
    measured = task.measure(prepared, config)
    wrong = task.errors(task.rows(data, prepared, config)).head(MISTAKES) if wanted else None
    return _Part(_narrow(measured), wrong)


class _Gathered:
    """The numbers of all blocks so far."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.problems: list[DataError] = []
        self._parts: list[Measured] = []
        self._mistakes: list[pd.DataFrame] = []
        self._groups: list[NDArray[np.int64]] = []
        self._codes: dict[str, list[NDArray[np.int32]]] = {name: [] for name in _BY}
        self._values: dict[str, dict[str, int]] = {name: {} for name in _BY}
        self._digest = b""
        self._rows = 0

    def noted(self, blocks: Iterator[Dataset]) -> Iterator[tuple[Dataset, bool]]:
        """The blocks, with what is kept of their rows, and whether mistakes are wanted of them still."""
        for block in blocks:
            check_fits(self._task, block)
            self._digest = digest_of(self._digest, block)
            self._groups.append(np.array([_number(each.group or each.id) for each in block.samples], dtype=np.int64))
            for name, known in self._values.items():
                codes = [known.setdefault(getattr(each, name), len(known)) for each in block.samples]
                self._codes[name].append(np.array(codes, dtype=np.int32))
            yield block, sum(map(len, self._mistakes)) < MISTAKES

    def add(self, part: _Part) -> None:
        """A block that was measured; they come in order."""
        sample = part.measured.sample + self._rows
        self._parts.append(Measured(part.measured.tallies, sample, part.measured.kinds))
        self._rows += len(self._groups[len(self._parts) - 1])
        if part.mistakes is not None and sum(map(len, self._mistakes)) < MISTAKES:
            self._mistakes.append(part.mistakes)

    def streamed(self, name: str, config: LabConfig) -> Streamed:
        """The whole."""
        import pandas as pd

        kinds: dict[str, Kind] = {}
        for part in self._parts:
            kinds |= part.kinds
        tallies = {
            each: np.concatenate([part.tallies[each] for part in self._parts]) for each in self._parts[0].tallies
        }
        measured = Measured(tallies, np.concatenate([part.sample for part in self._parts]), kinds)
        slices = {each: (tuple(self._values[each]), np.concatenate(self._codes[each])) for each in _BY}
        mistakes = pd.concat(self._mistakes).head(MISTAKES) if self._mistakes else pd.DataFrame()
        return Streamed(
            self._task, name, config, measured, np.concatenate(self._groups), slices, mistakes, self._digest.hex()[:16],
            len(self.problems), tuple(self.problems[:_PROBLEMS]),
        )  # fmt: skip


def _number(name: str) -> int:
    """A number for a name; two names share one with a chance of 2⁻⁶⁴."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def _narrow(measured: Measured) -> Measured:
    """With the smallest numbers that hold the tallies without loss."""
    tallies = {name: _least(values) for name, values in measured.tallies.items()}
    return Measured(tallies, measured.sample, measured.kinds)


def _least(values: NDArray[Any]) -> NDArray[Any]:
    for kind in (np.int8, np.float32):
        small = values.astype(kind)
        if np.array_equal(small.astype(float), values, equal_nan=True):
            return small
    return values


def _wide(measured: Measured) -> Measured:
    tallies = {name: values.astype(float) for name, values in measured.tallies.items()}
    return Measured(tallies, measured.sample, measured.kinds)
