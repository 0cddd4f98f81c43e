"""A function and items in, its results in order out, over as many workers as joblib was told to use.

    with joblib.parallel_config(n_jobs=8): …         processes of this machine
    with joblib.parallel_config("dask"): …           a Dask cluster

Without such a word everything runs here, one after the other. The results are the same either way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from openclaw_lab.experiments.progress import counted, progress

Item = TypeVar("Item")
Result = TypeVar("Result")


def workers() -> int:
    """How many there are."""
    import joblib

    return int(joblib.effective_n_jobs(None))


@contextlib.contextmanager
def over(number: int) -> Iterator[None]:
    """Within it, so many processes; one is this one."""
    if number == 1:
        yield
        return
    import joblib

    with joblib.parallel_config(n_jobs=number):
        yield


def spread_lazily(work: Callable[[Item], Result], items: Iterator[Item], label: str) -> Iterator[Result]:
    """`work` of each item, in order, for items that are made one by one and are not all in memory."""
    if workers() < 2:
        for item in counted(items, label):
            yield work(item)
        return
    import joblib

    parallel = joblib.Parallel(return_as="generator", pre_dispatch="1.5*n_jobs")
    yield from counted(parallel(joblib.delayed(work)(item) for item in items), label)


def spread(work: Callable[[Item], Result], items: Sequence[Item], label: str, unit: str) -> Iterator[Result]:
    """`work` of each item, in order, under one progress bar."""
    if len(items) < 2 or workers() < 2:
        for item in progress(items, label, unit):
            yield work(item)
        return
    import joblib

    results = joblib.Parallel(return_as="generator")(joblib.delayed(work)(item) for item in items)
    for _ in progress(range(len(items)), label, unit):
        yield next(results)
