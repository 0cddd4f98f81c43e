"""Requests a minute: how many are let go when, with a clock that only the test moves."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_lab.pacing import Pace


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def paced(per_minute: float | None) -> tuple[Pace, Clock]:
    clock = Clock()
    return Pace(per_minute, clock=clock, sleep=clock.sleep), clock


@given(st.integers(1, 600), st.lists(st.floats(0, 90), min_size=1, max_size=200))
def test_no_minute_has_more_than_allowed(per_minute: int, pauses: list[float]) -> None:
    pace, clock = paced(per_minute)
    sent = []
    for pause in pauses:
        clock.now += pause if pause < 1 else 0.0
        assert pace.wait()
        sent.append(clock.now)
    for at, start in enumerate(sent):
        assert sum(start <= each < start + 60 - 1e-6 for each in sent[at:]) <= per_minute


def test_without_a_limit_nothing_waits() -> None:
    pace, clock = paced(None)
    assert all(pace.wait() for _ in range(100))
    assert clock.now == 1000.0


def test_an_idle_hour_is_no_credit() -> None:
    pace, clock = paced(60)
    pace.wait()
    clock.now += 3600
    begin = clock.now
    for _ in range(10):
        pace.wait()
    assert clock.now - begin == pytest.approx(9.0)


def test_a_server_that_says_wait_is_obeyed() -> None:
    pace, clock = paced(None)
    pace.wait()
    pace.hold(7.0)
    pace.hold(3.0)  # a shorter word does not shorten it
    pace.wait()
    assert clock.now == pytest.approx(1007.0)


def test_who_waits_already_is_put_off_too() -> None:
    clock = Clock()
    pace = Pace(6, clock=clock, sleep=clock.sleep)
    pace.wait()
    held = False

    def sleep(seconds: float) -> None:
        nonlocal held
        clock.now += seconds
        if not held:
            held = True
            pace.hold(60.0)

    pace._sleep = sleep
    pace.wait()
    assert clock.now >= 1060.0


def test_it_is_called_off() -> None:
    pace, _ = paced(1)
    stop = threading.Event()
    assert pace.wait(stop)
    stop.set()
    assert not pace.wait(stop)
    assert not Pace().wait(stop)


def test_threads_share_one_pace() -> None:
    pace = Pace(60 * 100)
    begin = time.monotonic()
    threads = [threading.Thread(target=lambda: [pace.wait() for _ in range(5)]) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert time.monotonic() - begin >= 0.19
