"""A description in, its phrases out: what calls for the skill and what does not, as short texts that can be compared.

A description says several things at once ("Make slides. Use when the user says 做个PPT. Not for posters."), and a
message resembles one of them, not their average. Nothing is understood here: sentences, list items and quoted examples
are cut out, and those behind a "do not use" are kept apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST = 48  # phrases kept of each sort, so that one endless description does not cost more than a catalogue
_LONGEST = 300
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；;\n])\s*")
_QUOTED = re.compile(
    r"\"([^\"\n]{2,160})\"|“([^”\n]{2,160})”|「([^」\n]{2,160})」|『([^』\n]{2,160})』|`([^`\n]{2,80})`"
    r"|(?<![\w])'([^'\n]{2,120})'(?!\w)"
)
_ITEM = re.compile(r"\s*[,，、;；/|]\s*|\s+(?:or|and)\s+|\s*(?:或者?|以及)\s*|[:：]\s|：|\s[—–-]{1,2}\s|[()（）]")
# From here to the end of the sentence the text says when the skill is not meant.
_NOT = re.compile(
    r"\b(?:do(?:es)? not|don't|doesn't|not (?:for|to be|when|if|intended|meant|needed)|never|skip (?:for|when|if|this)|"
    r"avoid (?:using|for|when)|except (?:for|when)|exclud\w+|unless|rather than|instead of|out of scope)\b"
    r"|不要|不用于|不适[用合]|不应|不会|不得|不触发|不是|不处理|不包括|不负责|不涉及|不做|非触发|勿|除非|除外|排除|而非|反例",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Phrases:
    """What calls for a skill, and what it says it is not for; each text once, in order."""

    wanted: tuple[str, ...]
    unwanted: tuple[str, ...]


def phrases(description: str) -> Phrases:
    """Sentences, their list items and quoted examples."""
    wanted: dict[str, None] = {}
    unwanted: dict[str, None] = {}
    for sentence in _SENTENCE.split(description):
        cut = _NOT.search(sentence)
        before, after = (sentence[: cut.start()], sentence[cut.end() :]) if cut else (sentence, "")
        wanted.update(dict.fromkeys(_parts(before)))
        unwanted.update(dict.fromkeys(_parts(after)))
    return Phrases(tuple(wanted)[:MOST], tuple(each for each in unwanted if each not in wanted)[:MOST])


def _parts(sentence: str) -> list[str]:
    quoted = ["".join(groups).strip() for groups in _QUOTED.findall(sentence)]
    plain = _QUOTED.sub(" ", sentence) if quoted else sentence
    items = [each for text in (plain, *quoted) for each in _ITEM.split(text)] if sentence else []
    found = [sentence[:_LONGEST], *quoted, *items]
    return [each for each in (part.strip(" \t\r\n.。!?！？-–—*\"'“”") for part in found) if _says_something(each)]


def _says_something(text: str) -> bool:
    """Two Chinese characters or four of another script."""
    return len(text.encode("utf-8")) >= 4 and any(char.isalnum() for char in text)
