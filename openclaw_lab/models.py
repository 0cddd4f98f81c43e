"""A model's name and messages in, its answer out, through litellm; every answer may be kept in a cassette and replayed.

A cassette is one JSONL file, an answer a line, found by the sha256 of the whole request without its secrets. What is in
it is never asked for again; what is not is asked for, written to disk, then returned. Credentials reach neither the
cassette nor an error. It asks nobody but the model that the caller names, and reads no key from the environment
(litellm reads its own).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from openclaw_lab.asking import PREFIX, Ask, named
from openclaw_lab.cassette import Tape
from openclaw_lab.errors import TaskError, excerpt
from openclaw_lab.faults import plain_options
from openclaw_lab.spending import Bill, limited
from openclaw_lab.threads import in_threads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PREFIX", "complete", "complete_json", "embed", "named"]

T = TypeVar("T")
# Texts that are embedded with one request.
_BATCH = 128
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL | re.IGNORECASE)


def complete(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    schema: Mapping[str, Any] | None = None,
    cassette: str | Path | Tape | None = None,
    cassette_only: bool = False,
    timeout: float = 60.0,
    retries: int = 2,
    **options: Any,
) -> str:
    """A model's answer to messages in the OpenAI form; `schema`: the JSON schema that the answer should follow.

    `model` is a name of litellm, such as `openai/gpt-4o-mini`. `options` go to litellm (`api_base`, `api_key`,
    `temperature`, …), but for the limits (`budget`, `price`, `concurrency`, `per_minute`: see `spending.Limits`), which
    are kept for this call, or for all that share a `spending`. `timeout` is in seconds; `retries` counts further
    attempts when there is no connection, no answer in time, or a server that cannot work now.
    """
    ask = Ask(model, "completion", limited(options), cassette, cassette_only, timeout, retries)
    request = {"messages": [dict(each) for each in messages], **plain_options(ask.options)}
    if schema is not None:
        form = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}
        request |= {"response_format": form, "drop_params": True}
    return str(ask.answered(request, lambda answer: _said(ask, answer))["text"])


def _said(ask: Ask, answer: Any) -> dict[str, Any]:
    try:
        text, usage = answer.choices[0].message.content or "", getattr(answer, "usage", None)
        return {"text": text, **{name: getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")}}
    except (AttributeError, IndexError, TypeError):
        raise ask.unusable("an answer without a message") from None


def complete_json(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    read: Callable[[Any], T],
    *,
    schema: Mapping[str, Any],
    **options: Any,
) -> T:
    """What `read` makes of a model's JSON answer; one that it refuses (ValueError) is sent back once to be repaired."""
    asked, options = [dict(each) for each in messages], limited(options)
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
    cassette: str | Path | Tape | None = None,
    cassette_only: bool = False,
    timeout: float = 60.0,
    retries: int = 2,
    **options: Any,
) -> NDArray[np.float32]:
    """One row a text, as the model gives it; each text is recorded on its own, so that only new ones are asked for."""
    import numpy as np

    ask = Ask(model, "embedding", limited(options), cassette, cassette_only, timeout, retries)
    plain = plain_options(ask.options)
    keys = {text: ask.key({"input": text, **plain}) for text in texts}
    rows = {text: _unpacked(known) for text, key in keys.items() if (known := ask.recorded(key)) is not None}
    missing = [text for text in keys if text not in rows]
    blocks = [missing[start : start + _BATCH] for start in range(0, len(missing), _BATCH)]
    for done in in_threads(lambda block: _embedded(ask, keys, block, plain), blocks, ask.spending):
        rows |= done.value
    if len({len(row) for row in rows.values()}) > 1:
        raise ask.unusable("rows of different lengths")
    return np.stack([rows[text] for text in texts]) if texts else np.zeros((0, 0), dtype=np.float32)


def _embedded(
    ask: Ask, keys: Mapping[str, str], block: Sequence[str], plain: Mapping[str, Any]
) -> dict[str, NDArray[np.float32]]:
    """Ask for one block; what it took is shared out among its texts by their length."""
    answer, took = ask.send({"input": block, **plain})
    ask.spending.note(Bill.of(took, replayed=False))
    lengths = [len(text) + 1 for text in block]
    rows = {}
    for text, length, vector in zip(block, lengths, _vectors(ask, answer, len(block)), strict=True):
        share = length / sum(lengths)
        cost, seconds = None if took["cost"] is None else took["cost"] * share, took["seconds"] * share
        vector_text = base64.b64encode(vector.tobytes()).decode()
        row = ask.record(keys[text], {"vector": vector_text, "cost": cost, "seconds": seconds})
        rows[text] = _unpacked(row)
    return rows


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
