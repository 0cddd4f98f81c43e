"""A text in, a Redaction out: the text without its secrets, and where each of them was.

Every rule finds all it can; what overlaps becomes one span; everything is replaced at once, again until nothing is
found (see `settle`). A text that is JSON stays JSON: its strings are redacted where they stand, keys kept, and numbers
too unless their keys say that they are secrets (`{"phone": 13812345678}`): a string takes the place of those.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openclaw_lab.config import RedactionConfig
from openclaw_lab.errors import RuleError
from openclaw_lab.files import stamp
from openclaw_lab.messages import Message
from openclaw_lab.redaction.candidates import Candidates
from openclaw_lab.redaction.conversation import Conversation
from openclaw_lab.redaction.given import config_of, no_text, recognisers_of
from openclaw_lab.redaction.json_text import is_json, leaves
from openclaw_lab.redaction.keys import (
    NAMES,
    by_key,
    names_secret,
    number_name,
    says_something,
    secret_name,
    taken_for,
)
from openclaw_lab.redaction.reading import BothReadings
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


@functools.lru_cache(maxsize=4)
def _same(config: RedactionConfig, rules: tuple[int, int]) -> Redactor:
    return Redactor(config)


class Redactor:
    """The redactor of a RedactionConfig.

    `recognisers` are further finders: callables that give `(start, end, type)` or `(start, end, type, score)` for a
    text (see `recognisers`).
    """

    def __init__(self, config: RedactionConfig | None = None, recognisers: Sequence[Recogniser] = ()) -> None:
        self._config = config_of(config)
        known = rules_of(self._config)
        self.rules = switched_on(known, self._config.off, "redaction.off")
        self._seed = self._config.preset == "seed"
        if not self._seed:
            self.rules = tuple(_with_placeholder(rule) for rule in self.rules)
        self._more = tuple(finder(each, number) for number, each in enumerate(recognisers_of(recognisers)))
        self._candidates = BothReadings(Candidates(() if self._seed else self.rules))
        self.lag = None if self._seed or self._more else lag_of(self.rules)
        self.walls = _walls([_with_placeholder(rule) for rule in known] if not self._seed else known, bool(recognisers))

    def __reduce__(self) -> Any:
        """Sent to another process as its settings; of the same ones a process makes it once."""
        if self._more:
            raise TypeError("a Redactor with recognisers cannot be sent to another process")
        return _same, (self._config, stamp(self._config.rules))

    @property
    def numbered(self) -> bool:
        """Whether placeholders have numbers."""
        return self._config.placeholders == "numbered"

    def redact(self, text: str) -> Redaction:
        """Remove what is found."""
        if not isinstance(text, str):
            raise no_text("redact", text)
        return self.conversation().redact(text) if self.numbered else self.plain(text)

    def redact_many(self, texts: Iterable[str]) -> list[Redaction]:
        """`redact` for each text; numbers are the same for all of them."""
        return self.conversation().redact_many(texts)

    def redact_value(self, value: Any) -> Any:
        """A JSON-like value with its strings redacted, and numbers whose keys tell of a secret; all else stays."""
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
        of = self._candidates.of
        return [
            self._made(text, self._spans(text, "", 0, rules))
            if (rules := of(text)) or text[:1] in _OPENS
            else Redaction(text)
            for text in texts
        ]

    def candidates(self, text: str) -> tuple[Rule, ...]:
        """The rules that could find something in a text."""
        return self._candidates.of(text)

    def settled(self, text: str) -> tuple[Found, ...]:
        """What is removed from a text that is no JSON."""
        return settle(text, self._candidates.of(text), self.walls, self._more)

    def number(self, number: str, key: str) -> Redaction:
        """What becomes of a number, as JSON writes it, that stands under a key."""
        name = "" if self._seed else number_name(key, number)
        return self._made(number, (by_key(name, number, '"'),) if name else ())

    @staticmethod
    def _made(text: str, spans: tuple[Found, ...]) -> Redaction:
        return Redaction(replaced(text, spans), spans) if spans else Redaction(text)

    def _spans(self, text: str, key: str, depth: int, rules: Sequence[Rule] | None = None) -> tuple[Found, ...]:
        """What is removed from a text that stands under a key; `rules`: those that could find something, when known."""
        if rules is None:
            rules = self._candidates.of(text)
        if text[:1] in _OPENS and depth < _DEPTH:
            # What could be in a string could be in the text around it, unless the string is written with escapes.
            known = None if "\\" in text else rules
            if (known is None or known or self._more or secret_name(key) or names_secret(text)) and is_json(text):
                return tuple(
                    found
                    for leaf in leaves(text, key)
                    for found in leaf.placed(
                        (by_key(leaf.number, leaf.text, '"'),)
                        if leaf.number
                        else self._spans(leaf.text, leaf.key or key, depth + 1, known)
                    )
                )
        found = settle(text, rules, self.walls, self._more) if rules or self._more else ()
        if key and len(found) == 1 and found[0].end - found[0].start == len(text) and found[0].type == taken_for(key):
            return ()
        name = secret_name(key) if key else ""
        if name and says_something(self.walls.sub("", _left(text, found)), name):
            return (by_key(name, text),)
        return found


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
