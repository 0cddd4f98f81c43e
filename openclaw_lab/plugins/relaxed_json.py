"""A JSON or JSON5 file in, its value out; what is wrong with it in one line that never shows the content.

OpenClaw writes its config and manifests as JSON5 (comments, trailing commas, bare names, single quotes). Such a text is
rewritten as JSON, line for line, and read by Python's own reader: far quicker than the JSON5 readers that there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from openclaw_lab.errors import LabError, PluginError
from openclaw_lab.files import read_text

# Bytes of a file.
_LARGEST = 4_000_000
_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*[\s\S]*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*')
    |(?P<sign>[{}\[\]:,])
    |(?P<space>[\s\ufeff]+)
    |(?P<word>[^\s{}\[\]:,"'/]+)
    |(?P<other>.)""",
    re.VERBOSE,
)
_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_HEX = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]+)")
_NUMBER = re.compile(r"([+-]?)(\d*\.?\d*(?:[eE][+-]?\d+)?)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|[\s\S])")
_ESCAPED = {
    "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0",
    "\n": "", "\r\n": "", "\r": "", "\u2028": "", "\u2029": "",
}  # fmt: skip


class _Twice(ValueError):
    """A name that stands twice in one object."""


def read_object(path: Path) -> dict[str, Any]:
    """The object that a file holds; PluginError names the file, and the line where that is known."""
    try:
        if path.is_file() and path.stat().st_size > _LARGEST:
            raise PluginError(str(path), f"{path.stat().st_size:,} bytes", f"at most {_LARGEST:,}")
        text = read_text(path)
    except OSError as error:
        raise PluginError(str(path), error.strerror or "an error", "a readable file") from None
    except LabError as error:
        raise PluginError(error.where, error.found, error.expected, error.todo) from None
    value = read_value(text, str(path))
    if not isinstance(value, dict):
        kind = {list: "list", str: "string", bool: "boolean", type(None): "null"}.get(type(value), "number")
        raise PluginError(str(path), f"a {kind}", "an object")
    return value


def read_value(text: str, where: str) -> Any:
    """The value of a JSON or JSON5 text."""
    try:
        try:
            return json.loads(text, object_pairs_hook=_object)
        except json.JSONDecodeError:
            return json.loads(as_json(text), object_pairs_hook=_object)
    except _Twice as error:
        raise PluginError(where, f"{error} given twice", "each name once") from None
    except json.JSONDecodeError as error:
        found = error.msg[:1].lower() + error.msg[1:] if text.strip() else "nothing in it"
        raise PluginError(f"{where}:{error.lineno}: no JSON5 ({found})") from None
    except (RecursionError, ValueError):  # ValueError: a number of thousands of digits
        raise PluginError(where, "too many levels or digits", "a plain object") from None


def as_json(text: str) -> str:
    """JSON5 rewritten as JSON, with the same lines; what is neither stays as it is."""
    tokens = [(str(match.lastgroup), match.group()) for match in _TOKEN.finditer(text)]
    made: list[str] = []
    before: list[int] = []  # places in `made` of the last two tokens that count
    for index, (kind, token) in enumerate(tokens):
        if kind in ("comment", "space"):
            made.append("\n" * token.count("\n") or " ")
            continue
        if token in "}]" and len(before) == 2 and made[before[1]] == "," and made[before[0]] not in "{[,:":
            made[before[1]] = ""  # a trailing comma
        before = [*before[-1:], len(made)]
        made.append(_written(kind, token, tokens, index))
    return "".join(made)


def _written(kind: str, token: str, tokens: list[tuple[str, str]], index: int) -> str:
    if kind == "string":
        plain = _ESCAPE.sub(_unescaped, token[1:-1])
        return json.dumps(plain) + "\n" * token.count("\n")
    if kind != "word":
        return token
    if _NAME.fullmatch(token):
        places = range(index + 1, len(tokens))
        after = next((tokens[place][1] for place in places if tokens[place][0] not in ("comment", "space")), "")
        return json.dumps(token) if after == ":" else token
    return _number(token)


def _unescaped(match: re.Match[str]) -> str:
    said = match.group(1)
    if len(said) > 2:
        return chr(int(said[1:], 16))
    return _ESCAPED.get(said, said)


def _number(token: str) -> str:
    """A number as JSON writes it; anything else as it is."""
    if found := _HEX.fullmatch(token):
        return f"{'-' if found.group(1) == '-' else ''}{int(found.group(2), 16)}"
    if token in ("+Infinity", "+NaN"):
        return token[1:]
    found = _NUMBER.fullmatch(token)
    if not found or not any(char.isdigit() for char in found.group(2)):
        return token
    sign, digits = "-" if found.group(1) == "-" else "", found.group(2)
    digits = re.sub(r"^\.", "0.", re.sub(r"\.(?=$|[eE])", ".0", digits))
    return sign + digits


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise _Twice(name)
        made[name] = value
    return made
