"""Labelled texts in, a Model for the classifier out. The label is the text's; training finds the sentence.

Multiple-instance learning, as in MI-SVM (Andrews et al., NIPS 2002): all windows of an attack count as attack at first;
then the model is fitted again with only the windows of each attack that it scores highest. Where a row says where its
attack stands (`span`), the windows there are taken from the start. Texts with one `group` stay on one side of a split.

    train(load_dataset("mine.jsonl"), "mine.npz")
    LabConfig().with_({"injection.detector": "classifier", "injection.model": "mine.npz"})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from openclaw_lab.errors import TaskError, excerpt
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
Places = np.ndarray[Any, np.dtype[np.intp]]
Chosen = np.ndarray[Any, np.dtype[np.bool_]]


class Labelled(Protocol):
    """A Sample of a dataset of format "injection"."""

    @property
    def input(self) -> Any:
        """The text."""

    @property
    def label(self) -> Any:
        """1 for an attack, 0 for a harmless text."""

    @property
    def group(self) -> str:
        """What it shares with others that are made alike."""

    @property
    def dataset(self) -> str:
        """Where it comes from."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """What else is known; `span` with `start` and `end` says where the attack stands."""


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

    `data` holds texts with the labels 1 (attack) and 0 (harmless), as `load_dataset` gives them; the more alike they
    are to what the agent reads, the better. The score 0.5 stands where a share `fpr` of the harmless texts, each scored
    by a model that was not fitted to its group, would be flagged. The same data and `seed` give the same file.
    A TaskError where there is nothing to learn from: attacks and harmless texts must each be in two groups or more (a
    text without a group is one by itself).
    """
    if isinstance(data, str | Path):
        raise TaskError("train", data, "a dataset", "train(load_dataset(path), model_path)")
    if not 0 < fpr < 1:
        raise TaskError("train: fpr", fpr, "a share between 0 and 1")
    examples = [example(each, seed) for each in data]
    scores = held_out(examples, seed)
    harmless = scores[[not each.attack and bool(each.windows) for each in examples]]
    centre = float(np.quantile(harmless, 1 - fpr))
    scale = float(np.std(harmless)) or 1.0
    return fit(examples, seed).calibrated(centre, scale).save(Path(path).expanduser())


def example(sample: Labelled, seed: int = 0) -> Example:
    """A sample as it is learned from; a long text by a choice of its windows, those of its `span` among them."""
    if not isinstance(sample.input, str):
        raise TaskError(f"sample of {sample.dataset}", f"a {type(sample.input).__name__}", "a text with a label")
    if sample.label not in (0, 1):
        raise TaskError(f"sample of {sample.dataset}: label", sample.label, "1 (attack) or 0 (harmless)")
    bags = Bags(sample.input)
    span = _span(sample)
    held = [index for index, each in enumerate(bags.spans) if span and _overlap(each, span)]
    most = MOST * (2 if sample.label else 1)
    others = sorted(set(range(len(bags.spans))).difference(held))
    if len(held) + len(others) > most:
        room = max(0, most - len(held))
        others = np.random.default_rng(seed).choice(others, min(room, len(others)), replace=False).tolist()
    chosen = sorted([*held, *others])
    return Example(
        tuple(bags.counts(each) for each in chosen), tuple(not held or each in set(held) for each in chosen),
        bool(held), bool(sample.label), sample.dataset, sample.group or excerpt(sample.input),
    )  # fmt: skip


