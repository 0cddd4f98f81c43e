"""Labelled texts in, a Model for the classifier out. The label is the text's; training finds the sentence.

Multiple-instance learning, as in MI-SVM (Andrews et al., NIPS 2002): all windows of an attack count as attack at first;
then the model is fitted again with only the windows of each attack that it scores highest. Where a row says where its
attack stands (`span`), the windows there are taken from the start. Texts with one `group` stay on one side of a split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from openclaw_lab.errors import TaskError
from openclaw_lab.injection.classifier import Model
from openclaw_lab.injection.features import BITS, FEW, Bags

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Rounds of fitting; windows that an attack keeps; windows of one text at most, twice as many for an attack.
ROUNDS, KEPT, MOST = 3, 2, 12
FOLDS = 5
# Strength of the regularisation, chosen on the bundled sets.
_ALPHA, _EPOCHS = 1e-5, 6

Array = np.ndarray[Any, np.dtype[np.float64]]


class Labelled(Protocol):
    """A Sample of a dataset of format "injection"."""

    @property
    def input(self) -> str: ...
    @property
    def label(self) -> Any: ...
    @property
    def group(self) -> str: ...
    @property
    def dataset(self) -> str: ...
    @property
    def fields(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Example:
    """A text as it is learned from: its windows' buckets and counts, its label, and where it comes from."""

    windows: tuple[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]], ...]
    marked: tuple[bool, ...]  # which windows hold the attack; all where that is not known
    known: bool
    attack: bool
    source: str
    group: str


def train(data: Iterable[Labelled], path: str | Path, *, fpr: float = 0.01, seed: int = 0) -> Path:
    """Fit a model to a dataset and write it as a file for `injection.model`; gives its path.

    The score 0.5 stands where a share `fpr` of harmless texts, each scored by a model that was not fitted to its
    group, would be flagged. A TaskError where the data has not both labels in two groups or more.
    """
    examples = [example(each) for each in data]
    scores = held_out(examples, seed)
    harmless = scores[[not each.attack for each in examples]]
    model = fit(examples, seed)
    centre = float(np.quantile(harmless, 1 - fpr))
    return model.calibrated(centre, float(np.std(harmless)) or 1.0).save(Path(path))


def example(sample: Labelled, seed: int = 0) -> Example:
    """A sample as it is learned from; a long text by a choice of its windows."""
    if sample.label not in (0, 1):
        raise TaskError(f"sample of {sample.dataset}: label", sample.label, "1 (attack) or 0 (harmless)")
    bags = Bags(sample.input)
    most = MOST * (2 if sample.label else 1)
    chosen: Iterable[int] = range(len(bags.spans))
    if len(bags.spans) > most:
        chosen = np.sort(np.random.default_rng(seed).choice(len(bags.spans), most, replace=False)).tolist()
    span = sample.fields.get("span")
    marked = [span is None or _overlap(bags.spans[each], (span["start"], span["end"])) for each in chosen]
    return Example(
        tuple(bags.counts(each) for each in chosen), tuple(marked), span is not None and any(marked),
        bool(sample.label), sample.dataset, sample.group or sample.input[:40],
    )  # fmt: skip


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two spans share more than half of the shorter one."""
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return 2 * shared > min(one[1] - one[0], other[1] - other[0])


def fit(examples: Sequence[Example], seed: int = 0) -> Model:
    """A model of all examples, not calibrated; each source and label counts by the square root of its size."""
    from sklearn.linear_model import SGDClassifier

    sizes = Counter((each.source, each.attack) for each in examples)
    if {attack for _, attack in sizes} != {True, False}:
        raise TaskError("training data", "one label", "attacks (1) and harmless texts (0)")
    owner = np.repeat(np.arange(len(examples)), [len(each.windows) for each in examples])
    attack = np.array([each.attack for each in examples])[owner]
    weight = np.array([sizes[each.source, each.attack] ** -0.5 for each in examples])[owner]
    features = _matrix([window for each in examples for window in each.windows])
    used = np.array([mark or not each.attack for each in examples for mark in each.marked])
    for turn in range(ROUNDS):
        many = np.bincount(owner[used], minlength=len(examples)).clip(1)[owner]
        share = weight * np.where(attack, 1 / many, many**-0.5)
        balance = share[used & ~attack].sum() / share[used & attack].sum()
        share = np.where(attack, share * balance, share)[used]
        linear = SGDClassifier(
            "log_loss", alpha=_ALPHA, max_iter=_EPOCHS, tol=None, average=True, random_state=seed
        ).fit(features[used], attack[used], sample_weight=share / share.mean())
        if turn < ROUNDS - 1:
            used = _highest(examples, features @ linear.coef_[0], used, owner)
    return Model(linear.coef_[0].astype(np.float32), float(linear.intercept_[0]))


def _highest(examples: Sequence[Example], scores: Array, used: Array, owner: Array) -> Array:
    """The windows to go on with: of an attack whose place is not known, those that are scored highest."""
    used = used.copy()
    first = np.searchsorted(owner, np.arange(len(examples)))
    for index, each in enumerate(examples):
        if each.attack and not each.known and len(each.windows) > KEPT:
            own = scores[first[index] : first[index] + len(each.windows)]
            used[first[index] : first[index] + len(own)] = own >= np.sort(own)[-KEPT]
    return used


def held_out(examples: Sequence[Example], seed: int = 0) -> Array:
    """The score of each example under a model that was fitted without its group."""
    groups = sorted({each.group for each in examples})
    if len(groups) < 2:
        raise TaskError("training data", f"{len(groups)} group", "two groups or more, so that some can be held out")
    order = np.random.default_rng(seed).permutation(len(groups))
    fold_of = {group: int(place) % min(FOLDS, len(groups)) for group, place in zip(groups, order, strict=True)}
    folds = np.array([fold_of[each.group] for each in examples])
    scores = np.zeros(len(examples))
    for fold in sorted(set(fold_of.values())):
        model = fit([each for each, where in zip(examples, folds, strict=True) if where != fold], seed)
        for index in np.flatnonzero(folds == fold):
            scores[index] = model.of_counts(examples[index].windows)
    return scores


def _matrix(windows: Sequence[tuple[Any, Any]]) -> csr_matrix:
    """One row a window, weighed as `Bags.sums` does."""
    from scipy.sparse import csr_matrix

    ends = np.cumsum([0, *(len(buckets) for buckets, _ in windows)])
    values = np.concatenate([counts / np.sqrt(counts.sum() + FEW) for _, counts in windows]).astype(np.float32)
    buckets = np.concatenate([buckets for buckets, _ in windows]).astype(np.int32)
    return csr_matrix((values, buckets, ends), shape=(len(windows), 1 << BITS))
