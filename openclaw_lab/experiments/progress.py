"""One progress bar for what takes long: in a notebook, in a terminal; quiet under pytest and where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
# Work that is done sooner shows no bar.
_PATIENCE = 2.0


def progress(items: Sequence[Item], label: str, unit: str) -> Iterator[Item]:
    """The items, one by one, under one bar that appears after two seconds and goes when done or interrupted."""
    if _quiet():
        yield from items
        return
    from tqdm.auto import tqdm

    with tqdm(items, desc=label, unit=unit, delay=_PATIENCE, leave=False) as bar:
        yield from bar


def counted(items: Iterator[Item], label: str) -> Iterator[Item]:
    """Items of which nobody knows how many come, with a count of those that did."""
    if _quiet():
        yield from items
        return
    from tqdm.auto import tqdm

    with tqdm(items, desc=label, unit=" blocks", delay=_PATIENCE, leave=False) as bar:
        yield from bar


def _quiet() -> bool:
    if "pytest" in sys.modules:
        return True
    return "ipykernel" not in sys.modules and not sys.stderr.isatty()
