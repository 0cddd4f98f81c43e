"""Every sentence of a user's as a memory: what an extractor must beat to be worth anything."""

from __future__ import annotations

from collections.abc import Sequence

from openclaw_lab.growth.extracted import ExtractedMemory
from openclaw_lab.growth.kinds import placed
from openclaw_lab.growth.sayings import kind_of
from openclaw_lab.knowhub.extract import redacted
from openclaw_lab.knowhub.statements import own_words, sentences
from openclaw_lab.messages import Message


def every_sentence(messages: Sequence[Message]) -> list[ExtractedMemory]:
    """Each sentence that a user said, redacted, under the type that its words tell."""
    found = []
    for number, message in enumerate(messages):
        for sentence in sentences(own_words(redacted(message).text)) if message.role == "user" else ():
            kind = kind_of(sentence)
            place = placed(sentence, kind)
            found.append(ExtractedMemory(kind, place.category, "", sentence, 3, (number,), False, "every sentence"))
    return found
