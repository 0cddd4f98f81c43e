"""A model's name and messages in, its answer out, through litellm; every answer may be kept in a cassette and replayed.

A cassette is one JSONL file, an answer a line, found by the sha256 of the whole request without its secrets. What is in
it is never asked for again; what is not is asked for, written to disk, then returned. Credentials reach neither the
cassette nor an error. It asks nobody but the model that the caller names, and reads no key from the environment
(litellm reads its own).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_lab.cassette import cassette_at
from openclaw_lab.errors import ConfigError, DataError, LabError, OfflineError, RefusedError, TaskError, excerpt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
PREFIX = "litellm:"
# Texts that are embedded with one request.
_BATCH = 128
# Seconds before the second attempt; twice as long before each further one.
_WAIT = 0.25
_SECRET_NAME = re.compile(r"(?:^|_)(?:key|token|secret|password|credentials?|headers?|authorization|cert)(?:_|$)", re.I)
# What looks like a credential: a known beginning, or a long mixture of letters and digits; and who asks, in an address.
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|pat|key)[-_][\w.*-]{3,}|\bBearer\s+\S+|(?<=//)[^/@\s]+@"
    r"|(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL | re.IGNORECASE)


# --- asking -------------------------------------------------------------------------------------------------------


def complete(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    schema: Mapping[str, Any] | None = None,
    cassette: str | Path | None = None,
    cassette_only: bool = False,
    timeout: float = 60.0,
    retries: int = 2,
    **options: Any,
) -> str:
    """A model's answer to messages in the OpenAI form; `schema`: the JSON schema that the answer should follow.

    `model` is a name of litellm, such as `openai/gpt-4o-mini`. `options` go to litellm (`api_base`, `api_key`,
    `temperature`, …). `timeout` is in seconds; `retries` counts further attempts when there is no connection.
    """
    request = {"messages": [dict(each) for each in messages], **plain_options(options)}
    if schema is not None:
        form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}
        request |= {"response_format": form, "drop_params": True}
    ask = Ask(model, "completion", options, cassette, cassette_only, timeout, retries)
    key = ask.key(request)
    if (known := ask.recorded(key)) is not None:
        return str(known["text"])
    answer = ask.send(request)
    try:
        text, usage = answer.choices[0].message.content or "", getattr(answer, "usage", None)
        counts = {name: getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")}
    except (AttributeError, IndexError, TypeError):
        raise ask.unusable("an answer without a message") from None
    return str(ask.record(key, {"text": text, **counts})["text"])


def complete_json(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    read: Callable[[Any], T],
    *,
    schema: Mapping[str, Any],
    **options: Any,
) -> T:
    """What `read` makes of a model's JSON answer; one that it refuses (ValueError) is sent back once to be repaired."""
    asked = [dict(each) for each in messages]
    answer = complete(model, asked, schema=schema, **options)
    try:
        return read(_parsed(answer))
    except ValueError as error:
        fault = excerpt(str(error), 200)
    asked += [
        {"role": "assistant", "content": answer},
        {
            "role": "user",
            "content": f"Not usable / 无法使用：{fault}. Answer again, with JSON only. 请只用 JSON 重答。",
        },
    ]
    try:
        return read(_parsed(complete(model, asked, schema=schema, **options)))
    except ValueError as error:
        todo = "try again, or name a model that keeps to a JSON schema"
        found = f"two answers that are not usable, the last: {error}"
        raise TaskError(f"model {named(model)}: {excerpt(found, 160)}", todo=todo) from None


