"""What asking models may cost and how fast, and what it did cost: Limits in, a Bill out; a budget is never exceeded.

Money is reserved before a request is sent, as much as it can cost at most, and settled with what it did cost. While
others are under way a request waits for what they leave over; one that does not fit all the same ends the run. What is
spent is counted for one Spending, whose threads may be many; what a cassette answers costs nothing.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from openclaw_lab.errors import BudgetError, ConfigError, LabError
from openclaw_lab.given import whole
from openclaw_lab.pacing import Pace

# Names of the options that are limits.
LIMITS = ("budget", "price", "concurrency", "per_minute")
# Money is counted in whole parts of a dollar, so that sums are exact.
_PARTS = 10**12
_MOST_THREADS = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """`budget` in US dollars; `price` in US dollars per million tokens, `(input, output)`, for a model whose price is
    not known; `concurrency`: rows that are asked at once; `per_minute`: requests, evenly spread. None is no limit.
    """

    budget: float | None = None
    price: tuple[float, float] | None = None
    concurrency: int = 4
    per_minute: float | None = None

    def __post_init__(self) -> None:
        _number("budget", self.budget, "US dollars, above 0", above=0)
        _number("per_minute", self.per_minute, "requests a minute, above 0", above=0)
        if whole("concurrency", self.concurrency) > _MOST_THREADS:
            raise ConfigError("concurrency", self.concurrency, f"{_MOST_THREADS} at most")
        if self.price is not None:
            words = "US dollars per million tokens, (input, output), such as (0.15, 0.6)"
            if not isinstance(self.price, tuple | list) or len(self.price) != 2 or None in self.price:
                raise ConfigError("price", self.price, words)
            for each in self.price:
                _number("price", each, words, least=0)
            object.__setattr__(self, "price", (float(self.price[0]), float(self.price[1])))


@dataclass(frozen=True, slots=True)
class Bill:
    """What answers took. `requests` were asked now, `replayed` found in a cassette; tokens, `cost` and `seconds` are of
    both, as they were when they were asked. `paid` is what was paid now, `unpriced` counts answers of unknown price;
    `lost` is what requests without an answer may have cost at most. Money in US dollars.
    """

    requests: int = 0
    replayed: int = 0
    input: int = 0
    output: int = 0
    cost: float = 0.0
    paid: float = 0.0
    lost: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input + self.output

    def __add__(self, other: Bill) -> Bill:
        return Bill(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def __str__(self) -> str:
        paid = f"${self.paid:.6f} paid" + (f", {self.unpriced} of unknown price" if self.unpriced else "")
        lost = f" (and at most ${self.lost:.6f} for requests without an answer)" if self.lost else ""
        asked = f"{self.requests:,} requests, {self.replayed:,} answers from a cassette"
        return f"{asked}, {self.input:,} tokens in, {self.output:,} out, {paid}{lost}, {self.seconds:.1f} s"

    @classmethod
    def of(cls, row: Mapping[str, Any], *, replayed: bool) -> Bill:
        """The bill of one recorded answer."""
        used = row.get("usage") or {"input": row.get("prompt_tokens"), "output": row.get("completion_tokens")}
        count = {name: int(used.get(name) or 0) for name in ("input", "cache_read", "cache_write", "output")}
        cost = row.get("cost")
        return cls(
            int(not replayed),
            int(replayed),
            count["input"] + count["cache_read"] + count["cache_write"],
            count["output"],
            cost or 0.0,
            0.0 if replayed else cost or 0.0,
            unpriced=int(cost is None),
            seconds=float(row.get("seconds") or 0.0),
        )


def summed(bills: Iterable[Bill]) -> Bill:
    """All of them as one; of costs the exact sum, whatever the order."""
    listed = list(bills)
    cost, paid, lost, seconds = (math.fsum(getattr(each, name) for each in listed) for name in _SUMS)
    return replace(sum(listed, Bill()), cost=cost, paid=paid, lost=lost, seconds=seconds)


_SUMS = ("cost", "paid", "lost", "seconds")


class Spending:
    """The account of one run: limits, what is reserved and spent, and why it was stopped, if it was.

    `kept_in` is the cassette that its answers are kept in, for messages.
    """

    def __init__(self, limits: Limits | None = None, *, pace: Pace | None = None, kept_in: object = None) -> None:
        self.limits, self.kept_in = limits or Limits(), kept_in
        self.pace = pace or Pace(self.limits.per_minute)
        self._changed = threading.Condition()
        self._budget = None if self.limits.budget is None else _floor(self.limits.budget)
        self._spent = self._reserved = 0
        self._stopped: LabError | None = None
        self._bill = Bill()

    def __reduce__(self) -> Any:
        """In another process an account of its own: which only one without a limit to share may be."""
        if self.limits.budget is not None or self.limits.per_minute is not None:
            raise ConfigError("budget, per_minute", "several processes", "one", "leave out joblib's n_jobs")
        return Spending, (self.limits,)

    @property
    def bill(self) -> Bill:
        """Everything so far."""
        with self._changed:
            return self._bill

    @property
    def spent(self) -> float:
        """US dollars: what was settled, with what requests without an answer may have cost."""
        return self._spent / _PARTS

    @property
    def stopped(self) -> LabError | None:
        """Why nothing more is asked."""
        return self._stopped

    def stop(self, error: LabError) -> LabError:
        """Ask nothing more; the reason, which is the first one."""
        with self._changed:
            self._stopped = self._stopped or error
            self._changed.notify_all()
            return self._stopped

    def reserve(self, dollars: float) -> int:
        """Set money aside for one request, for `settle`; BudgetError where there is not enough, now and ever after."""
        if self._budget is None:
            return 0
        wanted = _ceiling(dollars)
        with self._changed:
            while self._stopped is None and self._spent + wanted <= self._budget < self._total + wanted:
                self._changed.wait()
            if self._stopped is None and self._total + wanted > self._budget:
                self._stopped = self._exceeded(dollars)
                self._changed.notify_all()
            if self._stopped is not None:
                raise self._stopped
            self._reserved += wanted
            return wanted

    def settle(self, reserved: int, dollars: float) -> None:
        """Give back what was set aside, and note what the request did cost."""
        with self._changed:
            self._reserved -= reserved
            self._spent += _ceiling(dollars)
            self._changed.notify_all()

    def note(self, bill: Bill) -> None:
        """Add to the bill, and to that of the row that is under way."""
        with self._changed:
            self._bill += bill
        if (row := _ROW.get()) is not None:
            row.bills.append(bill)

    @property
    def _total(self) -> int:
        return self._spent + self._reserved

    def _exceeded(self, dollars: float) -> BudgetError:
        found = f"${self._spent / _PARTS:.6f} spent, and up to ${dollars:.6f} for the next request"
        todo = "raise budget=…, or lower max_tokens=…; with a cassette=… the answers so far are not asked for again"
        return BudgetError("budget", found, f"${self.limits.budget:.6f} at most", todo)


def limited(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a model in which one Spending, `spending`, stands for all limits; it may be given as such too."""
    rest = {name: value for name, value in options.items() if name not in LIMITS}
    given = {name: value for name, value in options.items() if name in LIMITS and value is not None}
    for name in rest:  # a limit that is misspelt would be none, without a word
        if near := difflib.get_close_matches(name, LIMITS, 1, 0.8):
            raise ConfigError(f"option {name}", rest[name], near[0])
    spending = rest.pop("spending", None)
    if spending is None:
        return {**rest, "spending": Spending(Limits(**given), kept_in=rest.get("cassette"))}
    if not isinstance(spending, Spending) or given:
        found = ", ".join(given) if given else f"a {type(spending).__name__}"
        raise ConfigError("spending", found, "a Spending, and no limits beside it")
    return {**rest, "spending": spending}


