"""The public skill sets in; the hybrid matcher's model, and the card with its figures, out.

Run as `python -m openclaw_lab.experiments.pretrain_skills FOLDER`, FOLDER being `skills` of the public sets (and
`sessions` beside it). Every figure is of what a model had not seen: the repositories of skill_triggers are left out by
turns, each other source is left out whole, and of the large ones a half of the skills is besides. A source under a
share-alike licence (sgd) and the bundled set are used for figures only.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import LabConfig, SkillConfig
from openclaw_lab.experiments.corpus import read_corpus
from openclaw_lab.experiments.dataset import Dataset, load_dataset
from openclaw_lab.experiments.evaluate import evaluate
from openclaw_lab.experiments.tasks.skills import SkillsTask, catalogue_of
from openclaw_lab.skills.catalogue import Catalogue
from openclaw_lab.skills.features import FEATURES, base_features, features
from openclaw_lab.skills.hybrid import BUILT_IN, LOWEST, Model
from openclaw_lab.skills.lexical import logistic
from openclaw_lab.skills.phrases import phrases
from openclaw_lab.skills.scores import Scores
from openclaw_lab.skills.vectors import Damping, Matrix, memory
from openclaw_lab.transcripts import load_sessions

TRIGGERS = "skill_triggers"
# What a source counts in training, whatever its size; 0: figures only.
SHARES = {TRIGGERS: 3.0, "fastskills": 0.6, "metatool": 1.5, "banking77": 0.7, "clinc150": 0.7, "sgd": 0.0}
HALVED = ("metatool", "banking77", "clinc150")
# Weights: a judged pair; a skill that nobody judged, for a message with and without a skill; Chinese.
JUDGED, UNJUDGED, CHINESE = 4.0, (0.3, 0.15), 1.6
HARD, FOLDS, ROWS, EMBEDDER = 16, 5, 700, SkillConfig().embedder
# Features that speak against a match, and those that may do either (a long list of phrases has a near one for many
# messages); all others speak for it.
AGAINST = ("against", "unsaid")
FREE = ("length", "chinese", "across", "phrase", "phrases", "phrase_damped")
RIDGE = 1e-5
# The logit at which a pair is worth picking, brought to a score of 0.5.
WORTH = -0.6


@dataclass(frozen=True)
class Source:
    """One public set: its features, which pairs are right, which were judged, the group of each message."""

    name: str
    data: Dataset
    catalogue: Catalogue
    base: Mapping[str, Matrix]
    right: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    groups: NDArray[np.object_]


Pairs = tuple[Matrix, NDArray[np.bool_], NDArray[np.float64]]


def source(path: Path, damp: Damping) -> Source:
    """Load a set and compare every message with every skill of it."""
    data = load_dataset(path)
    corpus = next(iter(data.corpora.values()))
    catalogue = catalogue_of(corpus)
    messages = [sample.input for sample in data]
    base = base_features(messages, catalogue, memory(EMBEDDER), damp)
    right = np.zeros((len(data), len(catalogue)), dtype=bool)
    judged = np.zeros_like(right)
    for row, sample in enumerate(data):
        right[row, [corpus.row_of[each] for each in sample.label.wanted]] = True
        judged[row, [corpus.row_of[each] for each in sample.label.named]] = True
    name = path.name.removeprefix("queries_").partition(".")[0]
    groups = np.array([sample.group or sample.id for sample in data], dtype=object)
    return Source(name, data, catalogue, base, right, judged, groups)


def pairs(one: Source, rows: NDArray[np.intp], draw: np.random.Generator) -> Pairs:
    """The pairs that a model learns from: within the whole catalogue, and within small ones drawn from it.

    A model that knew large catalogues only would take the best of three unfit skills for a fit one.
    """
    every = np.arange(len(one.catalogue))
    plans = [(every, rows, 1.0)]
    shuffled = draw.permutation(rows)
    for part in np.array_split(shuffled, max(1, len(shuffled) // 40)):
        size = int(np.exp(draw.uniform(np.log(2), np.log(min(60, len(every))))))
        some = draw.choice(every, size, replace=False)
        if draw.random() < 0.75:
            some = np.union1d(some, np.flatnonzero(one.judged[part[: max(4, size)]].any(axis=0)))
        plans.append((np.sort(some), part, 0.5))
    made = [_weighed(one, part, columns, share, draw) for columns, part, share in plans]
    x, y, w = (np.concatenate([each[i] for each in made]) for i in range(3))
    return x, y, w / w.sum()


def _weighed(
    one: Source, rows: NDArray[np.intp], columns: NDArray[np.intp], share: float, draw: np.random.Generator
) -> Pairs:
    """Judged and right pairs, the hardest of the others, and a few at random that stand for the rest."""
    cut = np.ix_(rows, columns)
    base = {name: each[cut] for name, each in one.base.items()}
    right, judged = one.right[cut], one.judged[cut]
    hard = base["whole"] + base["phrases"] + base["shared"] + base["words"]
    place = (-hard).argsort(axis=1).argsort(axis=1)
    known = judged if one.name == TRIGGERS else right
    top = (place < (HARD if len(columns) == len(one.catalogue) else 5)) & ~known
    rest = (draw.random(right.shape) < 4 / len(columns)) & ~known & ~top
    weight = 0.5 * top + rest * len(columns) / 40
    if one.name == TRIGGERS:
        some = one.right[rows].any(axis=1)
        weight *= np.where(some, *UNJUDGED)[:, None]
        weight[judged] = JUDGED
        whole = (judged.sum(axis=1) > 20)[:, None]  # the whole catalogue was judged: most of it is easy
        weight = np.where(whole & judged & ~right, 0.2, weight)
        weight *= np.where(base["chinese"][:, :1] > 0, CHINESE, 1.0)
    else:
        weight[right] = 1.0
    row, column = np.nonzero(weight)
    return features(base)[row, column], right[row, column], weight[row, column] * share


def fitted(parts: Sequence[tuple[Pairs, float]], damp: Damping, card: dict[str, Any]) -> Model:
    """A logistic regression on standardised features, in which more likeness never makes a match less likely.

    Without that bound, features that say nearly the same get large weights of opposite signs, and a message unlike all
    that was learned from can score anything.
    """
    from scipy.optimize import minimize

    x, y = (np.concatenate([part[i] for part, _ in parts]) for i in (0, 1))
    w = np.concatenate([part[2] * share for part, share in parts])
    mean, spread = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
    z = np.asarray(np.maximum((x - mean) / spread, LOWEST), dtype=np.float64)
    sign, w = np.where(y, 1.0, -1.0), w / w.sum()

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (z @ values[:-1] + values[-1])
        slope = -sign * w / (1 + np.exp(np.clip(margin, -50, 50)))
        cost = float(w @ np.logaddexp(0, -margin)) + RIDGE * float(values[:-1] @ values[:-1])
        return cost, np.append(z.T @ slope + 2 * RIDGE * values[:-1], slope.sum())

    bounds = [(None, 0) if name in AGAINST else (None, None) if name in FREE else (0, None) for name in FEATURES]
    found = minimize(loss, np.zeros(len(FEATURES) + 1), jac=True, method="L-BFGS-B",
                     bounds=[*bounds, (None, None)], options={"gtol": 1e-7, "ftol": 1e-11, "maxiter": 300})  # fmt: skip
    return Model(mean, spread, found.x[:-1].astype(np.float32), float(found.x[-1]) - WORTH, damp, card)


def learned_damping(folder: Path) -> Damping:
    """From descriptions and messages that no figure is reported on."""
    corpus = read_corpus(folder / "catalogue_openclaw_wild.jsonl.gz")
    texts = [each.text for each in corpus.documents]
    texts += [phrase for text in texts for phrase in phrases(text).wanted]
    for session in load_sessions(folder.parent / "sessions" / "memorybank.jsonl.gz"):
        texts += [message.text[:300] for message in session.messages if message.role == "user"][:60]
    return Damping.learned(memory(EMBEDDER).vectors(list(dict.fromkeys(texts))))


def half(name: str) -> bool:
    """Which half of a source's skills (or of its messages for none) a name belongs to."""
    return zlib.crc32(name.encode("utf-8")) % 2 == 0


