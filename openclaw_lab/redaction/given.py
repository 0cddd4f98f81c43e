"""What a caller gives in, the same out, or one error that says what was expected in its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from openclaw_lab.config import LabConfig, RedactionConfig
from openclaw_lab.errors import ConfigError, DataError, RuleError


def config_of(given: Any) -> RedactionConfig:
    """A configuration of redaction, the default one for None."""
    if given is None or isinstance(given, RedactionConfig):
        return given or RedactionConfig()
    todo = "write Redactor(LabConfig().redaction)"
    if isinstance(given, LabConfig):
        todo = "write Redactor(config.redaction)"
    elif isinstance(given, str):
        todo = f"write Redactor(RedactionConfig(preset={given!r}))"
    found = f"the text {given!r}" if isinstance(given, str) else _kind(given)
    raise ConfigError("Redactor", found, "a RedactionConfig", todo)


def recognisers_of(given: Any) -> tuple[Any, ...]:
    """Callables in a list."""
    if not isinstance(given, list | tuple) or not all(map(callable, given)):
        found = _kind(given)
        if isinstance(given, list | tuple):
            found = f"a list with {_kind(next(each for each in given if not callable(each)))}"
        todo = "write Redactor(recognisers=[yours])"
        raise RuleError("Redactor: recognisers", found, "a list of callables that take a text and give spans", todo)
    return tuple(given)


def no_text(where: str, given: object) -> DataError:
    """The error for what should have been a text."""
    todo = "use redact_value for objects, lists and numbers"
    if isinstance(given, bytes | bytearray):
        todo = 'decode it: data.decode("utf-8")'
    elif given is None:
        todo = 'give "" where there is no text'
    return DataError(where, _kind(given), "a text (str)", todo)


def texts_of(where: str, given: Any) -> list[str]:
    """Texts in a list; the error for another names its place."""
    if isinstance(given, str | bytes | bytearray) or not isinstance(given, Iterable):
        raise DataError(where, _kind(given), "a list of texts", "write [text], or use redact for one text")
    texts = list(given)
    if not all(isinstance(each, str) for each in texts):
        number, other = next((number, each) for number, each in enumerate(texts) if not isinstance(each, str))
        raise no_text(f"{where}: text {number}", other)
    return texts


def _kind(given: object) -> str:
    return "None" if given is None else f"a {type(given).__name__}"
