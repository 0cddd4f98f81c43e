"""Limits, the account of a run, and what a request may cost: a budget is never exceeded, whoever comes when."""

from __future__ import annotations

import math
import pickle
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_lab.cassette import MemoryTape
from openclaw_lab.errors import BudgetError, ConfigError
from openclaw_lab.pricing import in_dollars, most_of
from openclaw_lab.provider import price_of
from openclaw_lab.spending import Bill, Limits, Spending, limited, row_under_way, summed
from openclaw_lab.threads import in_threads

# --- limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 0}, "US dollars, above 0"),
        ({"budget": -1}, "US dollars, above 0"),
        ({"budget": "5"}, "US dollars, above 0"),
        ({"budget": "五元"}, "五元; expected US dollars, above 0"),
        ({"budget": True}, "US dollars, above 0"),
        ({"budget": math.nan}, "US dollars, above 0"),
        ({"budget": math.inf}, "US dollars, above 0"),
        ({"concurrency": 0}, "a whole number, 1 or more"),
        ({"concurrency": 2.5}, "a whole number, 1 or more"),
        ({"concurrency": 1000}, "256 at most"),
        ({"per_minute": 0}, "requests a minute, above 0"),
        ({"per_minute": "fast"}, "requests a minute, above 0"),
        ({"price": 1.0}, r"such as \(0.15, 0.6\)"),
        ({"price": (1.0,)}, r"such as \(0.15, 0.6\)"),
        ({"price": (1.0, None)}, r"such as \(0.15, 0.6\)"),
        ({"price": (1.0, -2.0)}, r"such as \(0.15, 0.6\)"),
        ({"price": "1,2"}, r"such as \(0.15, 0.6\)"),
        ({"buget": 1}, "option buget: found 1; expected budget"),
        ({"per_minutes": 1}, "expected per_minute"),
        ({"concurency": 2}, "expected concurrency"),
        ({"spending": 5}, "a Spending"),
        ({"spending": Spending(), "budget": 1}, "no limits beside it"),
    ],
)
def test_a_limit_that_is_none(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        limited(options)
    assert "\n" not in str(caught.value)


def test_limits_become_one_account_and_the_rest_stays() -> None:
    made = limited({"budget": 1, "price": [1, 2], "concurrency": 8, "per_minute": 30, "api_base": "x", "max_tokens": 5})
    spending = made.pop("spending")
    assert spending.limits == Limits(1, (1.0, 2.0), 8, 30)
    assert made == {"api_base": "x", "max_tokens": 5}
    assert limited({"spending": spending, "n": 1})["spending"] is spending
    assert limited({"budget": None, "concurrency": None})["spending"].limits == Limits()


def test_an_account_with_a_limit_is_for_one_process() -> None:
    assert pickle.loads(pickle.dumps(Spending(Limits(concurrency=2)))).limits == Limits(concurrency=2)
    assert pickle.loads(pickle.dumps(MemoryTape())).find("a", "completion") is None
    for each in (Limits(budget=1), Limits(per_minute=1)):
        with pytest.raises(ConfigError, match="found several processes; expected one"):
            pickle.dumps(Spending(each))


# --- the budget ---------------------------------------------------------------------------------------------------

_COSTS = st.tuples(st.integers(0, 1000), st.floats(0, 1))  # the bound, and the share of it that is used
_WORK = st.lists(_COSTS, min_size=1, max_size=30)


@given(_WORK, st.integers(1, 20_000), st.randoms(use_true_random=False))
def test_no_order_of_reserving_and_settling_exceeds_a_budget(work: Any, budget: int, random: Any) -> None:
    """One thread stands for many: what would wait is tried again after something was settled."""
    spending = Spending(Limits(budget=budget / 1000))
    open_requests: list[tuple[int, float]] = []
    spent = 0.0
    for bound, share in work:
        wanted = bound / 1000
        while open_requests and (random.random() < 0.5 or _would_wait(spending, wanted)):
            reserved, used = open_requests.pop(random.randrange(len(open_requests)))
            spending.settle(reserved, used)
            spent += used
        try:
            open_requests.append((spending.reserve(wanted), wanted * share))
        except BudgetError:
            assert round(spending.spent + wanted, 9) > budget / 1000
            break
        assert spending._spent + spending._reserved <= budget * 10**9
    for reserved, used in open_requests:
        spending.settle(reserved, used)
        spent += used
    assert spending.spent <= budget / 1000
    assert spending.spent == pytest.approx(spent, abs=1e-9)
    assert spending._reserved == 0


def _would_wait(spending: Spending, wanted: float) -> bool:
    return spending.stopped is None and spending.spent + spending._reserved / 1e12 + wanted > (
        spending.limits.budget or 0
    )


@settings(max_examples=20, deadline=None)
@given(_WORK, st.integers(1, 8_000), st.integers(1, 16))
def test_threads_never_exceed_a_budget_and_never_hang(work: Any, budget: int, threads: int) -> None:
    spending, highest = Spending(Limits(budget=budget / 1000)), []
    settled: list[float] = []

    def ask(cost: tuple[int, float]) -> bool:
        bound, share = cost
        try:
            reserved = spending.reserve(bound / 1000)
        except BudgetError:
            return False
        highest.append(spending._spent + spending._reserved)
        used = share * bound / 1000
        settled.append(used)
        spending.settle(reserved, used)
        return True

    done = [each.value for each in in_threads(ask, work, spending, concurrency=threads)]
    assert math.fsum(settled) <= budget / 1000 + 1e-12
    assert all(each <= budget * 10**9 for each in highest)
    if sum(bound for bound, _ in work) <= budget:
        assert done == [True] * len(work)


def test_one_that_does_not_fit_yet_waits_for_what_others_leave_over() -> None:
    spending = Spending(Limits(budget=1.0))
    first, got = spending.reserve(0.8), list[int]()
    waiting = threading.Thread(target=lambda: got.append(spending.reserve(0.5)))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    spending.settle(first, 0.1)
    waiting.join(5)
    assert got == [500_000_000_000]
    spending.settle(got[0], 0.5)
    with pytest.raises(BudgetError, match=r"\$0.600000 spent, and up to \$0.500000 for the next request") as caught:
        spending.reserve(0.5)
    with pytest.raises(BudgetError):  # nor anything after it
        spending.reserve(0.0001)
    assert spending.stopped is caught.value


def test_a_budget_that_is_just_enough_is_enough() -> None:
    spending = Spending(Limits(budget=0.3))
    for _ in range(3):
        spending.settle(spending.reserve(0.1), 0.1)
    assert spending.spent == 0.3
    with pytest.raises(BudgetError):
        spending.reserve(1e-9)


# --- bills --------------------------------------------------------------------------------------------------------


def test_what_is_replayed_is_not_paid() -> None:
    row = {"usage": {"input": 50, "cache_read": 20, "output": 5}, "cost": 0.5, "seconds": 1.5}
    assert Bill.of(row, replayed=False) == Bill(1, 0, 70, 5, 0.5, 0.5, seconds=1.5)
    assert Bill.of(row, replayed=True) == Bill(0, 1, 70, 5, 0.5, 0.0, seconds=1.5)
    old = {"text": "hi", "prompt_tokens": 7, "completion_tokens": None}
    assert Bill.of(old, replayed=True) == Bill(0, 1, 7, 0, unpriced=1)
    assert Bill.of({"usage": None, "cost": None}, replayed=False).unpriced == 1


def test_a_sum_is_the_same_in_any_order() -> None:
    bills = [Bill(1, 0, 3, 1, cost, cost, seconds=cost) for cost in (0.1, 0.2, 0.3, 1e-9, 7.7)]
    assert summed(bills) == summed(bills[::-1])
    assert summed(bills).tokens == 20
    assert summed([]) == Bill()
    said = str(Bill(1200, 3, 10, 5, 0.5, 0.25, 0.125, 2, 61))
    assert said == (
        "1,200 requests, 3 answers from a cassette, 10 tokens in, 5 out, $0.250000 paid, 2 of unknown price"
        " (and at most $0.125000 for requests without an answer), 61.0 s"
    )


def test_what_is_asked_within_a_row_is_on_its_bill_also_from_threads_of_its_own() -> None:
    spending = Spending()

    def ask(number: int) -> None:
        spending.note(Bill(requests=number))

    with row_under_way(threading.Event()) as row:
        ask(1)
        list(in_threads(ask, [10, 100], spending))
    ask(1000)
    assert (row.bill.requests, spending.bill.requests) == (111, 1111)
    assert not row.stop.is_set()


def test_an_error_ends_the_threads_and_is_raised() -> None:
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        return 1 // (number - 2)

    with pytest.raises(ZeroDivisionError):
        list(in_threads(work, range(1000), Spending(), concurrency=2))
    assert len(begun) < 10


# --- what a request may cost --------------------------------------------------------------------------------------

USER = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "add", "parameters": {}}}


