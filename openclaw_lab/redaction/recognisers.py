"""A recogniser in, a finder out: any callable that says where in a text something stands; none is used unless given.

A recogniser takes a text and gives `(start, end, type)` or `(start, end, type, score)` for each thing found, in code
points. `presidio` and `spacy` make one of a library that is installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from openclaw_lab.errors import MissingExtra, RuleError
from openclaw_lab.redaction.spans import Found

Recogniser = Callable[[str], Iterable[Sequence[Any]]]


def finder(recogniser: Recogniser, number: int = 0) -> Callable[[str], Iterator[Found]]:
    """A recogniser as the redactor calls it: its finds checked, with a rule's name and a placeholder."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", getattr(recogniser, "__name__", "")).strip("-") or str(number + 1)

    def found(text: str) -> Iterator[Found]:
        for each in recogniser(text):
            start, end, kind = _checked(name, each, text)
            if start < end:
                placeholder = re.sub(r"[^A-Z0-9]+", "_", kind.upper()).strip("_") or "REDACTED"
                placeholder = placeholder if placeholder[0].isalpha() else f"X_{placeholder}"
                yield Found(start, end, kind, f"recogniser-{name}", f"[{placeholder}]")

    return found


def _checked(name: str, found: Any, text: str) -> tuple[int, int, str]:
    where = f"recogniser {name}"
    if not isinstance(found, tuple | list) or len(found) not in (3, 4):
        raise RuleError(where, f"a {type(found).__name__}", "(start, end, type) or (start, end, type, score)")
    start, end, kind = found[:3]
    if type(start) is not int or type(end) is not int or not isinstance(kind, str) or not kind.strip():
        raise RuleError(
            where, f"{type(start).__name__}, {type(end).__name__}, {type(kind).__name__}", "two int and a str"
        )
    if not 0 <= start <= end <= len(text):
        raise RuleError(
            where, f"the span {start}:{end}", f"a span within 0:{len(text)}", "give code points of the text"
        )
    return start, end, kind


def presidio(
    types: Sequence[str] = (), *, language: str = "en", min_score: float = 0.5, engine: Any = None
) -> Recogniser:
    """Microsoft Presidio's analyzer as a recogniser; all its types unless some are named."""
    if engine is None:
        try:
            from presidio_analyzer import AnalyzerEngine
        except ImportError:
            raise MissingExtra("recogniser presidio", "presidio-analyzer", "presidio") from None
        engine = AnalyzerEngine()

    def presidio_finds(text: str) -> Iterator[tuple[int, int, str, float]]:
        results = engine.analyze(text=text, language=language, entities=list(types) or None, score_threshold=min_score)
        return ((each.start, each.end, each.entity_type, each.score) for each in results)

    return presidio_finds


def spacy(model: Any, types: Sequence[str] = ("PERSON", "PER", "GPE", "LOC", "ORG")) -> Recogniser:
    """A spaCy pipeline, or the name of an installed one, as a recogniser of the named types."""
    if isinstance(model, str):
        try:
            from spacy import load
        except ImportError:
            raise MissingExtra("recogniser spacy", "spacy", "spacy") from None
        try:
            model = load(model)
        except OSError:
            raise RuleError(
                "recogniser spacy", model, "an installed model", f"run: python -m spacy download {model}"
            ) from None

    def spacy_finds(text: str) -> Iterator[tuple[int, int, str]]:
        return ((each.start_char, each.end_char, each.label_) for each in model(text).ents if each.label_ in types)

    return spacy_finds
