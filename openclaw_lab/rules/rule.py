"""A rule file in, its rules out, compiled and checked; an error names the file, the rule and what is wrong.

One row: `{id, type, pattern, flags, anchors, validator, replacement, languages, enabled, note}`. What a rule finds is
its first group where the pattern has one that took part, else the whole match.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_lab.errors import RuleError
from openclaw_lab.files import read_text
from openclaw_lab.knobs import nearest
from openclaw_lab.rules.gate import Gate, gate_of
from openclaw_lab.rules.pattern import compile_js
from openclaw_lab.rules.validators import VALIDATORS

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LANGUAGE = re.compile(r"[a-z]{2,3}")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it finds (`type`), the pattern in JavaScript syntax, and the same compiled for Python.

    `replacement` is the text that takes the place of what a redaction rule finds, as it is: no group is put into it.
    `anchors` are literals of which every match holds at least one, as declared; `gate` is what is used (see `gate`:
    None where nothing is known). `validator` names a check that what is found must pass (see `validators`);
    `languages` is empty for a rule of every language.
    """

    id: str
    type: str
    pattern: str
    flags: str
    note: str
    compiled: re.Pattern[str]
    replacement: str = ""
    anchors: tuple[str, ...] = ()
    validator: str = ""
    languages: tuple[str, ...] = ()
    enabled: bool = True
    gate: Gate | None = None


def load_rules(path: Path) -> tuple[Rule, ...]:
    """The enabled rules of a file, in order; a RuleError names the file, the rule and what is wrong."""
    return tuple(rule for rule in all_rules(path) if rule.enabled)


def all_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of a file, in order, those that are switched off too; errors as for `load_rules`."""
    try:
        rows = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise RuleError(f"{path.name}:{error.lineno}", error.msg, "a JSON list of rules") from None
    except (ValueError, RecursionError) as error:
        raise RuleError(path.name, f"JSON that cannot be read ({error})", "a JSON list of rules") from None
    if not isinstance(rows, list):
        raise RuleError(path.name, rows, "a JSON list of rules")
    rules: dict[str, Rule] = {}
    for row in rows:
        rule = _rule(path.name, row)
        if rule.id in rules:
            raise RuleError(f"{path.name}: {rule.id}", "the id twice", "one rule an id")
        rules[rule.id] = rule
    return tuple(rules.values())


def combined(rules: Iterable[Rule], more: Iterable[Rule]) -> tuple[Rule, ...]:
    """Two lists as one: a rule of the second takes the place of the first's rule with its id, or stands at the end."""
    return tuple(({rule.id: rule for rule in rules} | {rule.id: rule for rule in more}).values())


def switched_on(rules: Sequence[Rule], off: Iterable[str], where: str) -> tuple[Rule, ...]:
    """The enabled rules without those named in `off`; a name that no rule has is a RuleError."""
    known = {rule.id for rule in rules}
    for name in off:
        if name not in known:
            raise RuleError(where, name, "the id of a rule", nearest(name, [rule.id for rule in rules]))
    return tuple(rule for rule in rules if rule.enabled and rule.id not in set(off))


# --- one row ------------------------------------------------------------------------------------------------------


def _rule(file: str, row: object) -> Rule:
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("id", "type", "pattern")):
        raise RuleError(file, row, "an object with the strings id, type and pattern")
    where = f"{file}: {row['id']}"
    for name in row:
        if name not in _FIELDS:
            raise RuleError(f"{where}: {name}", expected="a field of a rule", todo=nearest(str(name), _FIELDS))
    for name, (valid, expected) in _FIELDS.items():
        # `flags` is checked, letter by letter, where the pattern is compiled.
        if name in row and name != "flags" and not valid(row[name]):
            raise RuleError(f"{where}: {name}", repr(row[name]), expected)
    compiled = compile_js(row["pattern"], row.get("flags", ""), where)
    _check_validator(where, row.get("validator", ""))
    gate = _gate(where, compiled, row.get("anchors", ()))
    return Rule(
        row["id"], row["type"], row["pattern"], row.get("flags", ""), row.get("note", ""), compiled,
        row.get("replacement", ""), tuple(row.get("anchors", ())), row.get("validator", ""),
        tuple(row.get("languages", ())), row.get("enabled", True), gate,
    )  # fmt: skip


def _text(value: object) -> bool:
    return isinstance(value, str)


def _words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and each for each in value)


def _codes(value: Any) -> bool:
    return _words(value) and all(_LANGUAGE.fullmatch(each) for each in value)


def _id(value: Any) -> bool:
    return bool(_ID.fullmatch(value))


def _name(value: Any) -> bool:
    return bool(value.strip())


def _replacement(value: object) -> bool:
    return isinstance(value, str) and "$" not in value  # JavaScript puts groups in place of `$1` and `$&`


def _switch(value: object) -> bool:
    return isinstance(value, bool)


# field -> the check of its value, and what is expected
_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "id": (_id, "letters, digits, dots, - and _, at most 64"),
    "type": (_name, "the name of what is found"),
    "pattern": (_name, "a pattern"),
    "flags": (_text, "a string"),
    "anchors": (_words, "a list of literals"),
    "validator": (_text, "the name of a check"),
    "replacement": (_replacement, "a replacement without $"),
    "languages": (_codes, 'a list of language codes such as "zh"'),
    "enabled": (_switch, "true or false"),
    "note": (_text, "a string"),
}


def _check_validator(where: str, name: str) -> None:
    if name and name not in VALIDATORS:
        raise RuleError(f"{where}: validator", name, "the name of a check", nearest(name, VALIDATORS))


def _gate(where: str, compiled: re.Pattern[str], anchors: Sequence[str]) -> Gate | None:
    gate = gate_of(compiled, anchors)
    if anchors and gate is None:
        advice = _advice(gate_of(compiled))
        raise RuleError(f"{where}: anchors", ", ".join(anchors), "literals of which every match holds one", advice)
    return gate


def _advice(gate: Gate | None) -> str:
    if gate is None or not gate.literals:
        return "leave anchors out: the pattern needs no literal that can be proved"
    return f"leave them out, or write {', '.join(gate.literals)}"