@pytest.mark.parametrize(
    ("request_", "least"),
    [
        ({"messages": USER}, 16384 * 0.6e-6),
        ({"messages": USER, "max_tokens": 10}, 10 * 0.6e-6 + 2 * 0.15e-6),
        ({"messages": USER, "max_completion_tokens": 10}, 10 * 0.6e-6),
        ({"messages": USER, "max_tokens": 10, "n": 3}, 30 * 0.6e-6),
        ({"messages": [{"role": "user", "content": "好" * 1000}], "max_tokens": 1}, 3000 * 0.15e-6),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "好" * 1000}]}], "max_tokens": 1},
         3000 * 0.15e-6),
        ({"messages": USER, "tools": [TOOL], "max_tokens": 1}, 1000 * 0.15e-6),
        ({"messages": USER, "max_tokens": 1000, "service_tier": "priority"}, 1000 * 1.0e-6),
    ],
)  # fmt: skip
def test_a_bound_is_above_what_it_could_cost(request_: dict[str, Any], least: float) -> None:
    most = most_of("openai/gpt-4o-mini", "completion", request_, None)
    assert least <= most <= 3 * least + 400 * 0.3e-6


def test_a_bound_by_a_price_that_is_given() -> None:
    asked = {"messages": USER, "max_tokens": 1_000_000}
    assert most_of("openai/tiny", "completion", asked, (0, 2)) == 2.0
    assert most_of("openai/tiny", "completion", {"messages": USER}, (0, 0)) == 0.0
    assert most_of("openai/text-embedding-3-small", "embedding", {"input": ["好" * 100]}, None) < 1e-4
    assert in_dollars((1, 2), {"input": 10**6, "cache_read": 10**6, "output": 10**6}) == 4.0
    assert price_of("openai/tiny") is None


@pytest.mark.parametrize(
    ("model", "request_", "price", "words"),
    [
        ("openai/tiny", {"messages": USER}, None, r"no price of openai/tiny .* give price=\(dollars per million"),
        ("openai/tiny", {"messages": USER}, (1, 2), "no longest answer of openai/tiny .* give max_tokens=…"),
        ("gpt-4o-mini", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]}, None,
         "a message with image_url"),
    ],
)  # fmt: skip
def test_what_nobody_can_bound(model: str, request_: dict[str, Any], price: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        most_of(model, "completion", request_, price)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_a_text_has_no_more_tokens_than_bytes(text: str) -> None:
    from openclaw_lab.text import count_tokens

    asked = {"messages": [{"role": "user", "content": text}], "max_tokens": 1}
    assert most_of("openai/gpt-4o-mini", "completion", asked, (10**6, 0)) >= count_tokens(text)
