"""A dataset in, parts of it out that share no group: to learn on, to choose on, to report on.

Samples stay together that share a group (a source, a template, a conversation) or say nearly the same. `split` makes
two parts, `partition` three with the languages and labels in each as they are in all; `leaks` names what two parts of
your own have in common.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.duplicates import near_duplicates
from openclaw_lab.experiments.table import Table
from openclaw_lab.messages import Session

# Shares of what is learned on, chosen on and reported on.
SHARES = (0.4, 0.3, 0.3)
_Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Parts:
    """Indexes of samples, in order: to learn on, to choose on, to report on."""

    train: _Index
    validation: _Index
    test: _Index

    def __str__(self) -> str:
        return f"{len(self.train)} to learn on, {len(self.validation)} to choose on, {len(self.test)} to report on"


def split(data: Dataset, share: float = 0.5, seed: int = 0) -> tuple[Dataset, Dataset]:
    """About `share` of the samples, and the rest; samples of one group (of one id, without) stay together.

    Whole groups are drawn by chance until the share is reached, so one large group can make the first part larger.
    """
    if not isinstance(share, int | float) or not 0 < share < 1:
        raise TaskError("split", share, "a share of the samples between 0 and 1")
    names = [sample.group or sample.id for sample in data.samples]
    groups = sorted(set(names))
    random.Random(seed).shuffle(groups)
    first: set[str] = set()
    size, counts = 0, Counter(names)
    for name in groups:
        if size >= share * len(names):
            break
        first.add(name)
        size += counts[name]
    parts = (
        tuple(sample for sample, name in zip(data.samples, names, strict=True) if (name in first) is chosen)
        for chosen in (True, False)
    )
    one, other = parts
    return (replace(data, name=f"{data.name}, first part", samples=one),
            replace(data, name=f"{data.name}, second part", samples=other))  # fmt: skip


def partition(
    data: Dataset, shares: Sequence[float] = SHARES, seed: int = 0, clusters: Sequence[int] | None = None
) -> Parts:
    """Three parts of about these shares of every language and label; what belongs together stays together.

    The same samples and seed give the same parts, whatever the order of the groups' names. `clusters`: what `together`
    gave, where it is known.
    """
    if len(shares) != 3 or not all(isinstance(each, int | float) and 0 < each < 1 for each in shares):
        raise TaskError("split", shares, "three shares between 0 and 1, (0.4, 0.3, 0.3)")
    if abs(sum(shares) - 1) > 1e-6:
        raise TaskError("split", shares, "three shares that add up to 1")
    members: dict[int, list[int]] = {}
    for index, number in enumerate(together(data.samples) if clusters is None else clusters):
        members.setdefault(number, []).append(index)
    if len(members) < 3:
        raise TaskError(
            f"split of {data.name}", f"{len(members)} group(s)", "at least three", "give samples that differ"
        )
    strata = _numbers([f"{sample.lang}/{_label(sample)}" for sample in data.samples])
    left = np.outer(np.array(shares, dtype=float), np.bincount(strata))
    whole = list(members.values())
    random.Random(seed).shuffle(whole)
    whole.sort(key=len, reverse=True)  # the large ones first: the small ones even out what they leave
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    for cluster in whole:
        counts = np.bincount(strata[cluster], minlength=left.shape[1])
        chosen = int(np.argmax(left @ counts))
        left[chosen] -= counts
        parts[chosen].extend(cluster)
    return Parts(*(np.array(sorted(part), dtype=np.intp) for part in parts))


def clusters_of(data: Dataset) -> list[int]:
    """For each sample of a dataset the number of its cluster."""
    return together(data.samples)


def together(samples: Sequence[Sample]) -> list[int]:
    """For each sample the number of its cluster: of one group, or nearly the same."""
    parent = list(range(len(samples)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = index = parent[parent[index]]
        return index

    first: dict[str, int] = {}
    for index, sample in enumerate(samples):
        parent[root(index)] = root(first.setdefault(sample.group or sample.id, index))
    written = [(index, text) for index, sample in enumerate(samples) if (text := _text(sample))]
    for one, other in near_duplicates([text for _, text in written]):
        parent[root(written[other][0])] = root(written[one][0])
    return [root(index) for index in range(len(samples))]


def leaks(first: Dataset, second: Dataset) -> Table:
    """What two parts have in common: a row for each sample of the second with one of the first, and why."""
    groups = {sample.group or sample.id: sample.id for sample in first.samples}
    rows = [
        [groups[name], sample.id, "same group" if sample.group else "same id"]
        for sample in second.samples
        if (name := sample.group or sample.id) in groups
    ]
    written = [(sample, text) for data in (first, second) for sample in data.samples if (text := _text(sample))]
    ours = {id(sample) for sample in first.samples}
    for one, other in near_duplicates([text for _, text in written]):
        pair = sorted((written[one][0], written[other][0]), key=lambda sample: id(sample) not in ours)
        if (id(pair[0]) in ours) != (id(pair[1]) in ours):
            rows.append([pair[0].id, pair[1].id, "nearly the same"])
    return Table.of_rows(
        rows, ["first", "second", "why"], f"{len(rows)} leak(s) between {first.name} and {second.name}"
    )


def part_of(data: Dataset, index: _Index, name: str) -> Dataset:
    """The samples at some indexes, under a name that says which part they are."""
    return replace(data, name=f"{data.name}, {name}", samples=tuple(data.samples[each] for each in index.tolist()))


def _text(sample: Sample) -> str:
    if isinstance(sample.input, Session):
        return "\n".join(message.text for message in sample.input.messages if message.role == "user")
    return sample.input if isinstance(sample.input, str) else ""


def _label(sample: Sample) -> str:
    return str(sample.label) if isinstance(sample.label, int | str) else ""


def _numbers(names: Sequence[str]) -> _Index:
    return np.unique(np.asarray(names), return_inverse=True)[1]