def embed(
    model: str,
    texts: Sequence[str],
    *,
    cassette: str | Path | None = None,
    cassette_only: bool = False,
    timeout: float = 60.0,
    retries: int = 2,
    **options: Any,
) -> NDArray[np.float32]:
    """One row a text, as the model gives it; each text is recorded on its own, so that only new ones are asked for."""
    import numpy as np

    ask = Ask(model, "embedding", options, cassette, cassette_only, timeout, retries)
    plain = plain_options(options)
    keys = {text: ask.key({"input": text, **plain}) for text in texts}
    rows = {text: _unpacked(known) for text, key in keys.items() if (known := ask.recorded(key)) is not None}
    missing = [text for text in keys if text not in rows]
    for start in range(0, len(missing), _BATCH):
        block = missing[start : start + _BATCH]
        vectors = _vectors(ask, ask.send({"input": block, **plain}), len(block))
        for text, vector in zip(block, vectors, strict=True):
            rows[text] = _unpacked(ask.record(keys[text], {"vector": base64.b64encode(vector.tobytes()).decode()}))
    if len({len(row) for row in rows.values()}) > 1:
        raise ask.unusable("rows of different lengths")
    return np.stack([rows[text] for text in texts]) if texts else np.zeros((0, 0), dtype=np.float32)


def named(model: str) -> str:
    """A model's name as litellm knows it: without the prefix `litellm:`; anything but a name is a ConfigError."""
    name = model.removeprefix(PREFIX) if isinstance(model, str) else ""
    if not name or name != name.strip():
        raise ConfigError("model", model, "a name of litellm, such as litellm:openai/gpt-4o-mini")
    return name


def _parsed(answer: str) -> Any:
    fenced = _FENCE.fullmatch(answer)
    try:
        return json.loads(fenced[1] if fenced else answer)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg} at character {error.pos})") from None
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def _vectors(ask: Ask, answer: Any, count: int) -> list[NDArray[np.float32]]:
    import numpy as np

    try:
        listed = [each if isinstance(each, Mapping) else vars(each) for each in answer.data]
        ordered = sorted(listed, key=lambda each: int(each["index"]))
        rows = [np.asarray(each["embedding"], dtype="<f4") for each in ordered]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ask.unusable("an answer without vectors") from None
    if len(rows) != count or any(row.ndim != 1 or not row.size or not np.isfinite(row).all() for row in rows):
        raise ask.unusable(f"an answer that is not {count} rows of finite numbers")
    return rows


def _unpacked(known: Mapping[str, Any]) -> NDArray[np.float32]:
    import numpy as np

    return np.frombuffer(base64.b64decode(known["vector"]), dtype="<f4").astype(np.float32)


