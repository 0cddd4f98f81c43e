"""An InjectionConfig in, a Detector out: the scorer that the config names, and its threshold.

It does not block, escape or change anything.
"""

from __future__ import annotations

from collections.abc import Callable

from openclaw_lab.config import InjectionConfig
from openclaw_lab.errors import ConfigError
from openclaw_lab.injection.patterns import RuleScorer
from openclaw_lab.injection.seed import seed_score
from openclaw_lab.injection.verdict import Detection, Hit

# A text in; a score from 0 to 1 and its reasons out.
Scorer = Callable[[str], tuple[float, tuple[Hit, ...]]]


class Detector:
    """The detector of an InjectionConfig."""

    def __init__(self, config: InjectionConfig | None = None) -> None:
        if config is not None and not isinstance(config, InjectionConfig):
            raise ConfigError("Detector", f"a {type(config).__name__}", "config.injection of a LabConfig")
        self._config = config or InjectionConfig()
        self._scorer = scorer(self._config)

    def detect(self, text: str) -> Detection:
        """Look at one text: how much it looks like an injection, and whether that is as much as the threshold."""
        score, hits = self._scorer(text)
        return Detection(score, score >= self._config.threshold, hits)


def scorer(config: InjectionConfig) -> Scorer:
    """The scorer that a config names."""
    if config.detector == "seed":
        return seed_score
    if config.detector == "rules":
        return RuleScorer(config)
    if config.detector == "classifier":
        from openclaw_lab.injection.classifier import ClassifierScorer

        return ClassifierScorer(config)
    if config.detector == "ensemble":
        from openclaw_lab.injection.ensemble import EnsembleScorer

        return EnsembleScorer(config)
    raise ConfigError("injection.detector", config.detector, "a detector that is there")
