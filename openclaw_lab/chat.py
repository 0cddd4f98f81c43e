"""A conversation and tools in, one answer of a model out: text, tool calls, tokens, cost; streamed, recorded, replayed.

As `models.complete`, whose rules for cassettes, credentials and errors hold here too, for models that may call tools.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openclaw_lab.asking import Ask
from openclaw_lab.cassette import Tape
from openclaw_lab.faults import plain_options
from openclaw_lab.provider import loaded
from openclaw_lab.spending import limited

Delta = Callable[[str], None]


def chat(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    on_delta: Delta | None = None,
    cassette: str | Path | Tape | None = None,
    cassette_only: bool = False,
    timeout: float = 60.0,
    retries: int = 2,
    **options: Any,
) -> dict[str, Any]:
    """An answer as plain values: `text`, `calls` (id, name, arguments as JSON), `stop`, `usage`, `cost` (US dollars).

    `messages` and `tools` have the OpenAI form. With `on_delta` the answer is streamed and each piece of text handed
    over as it comes, from another thread; an answer out of the cassette comes as one piece. `cost` is None for a model
    whose price neither litellm nor `price` knows.
    """
    ask = Ask(model, "completion", limited(options), cassette, cassette_only, timeout, retries)
    request: dict[str, Any] = {"messages": [dict(each) for each in messages], **plain_options(ask.options)}
    if tools:
        request["tools"] = [dict(each) for each in tools]
    told = _Told(on_delta) if on_delta else None
    row = ask.answered(request, lambda answer: _row(ask, answer), told)
    if on_delta and told and not told.asked and row["text"]:
        on_delta(str(row["text"]))
    return row


class _Told:
    """A completion that is put together from its pieces; when asked a second time it hands none over again."""

    def __init__(self, on_delta: Delta) -> None:
        self._on_delta, self._silent, self.asked = on_delta, False, False

    def __call__(self, **given: Any) -> Any:
        self.asked = True
        litellm, chunks, silent, ended = loaded(), [], self._silent, False
        for chunk in litellm.completion(**given, stream=True, stream_options={"include_usage": True}):
            chunks.append(chunk)
            choices = getattr(chunk, "choices", None)
            piece = getattr(choices[0].delta, "content", None) if choices else None
            ended = ended or bool(choices and choices[0].finish_reason)
            if piece and not silent:
                self._silent = True
                self._on_delta(piece)
        if not ended:  # a proxy that gives up closes the stream as if all had been said
            raise ConnectionError("the stream ended early")
        return litellm.stream_chunk_builder(chunks, messages=given["messages"])


def _row(ask: Ask, answer: Any) -> dict[str, Any]:
    try:
        choice = answer.choices[0]
        message = choice.message
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
    }