def main(folder: str) -> None:
    """Train, print the figures, write the model beside the package's code."""
    damp = learned_damping(Path(folder))
    model = trained([source(Path(folder) / f"queries_{name}.jsonl.gz", damp) for name in SHARES], damp)
    model.save(BUILT_IN)
    for name, values in model.card["figures_on_what_was_not_seen"].items():
        print(name, values)
    for name, weight in zip(FEATURES, model.weight, strict=True):
        print(f"{name:16} {weight:+.2f}")


def trained(sources: Sequence[Source], damp: Damping) -> Model:
    """The model of all sources, with the figures of those that left out what is reported."""
    draw = np.random.default_rng(0)
    made = {one.name: (pairs(one, _some(one, draw), draw), SHARES[one.name]) for one in sources if SHARES[one.name]}
    figures: dict[str, Any] = {}
    for one in sources:
        others = [part for name, part in made.items() if name != one.name]
        if one.name == TRIGGERS:
            logits = _by_turns(one, others, damp, draw)
        else:
            logits = fitted(others, damp, {}).logits(features(one.base))
        figures |= measured(one.name, one.data, logits)
        if one.name in HALVED:
            figures |= _halved(one, others, damp, draw)
    card = {"learned_from": {name: share for name, share in SHARES.items() if share}, "embedder": EMBEDDER,
            "figures_on_what_was_not_seen": figures}  # fmt: skip
    return fitted(list(made.values()), damp, card)


