"""A text in, a Redaction out: the text without its secrets, and where each of them was.

Every rule finds all it can; what overlaps becomes one span; everything is replaced at once, again until nothing is
found (see `settle`). A text that is JSON stays JSON: its strings are redacted where they stand, keys and numbers kept.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openclaw_lab.config import RedactionConfig
from openclaw_lab.errors import RuleError
from openclaw_lab.messages import Message
from openclaw_lab.redaction.candidates import Gates
from openclaw_lab.redaction.conversation import Conversation
from openclaw_lab.redaction.engine import HyperscanGates
from openclaw_lab.redaction.json_text import is_json, leaves
from openclaw_lab.redaction.keys import NAMES, says_something, secret_name
from openclaw_lab.redaction.recognisers import Recogniser, finder
from openclaw_lab.redaction.seed import redact_in_sequence
from openclaw_lab.redaction.settle import settle
from openclaw_lab.redaction.spans import Found, Redaction, replaced
from openclaw_lab.redaction.stream import Stream, lag_of
from openclaw_lab.rules.lint import lint
from openclaw_lab.rules.rule import Rule, all_rules, combined, switched_on

_RULES = Path(__file__).with_name("rules")
_PLACEHOLDER = re.compile(r"\[([A-Z][A-Z0-9]*(?:_[A-Z][A-Z0-9]*)*)\]")
# JSON within a string within JSON: so many times; what lies deeper is redacted as plain text.
_DEPTH = 5
ENGINES: Mapping[str, Callable[[Sequence[Rule]], Gates | HyperscanGates]] = {"re": Gates, "hyperscan": HyperscanGates}
_OPENS = frozenset("{[ \t\n\r")
_SEED_NAMES = ("REDACTED", "EMAIL", "PHONE", "API_KEY", "TOKEN", "IP")


@functools.cache
def preset_rules(preset: str) -> tuple[Rule, ...]:
    """All rules of a preset, in order, those that are switched off too; none for `relaxed`."""
    return () if preset == "relaxed" else all_rules(_RULES / f"{preset}.json")


def rules_of(config: RedactionConfig) -> tuple[Rule, ...]:
    """All rules that a configuration knows: the preset's, and those of the user's file, which are linted."""
    rules = preset_rules(config.preset)
    if not config.rules:
        return rules
    path = Path(config.rules).expanduser()
    own = all_rules(path)
    for rule in own:
        lint(rule, path.name)
    return combined(rules, own)


class Redactor:
    """The redactor of a RedactionConfig.

    `recognisers` are further finders: callables that give `(start, end, type)` or `(start, end, type, score)` for a
    text (see `recognisers`). `engine` is `re`, or `hyperscan` (an extra) for megabytes of text: the result is the same.
    """

    def __init__(
        self, config: RedactionConfig | None = None, recognisers: Sequence[Recogniser] = (), engine: str = "re"
    ) -> None:
        self._config = config or RedactionConfig()
        known = rules_of(self._config)
        self.rules = switched_on(known, self._config.off, "redaction.off")
        self._seed = self._config.preset == "seed"
        if not self._seed:
            self.rules = tuple(_with_placeholder(rule) for rule in self.rules)
        self._more = tuple(finder(each, number) for number, each in enumerate(recognisers))
        if engine not in ENGINES:
            raise RuleError("redaction engine", engine, f"one of {', '.join(ENGINES)}")
        self._gates: Gates | HyperscanGates = ENGINES[engine](() if self._seed else self.rules)
        self.lag = None if self._seed or self._more else lag_of(self.rules)
        self.walls = _walls([_with_placeholder(rule) for rule in known] if not self._seed else known, bool(recognisers))

    @property
    def numbered(self) -> bool:
        """Whether placeholders have numbers."""
        return self._config.placeholders == "numbered"

    def redact(self, text: str) -> Redaction:
        """Remove what is found."""
        return self.conversation().redact(text) if self.numbered else self.plain(text)

    def redact_many(self, texts: Iterable[str]) -> list[Redaction]:
        """`redact` for each text; numbers are the same for all of them."""
        return self.conversation().redact_many(texts)

    def redact_value(self, value: Any) -> Any:
        """A JSON-like value with its strings redacted; keys, numbers and everything else stay."""
        return self.conversation().redact_value(value)

    def redact_message(self, message: Message | Mapping[str, Any]) -> Any:
        """A message of the same kind, its text, blocks, tool calls and results redacted."""
        return self.conversation().redact_message(message)

    def conversation(self, keys: Mapping[str, str] | None = None) -> Conversation:
        """The same verbs with numbers that stay the same from text to text; `keys`: what numbers stand for already."""
        return Conversation(self, keys)

    def stream(self) -> Stream:
        """A redactor for a text that comes in pieces."""
        return self.conversation().stream()

    def plain(self, text: str, key: str = "") -> Redaction:
        """`redact` without numbers, of a text or of a value that stands under a key."""
        if self._seed:
            return redact_in_sequence(text, self.rules)
        return self._made(text, self._spans(text, key, 0))

    def plain_many(self, texts: Sequence[str]) -> list[Redaction]:
        """`plain` for each text."""
        if self._seed or self._more:
            return [self.plain(text) for text in texts]
        looked_at = [_opened(text) if text[:1] in _OPENS and is_json(text) else text for text in texts]
        return [
            self._made(text, self._spans(text, "", 0, rules))
            for text, rules in zip(texts, self._gates.of_many(looked_at), strict=True)
        ]

    def candidates(self, text: str) -> tuple[Rule, ...]:
        """The rules that could find something in a text."""
        return self._gates.of(text)

    def settled(self, text: str) -> tuple[Found, ...]:
        """What is removed from a text that is no JSON."""
        return self._settle(text, self._gates.of(text))

    def _settle(self, text: str, rules: Sequence[Rule]) -> tuple[Found, ...]:
        return settle(text, rules, self.walls, self._more) if rules or self._more else ()

    @staticmethod
    def _made(text: str, spans: tuple[Found, ...]) -> Redaction:
        return Redaction(replaced(text, spans), spans) if spans else Redaction(text)

    def _spans(self, text: str, key: str, depth: int, rules: Sequence[Rule] | None = None) -> tuple[Found, ...]:
        """What is removed from a text that stands under a key; `rules`: those that could find something, when known."""
        if text[:1] in _OPENS and depth < _DEPTH and is_json(text):
            inner = None
            if "\\" not in text:  # each string is a piece of the text: what could be in one could be in the text
                inner = self._gates.of(_opened(text)) if rules is None else rules
            return tuple(
                found
                for leaf in leaves(text)
                for found in leaf.placed(self._spans(leaf.text, leaf.key or key, depth + 1, inner))
            )
        found = self._settle(text, self._gates.of(text) if rules is None else rules)
        name = secret_name(key) if key else ""
        if name and says_something(self.walls.sub("", _left(text, found))):
            return (Found(0, len(text), "key", "secret-key", f"[{name}]"),)
        return found


def _opened(text: str) -> str:
    """A JSON text whose strings stand on lines of their own: what may stand before a match may stand before them."""
    return text.replace('"', "\n")


def _left(text: str, spans: Iterable[Found]) -> str:
    """A text without what was found."""
    parts, at = [], 0
    for each in spans:
        parts.append(text[at : each.start])
        at = each.end
    return "".join([*parts, text[at:]])


def _with_placeholder(rule: Rule) -> Rule:
    """A rule that writes one placeholder; one that names none writes its type."""
    written = rule.replacement or f"[{re.sub('[^A-Z0-9]+', '_', rule.type.upper()).strip('_')}]"
    if len(_PLACEHOLDER.findall(written)) != 1 or any(char in _PLACEHOLDER.sub("", written) for char in "[]"):
        raise RuleError(f"{rule.id}: replacement", written, "one placeholder such as [EMAIL], with or without words")
    return dataclasses.replace(rule, replacement=written)


def _walls(rules: Iterable[Rule], any_name: bool) -> re.Pattern[str]:
    """What finds placeholders: those of any rule, with or without a number."""
    names = {*NAMES, *_SEED_NAMES, *(name for rule in rules for name in _PLACEHOLDER.findall(rule.replacement))}
    inside = _PLACEHOLDER.pattern[3:-3] if any_name else "|".join(sorted(names, key=lambda each: (-len(each), each)))
    return re.compile(rf"\[(?:{inside})(?:_[0-9]{{1,9}})?\]")


@functools.cache
def default_redactor() -> Redactor:
    """The redactor of the default configuration, made once."""
    return Redactor()


def redact(text: str) -> str:
    """The seed document's nine replacements, result for result: a later rule reads what an earlier one left."""
    return redact_in_sequence(text, preset_rules("seed")).text
