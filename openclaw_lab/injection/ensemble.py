"""Rules and classifier together: a text's score and the reasons of both.

The two are taken for independent witnesses: 1 - (1 - rules) · (1 - `TRUST` · classifier). `TRUST` is below 0.5, so
that the classifier alone flags nothing at the threshold 0.5: it tips the scales where a rule half suspects an attack.
"""

from __future__ import annotations

from openclaw_lab.config import InjectionConfig
from openclaw_lab.injection.classifier import ClassifierScorer
from openclaw_lab.injection.patterns import RuleScorer
from openclaw_lab.injection.verdict import Hit

# Chosen on half of the groups of the public sets, with the classifier's scores of sources it was not trained on.
TRUST = 0.45


class EnsembleScorer:
    """Scores a text by the rules and the classifier of an InjectionConfig."""

    def __init__(self, config: InjectionConfig) -> None:
        self._rules, self._classifier = RuleScorer(config), ClassifierScorer(config)

    def __call__(self, text: str) -> tuple[float, tuple[Hit, ...]]:
        """The joint score, and the rules that hit before the sentences that weigh."""
        by_rules, hits = self._rules(text)
        by_classifier, sentences = self._classifier(text)
        return joint(by_rules, by_classifier), hits + sentences


def joint(by_rules: float, by_classifier: float) -> float:
    """The score of both together."""
    return 1 - (1 - by_rules) * (1 - TRUST * by_classifier)
