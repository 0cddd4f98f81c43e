"""A conversation in, the memories that it teaches out: MemoryExtractor. Nothing is stored here (see `memory`).

    rules            what the user said (see `sayings`), and failures of a tool that another call overcame
    litellm:<model>  what a live model finds (see `asking`)

Only what a user said and what tools really answered counts; an assistant's claims, system texts, reminders and
recalled memories do not. Everything is redacted first; what looks like a prompt injection is left out.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from openclaw_lab.config import InjectionConfig
from openclaw_lab.errors import TaskError, excerpt
from openclaw_lab.growth.asking import asked
from openclaw_lab.growth.entry import MemoryType
from openclaw_lab.growth.extracted import ExtractedMemory
from openclaw_lab.growth.kinds import placed
from openclaw_lab.growth.sayings import kind_of, sayings
from openclaw_lab.injection.detectors import Detector
from openclaw_lab.knowhub.entry import same_form
from openclaw_lab.knowhub.extract import check_extractor, message_of, overcome, redacted, spoken_in, telling
from openclaw_lab.messages import Message, ToolCall
from openclaw_lab.redaction.redactor import default_redactor
from openclaw_lab.spending import Spending, limited
from openclaw_lab.text import Language, words


class MemoryExtractor:
    """Finds memories by rules, or by a model whose `options` are those of `models.complete`.

    All that one of it asks counts as one `spending`.
    """

    def __init__(self, extractor: str = "rules", **options: Any) -> None:
        self.live = check_extractor(extractor)
        if not self.live and options:
            raise TaskError("extractor rules", ", ".join(options), "no options")
        self.extractor, self.options = extractor, limited(options) if self.live else {}
        self._detector = _rules()

    @property
    def spending(self) -> Spending | None:
        """What asking takes, of one that asks a model."""
        return self.options.get("spending")

    def extract(self, messages: Sequence[Message | Mapping[str, Any]], *, start: int = 0) -> list[ExtractedMemory]:
        """The memories of the messages from `start` on, in the order in which they became known, each once."""
        read = [redacted(message_of(each, f"messages[{number}]")) for number, each in enumerate(messages)]
        if self.live:
            found = asked(read, start, self.extractor, **self.options)
        else:
            found = [*_said(read, start), *_lessons(read, start)]
        kept: dict[tuple[str, str], ExtractedMemory] = {}
        for each in sorted(found, key=lambda memory: (memory.evidence[-1:], memory.evidence)):
            if not self._detector.detect(each.content).flagged:
                kept.setdefault((each.type, same_form(each.content)), each)
        return _without_lesser(tuple(kept.values()))


# Words that turn what they are added to into something else.
_TURNS = re.compile(
    r"\b(?:t|no|not|never|used|longer|former\w*|stopped|quit|hardly|rarely|without|except|unless|only|but|if|until)\b"
    r"|[不没别无未再曾前但除只才]",
    re.IGNORECASE,
)


def _without_lesser(found: Sequence[ExtractedMemory]) -> list[ExtractedMemory]:
    """The memories without those that another one of their type says too, and more; what corrects always stays."""
    said = [frozenset(words(each.content)) for each in found]

    def lesser(number: int) -> bool:
        own, kind = said[number], found[number].type
        more = (other - own for one, other in zip(found, said, strict=True) if one.type == kind and own < other)
        return any(not _TURNS.search(" ".join(sorted(each))) for each in more)

    return [each for number, each in enumerate(found) if each.correction or not lesser(number)]


@functools.cache
def _rules() -> Detector:
    """The injection rules, made once: that takes longer than to look at a conversation."""
    return Detector(InjectionConfig(detector="rules"))


def _said(messages: Sequence[Message], start: int) -> Iterator[ExtractedMemory]:
    later = any(each.role == "assistant" for each in messages[:start])
    for number, message in enumerate(messages[start:], start):
        later |= message.role == "assistant"
        for each in sayings(message.text, later=later) if message.role == "user" else ():
            place = placed(each.content, each.type)
            yield ExtractedMemory(
                each.type,
                place.category,
                place.name,
                each.content,
                each.importance,
                (number,),
                each.correction,
                each.why,
            )


# What was tried, what it answered, what worked instead.
_LESSONS: Mapping[Language, str] = {
    "en": "{tool}: {failed} fails ({error}); {worked} works",
    "zh": "{tool}：{failed} 会失败（{error}）；改用 {worked} 可行",
}
_ARGUMENTS, _ERROR = 160, 160


def _lessons(messages: Sequence[Message], start: int) -> Iterator[ExtractedMemory]:
    """Failures of a tool that were overcome within the new messages, or by them."""
    for each in overcome(messages):
        if each.last >= start:
            spoken, tool = spoken_in(messages[: each.last]), each.success.name
            error = excerpt(telling(each.answer), _ERROR)
            said = {"failed": _arguments(each.failure), "worked": _arguments(each.success), "error": error}
            content = default_redactor().redact(_LESSONS[spoken].format(tool=tool, **said)).text
            evidence = (each.first, each.last)
            yield ExtractedMemory("experience", f"skill-{tool}", "", content, 4, evidence, False, "a failure overcome")


def _arguments(call: ToolCall) -> str:
    """The arguments of a call; of a single one only its value."""
    given = call.arguments
    if isinstance(given, Mapping) and len(given) == 1:
        given = str(next(iter(given.values())))
    plain = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return excerpt(default_redactor().redact(plain).text, _ARGUMENTS)


def classified(text: str, *, type: MemoryType | None, importance: int, correction: bool) -> ExtractedMemory:
    """A text that somebody wants kept, with its place; its type is told from its words when none is given."""
    place = placed(text, type or kind_of(text))
    return replace(
        ExtractedMemory(place.type, place.category, place.name, text, importance, (), correction, "asked to remember"),
        type=type or place.type,
    )
