"""An InjectionConfig in, a Detector out: the scorer that the config names, or one of your own, and its threshold.

It does not block, escape or change anything.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from openclaw_lab.config import InjectionConfig
from openclaw_lab.errors import ConfigError, TaskError
from openclaw_lab.files import stamp
from openclaw_lab.injection.patterns import RuleScorer
from openclaw_lab.injection.seed import seed_score
from openclaw_lab.injection.verdict import Detection, Hit
from openclaw_lab.spending import Spending

# A text in; a score from 0 to 1 and its reasons out.
Scorer = Callable[[str], tuple[float, tuple[Hit, ...]]]
# What a scorer of your own may give: a score from 0 to 1, a score and its hits, or a Detection.
Given = float | tuple[float, tuple[Hit, ...]] | Detection


class Detector:
    """The detector of an InjectionConfig; a `scorer` takes the place of the one that the config names.

    `options` are for a named model: with `litellm:<model>` those of `models.complete` (`cassette`, `budget`, …), with
    `hf:<model>` those of `transformers.pipeline`.
    """

    def __init__(
        self, config: InjectionConfig | None = None, *, scorer: Callable[[str], Given] | None = None, **options: Any
    ) -> None:
        if config is not None and not isinstance(config, InjectionConfig):
            raise ConfigError("Detector", f"a {type(config).__name__}", "config.injection of a LabConfig")
        self._config = config or InjectionConfig()
        self._own = scorer is not None or bool(options)
        self._scorer = _chosen(self._config, scorer, options)
        self._nothing = Detection(0.0, self._config.threshold <= 0)

    @property
    def spending(self) -> Spending | None:
        """What asking takes, of a detector that asks a live model."""
        return getattr(self._scorer, "spending", None)

    def __reduce__(self) -> Any:
        """Sent to another process as its settings; of the same ones a process makes it once."""
        if self._own:
            raise TypeError("a Detector with a scorer of its own, or with a model's options, cannot be sent elsewhere")
        return _same, (self._config, stamp(self._config.rules), stamp(self._config.model))

    def detect(self, text: str) -> Detection:
        """Look at one text: how much it looks like an injection, and whether that is as much as the threshold."""
        if not isinstance(text, str):
            raise TaskError("Detector.detect", f"a {type(text).__name__}", "one text, a str")
        score, hits = self._scorer(text)
        if not score and not hits:
            return self._nothing
        return Detection(score, score >= self._config.threshold, hits)


@functools.lru_cache(maxsize=4)
def _same(config: InjectionConfig, *files: tuple[int, int]) -> Detector:
    return Detector(config)


def scorer(config: InjectionConfig, **options: Any) -> Scorer:
    """The scorer that a config names; `options` are those of a named model, see Detector."""
    kind = config.detector.partition(":")[0]
    if kind == "litellm":
        from openclaw_lab.injection.judge import JudgeScorer

        return JudgeScorer(config, **options)
    if kind == "hf":
        from openclaw_lab.injection.huggingface import HuggingFaceScorer

        return HuggingFaceScorer(config, **options)
    if options:
        raise ConfigError(f"detector {config.detector}", ", ".join(options), "no options")
    if kind == "seed":
        return seed_score
    if kind == "rules":
        return RuleScorer(config)
    if kind == "classifier":
        from openclaw_lab.injection.classifier import ClassifierScorer

        return ClassifierScorer(config)
    if kind == "ensemble":
        from openclaw_lab.injection.ensemble import EnsembleScorer

        return EnsembleScorer(config)
    raise ConfigError("injection.detector", config.detector, "a detector that is there")


def _chosen(config: InjectionConfig, own: Callable[[str], Given] | None, options: Mapping[str, Any]) -> Scorer:
    if own is None:
        return scorer(config, **options)
    if not callable(own) or options:
        found = ", ".join(options) if callable(own) else own
        raise ConfigError("Detector: scorer", found, "a callable from a text to a score, and no options")
    return lambda text: _score_and_hits(own(text))


def _score_and_hits(answer: object) -> tuple[float, tuple[Hit, ...]]:
    given: Any = (answer.score, answer.hits) if isinstance(answer, Detection) else answer
    score, hits = given if isinstance(given, tuple) and len(given) == 2 else (given, ())
    known = isinstance(score, Real) and 0 <= float(score) <= 1
    if not known or not isinstance(hits, tuple | list) or not all(isinstance(each, Hit) for each in hits):
        raise TaskError("scorer", answer, "a score from 0 to 1, alone or with its hits, or a Detection")
    return float(score), tuple(hits)
