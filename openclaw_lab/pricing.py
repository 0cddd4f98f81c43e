"""A request in, the most that it can cost out, before it is sent; ConfigError where nobody can say.

A token is at least one byte of a text, so a text has no more tokens than bytes in UTF-8, in any language. The output is
bounded by `max_tokens`, or by what the model can write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from openclaw_lab.errors import ConfigError
from openclaw_lab.provider import Price, price_of

# Tokens that a provider may add of its own: to each message, to a request, to one with tools or a form for the answer.
_EACH, _ALL, _FORMS = 16, 64, 1_000
_FORM_NAMES = ("tools", "functions", "response_format")


def most_of(model: str, kind: str, request: Mapping[str, Any], price: tuple[float, float] | None) -> float:
    """In US dollars. `kind`: `completion` or `embedding`; `price`: US dollars per million tokens, in and out."""
    known = price_of(model, tiers="service_tier" in request)
    if price is not None:
        known = Price(price[0] / 1e6, price[1] / 1e6, known.longest if known else None)
    if known is None:
        todo = "give price=(dollars per million input tokens, per million output tokens)"
        raise ConfigError("budget", f"no price of {model} on litellm's list", "a price", todo)
    written = 0 if kind == "embedding" or not known.output else _output(model, request, known.longest)
    return _input(request) * known.input + written * known.output


def in_dollars(price: tuple[float, float], used: Mapping[str, int]) -> float:
    """What the tokens of a usage cost, at a price per million."""
    return ((used["input"] + used["cache_read"]) * price[0] + used["output"] * price[1]) / 1e6


def _input(request: Mapping[str, Any]) -> int:
    listed = request.get("messages") or request.get("input") or ()
    forms = [request[name] for name in _FORM_NAMES if request.get(name)]
    return _ALL + sum(_EACH + _bytes(each) for each in listed) + sum(_FORMS + _bytes(each) for each in forms)


def _bytes(value: object) -> int:
    """Of a text; of what is none, as JSON."""
    if isinstance(value, Mapping) and isinstance(parts := value.get("content"), list):
        odd = next((each.get("type") for each in parts if isinstance(each, Mapping) and "text" not in each), None)
        if odd is not None:
            raise ConfigError("budget", f"a message with {odd}", "texts: what else costs, nobody can say beforehand")
    plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(plain.encode("utf-8", "surrogatepass"))


def _output(model: str, request: Mapping[str, Any], longest: int | None) -> int:
    given = [int(request[name]) for name in ("max_completion_tokens", "max_tokens") if request.get(name)]
    if not given and longest is None:
        raise ConfigError("budget", f"no longest answer of {model} on litellm's list", "a bound", "give max_tokens=…")
    return max(given or [longest or 0]) * int(request.get("n") or 1)
