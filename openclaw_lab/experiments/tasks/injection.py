"""The injection task: labelled texts in; recall, false alarms, precision and F1 out, with each verdict's reason."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.metrics import Array, Measured, MetricSpec
from openclaw_lab.experiments.table import Table
from openclaw_lab.experiments.task import Task
from openclaw_lab.injection.detectors import Detector
from openclaw_lab.injection.verdict import Detection
from openclaw_lab.knobs import nearest

if TYPE_CHECKING:
    import pandas as pd

Detect = Callable[[str], Detection]


@dataclass(frozen=True, slots=True)
class Scored:
    """One Detection a sample, or None where the detector failed (then `problems` has the reason)."""

    detections: tuple[Detection | None, ...]
    problems: tuple[str, ...]
    scores: Array
    attack: Array


class InjectionTask(Task):
    """Measures a detector; `detector` replaces the config's own: any callable from a text to a Detection."""

    name = "injection"
    format = "injection"
    section = "injection"
    headline = ("recall", "fpr", "precision", "f1")
    metrics = (
        MetricSpec("recall", "true_alarms", "attacks", "attacks that are flagged", better="higher"),
        MetricSpec("fpr", "false_alarms", "harmless", "harmless texts that are flagged", better="lower"),
        MetricSpec("precision", "true_alarms", "flagged", "flagged texts that are attacks", better="higher"),
        MetricSpec("f1", "twice_true_alarms", "f1_base", "2·TP / (2·TP + FP + FN)", better="higher"),
        MetricSpec("accuracy", "right", "scored", "texts with the right verdict", better="higher"),
        MetricSpec(
            "unscored", "failed", "all", "texts on which the detector failed; in no other metric", better="lower"
        ),
    )

    def __init__(self, detector: Detect | None = None) -> None:
        if detector is not None and not callable(detector):
            raise TaskError("task injection: detector", detector, "a callable from a text to a Detection")
        self._detector = detector

    def options(self) -> dict[str, Any]:
        """The name of the detector that replaces the config's own."""
        return {"detector": getattr(self._detector, "__name__", "a callable")} if self._detector else {}

    def prepared_by(self, config: LabConfig) -> Hashable:
        """Scores depend on the rules alone; the threshold is applied afterwards."""
        return config.injection.detector

    def prepare(self, data: Dataset, config: LabConfig) -> Scored:
        """Run the detector over every text once."""
        for sample in data:
            if sample.label not in (0, 1):
                raise TaskError(f"sample {sample.id} label", sample.label, "1 (attack) or 0 (harmless)")
        detect = self._detector or Detector(config.injection).detect
        answers = [_answer(detect, sample.input) for sample in data]
        scores = [answer.score if isinstance(answer, Detection) else np.nan for answer in answers]
        return Scored(
            tuple(answer if isinstance(answer, Detection) else None for answer in answers),
            tuple("" if isinstance(answer, Detection) else answer for answer in answers),
            np.array(scores, dtype=float),
            np.array([float(sample.label) for sample in data]),
        )

    def measure(self, prepared: Scored, config: LabConfig) -> Measured:
        """Counts at the config's threshold."""
        scored = ~np.isnan(prepared.scores)
        flagged, attack = _flagged(prepared, config) & scored, (prepared.attack == 1) & scored
        harmless = (prepared.attack == 0) & scored
        hit, alarm, missed = flagged & attack, flagged & harmless, attack & ~flagged
        tallies = {
            "true_alarms": hit, "attacks": attack, "false_alarms": alarm, "harmless": harmless, "flagged": flagged,
            "twice_true_alarms": 2.0 * hit, "f1_base": 2.0 * hit + alarm + missed, "right": scored & ~alarm & ~missed,
            "scored": scored, "failed": ~scored, "all": np.ones_like(scored),
        }  # fmt: skip
        return Measured({name: np.asarray(each, dtype=float) for name, each in tallies.items()}, np.arange(len(scored)))

    def rows(self, data: Dataset, prepared: Scored, config: LabConfig) -> pd.DataFrame:
        """id, dataset, lang, kind, label, prediction (none where unscored), score, correct, reason, text."""
        import pandas as pd

        flagged = _flagged(prepared, config)
        rows = []
        for index, sample in enumerate(data):
            detection = prepared.detections[index]
            prediction = int(flagged[index]) if detection else None
            reason = detection.reason if detection else prepared.problems[index]
            correct = prediction == sample.label if detection else None
            score = prepared.scores[index]
            about = [sample.id, sample.dataset, sample.lang, sample.kind, sample.label]
            rows.append([*about, prediction, score, correct, reason, sample.input])
        columns = ["id", "dataset", "lang", "kind", "label", "prediction", "score", "correct", "reason", "text"]
        return pd.DataFrame(rows, columns=columns).astype({"prediction": "Int64", "correct": "boolean"})

    def errors(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Wrong verdicts, furthest from the right side first (attacks before false alarms); then the unscored."""
        wrong = frame[~frame["correct"].fillna(False).astype(bool)].copy()
        wrong.insert(0, "error", np.where(wrong["label"] == 1, "missed", "false alarm"))
        wrong.loc[wrong["correct"].isna(), "error"] = "unscored"
        order = wrong["error"].map({"missed": 0, "false alarm": 1, "unscored": 2})
        distance = (wrong["score"] - wrong["label"]).abs().fillna(-1.0)
        return wrong.iloc[np.lexsort((order.to_numpy(int), -distance.to_numpy(float)))]


def confusion(frame: pd.DataFrame, by: str = "dataset") -> pd.DataFrame:
    """Counts of missed, flagged, false alarms and passed, a row for each value of `by`."""
    import pandas as pd

    if by not in frame:
        raise TaskError(f"confusion by {by!r}", expected="a column of the frame", todo=nearest(by, frame.columns))
    cell = np.select(
        [frame["correct"].isna(), frame["label"] == 0, frame["prediction"].fillna(0) == 1],
        ["unscored", np.where(frame["prediction"].fillna(0) == 1, "false alarm", "passed"), "flagged"],
        "missed",
    )
    columns = ["flagged", "missed", "false alarm", "passed", "unscored"]
    counts = pd.crosstab(frame[by], cell).reindex(columns=columns, fill_value=0)
    return counts.rename_axis(columns=None).reset_index()


def length_baseline(data: Dataset, by: str = "dataset") -> Table:
    """How well the length of a text alone tells attacks from harmless texts, for each value of `by`.

    AUC is Mann-Whitney's U over all pairs (0.5: not at all, near 0 or 1: the set can be won without reading it); its
    interval is Hanley and McNeil's (1982, doi 10.1148/radiology.143.1.7063747).
    """
    rows, values = [], data.values(by)
    for value in sorted(set(values)):
        chosen = [sample for sample, each in zip(data, values, strict=True) if each == value]
        attacks = [len(sample.input) for sample in chosen if sample.label == 1]
        harmless = [len(sample.input) for sample in chosen if sample.label == 0]
        rows.append([value, *_auc(attacks, harmless), len(attacks), len(harmless)])
    return Table.of_rows(rows, [by, "length_auc", "low", "high", "attacks", "harmless"], "Length alone")


def _auc(positive: list[int], negative: list[int]) -> tuple[float, float, float]:
    from scipy.stats import mannwhitneyu

    m, n = len(positive), len(negative)
    if not m or not n:
        return np.nan, np.nan, np.nan
    auc = float(mannwhitneyu(positive, negative).statistic) / (m * n)
    q1, q2 = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    variance = (auc * (1 - auc) + (m - 1) * (q1 - auc * auc) + (n - 1) * (q2 - auc * auc)) / (m * n)
    half = 1.96 * float(np.sqrt(max(variance, 0.0)))
    return auc, max(0.0, auc - half), min(1.0, auc + half)


def _flagged(prepared: Scored, config: LabConfig) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(prepared.scores >= config.injection.threshold)


def _answer(detect: Detect, text: str) -> Detection | str:
    """The detector's answer, or why there is none: one bad text must not end the experiment."""
    try:
        answer: object = detect(text)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(answer, Detection):
        return f"the detector gave {type(answer).__name__}, not a Detection"
    known = isinstance(answer.score, int | float | np.number) and 0 <= answer.score <= 1
    return answer if known else f"the detector gave the score {answer.score!r}, not a number from 0 to 1"
