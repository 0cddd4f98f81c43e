"""Rows of an experiment in, each row's result and what it took out, in order: asked of a live model in threads.

The same results whatever the number of threads. A budget that is used up ends the run with one line that says how much
was spent, how many rows are done, and how to go on; Ctrl-C with one that says what is kept.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from openclaw_lab.cassette import SESSION
from openclaw_lab.errors import BudgetError, LabError
from openclaw_lab.experiments.progress import progress
from openclaw_lab.spending import Bill, Spending, limited
from openclaw_lab.threads import Done, in_threads

if TYPE_CHECKING:
    import pandas as pd

Item = TypeVar("Item")
Result = TypeVar("Result")


def live_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a model that an experiment asks: one Spending for all of it, and in a notebook a memory.

    A notebook without a `cassette` keeps the answers until its kernel ends, so that a cell which was interrupted, or is
    run again, does not pay for them twice.
    """
    kept = options.get("cassette")
    return limited({**options, "cassette": SESSION if kept is None and _in_a_notebook() else kept})


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say something: `budget=None` is none, also where no model is asked."""
    return {name: value for name, value in options.items() if value is not None}


def asked_rows(
    work: Callable[[Item], Result], items: Sequence[Item], spending: Spending, label: str, unit: str,
    *, concurrency: int = 0,
) -> list[tuple[Result, Bill]]:  # fmt: skip
    """`work` of each item with what it took; see `threads` for `concurrency`."""
    found: dict[int, Done[Result]] = {}
    before = spending.bill.requests
    try:
        with contextlib.closing(in_threads(work, items, spending, concurrency=concurrency)) as rows:
            for _ in progress(range(len(items)), label, unit):
                done = next(rows)
                if not done.refused:
                    found[done.number] = done
                if spending.stopped is not None:
                    break
            if spending.stopped is not None:
                found |= {done.number: done for done in rows if not done.refused}
    except KeyboardInterrupt:
        asked = spending.bill.requests - before
        raise KeyboardInterrupt("; ".join(["interrupted", *_state(spending, len(found), len(items), asked)])) from None
    if spending.stopped is not None:
        asked = spending.bill.requests - before
        raise _stopped(spending.stopped, _state(spending, len(found), len(items), asked))
    return [(found[number].value, found[number].bill) for number in range(len(items))]


def with_bills(frame: pd.DataFrame, bills: Sequence[Bill]) -> pd.DataFrame:
    """A table of rows with `tokens`, `cost` (US dollars; none where unknown) and `seconds`, where a model was asked."""
    if not bills:
        return frame
    cost = np.array([math.nan if each.unpriced else each.cost for each in bills])
    return frame.assign(tokens=[each.tokens for each in bills], cost=cost, seconds=[each.seconds for each in bills])


def _stopped(error: LabError, state: Sequence[str]) -> LabError:
    if not isinstance(error, BudgetError):
        return error
    more = "a smaller max_tokens=… lowers what a request may cost" if len(state) == 1 else "budget=… is for one call"
    return BudgetError(error.where, error.found, error.expected, "; ".join([*state, more]))


def _state(spending: Spending, done: int, rows: int, answers: int) -> list[str]:
    """How many rows are done; what became of the answers, and how to go on."""
    state = [f"{done} of {rows} rows are done"]
    if not answers:
        return state
    rest = "the same call asks only for the rest"
    if spending.kept_in is SESSION:
        return [*state, f"{answers} new answers are kept until the kernel ends: {rest}"]
    if spending.kept_in is None:
        return [*state, f"cassette=… would have kept {answers} new answers"]
    return [*state, f"{answers} new answers are in {spending.kept_in}: {rest}"]


def _in_a_notebook() -> bool:
    """Whether somebody may run the same cell again in this process."""
    interactive = sys.modules.get("IPython")
    return interactive is not None and interactive.get_ipython() is not None