def _span(sample: Labelled) -> tuple[int, int] | None:
    span = sample.fields.get("span")
    if span is None:
        return None
    try:
        start, end = span["start"], span["end"]
        fits = 0 <= start < end <= len(sample.input)
    except (TypeError, KeyError):
        fits = False
    if not fits:
        raise TaskError(f"sample of {sample.dataset}: span", span, "start and end within the text")
    return start, end


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two spans share more than half of the shorter one."""
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return 2 * shared > min(one[1] - one[0], other[1] - other[0])


def fit(examples: Sequence[Example], seed: int = 0) -> Model:
    """A model of all examples, not calibrated; each source and label counts by the square root of its size."""
    from sklearn.linear_model import SGDClassifier

    learned = [each for each in examples if each.windows]
    sizes = Counter((each.source, each.attack) for each in learned)
    if {attack for _, attack in sizes} != {True, False}:
        found = f"{len(learned)} texts of one label" if learned else "no text"
        raise TaskError("training data", found, "attacks (1) and harmless texts (0)")
    owner = np.repeat(np.arange(len(learned)), [len(each.windows) for each in learned])
    attack = np.array([each.attack for each in learned])[owner]
    weight = np.array([sizes[each.source, each.attack] ** -0.5 for each in learned])[owner]
    features = _matrix([window for each in learned for window in each.windows])
    used = np.array([mark or not each.attack for each in learned for mark in each.marked])
    for turn in range(ROUNDS):
        share = _shares(weight, attack, used, owner)[used]
        linear = SGDClassifier(
            "log_loss", alpha=_ALPHA, max_iter=_EPOCHS, tol=None, average=True, random_state=seed
        ).fit(features[used], attack[used], sample_weight=share / share.mean())
        if turn < ROUNDS - 1:
            used = _highest(learned, features @ linear.coef_[0], used, owner)
    return Model(linear.coef_[0].astype(np.float32), float(linear.intercept_[0]))


def _shares(weight: Array, attack: Chosen, used: Chosen, owner: Places) -> Array:
    """What each window counts: an attack's share one text's weight, harmless ones gain by number; both kinds alike."""
    many = np.bincount(owner[used], minlength=int(owner[-1]) + 1).clip(1)[owner]
    share = weight * np.where(attack, 1 / many, many**-0.5)
    balance = share[used & ~attack].sum() / share[used & attack].sum()
    return np.where(attack, share * balance, share)


def _highest(examples: Sequence[Example], scores: Array, used: Chosen, owner: Places) -> Chosen:
    """The windows to go on with: of an attack whose place is not known, those that are scored highest."""
    used = used.copy()
    first = np.searchsorted(owner, np.arange(len(examples)))
    for index, each in enumerate(examples):
        if each.attack and not each.known and len(each.windows) > KEPT:
            own = scores[first[index] : first[index] + len(each.windows)]
            used[first[index] : first[index] + len(own)] = own >= np.sort(own)[-KEPT]
    return used


def held_out(examples: Sequence[Example], seed: int = 0) -> Array:
    """The score of each example under a model that was fitted without its group; without a window it has the lowest."""
    fold_of = _folds(examples, seed)
    folds = np.array([fold_of[each.group] for each in examples])
    scores = np.zeros(len(examples))
    for fold in sorted(set(fold_of.values())):
        model = fit([each for each, where in zip(examples, folds, strict=True) if where != fold], seed)
        for index, each in enumerate(examples):
            if folds[index] == fold:
                scores[index] = model.of_counts(each.windows)
    return scores


def _folds(examples: Sequence[Example], seed: int) -> dict[str, int]:
    """The fold of each group: without any one fold, both labels are still there."""
    held: dict[str, set[bool]] = {each.group: set() for each in examples}
    for each in examples:
        if each.windows:
            held[each.group].add(each.attack)
    for label, name in ((True, "attacks (label 1)"), (False, "harmless texts (label 0)")):
        groups = sum(label in labels for labels in held.values())
        if groups < 2:
            raise TaskError("training data", f"{name} in {groups} groups", "two groups or more, to hold some out")
    order = sorted(held)
    order = [order[index] for index in np.random.default_rng(seed).permutation(len(order))]
    # Attacks only, then both, then harmless only: two groups with one label that stand in a row are in two folds.
    order.sort(key=lambda group: (False in held[group]) + (True not in held[group]) + 2 * (not held[group]))
    return {group: place % min(FOLDS, len(order)) for place, group in enumerate(order)}


def _matrix(windows: Sequence[tuple[Any, Any]]) -> csr_matrix:
    """One row a window, weighed as `Bags.sums` does."""
    from scipy.sparse import csr_matrix

    ends = np.cumsum([0, *(len(buckets) for buckets, _ in windows)])
    values = np.concatenate([counts / np.sqrt(counts.sum() + FEW) for _, counts in windows]).astype(np.float32)
    buckets = np.concatenate([buckets for buckets, _ in windows]).astype(np.int32)
    return csr_matrix((values, buckets, ends), shape=(len(windows), 1 << BITS))
