"""The matchers by name: messages and a catalogue in, one matrix of scores out, for `match` and experiments alike.

    seed        keywords of the description, counted as the seed document does, faults included
    keyword     distinct words in common, Chinese ones too, weighed by how rare they are
    bm25        BM25 of name and description
    embedding   cosine of message and description
    hybrid      cosines, phrases and words together, weighed by a trained model; the default

An own matcher is a callable (messages, catalogue) -> Scores, or an array of scores from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from openclaw_lab.config import SkillConfig
from openclaw_lab.errors import ConfigError
from openclaw_lab.skills.catalogue import Catalogue
from openclaw_lab.skills.hybrid import hybrid_scores
from openclaw_lab.skills.lexical import bm25_scores, keyword_scores, logistic, seed_scores
from openclaw_lab.skills.scores import Floats, Scores
from openclaw_lab.skills.vectors import memory
from openclaw_lab.text import words

Matcher = Callable[[Sequence[str], Catalogue], "Scores | Any"]
# Logit of a cosine, as for the other matchers: 0.5 at a cosine of 0.35.
_COSINE = (14.0, -4.9)


def scores(
    messages: Sequence[str], catalogue: Catalogue, config: SkillConfig, matcher: Matcher | None = None
) -> Scores:
    """The scores of every message and skill, by the config's matcher or by an own one."""
    if matcher is not None:
        return _checked(matcher(messages, catalogue), len(messages), catalogue)
    if config.matcher == "seed":
        return seed_scores(messages, catalogue)
    found = np.zeros((len(messages), len(catalogue)), dtype=np.float32)
    said = [row for row, message in enumerate(messages) if words(message)]
    if not said or not len(catalogue):
        return Scores(catalogue.names, found)
    made = _built_in([messages[row] for row in said], catalogue, config)
    return made if len(said) == len(messages) else _spread(made, said, found)


def _built_in(messages: Sequence[str], catalogue: Catalogue, config: SkillConfig) -> Scores:
    if config.matcher == "keyword":
        return keyword_scores(messages, catalogue)
    if config.matcher == "bm25":
        return bm25_scores(messages, catalogue)
    if config.matcher == "embedding":
        return embedding_scores(messages, catalogue, config.embedder)
    return hybrid_scores(messages, catalogue, config.embedder, config.model)


def _spread(made: Scores, rows: Sequence[int], empty: Floats) -> Scores:
    """The scores of the messages that say something, among those that hold no word at all."""
    place = {row: number for number, row in enumerate(rows)}
    empty[rows] = made.score
    hits = None if made.hits is None else np.zeros(empty.shape, dtype=np.int32)
    if hits is not None and made.hits is not None:
        hits[rows] = made.hits

    def reason(row: int, column: int) -> str:
        return made.reason(place[row], column) if row in place else "the message holds no word"

    return replace(made, score=empty, hits=hits, reason=reason)


def embedding_scores(messages: Sequence[str], catalogue: Catalogue, embedder: str) -> Scores:
    """The cosine of each message with each name and description, brought to 0…1."""
    texts = memory(embedder)
    cosine = texts.vectors(messages) @ texts.vectors(catalogue.texts).T

    def reason(row: int, column: int) -> str:
        return f"cosine {cosine[row, column]:.2f}"

    return Scores(catalogue.names, logistic(cosine, *_COSINE), reason=reason)


def _checked(made: object, rows: int, catalogue: Catalogue) -> Scores:
    """What an own matcher gave, as Scores."""
    if isinstance(made, Scores):
        if made.names != catalogue.names:
            raise ConfigError("matcher", "scores of other skills", "the names of the catalogue, in its order")
        return made
    array = np.asarray(made, dtype=np.float32)
    if array.shape != (rows, len(catalogue)):
        expected = f"{rows} rows of {len(catalogue)} scores"
        raise ConfigError("matcher", f"an array of shape {array.shape}", expected)
    if not np.isfinite(array).all():
        raise ConfigError("matcher", "scores that are not finite", "numbers from 0 to 1")
    return Scores(catalogue.names, array)
