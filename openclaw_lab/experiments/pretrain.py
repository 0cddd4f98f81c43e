"""The public and the bundled sets in; the classifier that ships, and its model card, out.

Run as `python -m openclaw_lab.experiments.pretrain FOLDER`, FOLDER being the one with the public sets. Every source is
scored by a model that was trained without it; the card holds those figures. Rows under a share-alike licence, and the
bundled set injection/mini, are used for figures only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from openclaw_lab.config import InjectionConfig
from openclaw_lab.experiments.dataset import Dataset, Sample, load_dataset
from openclaw_lab.files import write_text
from openclaw_lab.injection.classifier import BUILT_IN, Model
from openclaw_lab.injection.ensemble import joint
from openclaw_lab.injection.features import Bags
from openclaw_lab.injection.patterns import RuleScorer
from openclaw_lab.injection.training import Array, Example, example, fit

# Harmless texts of the sources that a model was not trained on which it may flag at the score 0.5; and the logit that
# separates a score of 0.5 from one of 0.73.
FPR, SCALE = 0.003, 0.5
# Files of one origin, left out together: translations of each other; rows that another file took over.
_ORIGINS = {"PurpleLlama": "cyberseceval"}
# Of these, only the rows with such a mark in their source are free of a share-alike clause.
_PERMISSIVE = {"bipia": "/email/", "security_docs_benign": ("dair-ai", "Tencent")}


def origin(sample: Sample) -> str:
    """What a sample is left out with."""
    found = (name for mark, name in _ORIGINS.items() if mark in str(sample.fields.get("source", "")))
    return next(found, sample.dataset)


def permissive(sample: Sample) -> bool:
    """Whether a model trained on the sample may be passed on under any licence."""
    marks = _PERMISSIVE.get(sample.dataset, "")
    source = str(sample.fields.get("source", ""))
    return any(mark in source for mark in ([marks] if isinstance(marks, str) else marks))


def grouped(sample: Sample) -> Sample:
    """The sample with a group: its own, else the attack's kind in its file, so that templates stay together."""
    if sample.group:
        return sample
    return replace(sample, group=f"{sample.dataset} {sample.fields.get('attack') or sample.input[:40]}")


def main(folder: str) -> None:
    """Train, print the card, write both beside the package's classifier."""
    public = [grouped(each) for each in load_dataset(folder)]
    bundled = [example(each) for each in load_dataset("injection/train")]
    learned = [(each, example(each)) for each in public if permissive(each)]
    scores = np.zeros(len(public))
    for left_out in sorted({origin(each) for each in public}):
        model = fit([row for each, row in learned if origin(each) != left_out] + bundled)
        for index, each in enumerate(public):
            if origin(each) == left_out:
                scores[index] = _highest(model, each.input)
        print(f"without {left_out}: done", file=sys.stderr)
    harmless = scores[[each.label == 0 for each in public]]
    centre = float(np.quantile(harmless, 1 - FPR))
    examples: Sequence[Example] = [row for _, row in learned] + bundled
    model = fit(examples).calibrated(centre, SCALE)
    model.save(BUILT_IN)
    card = _card(public, scores, model, examples, load_dataset("injection/mini"))
    write_text(BUILT_IN.with_name("README.md"), card)
    print(card)


def _highest(model: Model, text: str) -> float:
    return float(model.logits(Bags(text)).max(initial=-20.0))


def _card(public: Sequence[Sample], logits: Array, model: Model, examples: Sequence[Example], mini: Dataset) -> str:
    attacks = sum(each.attack for each in examples)
    head = [
        "| texts | attacks | harmless | classifier: recall | FPR | recall at its own 1 % FPR | AUC "
        "| rules: recall | FPR | ensemble: recall | FPR |",
        "|--|--|--|--|--|--|--|--|--|--|--|",
    ]
    names = sorted({each.dataset for each in public})
    files = [[index for index, each in enumerate(public) if each.dataset == name] for name in names]
    by_file = [
        _row(name, [public[index] for index in chosen], logits[chosen], model)
        for name, chosen in zip(names, files, strict=True)
    ]
    by_language = [
        _row(f"mini, {lang}", chosen, np.array([_highest(model, each.input) for each in chosen]), model)
        for lang in ("en", "zh")
        for chosen in [[each for each in mini if each.lang == lang]]
    ]
    return "\n".join(
        [
            "# classifier.npz",
            "",
            "Which sentence of a text looks like an order to an agent: a logistic model over hashed n-grams of",
            "characters and words, trained by multiple-instance learning (`injection/training.py`). Plain numpy",
            "arrays, no pickle.",
            "",
            f"- Trained on {len(examples):,} texts ({attacks:,} attacks): the bundled injection/train, and the rows",
            "  of the public sets below that no share-alike clause covers (of bipia the e-mails, of the security",
            "  documents those of dair-ai and Tencent). Not on injection/mini.",
            f"- The score 0.5 is where {FPR:.1%} of the harmless public texts would be flagged, all files together,",
            "  each by a model that was trained without its source.",
            "- Made again by `python -m openclaw_lab.experiments.pretrain FOLDER`.",
            "- Weak: password games in translation, off-task requests that are attacks by their place alone, scripts",
            "  that set no words apart other than Chinese and Japanese. A sentence is judged alone, without context.",
            "",
            "## Sources that it was not trained on",
            "",
            "Each file by a model trained without its origin; recall and FPR at the score 0.5; AUC: area under the ROC",
            "curve. The rules were written with half of each file in view: their columns, and so the ensemble's, are",
            "no figures of unseen sources.",
            "",
            *head,
            *by_file,
            "",
            "## injection/mini",
            "",
            "Bundled, not trained on, made hard on purpose: harmless texts with the attacks' words, attacks without.",
            "",
            *head,
            *by_language,
            "",
        ]
    )


def _row(name: str, samples: Sequence[Sample], logits: Array, model: Model) -> str:
    from scipy.stats import mannwhitneyu

    attack = np.array([each.label == 1 for each in samples])
    rules = RuleScorer(InjectionConfig(detector="rules"))
    by_rules = np.array([rules(each.input)[0] for each in samples])
    both = np.array([joint(rule, model.score(logit)) for rule, logit in zip(by_rules, logits, strict=True)])
    bad, good = logits[attack], logits[~attack]
    auc = float(mannwhitneyu(bad, good).statistic) / (len(bad) * len(good)) if len(bad) and len(good) else np.nan
    own = float(np.quantile(good, 0.99)) if len(good) else np.nan
    figures = [
        _share(bad >= model.centre), _share(good >= model.centre), _share(bad > own), auc,
        *(_share(scores[kind] >= 0.5) for scores in (by_rules, both) for kind in (attack, ~attack)),
    ]  # fmt: skip
    shown = " | ".join("-" if np.isnan(each) else f"{each:.3f}" for each in figures)
    return f"| {name} | {len(bad)} | {len(good)} | {shown} |"


def _share(flagged: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    return float(flagged.mean()) if len(flagged) else float("nan")


if __name__ == "__main__":
    main(*sys.argv[1:2])
