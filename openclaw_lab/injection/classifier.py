"""A text in, how much its most suspicious sentence looks like an attack out: a linear model over hashed n-grams.

The weights come from `training`; the file that ships is described in `models/README.md`. A file is plain numpy arrays.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openclaw_lab.config import InjectionConfig
from openclaw_lab.errors import ConfigError, DataError, LabError
from openclaw_lab.files import write_bytes
from openclaw_lab.injection.features import BITS, FEW, Bags, Codes, Places
from openclaw_lab.injection.verdict import Hit
from openclaw_lab.injection.views import is_plain, lower, views

BUILT_IN = Path(__file__).with_name("models") / "classifier.npz"
# Sentences that are given as reasons, and the score from which one is.
REASONS, REASON = 3, 0.25
_FORMAT = 1
_LEVELS = 127  # weights are kept as bytes


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A weight for each bucket, and the logit that becomes the score 0.5 with its scale."""

    weights: np.ndarray[Any, np.dtype[np.float32]]
    intercept: float
    centre: float = 0.0
    scale: float = 1.0

    def calibrated(self, centre: float, scale: float) -> Model:
        """The same model with the logit `centre` as the score 0.5."""
        return dataclasses.replace(self, centre=centre, scale=scale)

    def logits(self, bags: Bags) -> np.ndarray[Any, np.dtype[np.floating[Any]]]:
        """Of each window, how much more likely an attack it is than not, as a logarithm, before calibration."""
        return bags.sums(self.weights) + self.intercept

    def of_counts(self, windows: Sequence[tuple[Codes, Places]]) -> float:
        """The highest logit among windows that are given by their buckets and counts."""
        sums = [float(self.weights[buckets] @ counts) / math.sqrt(counts.sum() + FEW) for buckets, counts in windows]
        return max(sums, default=-math.inf) + self.intercept

    def score(self, logit: float) -> float:
        """A logit as a score from 0 to 1."""
        return 1 / (1 + math.exp(min(700.0, (self.centre - logit) / self.scale)))

    def save(self, path: Path) -> Path:
        """Write the model, whole or not at all; the weights lose what a byte cannot hold."""
        top = float(np.abs(self.weights).max()) or 1.0
        made = io.BytesIO()
        np.savez_compressed(
            made, format=np.int64(_FORMAT), bits=np.int64(BITS), top=np.float64(top),
            weights=np.round(self.weights / top * _LEVELS).astype(np.int8),
            numbers=np.array([self.intercept, self.centre, self.scale]),
        )  # fmt: skip
        try:
            write_bytes(path, made.getvalue())
        except OSError as error:
            raise DataError(str(path), error.strerror, "a file to write a model to", "check the path") from None
        return path

    @classmethod
    def load(cls, path: Path) -> Model:
        """Read a model; a ConfigError where the file is none."""
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
                if int(file["format"]) != _FORMAT or int(file["bits"]) != BITS:
                    raise ConfigError(f"injection.model {path}", "another format", "a model of this version", _TRAIN)
                intercept, centre, scale = (float(each) for each in file["numbers"])
                weights = file["weights"].astype(np.float32) * (float(file["top"]) / _LEVELS)
        except FileNotFoundError:
            raise ConfigError("injection.model", str(path), "a file that is there", _TRAIN) from None
        except LabError:
            raise
        except _UNREADABLE as error:
            raise ConfigError(f"injection.model {path}", type(error).__name__, "a trained model", _TRAIN) from None
        finite = np.isfinite([intercept, centre, scale]).all() and np.isfinite(weights).all()
        if weights.shape != (1 << BITS,) or not finite or scale <= 0:
            raise ConfigError(f"injection.model {path}", "numbers that are none", "a trained model", _TRAIN)
        return cls(weights, intercept, centre, scale)


# What reading a file that is damaged, or that is something else, may raise.
_UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, NotImplementedError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip
_TRAIN = "make one with openclaw_lab.injection.training.train(data, path)"


class ClassifierScorer:
    """Scores a text by the model of an InjectionConfig."""

    def __init__(self, config: InjectionConfig) -> None:
        self._model = _model(Path(config.model).expanduser() if config.model else BUILT_IN)
        self._views = frozenset(config.views)

    def __call__(self, text: str) -> tuple[float, tuple[Hit, ...]]:
        """The score of the most suspicious sentence in any reading of the text, and the sentences that weigh."""
        low = lower(text)
        if is_plain(text, low):
            logits, spans = self._read(text)
        else:
            logits, spans = np.zeros(0), []
            for view in views(text, self._views):
                read, places = self._read(view.text)
                logits = np.concatenate([logits, read])
                spans += [view.span(*place) for place in places]
        if not spans:
            return 0.0, ()
        return self._model.score(float(logits.max())), tuple(self._hits(text, logits, spans))

    def _read(self, text: str) -> tuple[np.ndarray[Any, Any], list[tuple[int, int]]]:
        bags = Bags(text)
        return self._model.logits(bags), bags.spans

    def _hits(self, text: str, logits: np.ndarray[Any, Any], spans: list[tuple[int, int]]) -> list[Hit]:
        """The heaviest sentences, no two overlapping, in the order of the text."""
        kept: list[Hit] = []
        for index in np.argsort(-logits, kind="stable")[: 4 * REASONS]:
            score = self._model.score(float(logits[index]))
            start, end = spans[index]
            apart = all(end <= each.start or each.end <= start for each in kept)
            if score < REASON or len(kept) == REASONS:
                break
            if apart:
                kept.append(Hit("classifier", f"sentence {score:.2f}", start, end, text[start:end].strip()))
        return sorted(kept, key=lambda each: each.start)


def _model(path: Path) -> Model:
    """The model of a file, read again where the file has changed."""
    try:
        state = path.stat()
    except OSError:
        return Model.load(path)
    return _loaded(path, (state.st_ino, state.st_mtime_ns, state.st_size))


@functools.lru_cache(maxsize=8)
def _loaded(path: Path, _: tuple[int, int, int]) -> Model:
    return Model.load(path)
