"""Names and descriptions in; what matchers compare out: words, phrases, readable names. Made at first use."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from openclaw_lab.skills.phrases import Phrases, phrases
from openclaw_lab.text import words

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class Catalogue:
    """The skills that can be matched, in order; row i of everything here is skill i."""

    names: tuple[str, ...]
    descriptions: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    @functools.cached_property
    def titles(self) -> tuple[str, ...]:
        """Names as words: `pdf-tools` and `PdfTools` as `pdf tools` and `Pdf Tools`."""
        return tuple(readable(name) for name in self.names)

    @functools.cached_property
    def texts(self) -> tuple[str, ...]:
        """Name and description of each as one text."""
        return tuple(f"{title}. {text}" for title, text in zip(self.titles, self.descriptions, strict=True))

    @functools.cached_property
    def phrases(self) -> tuple[Phrases, ...]:
        """What calls for each skill, its name first, and what does not."""
        made = (phrases(each) for each in self.descriptions)
        return tuple(Phrases((t, *p.wanted), p.unwanted) for t, p in zip(self.titles, made, strict=True))

    @functools.cached_property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The words of each name and description, as often as they occur."""
        return tuple(tuple(words(each)) for each in self.texts)

    @functools.cached_property
    def word_sets(self) -> tuple[frozenset[str], ...]:
        """The distinct words of each."""
        return tuple(frozenset(each) for each in self.words)


def readable(name: str) -> str:
    """A name as words."""
    return " ".join(_CAMEL.sub(" ", name).replace("_", " ").replace("-", " ").replace(".", " ").split())
