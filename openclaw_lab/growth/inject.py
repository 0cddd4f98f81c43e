"""Memories in, the block for a prompt out: sections in the safe frame, never longer than the budgets say.

The last word is the count of the finished text: tokens of lines do not add up exactly. What is least wanted goes first;
the newest correction of a type goes last of all, and is cut short rather than left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from openclaw_lab.config import GrowthConfig
from openclaw_lab.errors import ConfigError
from openclaw_lab.growth.entry import MemoryType
from openclaw_lab.growth.retrieve import RETRIEVED, Dropped, Recalled, Retrieval, budgets
from openclaw_lab.injection.prompt import framed
from openclaw_lab.text import count_tokens, language

HEADINGS: Mapping[str, Mapping[MemoryType, str]] = {
    "zh": {"preference": "## 用户偏好", "knowledge": "## 相关知识", "experience": "## 相关经验"},
    "en": {
        "preference": "## User preferences",
        "knowledge": "## Related knowledge",
        "experience": "## Related experience",
    },
}
# A correction that is cut to fewer characters says nothing.
_LEAST = 8


@dataclass(frozen=True, slots=True)
class Injected:
    """The block (empty when there is nothing to say), its tokens, what stands in it and what was left out, and why."""

    text: str
    tokens: int
    used: tuple[Recalled, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    def prompt(self, base: str) -> str:
        """A system prompt with the block after it; the same prompt, byte for byte, when there is no block."""
        if not self.text:
            return base
        return f"{base}\n\n{self.text}" if base else self.text

    def __str__(self) -> str:
        return self.text


def inject(retrieval: Retrieval, config: GrowthConfig) -> Injected:
    """The block for what was retrieved; nothing at all when growth is off."""
    if not config.enabled:
        return Injected("", 0)
    spoken = language(retrieval.query) if config.language == "auto" else config.language
    if spoken not in HEADINGS:
        raise ConfigError("growth.language", spoken, "auto, zh or en")
    dropped, used = list(retrieval.dropped), []
    limits = budgets(config)
    for kind in RETRIEVED:
        used += _fitted(list(retrieval.of(kind)), lambda each: _section(each, spoken), limits[kind], dropped)
    used = _fitted(used, lambda each: render(each, spoken), config.max_tokens, dropped)
    text = render(used, spoken)
    return Injected(text, count_tokens(text), tuple(used), tuple(dropped))


def render(memories: Sequence[Recalled], spoken: str) -> str:
    """The memories in their sections, in the frame that says what they are; "" for none."""
    sections = [
        _section(own, spoken) for kind in RETRIEVED if (own := [each for each in memories if each.entry.type == kind])
    ]
    return framed(sections, spoken) if sections else ""


def _section(memories: Sequence[Recalled], spoken: str) -> str:
    if not memories:
        return ""
    return "\n".join([HEADINGS[spoken][memories[0].entry.type], *(each.line for each in memories)])


def _fitted(
    memories: list[Recalled], text_of: Callable[[Sequence[Recalled]], str], limit: int, dropped: list[Dropped]
) -> list[Recalled]:
    """The memories whose text has at most `limit` tokens; what goes is added to `dropped`."""
    while memories and count_tokens(text_of(memories)) > limit:
        place = min(range(len(memories)), key=lambda number: _wanted(memories[number]))
        least = memories[place]
        if least.entry.correction and len(memories) == 1:
            short = _shortened(least, text_of, limit)
            reason = f"cut short to fit {limit} tokens" if short else f"not even its start fits {limit} tokens"
            dropped.append(Dropped(least.entry, reason))
            return [short] if short else []
        dropped.append(Dropped(least.entry, f"the text would have more than {limit} tokens"))
        del memories[place]
    return memories


def _wanted(each: Recalled) -> tuple[bool, str, float]:
    return each.entry.correction, each.entry.updated_at if each.entry.correction else "", each.score


def _shortened(each: Recalled, text_of: Callable[[Sequence[Recalled]], str], limit: int) -> Recalled | None:
    """The longest start of a memory that fits; None when that says nothing. Longer texts may have fewer tokens, so the
    search ends with a check of what it found."""
    low, high, best = _LEAST, len(each.entry.content), None
    while low <= high:
        middle = (low + high) // 2
        cut = replace(each, entry=replace(each.entry, content=f"{each.entry.content[:middle].rstrip()}…"))
        if count_tokens(text_of([cut])) <= limit:
            low, best = middle + 1, cut
        else:
            high = middle - 1
    return best
