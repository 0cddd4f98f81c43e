"""A plain annotated function in, a Tool out: its annotations and docstring become the JSON Schema of its parameters.

What a model sends is not converted here: the schema says what is meant, and whoever calls the tool checks it.
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from openclaw_lab.errors import PluginError
from openclaw_lab.plugins.tool import NAMED_OTHERWISE, TOOL_NAME, Answer, Tool, ToolContext, ToolResult, is_tool_name

_SIMPLE: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_KINDS = "str, int, float, bool, list[…], dict[str, …], Literal[…], `… | None`, or Any"
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# `name: what it is` under "Args:", or `:param name: what it is`.
_ARGUMENTS = re.compile(r"^\s*(?:Args|Arguments|Parameters|参数)\s*[:：]\s*$", re.MULTILINE)
_DESCRIBED = re.compile(r"^\s*(?::param\s+)?(\w+)(?:\s*\([^)]*\))?\s*[:：]\s*(\S.*)$")


def tool_of(function: Callable[..., Any], *, name: str = "", description: str = "") -> Tool:
    """A Tool made of a function, plain or `async`; a parameter annotated with ToolContext gets the call's context.

    The first paragraph of the docstring is the description; `Annotated[str, "…"]`, a line `name: …` under `Args:` or
    `:param name: …` describes a parameter. What the function gives other than text becomes JSON.
    """
    if not callable(function):
        raise PluginError("tool_of", f"a {type(function).__name__}", "a function")
    if not isinstance(name, str) or not isinstance(description, str):
        raise PluginError("tool_of: name or description", f"a {type(name).__name__}", "texts")
    called = name or getattr(function, "__name__", "")
    if not name and not called.isidentifier():
        raise PluginError("tool_of", called, "a function with a name", "give it one: tool_of(function, name=…)")
    if not is_tool_name(called):
        raise PluginError("the name of a tool", called, TOOL_NAME, NAMED_OTHERWISE)
    text = inspect.getdoc(function) or ""
    said = description or " ".join(re.split(r"\n\s*\n|^\s*(?::param|Args:)", text, maxsplit=1, flags=re.M)[0].split())
    if not said:
        raise PluginError(f"tool {called}", "no docstring", "one, since a model chooses a tool by it")
    schema, context = _schema(function, called, _descriptions(text))
    return Tool(called, said, schema, _runner(function, context))


def _schema(function: Callable[..., Any], called: str, said: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """The schema of the parameters, and the name of the one that takes the context (empty: none does)."""
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError) as error:
        raise PluginError(f"tool {called}", f"annotations that cannot be read ({error})", _KINDS) from None
    properties: dict[str, Any] = {}
    required, context = [], ""
    for each in parameters:
        where = f"tool {called}: parameter {each.name}"
        if each.kind not in _NAMED:
            raise PluginError(where, str(each), "a parameter that can be given by name")
        if each.name not in hints:
            raise PluginError(where, "no annotation", _KINDS)
        if hints[each.name] is ToolContext:
            context = each.name
            continue
        made = _type_schema(hints[each.name], where)
        if each.name in said:
            made.setdefault("description", said[each.name])
        if each.default is inspect.Parameter.empty:
            required.append(each.name)
        elif _is_plain(each.default) and each.default is not None:
            made["default"] = each.default
        properties[each.name] = made
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return schema, context


def _type_schema(kind: Any, where: str) -> dict[str, Any]:
    origin, given = get_origin(kind), get_args(kind)
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if kind is Any:
        return {}
    if origin is Annotated:
        texts = [each for each in given[1:] if isinstance(each, str)]
        return {**_type_schema(given[0], where), **({"description": texts[0]} if texts else {})}
    if origin is Literal:
        kinds = {_SIMPLE.get(type(each)) for each in given}
        return {**({"type": kinds.pop()} if len(kinds) == 1 and None not in kinds else {}), "enum": list(given)}
    if origin in (Union, types.UnionType):
        return _union(given, where)
    if kind in (list, tuple) or origin in (list, tuple, Sequence):
        items = [each for each in given if each is not Ellipsis]
        return {"type": "array", **({"items": _type_schema(items[0], where)} if len(items) == 1 else {})}
    if kind is dict or (origin in (dict, Mapping) and given[0] is str):
        return {"type": "object", **({"additionalProperties": _type_schema(given[1], where)} if given else {})}
    raise PluginError(where, f"the annotation {getattr(kind, '__name__', kind)}", _KINDS)


def _union(given: tuple[Any, ...], where: str) -> dict[str, Any]:
    """`… | None` means that it may be left out: models are not asked to send null, but may."""
    schemas = [_type_schema(each, where) for each in given if each is not type(None)]
    if type(None) in given:
        schemas.append({"type": "null"})
    names = [each.get("type") for each in schemas]
    if all(each.keys() == {"type"} for each in schemas):
        return {"type": names}
    return {"anyOf": schemas}


def _descriptions(doc: str) -> dict[str, str]:
    listed = _ARGUMENTS.split(doc, maxsplit=1)[-1] if _ARGUMENTS.search(doc) else ""
    lines = listed.splitlines() + [line for line in doc.splitlines() if line.strip().startswith(":param")]
    found = [match for line in lines if (match := _DESCRIBED.match(line))]
    return {match.group(1): match.group(2).strip() for match in found}


def _is_plain(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _runner(function: Callable[..., Any], context: str) -> Callable[[Mapping[str, Any], ToolContext], Any]:
    if inspect.iscoroutinefunction(function):

        async def run_later(arguments: Mapping[str, Any], called: ToolContext) -> Answer:
            return answer_of(await function(**arguments, **({context: called} if context else {})))

        return run_later

    def run(arguments: Mapping[str, Any], called: ToolContext) -> Answer | Awaitable[Answer]:
        given = function(**arguments, **({context: called} if context else {}))
        return _awaited(given) if inspect.isawaitable(given) else answer_of(given)

    return run


async def _awaited(given: Awaitable[Any]) -> Answer:
    return answer_of(await given)


def answer_of(value: Any) -> Answer:
    """What a function gave, as a tool's answer: text and ToolResults stay, nothing is empty text, the rest is JSON."""
    if isinstance(value, str | ToolResult):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, default=str)
