"""What went wrong with a model in, one line out: the model, what happened, what to do; never a credential."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from openclaw_lab.errors import ConfigError, LabError, OfflineError, RefusedError, excerpt

_SECRET_NAME = re.compile(r"(?:^|_)(?:key|token|secret|password|credentials?|headers?|authorization|cert)(?:_|$)", re.I)
# What looks like a credential: a known beginning, or a long mixture of letters and digits; and who asks, in an address.
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|pat|key)[-_][\w.*-]{3,}|\bBearer\s+\S+|(?<=//)[^/@\s]+@"
    r"|(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}",
    re.IGNORECASE,
)


def fault(error: Exception, model: str, options: Mapping[str, Any], timeout: float) -> LabError:
    """The error to raise for one of litellm's."""
    where, said = f"model {model}", excerpt(_without(str(error), options), 160)
    said = re.sub(r"^(?:litellm\.)?(?:\w+(?:Error|Exception)\s*(?:: |- ))+", "", said.removeprefix("litellm."))
    status = getattr(error, "status_code", None)
    if "provider not provided" in said.lower():
        return ConfigError("model", model, "provider/model", "such as litellm:openai/gpt-4o-mini")
    if "credentials" in said or "api_key" in said or status in (401, 403):
        todo = "give a valid api_key=…, or set the variable that litellm reads for this provider"
        return RefusedError(status if status in (401, 403) else 401, where, said, todo)
    if timed_out(error):
        return OfflineError(where, f"no answer within {timeout:g} s", todo="raise timeout, or try again later")
    if _unreached(error):
        return OfflineError(where, "no connection", todo="check the network and api_base, or replay a cassette")
    if status == 429 or (isinstance(status, int) and status >= 500):
        return OfflineError(where, f"{status}: {said}", todo="try again later")
    if isinstance(status, int):
        todo = "check the model's name" if status == 404 else "check the options and the length of the messages"
        return RefusedError(status, where, f"{status}: {said}", todo)
    return LabError(where, f"{type(error).__name__}: {said}", todo="check the options of the call")


def pause_asked(error: Exception) -> float | None:
    """The seconds that a server asks to wait (`Retry-After`: a number, or a date); None where it asks for nothing."""
    for each in _chain(error):
        headers = getattr(getattr(each, "response", None), "headers", None) or {}
        for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            if (found := _seconds(headers.get(name), unit)) is not None:
                return found
    return None


def may_have_cost(error: Exception) -> bool:
    """Whether a request that failed may have been worked on, and be paid for: no answer came, and none says why."""
    if timed_out(error):
        return True
    refused = any(
        isinstance(each, ConnectionRefusedError) or type(each).__name__ in ("ConnectError", "ConnectTimeout")
        for each in _chain(error)
    )
    return _unreached(error) and not refused


def timed_out(error: Exception) -> bool:
    """Whether nothing came within the time."""
    return "Timeout" in type(error).__name__


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that make a request another one: no credential, and no name of a user in an address."""
    return {
        name: re.sub(r"(?<=//)[^/@]*@", "", value) if isinstance(value, str) else value
        for name, value in options.items()
        if not _SECRET_NAME.search(name)
    }


def without_given(text: str, options: Mapping[str, Any]) -> str:
    """A text without the credentials of a call."""
    given = _texts([value for name, value in options.items() if _SECRET_NAME.search(name)])
    for value in sorted(given, key=len, reverse=True):
        text = text.replace(value, "[SECRET]")
    return text


def _without(text: str, options: Mapping[str, Any]) -> str:
    """A text without the credentials of a call, and without what looks like one."""
    return _SECRET.sub("[SECRET]", without_given(text, options))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (value,) if len(value) > 3 else ()
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


def _seconds(said: object, unit: float) -> float | None:
    if not isinstance(said, str) or not said.strip():
        return None
    try:
        found = float(said) * unit
    except ValueError:
        date = email.utils.parsedate_tz(said)
        if date is None:
            return None
        found = email.utils.mktime_tz(date) - time.time()
    return max(found, 0.0) if found < float("inf") else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _unreached(error: Exception) -> bool:
    names = {"APIConnectionError", "ConnectError", "ReadError", "WriteError", "RemoteProtocolError"}
    chained = any(isinstance(each, ConnectionError) or type(each).__name__ in names for each in _chain(error))
    return chained or "connection error" in str(error).lower()
