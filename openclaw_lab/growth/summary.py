"""A conversation in, its layers out: raw in parts that never change, and a summary of about a hundred tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openclaw_lab.errors import excerpt
from openclaw_lab.growth.entry import MemoryEntry
from openclaw_lab.knowhub.entry import MAX_CONTENT
from openclaw_lab.messages import Message
from openclaw_lab.text import language

_ASKED, _ANSWERED, _KEPT, _MEMORIES = 160, 160, 100, 3
_LABELS = {"zh": ("用户：", "结果：", "记住："), "en": ("Asked: ", "Came to: ", "Kept: ")}


def transcript_of(messages: Sequence[Message]) -> str:
    """The conversation as lines `role: text`."""
    return "\n".join(f"{each.role}: {each.text}" for each in messages)


def parts_of_raw(messages: Sequence[Message], start: int) -> Iterator[tuple[str, str]]:
    """The new messages as (name, text); a name is `first-last`, and `first-last-n` for the pieces of a long part."""
    text = transcript_of(messages[start:]) or "-"
    name = f"{start}-{len(messages) - 1}"
    for number, place in enumerate(range(0, len(text), MAX_CONTENT)):
        yield (name if not number else f"{name}-{number}"), text[place : place + MAX_CONTENT].strip() or "-"


def summary_of(messages: Sequence[Message], kept: Sequence[MemoryEntry]) -> str:
    """What was asked first, what the last answer said, what was kept; nothing is made up."""
    asked = next((each.text for each in messages if each.role == "user" and each.text.strip()), "")
    answered = next((each.text for each in reversed(messages) if each.role == "assistant" and each.text.strip()), "")
    first, last, memories = _LABELS[language(asked)]
    lines = [f"{first}{excerpt(asked, _ASKED)}"] if asked else []
    lines += [f"{last}{excerpt(answered, _ANSWERED)}"] if answered else []
    lines += [f"{memories}{excerpt(each.content, _KEPT)}" for each in kept[:_MEMORIES]]
    return "\n".join(lines) or "-"
