"""One request to a model in, its answer as a row out: found in the cassette, or asked for, paid within limits, kept.

Two that want the same answer at once share one request. An answer is written to disk before anybody sees it, and the
row says what it took: `usage` (tokens), `cost` (US dollars, null where no price is known), `seconds` from sending the
request that was answered. A server that says wait is obeyed, by all threads of a run.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openclaw_lab.cassette import Tape, cassette_at
from openclaw_lab.errors import ConfigError, DataError, LabError, OfflineError, TaskError
from openclaw_lab.faults import fault, may_have_cost, pause_asked, without_given
from openclaw_lab.pricing import in_dollars, most_of
from openclaw_lab.provider import QUIET, apart, cost_of, loaded, usage_of
from openclaw_lab.spending import Bill, Spending, current_row

PREFIX = "litellm:"
# Seconds before the second attempt; twice as long before each further one, up to the most.
_WAIT, _LONGEST = 0.25, 20.0
# Seconds that one request waits in all for a server that says when to come back.
PATIENCE = 300.0

Answer = dict[str, Any]


def named(model: str) -> str:
    """A model's name as litellm knows it: without the prefix `litellm:`; anything but a name is a ConfigError."""
    name = model.removeprefix(PREFIX) if isinstance(model, str) else ""
    if not name or name != name.strip():
        raise ConfigError("model", model, "a name of litellm, such as litellm:openai/gpt-4o-mini")
    return name


