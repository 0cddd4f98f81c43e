"""Numbered placeholders: `[EMAIL_1]` stands for the same address throughout a conversation, and can be put back.

What stands for what is a KeyMap. It stays here: it shows no secret when printed, cannot be pickled, is part of no
export, and is written to a file only by `save`, readable by its owner alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from openclaw_lab.errors import DataError
from openclaw_lab.files import read_text, write_text
from openclaw_lab.redaction.spans import Found

_QUOTE = '\\"'
_NUMBERED = re.compile(r"\[[A-Z0-9_]{1,64}_[0-9]{1,9}\]")


class KeyMap(Mapping[str, str]):
    """Placeholders and what each stands for."""

    def __init__(self, pairs: Mapping[str, str] | None = None) -> None:
        self._pairs = dict(pairs or {})

    def __getitem__(self, placeholder: str) -> str:
        return self._pairs[placeholder]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __repr__(self) -> str:
        return f"KeyMap({len(self)} placeholders)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a KeyMap holds secrets and is not pickled; use save(path)")

    def save(self, path: str | Path) -> None:
        """Write it as JSON to a file that only its owner can read."""
        write_text(Path(path), json.dumps(self._pairs) + "\n", private=True)

    @classmethod
    def load(cls, path: str | Path) -> KeyMap:
        """What `save` wrote; a DataError says what else it is, without showing it."""
        try:
            pairs = json.loads(read_text(Path(path)))
        except (ValueError, RecursionError):
            pairs = None
        if not isinstance(pairs, dict) or not all(isinstance(each, str) for each in pairs.values()):
            raise DataError(str(path), expected="a key map: an object with strings", todo="name a file that save wrote")
        return cls(pairs)


def restore(text: str, keys: Mapping[str, str]) -> str:
    """A text with what placeholders stand for put back; those that the map does not hold stay."""
    if not keys:
        return text
    bare = {key.strip('"'): value for key, value in keys.items()}
    forms = (
        rf'\\*"{re.escape(key[1:-1])}\\*"|{re.escape(key[1:-1])}' if key[0] == '"' else re.escape(key)
        for key in sorted(keys, key=len, reverse=True)
    )
    return re.sub("|".join(forms), lambda match: bare[match.group().strip('\\"')], text)


class Numbers:
    """The numbers given so far: the same secret under the same name has the same one.

    A number in JSON and the string of its digits are two, so that each is put back as it was: the placeholder of the
    number is kept with its quotes.
    """

    def __init__(self, keys: Mapping[str, str] | None = None) -> None:
        self.pairs = dict(keys or {})
        self._given = {(_unnumbered(name), value): name for name, value in self.pairs.items()}
        self._counts: dict[str, int] = {}
        self._taken = {name.strip('"') for name in self.pairs}

    def numbered(self, text: str, spans: Iterable[Found]) -> tuple[Found, ...]:
        """Spans of a text with numbers in their placeholders; a number that stands in the text is not given."""
        spans = tuple(spans)
        if spans and "[" in text:
            self._taken.update(_NUMBERED.findall(text))
        return tuple(
            replace(each, replacement=self._name(each.replacement, text[each.start : each.end])) for each in spans
        )

    def _name(self, written: str, value: str) -> str:
        mark = written[: written.find("[")] if written.endswith('"') else ""  # of a number, escaped or not
        plain = f'"{written.strip(_QUOTE)}"' if mark else written
        name = self._numbered(plain, value)
        return f"{mark}{name[1:-1]}{mark}" if mark else name

    def _numbered(self, plain: str, value: str) -> str:
        given = self._given.get((plain, value))
        while given is None:
            count = self._counts[plain] = self._counts.get(plain, 0) + 1
            bare, quote = plain.strip('"'), '"' * (plain[0] == '"')
            name = f"{bare[:-1]}_{count}]" if bare.endswith("]") else f"{bare}[{count}]"
            if self._taken.isdisjoint([name, *_NUMBERED.findall(name)]):
                given = self._given[plain, value] = f"{quote}{name}{quote}"
                self.pairs[given] = value
                self._taken.add(name)
        return given


def _unnumbered(name: str) -> str:
    return re.sub(r"_[0-9]+\](\"?)$", r"]\1", name)