class Ask:
    """One call: to whom, how, and where its answer is kept."""

    def __init__(
        self,
        model: str,
        kind: str,
        options: Mapping[str, Any],
        cassette: str | Path | None,
        only: bool,
        timeout: float,
        retries: int,
    ) -> None:
        self.model, self.kind, self.options = named(model), kind, options
        self.only, self.timeout, self.retries = only, timeout, retries
        if only and cassette is None:
            raise ConfigError("cassette_only", "no cassette", "the path of one", "give cassette=…")
        if options.get("stream"):
            raise ConfigError("stream", True, "answers as a whole", "leave it out")
        self.cassette = None if cassette is None else cassette_at(Path(cassette).expanduser().absolute())

    def key(self, request: Mapping[str, Any]) -> str:
        """The sha256 of a request; texts that are not Unicode count as they are."""
        try:
            plain = json.dumps([self.kind, self.model, request], sort_keys=True, allow_nan=False)
        except (TypeError, ValueError):
            raise ConfigError(f"model {self.model}", "a value that JSON has not", "plain values") from None
        return hashlib.sha256(plain.encode()).hexdigest()

    def recorded(self, key: str) -> dict[str, Any] | None:
        """The answer that the cassette has; DataError when only it may answer and it has none."""
        known = self.cassette.find(key, self.kind) if self.cassette is not None else None
        if known is None and self.only and self.cassette is not None:
            todo = "record it first: the same call without cassette_only"
            raise DataError(str(self.cassette.path), f"no answer of {self.model} to this request", todo=todo)
        return known

    def record(self, key: str, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer, as it is kept; the first one stays when two were asked at once."""
        if self.cassette is None:
            return answer
        kept = {**answer, "text": _without_given(answer["text"], self.options)} if "text" in answer else answer
        return self.cassette.append({"key": key, "kind": self.kind, "model": self.model, **kept})

    def send(self, request: Mapping[str, Any], call: Callable[..., Any] | None = None) -> Any:
        """Ask, again where there was no connection; `call` stands in for the one of litellm."""
        litellm = loaded()
        call = call or (litellm.completion if self.kind == "completion" else litellm.embedding)
        given = {**request, **self.options, "model": self.model, "timeout": self.timeout, "max_retries": 0}
        for attempt in range(self.retries + 1):
            try:
                return _apart(call, given)
            except Exception as error:
                failure = _failure(error, self)
                again = isinstance(failure, OfflineError) and not _timed_out(error)
                if not again or attempt == self.retries:
                    raise failure from None
            time.sleep(_WAIT * 2**attempt)
        raise ConfigError("retries", self.retries, "0 or more")

    def unusable(self, found: str) -> TaskError:
        """What to raise for an answer that is none."""
        return TaskError(
            f"model {self.model}", found, todo="check that the name and api_base are those of such a model"
        )


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


_QUIET = _Quiet()


@functools.cache
def loaded() -> Any:
    """litellm, told to fetch nothing and to print nothing; seconds of CPU."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with _QUIET:
        import litellm
    litellm.suppress_debug_info, litellm.telemetry = True, False
    return litellm


def _apart(call: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Call in a thread of its own: litellm makes itself an event loop and must not meet a notebook's."""
    pool = ThreadPoolExecutor(1, "openclaw-lab-model")
    try:
        with _QUIET:
            return pool.submit(call, **given).result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


# --- what went wrong ----------------------------------------------------------------------------------------------


def _failure(error: Exception, ask: Ask) -> LabError:
    """One line: the model, what happened, what to do."""
    where, said = f"model {ask.model}", excerpt(_without(str(error), ask.options), 160)
    said = re.sub(r"^(?:litellm\.)?(?:\w+(?:Error|Exception)\s*(?:: |- ))+", "", said.removeprefix("litellm."))
    status = getattr(error, "status_code", None)
    if "provider not provided" in said.lower():
        return ConfigError("model", ask.model, "provider/model", "such as litellm:openai/gpt-4o-mini")
    if "credentials" in said or "api_key" in said or status in (401, 403):
        todo = "give a valid api_key=…, or set the variable that litellm reads for this provider"
        return RefusedError(status if status in (401, 403) else 401, where, said, todo)
    if _timed_out(error):
        return OfflineError(where, f"no answer within {ask.timeout:g} s", todo="raise timeout, or try again later")
    if _unreached(error):
        return OfflineError(where, "no connection", todo="check the network and api_base, or replay a cassette")
    if status == 429 or (isinstance(status, int) and status >= 500):
        return OfflineError(where, f"{status}: {said}", todo="try again later")
    if isinstance(status, int):
        todo = "check the model's name" if status == 404 else "check the options and the length of the messages"
        return RefusedError(status, where, f"{status}: {said}", todo)
    return LabError(where, f"{type(error).__name__}: {said}", todo="check the options of the call")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _timed_out(error: Exception) -> bool:
    return "Timeout" in type(error).__name__


def _unreached(error: Exception) -> bool:
    names = {"APIConnectionError", "ConnectError", "ReadError", "WriteError", "RemoteProtocolError"}
    chained = any(isinstance(each, ConnectionError) or type(each).__name__ in names for each in _chain(error))
    return chained or "connection error" in str(error).lower()


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that make a request another one: no credential, and no name of a user in an address."""
    return {
        name: re.sub(r"(?<=//)[^/@]*@", "", value) if isinstance(value, str) else value
        for name, value in options.items()
        if not _SECRET_NAME.search(name)
    }


def _without(text: str, options: Mapping[str, Any]) -> str:
    """A text without the credentials of a call, and without what looks like one."""
    return _SECRET.sub("[SECRET]", _without_given(text, options))


def _without_given(text: str, options: Mapping[str, Any]) -> str:
    """A text without the credentials of a call."""
    given = _texts([value for name, value in options.items() if _SECRET_NAME.search(name)])
    for value in sorted(given, key=len, reverse=True):
        text = text.replace(value, "[SECRET]")
    return text


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (value,) if len(value) > 3 else ()
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)