def _some(one: Source, draw: np.random.Generator) -> NDArray[np.intp]:
    rows = np.arange(len(one.data))
    return rows if one.name == TRIGGERS else draw.choice(rows, min(ROWS, len(rows)), replace=False)


def _by_turns(one: Source, others: list[tuple[Pairs, float]], damp: Damping, draw: np.random.Generator) -> Matrix:
    """Logits of each message by a model that saw no message and no judgement of its repository."""
    from sklearn.model_selection import GroupKFold

    logits = np.zeros(one.right.shape, dtype=np.float32)
    rows = np.arange(len(one.data))
    for learn, rest in GroupKFold(FOLDS).split(rows, groups=one.groups):
        model = fitted([*others, (pairs(one, learn, draw), SHARES[one.name])], damp, {})
        logits[rest] = model.logits(features({name: each[rest] for name, each in one.base.items()}))
    return logits


def _halved(one: Source, others: list[tuple[Pairs, float]], damp: Damping, draw: np.random.Generator) -> dict[str, Any]:
    """The same, with the messages of a half of the source's own skills learned from and the others reported."""
    labels = [sample.label.wanted or (sample.input,) for sample in one.data]
    learn = np.array([row for row, names in enumerate(labels) if all(map(half, names))])
    rest = np.array([row for row, names in enumerate(labels) if not any(map(half, names))])
    model = fitted([*others, (pairs(one, learn, draw), SHARES[one.name])], damp, {})
    part = Dataset(one.name, "skills", tuple(one.data[int(row)] for row in rest), corpora=one.data.corpora)
    logits = model.logits(features({name: each[rest] for name, each in one.base.items()}))
    return measured(f"{one.name}, the half not learned from", part, logits)


def measured(name: str, data: Dataset, logits: Matrix) -> dict[str, Any]:
    """The task's metrics by language, under the default setting."""

    def matcher(_: Sequence[str], catalogue: Catalogue) -> Scores:
        return Scores(catalogue.names, logistic(logits, 1.0, 0.0))

    results = evaluate(SkillsTask(matcher), data, LabConfig())
    shown = ("f1", "top1", "none_injects", "injected", "pair_precision", "pair_recall", "pair_f1", "pair_fpr")
    found = {}
    for lang, metrics in results.metrics_by("lang").items():
        values = {each: round(metrics[each].value, 3) for each in shown if metrics[each].n}
        found[f"{name} {lang}"] = values
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
