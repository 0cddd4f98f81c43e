"""Settings that describe themselves: a Section is a frozen dataclass whose every field is a knob.

A knob has a default, a range or choices, a unit and one line of description; widgets, sweeps, the manifest's schema
and the documentation are made from them. Values are checked when a section is made; nothing is coerced but int → float.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self, cast

from openclaw_lab.errors import ConfigError

Value = bool | int | float | str | tuple[str, ...]


_LISTED = 80  # names that an error lists


@dataclasses.dataclass(frozen=True, slots=True)
class Knob:
    """What is known of one field: dotted name, default, range or choices, unit, description."""

    name: str
    default: Value
    help: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()  # besides the choices, a name that begins so: `litellm:` and a model's name
    secret: bool = False

    @property
    def kind(self) -> type:
        """bool, int, float, str or tuple (of str)."""
        return type(self.default)

    @property
    def field(self) -> str:
        """The last part of the dotted name."""
        return self.name.rpartition(".")[2]

    def shown(self, value: Value) -> Value:
        """The value as it may be shown: credentials in an address are masked."""
        return mask_secrets(value) if self.secret and isinstance(value, str) else value

    def expected(self) -> str:
        """What a value must be, in words."""
        if self.kind is tuple:
            return f"a list of {', '.join(self.choices)}" if self.choices else "a list of strings"
        if self.choices:
            return f"one of {', '.join([*self.choices, *(f'{each}NAME' for each in self.prefixes)])}"
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "a string of valid Unicode"
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{'an integer' if self.kind is int else 'a number'} from {_number(self.low)} to {_number(self.high)}{unit}"
        )

    def check(self, value: object) -> Value:
        """The value itself (a list as a tuple, an int as a float where a float is meant), or a ConfigError."""
        value = _plain(value, self.kind)
        if type(value) is not self.kind or not self._allowed(cast(Value, value)):
            raise ConfigError(self.name, self._found(value), self.expected())
        return cast(Value, value)

    def _found(self, value: object) -> str:
        """A refused value for the message; never its content where that may be a credential."""
        return f"a {type(value).__name__}" if self.secret else repr(value)

    def parse(self, text: str) -> Value:
        """The value that a command line gives as text."""
        if self.kind is bool and text.lower() in ("true", "false"):
            return self.check(text.lower() == "true")
        if self.kind is tuple:
            return self.check([part.strip() for part in text.split(",") if part.strip()])
        if self.kind in (int, float):
            try:
                return self.check(float(text))
            except ValueError:
                raise ConfigError(self.name, text, self.expected()) from None
        return self.check(text)

    def _allowed(self, value: Value) -> bool:
        if isinstance(value, tuple):
            every_string = all(isinstance(item, str) and _is_unicode(item) for item in value)
            return every_string and (not self.choices or set(value) <= set(self.choices))
        if self.choices:
            named = isinstance(value, str) and any(value.startswith(each) and value != each for each in self.prefixes)
            return value in self.choices or (named and _is_unicode(str(value)))
        if isinstance(value, str):
            return _is_unicode(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            low = -math.inf if self.low is None else self.low
            high = math.inf if self.high is None else self.high
            return math.isfinite(value) and low <= value <= high
        return True


def _is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8: half a surrogate pair, as JSON can give, cannot."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _plain(value: object, kind: type) -> object:
    """Bring what JSON, numpy or a notebook gives to the field's own kind, where that loses nothing."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = cast(Any, value).item()
    if kind is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    if kind is int and type(value) is float and value.is_integer():
        return int(value)
    if kind is tuple and isinstance(value, list | set | frozenset):
        return tuple(sorted(value, key=str) if not isinstance(value, list) else value)
    return value


_USERINFO = re.compile(r"(?:(?<=//)|^)[^/?#\s]*@")
_QUERY_VALUE = re.compile(r"(?<=[?&#;])(?:([^=&#;\s]*=)[^&#;\s]*|[^=&#;\s]+)")


# Some services take their token as a part of the path; what is plainly a word or a version is shown.
_PATH = re.compile(r"(?<=://)([^/?#]*)(/[^?#]*)")
_PLAIN_PART = re.compile(r"[a-z]{1,15}|v\d{1,2}|")


def mask_secrets(address: str) -> str:
    """An address without what may be a credential: user and password, odd parts of the path, query and fragment."""
    shown = _QUERY_VALUE.sub(r"\1***", _USERINFO.sub("***@", address))
    return _PATH.sub(lambda match: match.group(1) + _shown_path(match.group(2)), shown)


def _shown_path(path: str) -> str:
    return "/".join(part if _PLAIN_PART.fullmatch(part) else "***" for part in path.split("/"))


def _number(value: float | None) -> str:
    return "any" if value is None else f"{value:g}"


def knob(
    default: Value,
    help: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: Iterable[str] = (),
    prefixes: Iterable[str] = (),
    secret: bool = False,
) -> Any:
    """Declare one field of a Section. `secret` marks a text that may hold a credential and is masked when shown."""
    described = {
        "unit": unit, "low": low, "high": high, "choices": tuple(choices), "prefixes": tuple(prefixes), "help": help,
        "secret": secret,
    }  # fmt: skip
    return dataclasses.field(default=default, metadata=described)


@dataclasses.dataclass(frozen=True, repr=False)
class Section:
    """Base of the sections of LabConfig: checks every field when it is made."""

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for each in self.knobs():
            object.__setattr__(self, each.field, each.check(getattr(self, each.field)))

    @classmethod
    def knobs(cls) -> list[Knob]:
        """The knobs of this section, in order."""
        prefix = f"{cls.section}." if cls.section else ""
        return [
            Knob(name=prefix + each.name, default=cast(Value, each.default), **each.metadata)
            for each in dataclasses.fields(cls)
        ]

    @classmethod
    def from_dict(cls, values: object) -> Self:
        """Make a section from names and values; unknown names are refused with the nearest right one."""
        if not isinstance(values, Mapping):
            raise ConfigError(cls.section or "settings", f"a {type(values).__name__}", "an object of settings by name")
        known = [each.field for each in cls.knobs()]
        for name in values:
            if name not in known:
                raise unknown(f"{cls.section}.{mask_secrets(str(name))}", [f"{cls.section}.{each}" for each in known])
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON (tuples as lists)."""
        values = {each.field: getattr(self, each.field) for each in self.knobs()}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def __repr__(self) -> str:
        changed = []
        for each in self.knobs():
            value = getattr(self, each.field)
            if value != each.default:
                changed.append(f"{each.field}={each.shown(value)!r}")
        return f"{type(self).__name__}({', '.join(changed)})"


def unknown(name: str, known: Iterable[str]) -> ConfigError:
    """The error for a setting that does not exist: names the nearest right one, or lists them all."""
    names = list(known)
    return ConfigError(name, expected="a known setting", todo=nearest(name, names))


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean …?`, or what is known when nothing is near, the first of many."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"known: {', '.join(names[:_LISTED])}{more}"
