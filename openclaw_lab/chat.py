"""A conversation and tools in, one answer of a model out: text, tool calls, tokens, cost; streamed, recorded, replayed.

As `models.complete`, whose rules for cassettes, credentials and errors hold here too, for models that may call tools.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openclaw_lab.models import Ask, loaded, plain_options

Delta = Callable[[str], None]


def chat(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    on_delta: Delta | None = None,
    cassette: str | Path | None = None,
    cassette_only: bool = False,
    timeout: float = 60.0,
    retries: int = 2,
    **options: Any,
) -> dict[str, Any]:
    """An answer as plain values: `text`, `calls` (id, name, arguments as JSON), `stop`, `usage`, `cost` (US dollars).

    `messages` and `tools` have the OpenAI form. With `on_delta` the answer is streamed and each piece of text handed
    over as it comes, from another thread; an answer out of the cassette comes as one piece. `cost` is None for a model
    whose price litellm does not know.
    """
    request: dict[str, Any] = {"messages": [dict(each) for each in messages], **plain_options(options)}
    if tools:
        request["tools"] = [dict(each) for each in tools]
    ask = Ask(model, "completion", options, cassette, cassette_only, timeout, retries)
    key = ask.key(request)
    known = ask.recorded(key)
    if known is None:
        answer = ask.send(request, _streaming(on_delta) if on_delta else None)
        known = ask.record(key, _row(ask, answer))
    elif on_delta and known["text"]:
        on_delta(str(known["text"]))
    return known


def _streaming(on_delta: Delta) -> Callable[..., Any]:
    """A completion that is put together from its pieces; when asked a second time it hands none over again."""
    told = False

    def call(**given: Any) -> Any:
        nonlocal told
        litellm, chunks, silent, ended = loaded(), [], told, False
        for chunk in litellm.completion(**given, stream=True, stream_options={"include_usage": True}):
            chunks.append(chunk)
            choices = getattr(chunk, "choices", None)
            piece = getattr(choices[0].delta, "content", None) if choices else None
            ended = ended or bool(choices and choices[0].finish_reason)
            if piece and not silent:
                told = True
                on_delta(piece)
        if not ended:  # a proxy that gives up closes the stream as if all had been said
            raise ConnectionError("the stream ended early")
        return litellm.stream_chunk_builder(chunks, messages=given["messages"])

    return call


def _row(ask: Ask, answer: Any) -> dict[str, Any]:
    try:
        choice = answer.choices[0]
        message, usage = choice.message, getattr(answer, "usage", None)
        calls = [
            {"id": each.id, "name": each.function.name or "", "arguments": each.function.arguments or ""}
            for each in getattr(message, "tool_calls", None) or ()
        ]
        text = message.content or ""
    except (AttributeError, IndexError, TypeError):
        raise ask.unusable("an answer without a message") from None
    return {
        "text": text,
        "calls": calls,
        "stop": getattr(choice, "finish_reason", None) or "stop",
        "usage": _usage(usage),
        "cost": _cost(ask.model, answer),
    }


def _usage(usage: Any) -> dict[str, int]:
    """Tokens as `messages.Usage` counts them: `input` without what came from the cache."""
    prompt, output = (int(getattr(usage, name, None) or 0) for name in ("prompt_tokens", "completion_tokens"))
    details = getattr(usage, "prompt_tokens_details", None)
    cached = min(int(getattr(details, "cached_tokens", None) or 0), prompt)
    return {"input": prompt - cached, "output": output, "cache_read": cached}


def _cost(model: str, answer: Any) -> float | None:
    try:
        return float(loaded().completion_cost(completion_response=answer, model=model))
    except Exception:  # litellm raises its own errors for a model without a price; the answer is good all the same
        return None
