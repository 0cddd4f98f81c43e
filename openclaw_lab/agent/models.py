"""The models an agent may run on: scripted, echo, a cassette around any of them, litellm's, or any callable.

A model is `model(request) -> Reply`; a text stands for a Reply of that text, and an `async` one is waited for.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from openclaw_lab.agent.reply import Reply, Request
from openclaw_lab.agent.wire import message_out, payload, reply_of, reply_row, tool_out
from openclaw_lab.cassette import Tape, cassette_at
from openclaw_lab.errors import ConfigError, DataError, TaskError, excerpt
from openclaw_lab.messages import Message, ToolCall
from openclaw_lab.models import PREFIX, named
from openclaw_lab.spending import limited

Answer = Reply | str


class Model(Protocol):
    """Anything that answers a request."""

    def __call__(self, request: Request, /) -> Answer | Awaitable[Answer]:
        """The answer to one request."""


class ScriptedModel:
    """Answers in turn from a list, or what a function of the request says; deterministic, asks nobody.

    An item of the list is a Reply, a text, or tool calls (see `calls`). When the list is used up it is an error, unless
    `repeat` says to begin again.
    """

    def __init__(self, script: Iterable[Answer] | Callable[[Request], Answer], *, repeat: bool = False) -> None:
        if not callable(script) and (isinstance(script, str | Mapping) or not isinstance(script, Iterable)):
            raise TaskError("scripted model", f"a {type(script).__name__}", "a list of answers, or a function")
        self._function = script if callable(script) else None
        self._replies = () if callable(script) else tuple(map(as_reply, script))
        self._repeat, self.asked = repeat, 0

    def __call__(self, request: Request, /) -> Reply:
        """The next answer."""
        at, self.asked = self.asked, self.asked + 1
        if self._function is not None:
            return as_reply(self._function(request))
        if at >= len(self._replies) and not (self._repeat and self._replies):
            found = f"call {at + 1} of a script of {len(self._replies)}"
            raise TaskError("scripted model", found, "an answer for every call", "make the script longer")
        return self._replies[at % len(self._replies)]


def echo(request: Request) -> Reply:
    """A model that says what it was told; for trying hooks and commands without a model."""
    last = request.last
    return Reply(f"{'Result' if last.role == 'tool' else 'You said'}: {last.text}")


def calls(*wanted: tuple[str, Mapping[str, Any]] | ToolCall, text: str = "") -> Reply:
    """An answer that calls tools: `calls(("kb_search", {"query": "x"}))`."""
    return Reply(text, tuple(map(_call, wanted)), stop="tool_calls")


def _call(wanted: object) -> ToolCall:
    if isinstance(wanted, ToolCall):
        return wanted
    if isinstance(wanted, tuple | list) and len(wanted) == 2 and isinstance(wanted[0], str):
        return ToolCall(None, wanted[0], wanted[1])
    raise TaskError("calls", excerpt(repr(wanted), 60), "a tool's name and its arguments", 'calls(("name", {…}))')


@dataclass(frozen=True)
class LiteLLMModel:
    """A model of litellm. `options` go to litellm (`api_base`, `api_key`, `temperature`, …) and are never shown; limits
    among them (`budget`, `per_minute`, …) are for all that the model is asked.
    """

    model: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    cassette: str | Path | Tape | None = None
    cassette_only: bool = False
    timeout: float = 60.0
    retries: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", limited(self.options))

    def __call__(self, request: Request, /) -> Reply:
        """Ask, or take the answer from the cassette."""
        from openclaw_lab.chat import chat

        own = {name: getattr(self, name) for name in ("cassette", "cassette_only", "timeout", "retries")}
        row = chat(
            self.model,
            [message_out(each) for each in request.messages],
            tools=[tool_out(each) for each in request.tools],
            on_delta=request.on_delta,
            **{**own, **self.options},
        )
        return reply_of(row)


@dataclass(frozen=True)
class TapedModel:
    """Any other model with a cassette: what is in it is not asked for again. `name` is part of the key."""

    model: Model
    cassette: Path
    only: bool = False
    name: str = ""

    def __call__(self, request: Request, /) -> Reply | Awaitable[Reply]:
        """The recorded answer, else the model's own, recorded."""
        tape = cassette_at(self.cassette)
        asked = ["chat", self.name, payload(request.messages, request.tools)]
        key = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
        known = tape.find(key, "chat")
        if known is not None:
            return reply_of(known)
        if self.only:
            raise DataError(str(self.cassette), "no answer to this request", todo="record it first: with a model")
        keep = functools.partial(self._kept, key)
        answer = self.model(request)
        return keep(answer) if isinstance(answer, Reply | str) else _later(answer, keep)

    def _kept(self, key: str, answer: Answer) -> Reply:
        row = {"key": key, "kind": "chat", "model": self.name, **reply_row(as_reply(answer))}
        return reply_of(cassette_at(self.cassette).append(row))


async def _later(answer: Awaitable[Answer], keep: Callable[[Answer], Reply]) -> Reply:
    return keep(await answer)


def as_reply(answer: object) -> Reply:
    """An answer as a Reply: one already, a text, or an assistant Message."""
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, str):
        return Reply(answer)
    if isinstance(answer, Message) and answer.role == "assistant":
        return Reply(answer.text, answer.tool_calls, answer.usage)
    raise TaskError("model", f"an answer of type {type(answer).__name__}", "a Reply or a text")


def model_of(
    model: object,
    *,
    cassette: str | Path | None = None,
    cassette_only: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Model:
    """The model that is meant: a name (`echo`, `litellm:…`), a list of answers, or a callable; with a cassette."""
    if isinstance(model, str) and model.startswith(PREFIX):
        return LiteLLMModel(named(model), dict(options or {}), cassette, cassette_only)
    if options:
        raise ConfigError("model options", ", ".join(map(str, options)), "none beside a model that is not litellm's")
    found = _plain_model(model)
    if cassette is None:
        if cassette_only:
            raise ConfigError("cassette_only", "no cassette", "the path of one", "give cassette=…")
        return found
    name = model if isinstance(model, str) else getattr(model, "__qualname__", type(model).__name__)
    return TapedModel(found, Path(cassette).expanduser().absolute(), cassette_only, name)


def _plain_model(model: object) -> Model:
    if isinstance(model, str):
        if model != "echo":
            raise ConfigError("model", model, "echo, litellm:provider/model, a list of answers, or a callable")
        return echo
    if callable(model):
        return model
    if isinstance(model, Sequence):
        return ScriptedModel(model)
    raise ConfigError("model", model, "echo, litellm:provider/model, a list of answers, or a callable")
