"""Work and rows in, the results as they come out, each with what it took: asked in threads, as many at once as allowed.

No more rows are begun than threads are free. When the run is stopped, for want of money or by Ctrl-C, no further
request is sent; what is under way is waited for, so that an answer that is paid for is kept.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from openclaw_lab.spending import Bill, Spending, current_row, row_under_way

Item = TypeVar("Item")
Result = TypeVar("Result")
# Seconds: how often a wait looks up, so that Ctrl-C is noticed on every system; how long it then waits for answers.
_LOOK, _GRACE = 0.5, 5.0


@dataclass(frozen=True, slots=True)
class Done(Generic[Result]):
    """A row that is done: its number, its result, what it took. `refused`: a request of it was no longer sent."""

    number: int
    value: Result
    bill: Bill
    refused: bool


def in_threads(
    work: Callable[[Item], Result], items: Sequence[Item], spending: Spending, *, concurrency: int = 0
) -> Generator[Done[Result], None, None]:
    """`work` of each item, in the order in which they are done; an error of `work` ends it and is raised.

    `concurrency`: another one than the limits say.
    """
    outer, threads = current_row(), concurrency or spending.limits.concurrency
    stop = threading.Event() if outer is None else outer.stop
    pool = ThreadPoolExecutor(threads, "openclaw-lab-row")
    numbers, under_way = iter(range(len(items))), set[Future[Done[Result]]]()

    def row(number: int) -> Done[Result]:
        with row_under_way(stop) as made:
            value = work(items[number])
            return Done(number, value, made.bill, made.refused)

    def begin(most: int) -> None:
        for number in itertools.islice(numbers, most - len(under_way)):
            under_way.add(pool.submit(row, number))

    try:
        begin(1)  # the first alone: what all rows need is made once, not by every thread at the same time
        while under_way:
            done, _ = wait(under_way, _LOOK, FIRST_COMPLETED)
            under_way -= done
            for each in sorted((future.result() for future in done), key=lambda one: one.number):
                if spending.stopped is None:
                    begin(threads)
                if outer is not None:
                    outer.bills.append(each.bill)
                yield each
    finally:
        if outer is None:
            stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
        wait([each for each in under_way if not each.cancelled()], _GRACE)
