"""Tasks as a user writes them in a notebook, and small labelled sets, for the tests of the experiments."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from openclaw_lab.config import LabConfig
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.metrics import Measured, MetricSpec
from openclaw_lab.experiments.task import Task
from openclaw_lab.injection.verdict import Detection


class LongTexts(Task):
    """Takes a text of `skills.min_hits` words or more for an attack; a second metric comes from a made-up model."""

    name = "long texts"
    format = "injection"
    section = "skills"
    headline = ("recall", "chance")
    metrics = (
        MetricSpec("recall", "hit", "attacks", "attacks that are long", better="higher"),
        MetricSpec("words", "words", "texts", "words in a text", "words", better="lower", proportion=False),
        MetricSpec("chance", "hit", "attacks", "by a model", better="higher", band=("none", "attacks")),
    )

    def __init__(self) -> None:
        self.prepared = 0

    def prepare(self, data: Dataset, config: LabConfig) -> Any:
        self.prepared += 1
        return np.array([len(sample.input.split()) for sample in data]), np.array([sample.label for sample in data])

    def prepared_by(self, config: LabConfig) -> Hashable:
        return ()

    def measure(self, prepared: Any, config: LabConfig) -> Measured:
        words, labels = prepared
        attacks = (labels == 1).astype(float)
        hit = attacks * (words >= config.skills.min_hits)
        tallies = {"hit": hit, "attacks": attacks, "words": words.astype(float), "texts": np.ones(len(words)),
                   "none": np.zeros(len(words))}  # fmt: skip
        return Measured(tallies, np.arange(len(words)))

    def rows(self, data: Dataset, prepared: Any, config: LabConfig) -> pd.DataFrame:
        words, labels = prepared
        frame = pd.DataFrame({"id": [sample.id for sample in data], "words": words})
        frame["correct"] = (words >= config.skills.min_hits) == (labels == 1)
        return frame


def rows(texts: Iterable[tuple[str, int]], **common: Any) -> Dataset:
    """Labelled texts; ids are numbers, and a keyword gives all of them an attribute."""
    samples = [Sample(str(n), text, label, **{"dataset": "made", **common}) for n, (text, label) in enumerate(texts)]
    return Dataset("made", "injection", tuple(samples))


def scored(text: str) -> Detection:
    """A detector for texts that are their own score."""
    return Detection(float(text), False)
