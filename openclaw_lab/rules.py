"""Rules are data: a JSON file in JavaScript regular-expression syntax, in; compiled rules that mean the same, out.

The same file is read by the exported plugin. In both languages `\\d \\w \\b` are ASCII, `\\s` is Unicode white space as
JavaScript has it, and ignoring case folds ASCII letters only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from openclaw_lab.errors import RuleError
from openclaw_lab.files import read_text

# ECMAScript WhiteSpace and LineTerminator; Python's own \s has five more characters and lacks U+FEFF.
JS_SPACE = "\\t\\n\\v\\f\\r \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
_JS_SPACES = re.compile(f"[{JS_SPACE}]+")
_ESCAPE_OR_BRACKET = re.compile(r"\\.|[\[\]]", re.DOTALL)
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "g": re.NOFLAG}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it finds (`type`), the pattern in JavaScript syntax, and the same compiled for Python."""

    id: str
    type: str
    pattern: str
    flags: str
    note: str
    compiled: re.Pattern[str]


def load_rules(path: Path) -> tuple[Rule, ...]:
    """The enabled rules of a file, in order; a RuleError names the file, the rule and what is wrong."""
    try:
        rows = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise RuleError(f"{path.name}:{error.lineno}", error.msg, "a JSON list of rules") from None
    if not isinstance(rows, list):
        raise RuleError(path.name, rows, "a JSON list of rules")
    rules = [_rule(path.name, row) for row in rows]
    ids = [rule.id for rule in rules]
    for rule_id in ids:
        if ids.count(rule_id) > 1:
            raise RuleError(f"{path.name}: {rule_id}", "the id twice", "one rule an id")
    return tuple(rule for rule, row in zip(rules, rows, strict=True) if row.get("enabled", True))


def _rule(file: str, row: object) -> Rule:
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("id", "type", "pattern")):
        raise RuleError(file, row, "an object with the strings id, type and pattern")
    flags = row.get("flags", "")
    compiled = compile_js(row["pattern"], flags, f"{file}: {row['id']}")
    return Rule(row["id"], row["type"], row["pattern"], flags, row.get("note", ""), compiled)


def compile_js(pattern: str, flags: str = "", where: str = "pattern") -> re.Pattern[str]:
    """Compile a JavaScript pattern so that it matches the same in Python."""
    unknown = set(flags) - set(_FLAGS)
    if unknown:
        raise RuleError(where, f"the flag {min(unknown)!r}", f"flags among {', '.join(_FLAGS)}")
    value = re.ASCII
    for flag in flags:
        value |= _FLAGS[flag]
    try:
        return re.compile("".join(_translated(pattern)), value)
    except re.error as error:
        raise RuleError(where, pattern, f"a valid pattern ({error.msg})") from None


def _translated(pattern: str) -> Iterator[str]:
    """The pattern with `\\s` written out, in and out of a class; the rest is the same in both languages."""
    in_class, end = False, 0
    for token in _ESCAPE_OR_BRACKET.finditer(pattern):
        yield pattern[end : token.start()]
        end, text = token.end(), token.group()
        if text == "\\s":
            yield JS_SPACE if in_class else f"[{JS_SPACE}]"
        else:
            in_class = text == "[" or (in_class and text != "]")
            yield text
    yield pattern[end:]


def js_collapse(text: str) -> str:
    """What `text.replace(/\\s+/g, " ").trim()` gives in JavaScript."""
    return _JS_SPACES.sub(" ", text).strip(" ")
