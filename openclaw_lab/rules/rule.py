"""A rule file in, its rules out, compiled and checked; an error names the file, the rule and what is wrong.

One row: `{id, type, pattern, flags, anchors, validator, replacement, languages, enabled, note}`. What a rule finds is
its first group where the pattern has one that took part, else the whole match.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from openclaw_lab.errors import RuleError
from openclaw_lab.files import read_text
from openclaw_lab.rules.pattern import compile_js


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it finds (`type`), the pattern in JavaScript syntax, and the same compiled for Python.

    `replacement` is the text that takes the place of what a redaction rule finds, as it is: no group is put into it.
    `anchors` are literals of which every match holds at least one (empty: not known); `validator` names a check that
    what is found must pass (see `validators`); `languages` is empty for a rule of every language.
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


def load_rules(path: Path) -> tuple[Rule, ...]:
    """The enabled rules of a file, in order; a RuleError names the file, the rule and what is wrong."""
    try:
        rows = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise RuleError(f"{path.name}:{error.lineno}", error.msg, "a JSON list of rules") from None
    except (ValueError, RecursionError) as error:
        raise RuleError(path.name, f"JSON that cannot be read ({error})", "a JSON list of rules") from None
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
    flags, replacement = row.get("flags", ""), row.get("replacement", "")
    if not isinstance(replacement, str) or "$" in replacement:  # JavaScript puts groups in place of `$1` and `$&`
        raise RuleError(f"{file}: {row['id']}", replacement, "a replacement without $")
    compiled = compile_js(row["pattern"], flags, f"{file}: {row['id']}")
    return Rule(
        row["id"], row["type"], row["pattern"], flags, row.get("note", ""), compiled, replacement,
        tuple(row.get("anchors", ())), row.get("validator", ""), tuple(row.get("languages", ())),
        row.get("enabled", True),
    )  # fmt: skip
