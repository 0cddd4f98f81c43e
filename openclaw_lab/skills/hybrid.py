"""The hybrid matcher: a logistic combination of the features of a pair, with weights learned from labelled pairs.

A model is one file of arrays: mean, spread and weight of each feature, an intercept, what is damped in vectors, and a
card that says what it learned from and how it did on what it had not seen. `experiments.pretrain_skills` trains it.
"""

from __future__ import annotations

import functools
import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from openclaw_lab.errors import ConfigError
from openclaw_lab.files import unreadable, write_bytes
from openclaw_lab.skills.catalogue import Catalogue
from openclaw_lab.skills.company import among
from openclaw_lab.skills.features import FEATURES, base_features, features
from openclaw_lab.skills.lexical import logistic
from openclaw_lab.skills.scores import Floats, Scores
from openclaw_lab.skills.vectors import Damping, memory

BUILT_IN = Path(__file__).parent / "hybrid.npz"
# Spreads below the mean; what is further off counts as this far: a message unlike all others must not score by it.
LOWEST = -2.0
# Without anything in common a skill is not picked, however far behind the others are: with the best of these features
# below _ENOUGH the logit falls, by all of _DOUBT from _RAMP below it.
_EVIDENCE, _ENOUGH, _RAMP, _DOUBT = ("whole", "phrase", "said", "named", "said_soft"), 0.2, 0.05, np.float32(8)
_SHOWN = 3  # features in a reason


@dataclass(frozen=True)
class Model:
    """Weights of standardised features; the logistic of `logits` is a probability."""

    mean: Floats
    spread: Floats
    weight: Floats
    intercept: float
    damping: Damping
    card: dict[str, Any]

    def logits(self, pairs: Floats) -> Floats:
        """The logit of each pair; pairs have shape (…, FEATURES)."""
        logits = self._standard(pairs) @ self.weight + np.float32(self.intercept)
        near = np.maximum.reduce([pairs[..., FEATURES.index(name)] for name in _EVIDENCE])
        return np.asarray(logits - _DOUBT * np.clip((_ENOUGH - near) / _RAMP, 0, 1), dtype=np.float32)

    def parts(self, pair: Floats) -> Floats:
        """What each feature adds to the logit of one pair, against an average pair."""
        return self._standard(pair) * self.weight

    def _standard(self, pairs: Floats) -> Floats:
        return np.asarray(np.maximum((pairs - self.mean) / self.spread, LOWEST), dtype=np.float32)

    def save(self, path: Path) -> None:
        """Write the model's file."""
        held = io.BytesIO()
        np.savez_compressed(
            held, names=np.array(FEATURES), mean=self.mean, spread=self.spread, weight=self.weight,
            intercept=np.float64(self.intercept), centre=self.damping.mean.astype(np.float16),
            axes=self.damping.axes.astype(np.float16), less=self.damping.less,
            card=np.array(json.dumps(self.card, ensure_ascii=False)),
        )  # fmt: skip
        write_bytes(path, held.getvalue())


@functools.lru_cache(maxsize=4)
def load_model(path: Path) -> Model:
    """The model of a file; a ConfigError where it is none, or one of other features."""
    try:
        with np.load(path, allow_pickle=False) as held:
            names = tuple(held["names"].tolist())
            if names != FEATURES:
                raise ConfigError("skills.model", f"{path}: a model of other features", "one trained by this version")
            damping = Damping(*(held[name].astype(np.float32) for name in ("centre", "axes", "less")))
            mean, spread, weight = (held[name].astype(np.float32) for name in ("mean", "spread", "weight"))
            return Model(mean, spread, weight, float(held["intercept"]), damping, json.loads(str(held["card"])))
    except OSError as error:
        raise ConfigError("skills.model", str(unreadable(path, error)), "a model file") from None
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        raise ConfigError("skills.model", f"{path}: no model", "a file that pretrain_skills wrote") from None


def hybrid_scores(messages: Sequence[str], catalogue: Catalogue, embedder: str, model: str = "") -> Scores:
    """The probability that a message calls for a skill, by all features together."""
    chosen = load_model(Path(model).expanduser() if model else BUILT_IN)
    base = base_features(messages, among(catalogue), memory(embedder), chosen.damping)
    pairs = features(base)[:, : len(catalogue)]
    score = logistic(chosen.logits(pairs), 1.0, 0.0)

    def reason(row: int, column: int) -> str:
        parts = chosen.parts(pairs[row, column])
        best = [int(each) for each in np.argsort(-parts)[:_SHOWN] if parts[each] > 0]
        said = [f"{FEATURES[each]} {pairs[row, column, each]:.2f} (+{parts[each]:.1f})" for each in best]
        return ", ".join(said) or "nothing above the average"

    return Scores(catalogue.names, score, reason=reason)