class Ask:
    """One call: to whom, how, within which limits, and where its answer is kept."""

    def __init__(
        self,
        model: str,
        kind: str,
        options: Mapping[str, Any],
        cassette: str | Path | Tape | None,
        only: bool,
        timeout: float,
        retries: int,
    ) -> None:
        self.model, self.kind = named(model), kind
        self.options = {name: value for name, value in options.items() if name != "spending"}
        self.spending: Spending = options["spending"]
        self.only, self.timeout, self.retries = only, timeout, retries
        if not isinstance(retries, int) or retries < 0:
            raise ConfigError("retries", retries, "0 or more")
        if only and cassette is None:
            raise ConfigError("cassette_only", "no cassette", "the path of one", "give cassette=…")
        if options.get("stream"):
            raise ConfigError("stream", True, "answers as a whole", "leave it out")
        self.cassette = tape_of(cassette)
        row = current_row()
        self._stop = threading.Event() if row is None else row.stop

    def key(self, request: Mapping[str, Any]) -> str:
        """The sha256 of a request; texts that are not Unicode count as they are."""
        try:
            plain = json.dumps([self.kind, self.model, request], sort_keys=True, allow_nan=False)
        except (TypeError, ValueError):
            raise ConfigError(f"model {self.model}", "a value that JSON has not", "plain values") from None
        return hashlib.sha256(plain.encode()).hexdigest()

    def recorded(self, key: str) -> Answer | None:
        """The answer that the cassette has; DataError when only it may answer and it has none."""
        known = self.cassette.find(key, self.kind) if self.cassette is not None else None
        if known is None and self.only and self.cassette is not None:
            todo = "record it first: the same call without cassette_only"
            raise DataError(str(self.cassette.path), f"no answer of {self.model} to this request", todo=todo)
        if known is not None:
            self.spending.note(Bill.of(known, replayed=True))
        return known

    def answered(
        self, request: Mapping[str, Any], read: Callable[[Any], Answer], call: Callable[..., Any] | None = None
    ) -> Answer:
        """The row of a request; `read` makes it of litellm's answer, `call` stands in for litellm's own function."""
        key = self.key(request)
        if (known := self.recorded(key)) is not None:
            return known

        def ask() -> Answer:
            answer, took = self.send(request, call)
            self.spending.note(Bill.of(took, replayed=False))
            return self.record(key, {**read(answer), **took})

        if self.cassette is None:
            return apart(ask, self._stop)
        while (row := self._shared(self.cassette, key, ask)) is None:
            pass
        return row

    def _shared(self, tape: Tape, key: str, ask: Callable[[], Answer]) -> Answer | None:
        """The answer to a request that is under way already, or is now; None when that of another failed."""
        mine, flight = _flight((str(tape.path), key))
        if mine:  # the answer may have come since this one looked
            return apart(lambda: _land(flight, lambda: self.recorded(key) or ask()), self._stop)
        try:
            row = flight.future.result()
        except LabError:  # it had limits and options of its own
            return None
        self.spending.note(Bill.of(row, replayed=True))
        return row

    def record(self, key: str, answer: Answer) -> Answer:
        """The answer, as it is kept; the first one stays when two were asked at once."""
        if self.cassette is None:
            return answer
        kept = {**answer, "text": without_given(answer["text"], self.options)} if "text" in answer else answer
        return self.cassette.append({"key": key, "kind": self.kind, "model": self.model, **kept})

    def send(self, request: Mapping[str, Any], call: Callable[..., Any] | None = None) -> tuple[Any, Answer]:
        """litellm's answer and what it took; asked again where there was no connection or the server says later."""
        most, waited, attempt = self._most(request), 0.0, 0
        while True:
            reserved = self._reserved(most)
            try:
                return self._once(request, call, most, reserved)
            except Exception as error:
                if isinstance(error, LabError):
                    raise
                failure = fault(error, self.model, self.options, self.timeout)
                asked = pause_asked(error) if isinstance(failure, OfflineError) else None
                pause = self._pause(asked, attempt) if isinstance(failure, OfflineError) else None
                if pause is None or waited + pause > PATIENCE:
                    raise self._later(failure, asked) from None
            if asked is not None:
                self.spending.pace.hold(pause)
            elif self._stop.wait(pause):
                raise failure
            waited, attempt = waited + pause, attempt + 1

    def _once(
        self, request: Mapping[str, Any], call: Callable[..., Any] | None, most: float, reserved: int
    ) -> tuple[Any, Answer]:
        """One attempt; what was set aside for it is settled, whatever comes."""
        given = {**request, **self.options, "model": self.model, "timeout": self.timeout, "max_retries": 0}
        paid = 0.0
        try:
            litellm = loaded()
            call = call or (litellm.completion if self.kind == "completion" else litellm.embedding)
            if not self.spending.pace.wait(self._stop):
                raise TaskError(f"model {self.model}", "the run was interrupted")
            begin = time.perf_counter()
            try:
                with QUIET:
                    answer = call(**given)
            except Exception as error:
                if most and may_have_cost(error):
                    paid = most
                    self.spending.note(Bill(lost=most))
                raise
            took = {"seconds": round(time.perf_counter() - begin, 3)}
            used = usage_of(answer)
            cost = self._cost(answer, used)
            paid = most if cost is None else cost
            return answer, {"usage": used, "cost": cost, **took}
        finally:
            self.spending.settle(reserved, paid)

    def _reserved(self, most: float) -> int:
        try:
            return self.spending.reserve(most)
        except LabError:
            self._refused()
            raise

    @staticmethod
    def _refused() -> None:
        if (row := current_row()) is not None:
            row.refused = True

    def _pause(self, asked: float | None, attempt: int) -> float | None:
        """Seconds to the next attempt; None for no further one. What a server asks for is no attempt of ours."""
        if asked is not None:
            return max(asked, _WAIT)
        return min(_WAIT * 2**attempt, _LONGEST) * random.uniform(1.0, 1.25) if attempt < self.retries else None

    @staticmethod
    def _later(failure: LabError, asked: float | None) -> LabError:
        if asked is None:
            return failure
        return OfflineError(failure.where, failure.found, todo=f"try again in {asked:,.0f} s, as the server asks")

    # --- money ---

    def _most(self, request: Mapping[str, Any]) -> float:
        """What a request can cost at most, in US dollars; 0 where there is no budget to keep."""
        if self.spending.limits.budget is None:
            return 0.0
        try:
            return most_of(self.model, self.kind, {**request, **self.options}, self.spending.limits.price)
        except ConfigError as error:  # every further request would end like this one
            self._refused()
            raise self.spending.stop(error) from None

    def _cost(self, answer: Any, used: Mapping[str, int] | None) -> float | None:
        price = self.spending.limits.price
        if price is None:
            return cost_of(self.model, answer)
        return None if used is None else in_dollars(price, used)

    def unusable(self, found: str) -> TaskError:
        """What to raise for an answer that is none."""
        return TaskError(
            f"model {self.model}", found, todo="check that the name and api_base are those of such a model"
        )


def tape_of(cassette: str | Path | Tape | None) -> Tape | None:
    """The cassette of a path, or what is used as one."""
    if isinstance(cassette, str | Path):
        return cassette_at(Path(cassette).expanduser().absolute())
    return cassette


# --- requests under way -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Flight:
    """A request for a key of a cassette."""

    place: tuple[str, str]
    future: Future[Answer] = field(default_factory=Future)


_FLIGHTS: dict[tuple[str, str], Flight] = {}
_LOCK = threading.Lock()


def _flight(place: tuple[str, str]) -> tuple[bool, Flight]:
    """The request for a key of a cassette that is under way; True with a new one, which is ours to land."""
    with _LOCK:
        known = _FLIGHTS.get(place)
        if known is not None:
            return False, known
        made = _FLIGHTS[place] = Flight(place)
        return True, made


def _land(flight: Flight, ask: Callable[[], Answer]) -> Answer:
    """Ask, for those who wait too."""
    try:
        row = ask()
    except BaseException as error:
        del _FLIGHTS[flight.place]
        flight.future.set_exception(error if isinstance(error, LabError) else LabError("model", type(error).__name__))
        raise
    del _FLIGHTS[flight.place]
    flight.future.set_result(row)
    return row
