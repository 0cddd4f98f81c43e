"""A JSON Schema and a value in; the value with its defaults, or every fault with its path, out.

Faults never show a value: it may be a secret. A schema may not refer to another file or address.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from openclaw_lab.errors import excerpt
from openclaw_lab.knobs import nearest

Schema = Mapping[str, Any]
_DEEPEST = 40
_MOST = 20
_LIMITS = {
    "minimum": "at least {limit}", "maximum": "at most {limit}",
    "exclusiveMinimum": "more than {limit}", "exclusiveMaximum": "less than {limit}",
    "minLength": "at least {limit} characters", "maxLength": "at most {limit} characters",
    "minItems": "at least {limit} items", "maxItems": "at most {limit} items",
}  # fmt: skip


def schema_fault(schema: object) -> str:
    """What is wrong with a schema of an object, in words; empty when nothing is."""
    if not isinstance(schema, Mapping):
        return f"found {named_kind(schema)}; expected a JSON Schema object"
    if schema.get("type", "object") != "object":
        return f"type: found {excerpt(schema['type'])}; expected object"
    try:
        validator(schema)
    except RecursionError:
        return "found too many levels"
    except ValueError as error:
        return _schema_words(error)
    return ""


def validator(schema: Schema) -> Any:
    """A compiled validator; ValueError for a schema that is none, or that refers to another place."""
    import jsonschema_rs

    return jsonschema_rs.validator_for(dict(schema), retriever=_elsewhere)


def _elsewhere(address: str) -> Any:
    raise ValueError(f"{address} is not read")


def _schema_words(error: ValueError) -> str:
    path = dotted("", getattr(error, "instance_path", ()) or ())
    words = excerpt(str(error).partition("\n")[0], 120)
    if "not present in a registry" in words:
        words = "refers to another place, which is not read"
    return f"{path}: {words}" if path else words


class Checker:
    """One schema, compiled at the first use."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._compiled: Any = None

    def __call__(self, value: object, where: str = "") -> list[str]:
        """Every fault of a value, `path: found …; expected …`, in the order of the paths; at most a few."""
        if self._compiled is None:
            self._compiled = validator(self._schema)
        try:
            if self._compiled.is_valid(value):
                return []
            lines = {line for error in self._compiled.iter_errors(value) for line in self._lines(error, value, where)}
        except (ValueError, TypeError, RecursionError, OverflowError) as error:  # a value that is no JSON at all
            return [f"{where or 'value'}: found what is no JSON ({type(error).__name__})"]
        return sorted(lines)[:_MOST]

    def _lines(self, error: Any, value: object, where: str) -> Iterator[str]:
        """One fault in words; for unexpected and missing names the path is theirs."""
        path, detail = list(error.instance_path), error.kind.as_dict()
        name = type(error.kind).__name__.rpartition("_")[2]
        if name == "Required":
            yield f"{dotted(where, [*path, detail['property']])}: is missing"
        elif name == "AdditionalProperties":
            known = sorted(self._offered(error))
            for each in detail["unexpected"]:
                todo = nearest(each, known) if known else "it offers none"
                yield f"{dotted(where, [*path, excerpt(each, 40)])}: not in the schema; {todo}"
        else:
            found = named_kind(at(value, path))
            yield f"{dotted(where, path) or 'value'}: found {found}; expected {_expected(name, detail, error)}"

    def _offered(self, error: Any) -> Mapping[str, Any]:
        """The properties beside the `additionalProperties` that a fault is about."""
        try:
            beside = at(self._schema, list(error.schema_path)[:-1])
        except (LookupError, TypeError):  # it stands behind a reference
            return {}
        return beside.get("properties", {}) if isinstance(beside, Mapping) else {}


def _expected(name: str, detail: Mapping[str, Any], error: Any) -> str:
    if name == "Type":
        return " or ".join(map(str, detail["types"]))
    if name == "Enum":
        return "one of " + ", ".join(str(each) for each in detail["options"])
    if name == "Pattern":
        return f"a string that matches {excerpt(detail['pattern'], 60)}"
    if name == "Format":
        return f"a string of the form {detail.get('format', '')}"
    keyword = str(error.schema_path[-1]) if error.schema_path else name
    if keyword in _LIMITS:
        return _LIMITS[keyword].format(limit=detail.get("limit", "the limit"))
    return f"what the schema says ({keyword})"


def dotted(where: str, path: Iterable[object]) -> str:
    """A path as it is written: `config.names[0].first`."""
    text = where
    for each in path:
        text += f"[{each}]" if isinstance(each, int) else f".{each}" if text else str(each)
    return text


def at(value: object, path: Iterable[Any]) -> object:
    """What stands at a path."""
    for each in path:
        value = value[each]  # type: ignore[index]
    return value


def named_kind(value: object) -> str:
    """What kind of JSON value it is, in words."""
    if value is None:
        return "null"
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "a string"),
        (Mapping, "an object"),
        ((list, tuple), "a list"),
    )
    return next((words for kind, words in kinds if isinstance(value, kind)), f"a {type(value).__name__}")


def with_defaults(schema: Schema, value: Mapping[str, Any]) -> dict[str, Any]:
    """The value with the schema's defaults where it says nothing, in nested objects too."""
    return _filled(schema, dict(value), 0)


def _filled(schema: Schema, value: dict[str, Any], depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or depth > _DEEPEST:
        return value
    for name, inner in properties.items():
        if not isinstance(inner, Mapping):
            continue
        if name not in value and "default" in inner:
            value[name] = copy.deepcopy(inner["default"])
        given = value.get(name)
        if isinstance(given, Mapping):
            value[name] = _filled(inner, dict(given), depth + 1)
        elif given is None and name not in value and inner.get("type") == "object":
            made = _filled(inner, {}, depth + 1)
            if made:
                value[name] = made
    return value
