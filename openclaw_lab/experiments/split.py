"""A dataset in, two parts of it out that share no group: one to learn or choose on, one to report on."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.dataset import Dataset


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
