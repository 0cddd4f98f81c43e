"""Texts and a detector in, one Detection a text out, or the reason why there is none, with the time that it took.

A detector is a callable from a text to a Detection, or an object with `detect`; one that can do many at once has
`detect_many(texts)` too, and is asked for `BATCH` texts at a time.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.metrics import Array
from openclaw_lab.experiments.parallel import spread, workers
from openclaw_lab.experiments.rows import asked_rows
from openclaw_lab.experiments.table import Table
from openclaw_lab.injection.verdict import Detection
from openclaw_lab.spending import Bill, Spending

if TYPE_CHECKING:
    from openclaw_lab.experiments.evaluate import Results

BATCH = 256
_SINGLY = 16  # texts from one step of the progress bar to the next
Detect = Callable[[str], Detection]
Detections = Sequence[Detection | None]


@dataclass(frozen=True, slots=True)
class Scored:
    """One Detection a sample, or None where the detector failed (then `problems` has the reason).

    `seconds` is wall clock; what a batch took is shared out among its texts by their length. Of a live model it is how
    long its answers took when they were asked for.
    """

    detections: Detections
    problems: tuple[str, ...]
    scores: Array
    attack: Array
    trap: NDArray[np.bool_]
    seconds: Array
    ordered: Array  # the scores that there are, sorted
    bills: tuple[Bill, ...] = ()  # what asking a live model took, a text

    def flagged(self, threshold: float) -> NDArray[np.bool_]:
        """Which texts have a score, and one that is at least the threshold."""
        return np.asarray(self.scores >= threshold)

    def decided_by(self, threshold: float) -> Hashable:
        """How many texts stay below the threshold: thresholds between the same two scores decide alike."""
        return int(np.searchsorted(self.ordered, threshold))


def score_all(detector: Any, data: Dataset, trap: NDArray[np.bool_]) -> Scored:
    """Run a detector over every text once; a text on which it fails is unscored and does not end the experiment."""
    texts = [sample.input for sample in data.samples]
    spending: Spending | None = getattr(detector, "spending", None)
    if spending is not None:
        return _score_live(detector, data, texts, trap, spending)
    size = BATCH if hasattr(detector, "detect_many") or workers() > 1 else _SINGLY
    batches = [texts[at : at + size] for at in range(0, len(texts), size)]
    answers: list[Detection | str] = []
    seconds: list[float] = []
    for given, took in spread(functools.partial(_answers, detector), batches, "detect", f"× {size} texts"):
        answers += given
        seconds += took
    return _scored(data, answers, seconds, trap)


def _score_live(
    detector: Any, data: Dataset, texts: Sequence[str], trap: NDArray[np.bool_], spending: Spending
) -> Scored:
    """Ask in threads, within limits."""
    detect = getattr(detector, "detect", detector)
    rows = asked_rows(lambda text: _answer(detect, text), texts, spending, "detect", "text")
    bills = tuple(bill for _, bill in rows)
    return _scored(data, [answer for answer, _ in rows], [bill.seconds for bill in bills], trap, bills)


def _scored(
    data: Dataset, answers: Sequence[Detection | str], seconds: Sequence[float], trap: NDArray[np.bool_],
    bills: tuple[Bill, ...] = (),
) -> Scored:  # fmt: skip
    found = tuple(answer if isinstance(answer, Detection) else None for answer in answers)
    scores = np.array([each.score if each else np.nan for each in found], dtype=float)
    problems = tuple("" if isinstance(answer, Detection) else answer for answer in answers)
    return scored_of(data, scores, problems, np.array(seconds, dtype=float), trap, found, bills)


def scored_of(
    data: Dataset, scores: Array, problems: tuple[str, ...], seconds: Array, trap: NDArray[np.bool_],
    detections: Detections, bills: tuple[Bill, ...] = (),
) -> Scored:  # fmt: skip
    """A Scored of its parts."""
    attack = np.array([float(sample.label) for sample in data.samples])
    return Scored(detections, problems, scores, attack, trap, seconds, np.sort(scores[~np.isnan(scores)]), bills)


class Later(Sequence[Detection | None]):
    """The detections of texts whose scores are known: made when somebody asks for the first reason."""

    def __init__(self, detector: Callable[[], Any], data: Dataset) -> None:
        self._detector, self._data = detector, data

    def __len__(self) -> int:
        return len(self._data)

    @overload
    def __getitem__(self, index: int) -> Detection | None: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Detection | None]: ...
    def __getitem__(self, index: int | slice) -> Detection | Sequence[Detection | None] | None:
        return self._made[index]

    @functools.cached_property
    def _made(self) -> tuple[Detection | None, ...]:
        return tuple(score_all(self._detector(), self._data, np.zeros(len(self._data), dtype=bool)).detections)


def checked_detector(detector: object) -> object:
    """The detector, when it is one."""
    if not callable(detector) and not callable(getattr(detector, "detect", None)):
        raise TaskError("task injection: detector", detector, "a callable from a text to a Detection")
    return detector


def latency(results: Results, by: str = "dataset") -> Table:
    """Milliseconds a text, for each value of `by`: median, 95th percentile, slowest; measured, on this machine, once.

    Of a detector that does many at once these are shares of a batch, so the percentiles say little.
    """
    prepared: Scored = results.prepared
    values, milliseconds = np.array(results.data.values(by), dtype=object), 1000 * prepared.seconds
    lengths = np.array([len(sample.input) for sample in results.data.samples])
    rows = []
    for value in sorted(set(values)):
        of, long = milliseconds[values == value], lengths[values == value]
        median, high = np.percentile(of, [50, 95])
        rows.append(
            [value, len(of), float(np.median(long)), float(median), float(high), float(of.max()), float(of.sum())]
        )
    columns = [by, "texts", "median_length", "median_ms", "p95_ms", "slowest_ms", "all_ms"]
    return Table.of_rows(rows, columns, "Milliseconds a text (measured here, once)")


def _answers(detector: Any, texts: Sequence[str]) -> tuple[list[Detection | str], list[float]]:
    """Answers and seconds of a batch: at once where the detector can and does, else one by one."""
    begin = time.perf_counter()
    together = _together(detector, texts)
    if together is not None:
        lengths = np.array([len(text) + 1 for text in texts])
        return together, ((time.perf_counter() - begin) * lengths / lengths.sum()).tolist()
    detect = getattr(detector, "detect", detector)
    answers, seconds = [], []
    for text in texts:
        begin = time.perf_counter()
        answers.append(_answer(detect, text))
        seconds.append(time.perf_counter() - begin)
    return answers, seconds


def _together(detector: Any, texts: Sequence[str]) -> list[Detection | str] | None:
    """The answers of `detect_many`; None where there is none, or where it failed: then one text may be to blame."""
    many = getattr(detector, "detect_many", None)
    if many is None:
        return None
    try:
        given = list(many(list(texts)))
    except Exception:
        return None
    return [_checked(each) for each in given] if len(given) == len(texts) else None


def _answer(detect: Detect, text: str) -> Detection | str:
    """The detector's answer, or why there is none: one bad text must not end the experiment."""
    try:
        return _checked(detect(text))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _checked(answer: object) -> Detection | str:
    if not isinstance(answer, Detection):
        return f"the detector gave {type(answer).__name__}, not a Detection"
    known = isinstance(answer.score, int | float | np.number) and 0 <= answer.score <= 1
    return answer if known else f"the detector gave the score {answer.score!r}, not a number from 0 to 1"