# --- the row that is under way ------------------------------------------------------------------------------------


class Row:
    """What one row of an experiment takes; once `stop` is set, no further request of it is sent."""

    def __init__(self, stop: threading.Event) -> None:
        self.stop, self.bills, self.refused = stop, list[Bill](), False

    @property
    def bill(self) -> Bill:
        """The sum of what it took."""
        return summed(self.bills)


_ROW: ContextVar[Row | None] = ContextVar("openclaw_lab_row", default=None)


@contextlib.contextmanager
def row_under_way(stop: threading.Event) -> Iterator[Row]:
    """Whatever is asked in the block is on the bill of the Row that it gives."""
    made = Row(stop)
    mark = _ROW.set(made)
    try:
        yield made
    finally:
        _ROW.reset(mark)


def current_row() -> Row | None:
    """The row that is under way here, if there is one."""
    return _ROW.get()


def _floor(dollars: float) -> int:
    return math.floor(round(dollars * _PARTS, 3))


def _ceiling(dollars: float) -> int:
    return math.ceil(round(dollars * _PARTS, 3))


def _number(name: str, given: object, words: str, *, above: float = -math.inf, least: float = -math.inf) -> None:
    if given is None:
        return
    number = math.nan if isinstance(given, bool) or not isinstance(given, Real) else float(given)
    if not (math.isfinite(number) and number > above and number >= least):
        raise ConfigError(name, given, words)
