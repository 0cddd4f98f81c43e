"""A statement in, where it belongs out: its category, and the name of what it is about when only one can be true.

Two statements with one name (the user's home, the language of answers) are versions of one memory; statements without
a name are memories of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from openclaw_lab.growth.entry import MemoryType


@dataclass(frozen=True, slots=True)
class Place:
    """A category under a type's folder, and the name within it ("": told from the words)."""

    type: MemoryType
    category: str
    name: str = ""


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


# In this order; the first that is found counts.
_PREFERENCES: tuple[tuple[re.Pattern[str], Place], ...] = (
    (
        _any(r"\bspelling\b", r"繁体|简体|繁體"),
        Place("preference", "language-preference", "spelling"),
    ),
    (
        _any(
            r"\b(?:reply|answer|respond|write|speak|talk)\w*\b.{0,24}\bin (?:english|chinese|german|french"
            r"|spanish)\b",
            r"用(?:中文|英文|英语|汉语|普通话)(?:回|答|跟我|和我|交流|说)|(?:回复|回答|答复)我?.{0,4}用(?:中文|英文"
            r"|英语)",
        ),
        Place("preference", "language-preference", "answers"),
    ),
    (_any(r"\bcall me\b", r"叫我|称呼我"), Place("preference", "communication-style", "form-of-address")),
    (
        _any(
            r"\b(?:concise|brief|short|verbose|formal|informal|polite|blunt|direct|analog\w+|jargon|emoji\w*|tone"
            r"|humou?r"
            r"|definition)\b",
            r"简短|简洁|简明|详细|直接|客气|口语|正式|打比方|比喻|语气|表情|先给|先说|啰嗦|废话",
        ),
        Place("preference", "communication-style"),
    ),
    (
        _any(
            r"\b(?:bullets?|bullet points?|tables?|paragraphs?|markdown|json|pdf|slides?|slide deck|format(?:ted"
            r"|ting)?"
            r"|headings?|lists?|columns?|summar\w+|reports?|code blocks?|indent\w*|commit messages?)\b",
            r"要点|表格|列表|段落|大段|格式|幻灯片|标题|分点|纪要|报告|摘要|代码块|缩进|提交信息",
        ),
        Place("preference", "response-format"),
    ),
)
_FACTS: tuple[tuple[re.Pattern[str], Place], ...] = (
    (_any(r"\bmy (?:full |first )?name is\b", r"我叫|我的名字"), Place("knowledge", "user-facts", "name")),
    (
        _any(r"\bi (?:now )?(?:live|moved|have moved|relocated)\b.{0,20}\b(?:in|to)\b", r"我.{0,8}(?:住在|搬到|定居)"),
        Place("knowledge", "user-facts", "home"),
    ),
    (
        _any(
            r"\bi (?:now |just |currently )?(?:work|started|joined|am working)\b.{0,24}\b(?:at|for|as|in)\b(?! home)",
            r"我.{0,12}(?:上班|任职|入职|加入了)|我在.{1,16}工作",
        ),
        Place("knowledge", "user-facts", "work"),
    ),
    (_any(r"\bmy birthday\b", r"我的?生日"), Place("knowledge", "user-facts", "birthday")),
    (_any(r"\bmy office\b", r"我的?办公室"), Place("knowledge", "user-facts", "office")),
    (_any(r"\b(?:i|i'm|i've|my|mine|me)\b", r"我(?!们)"), Place("knowledge", "user-facts")),
)
_ELSE = Place("knowledge", "domain-knowledge")
_INTERESTS = Place("preference", "topic-interests")


# What a named memory is about, in the words of a question; embedded with the memory, so that the question finds it.
ABOUT: Mapping[str, str] = {
    "answers": "language of answers 用什么语言回答",
    "spelling": "spelling 用什么字体、拼写",
    "form-of-address": "how to address me 怎么称呼我",
    "name": "my name 我叫什么名字",
    "home": "where I live 我住在哪里",
    "work": "where I work, my job 我的工作",
    "birthday": "my birthday 我的生日",
    "office": "my office 我的办公室",
}


def placed(text: str, kind: MemoryType) -> Place:
    """Where a statement of a type belongs."""
    if kind == "experience":
        return Place("experience", "lessons-learned")
    if kind == "preference":
        return next((place for pattern, place in _PREFERENCES if pattern.search(text)), _INTERESTS)
    return next((place for pattern, place in _FACTS if pattern.search(text)), _ELSE)
