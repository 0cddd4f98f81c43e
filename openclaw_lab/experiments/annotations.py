"""Marked places as other tools write them in, spans of the redaction format out; what they say is never shown.

    {"start": 0, "end": 5, "label": "EMAIL"}      also start_position, begin, offset+length; entity_type, tag, …
    [0, 5, "EMAIL"]                               as spaCy and Doccano write them
    {"value": "a@b.example", "label": "EMAIL"}    without a place: everywhere where it stands in the text

A list of them may stand as text, in JSON or as Python writes it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from typing import Any

from openclaw_lab.errors import DataError

_START = ("start", "start_position", "start_offset", "begin", "start_char", "offset")
_END = ("end", "end_position", "end_offset", "stop", "end_char")
_TYPE = ("type", "label", "entity_type", "entity_group", "entity", "category", "tag", "class", "类型", "标签")
_VALUE = ("value", "entity_value", "text", "word", "span", "form", "内容", "值")
_EXPECTED = "a list of {start, end, type}, of [start, end, type], or of {value, type}"


def spans_from(where: str, text: object, given: object, types: Mapping[str, object]) -> list[dict[str, Any]]:
    """The spans of a row, each `{"start", "end", "type"}` with offsets in code points of `text`.

    `types` renames types; one renamed to None is left out. Where it is not empty, a type that it does not name stays.
    """
    listed = _list_of(where, given)
    if not isinstance(text, str):
        raise DataError(f"{where} text", f"a {type(text).__name__}", "a string")
    spans = [span for number, each in enumerate(listed) for span in _spans(f"{where} spans[{number}]", text, each)]
    renamed = [{**span, "type": types.get(span["type"], span["type"])} for span in spans]
    return [span for span in renamed if span["type"] is not None]


def types_in(where: str, given: object) -> list[str]:
    """The types that a row's spans have, as they are called there."""
    found = (_type_of(each) for each in _list_of(where, given))
    return [each for each in found if isinstance(each, str)]


def _list_of(where: str, given: object) -> list[Any]:
    if isinstance(given, str) and given.strip():
        given = _written(where, given)
    if given is None or given == "" or (isinstance(given, float) and given != given):
        return []
    if isinstance(given, Mapping) and isinstance(given.get("entities"), list):
        given = given["entities"]
    if not isinstance(given, list | tuple):
        raise DataError(f"{where} spans", f"a {type(given).__name__}", _EXPECTED)
    return list(given)


def _written(where: str, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise DataError(f"{where} spans", "text that is neither JSON nor a Python list", _EXPECTED) from None


def _spans(where: str, text: str, given: object) -> Iterator[dict[str, Any]]:
    if isinstance(given, list | tuple) and len(given) == 3 and isinstance(given[2], str):
        yield _placed(where, given[0], given[1], given[2])
        return
    if not isinstance(given, Mapping):
        raise DataError(where, f"a {type(given).__name__}", _EXPECTED)
    kind = _type_of(given)
    if not isinstance(kind, str) or not kind.strip():
        raise DataError(where, f"the names {', '.join(map(str, given))}", f"a type, under {', '.join(_TYPE[:4])}")
    start, end, value = (_first(given, names) for names in (_START, _END, _VALUE))
    if end is None and start is not None and "length" in given:
        end = _whole(where, start) + _whole(where, given["length"])
    if start is not None and end is not None:
        yield _placed(where, start, end, kind)
    elif isinstance(value, str) and value:
        yield from _everywhere(where, text, value, kind)
    else:
        raise DataError(where, f"the names {', '.join(map(str, given))}", "start and end, or a value that stands there")


def _type_of(given: object) -> object:
    if isinstance(given, list | tuple):
        return given[2] if len(given) == 3 else None
    return _first(given, _TYPE) if isinstance(given, Mapping) else None


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _placed(where: str, start: object, end: object, kind: str) -> dict[str, Any]:
    return {"start": _whole(where, start), "end": _whole(where, end), "type": kind}


def _whole(where: str, value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int:
        raise DataError(where, f"a {type(value).__name__} for a place", "a whole number")
    return value


def _everywhere(where: str, text: str, value: str, kind: str) -> Iterator[dict[str, Any]]:
    at = text.find(value)
    if at < 0:
        raise DataError(where, f"a value of {len(value)} characters that is not in the text", "one that stands there")
    while at >= 0:
        yield {"start": at, "end": at + len(value), "type": kind}
        at = text.find(value, at + len(value))
