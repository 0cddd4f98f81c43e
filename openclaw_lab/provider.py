"""litellm, the one place that loads it: told to fetch nothing and print nothing; what an answer cost and may cost.

Prices come from the list that litellm brings along, so nothing is fetched; of a model that is not on it none is known.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


class _Quiet:
    """Ignores what litellm and pydantic warn of while anything is within; the filters are put back by the last out."""

    def __init__(self) -> None:
        self._lock, self._within = threading.Lock(), 0
        self._caught = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                self._caught = warnings.catch_warnings()
                self._caught.__enter__()
                warnings.simplefilter("ignore", DeprecationWarning)
                warnings.filterwarnings("ignore", category=UserWarning, module="litellm|pydantic")
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._caught.__exit__(None, None, None)


QUIET = _Quiet()


_LOADING = threading.Lock()


def loaded() -> Any:
    """litellm; seconds of CPU the first time."""
    with _LOADING:  # two threads that import it at once would meet it half made
        return _loaded()


@functools.cache
def _loaded() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with QUIET:
        import litellm
    litellm.suppress_debug_info, litellm.telemetry = True, False
    return litellm


def apart(work: Callable[[], T], stop: threading.Event) -> T:
    """What `work` gives, done in a thread of its own where this one has an event loop or may be interrupted.

    litellm makes itself an event loop and must not meet a notebook's. Work that is interrupted here is brought to its
    end there, so that an answer that was paid for is kept; `stop` is set then.
    """
    if threading.current_thread() is not threading.main_thread() and not _looping():
        return work()
    pool = ThreadPoolExecutor(1, "openclaw-lab-model")
    try:
        return pool.submit(contextvars.copy_context().run, work).result()
    except (KeyboardInterrupt, SystemExit):
        stop.set()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _looping() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


# --- prices -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Price:
    """The most that a token of a model costs, in US dollars, and the most tokens that one answer may have."""

    input: float
    output: float
    longest: int | None


@functools.lru_cache(maxsize=64)
def price_of(model: str, *, tiers: bool = False) -> Price | None:
    """The highest of the rates on litellm's list: for long prompts, for what is written to a cache; `tiers`: also those
    of a service tier that a request may ask for.
    """
    try:
        about = dict(loaded().get_model_info(model))
    except Exception:  # litellm raises its own errors for a model that is not on its list
        return None
    about = {name: value for name, value in about.items() if tiers or not name.endswith(_TIERS)}
    given = [_highest(about, *names) for names in (_INPUT, _OUTPUT)]
    if about.get("mode") == "embedding":
        given[1] = given[1] or 0.0
    if given[0] is None or given[1] is None:
        return None
    dearer = max([1.0, *(float(value) for name, value in about.items() if name.endswith("_multiplier") and value)])
    longest = about.get("max_output_tokens")
    return Price(given[0] * dearer, given[1] * dearer, int(longest) if longest else None)


_INPUT = ("input_cost_per_token", "cache_creation_input_token_cost")
_TIERS = ("_priority", "_ultrafast", "_balanced")
_OUTPUT = ("output_cost_per_token", "output_cost_per_reasoning_token")


def _highest(about: Mapping[str, Any], *beginnings: str) -> float | None:
    found = list(_rates(about, beginnings))
    return max(found) if found else None


def _rates(about: Mapping[str, Any], beginnings: tuple[str, ...]) -> Iterator[float]:
    for name, value in about.items():
        if name.startswith(beginnings) and isinstance(value, int | float):
            yield float(value)
        elif name == "tiered_pricing":
            for tier in value or ():
                yield from _rates(tier, beginnings)


def cost_of(model: str, answer: Any) -> float | None:
    """What an answer cost in US dollars; None where no price is known."""
    try:
        return float(loaded().completion_cost(completion_response=answer, model=model))
    except Exception:  # as above; the answer is good all the same
        return None


def usage_of(answer: Any) -> dict[str, int] | None:
    """Tokens as `messages.Usage` counts them, `input` without what came from the cache; None where nothing is said."""
    used = getattr(answer, "usage", None)
    if used is None:
        return None
    prompt, output = (int(getattr(used, name, None) or 0) for name in ("prompt_tokens", "completion_tokens"))
    details = getattr(used, "prompt_tokens_details", None)
    cached = min(int(getattr(details, "cached_tokens", None) or 0), prompt)
    return {"input": prompt - cached, "output": output, "cache_read": cached}
