"""A user's message in, the memories that it states out, by bilingual rules, each with the name of its rule.

    experience   what went wrong and what helped: lessons, causes found, what works now
    preference   tastes and standing wishes: how to answer, what to use, what to avoid
    knowledge    facts about the user, their people, their company and systems; what they ask to remember; corrections

It builds on `knowhub.statements`, which leaves out questions, suppositions, quotations, code, reminders and recalled
text. What is given as material ("translate: …", "summarise this mail: …") is nobody's statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from openclaw_lab.growth.entry import MemoryType
from openclaw_lab.growth.phrases import (
    CHANGE,
    CHAT,
    EXPERIENCE,
    FACT,
    REQUEST,
    UNFINISHED,
    WISH,
    any_of,
    strong_wish,
)
from openclaw_lab.knowhub.statements import asks, own_words, sentences, statement, supposes
from openclaw_lab.text import words


@dataclass(frozen=True, slots=True)
class Saying:
    """One memory that a message states; `why` names the rule."""

    type: MemoryType
    content: str
    importance: int
    correction: bool
    why: str


# What follows is material to work on, not something said.
_MATERIAL = any_of(
    r"\b(?:summari[sz]e|translate|proofread|rewrite|paraphrase|explain|correct|improve|classify|analy[sz]e|shorten"
    r"|polish|review)\b[^:\n]{0,80}:.*\Z",
    r"(?:概括|总结|翻译|润色|改写|校对|解释|分析|分类|归类|缩写|扩写|改一下|译成)[^：:\n]{0,40}[：:].*\Z",
)
_CLAUSE = re.compile(
    r"[;；](?!\s*(?:(?:she|he|it|they|this|that)\b|[她他它这那]))\s*"
    r"|,?\s+(?:and|but|also|so)\s+(?=(?:please\s+)?(?:call me\b|i\b(?! mean)|i'm\b|i'd\b|my\b|always\b|never\b))"
    r"|，(?=(?:另外|还有|顺便|对了|而且我|并且我|我[最也还更]))",
    re.IGNORECASE,
)
# As keyboards and word processors set it; the rules are written with the plain one.
_APOSTROPHE = re.compile(r"(?<=\w)[’ʼ＇](?=\w)")
_COMMA = re.compile(r"[,，;；]\s*")
_SUPPOSED = re.compile(
    r"\A\W*(?:if|suppose|supposing|imagine|pretend|let'?s say|say|what if)\b|\A\W*(?:如果|假如|假设|要是|假装|想象"
    r"|倘若)",
    re.IGNORECASE,
)
_REDACTED = re.compile(r"\[[A-Z][A-Z_]+\]")

_HOLDS = re.compile(r"\b(?:is|are|was|uses?|has)\b|是|用|在|叫|要", re.IGNORECASE)
_SHORTEST, _LONGEST, _PASTED = 3, 400, 4_000
# The words by which a sentence begins that answer or address nobody's matter.
_OPENING = re.compile(
    r"\A(?:(?:no|nope|actually|correction|scratch that|good|great|nice|ok(?:ay)?|thanks|thank you|well|hi|hello|hey"
    r"|by the way|btw|oh|not quite|that's wrong|also|and|but|so)\b[\s,.!:-]*"
    r"|(?:更正一下|更正|不对|写错了|说错了|记错了|错了|还是算了|好的?|嗯|哦|对了|另外|还有|顺便说一下|顺便|你好"
    r"|您好|谢谢)[，,。！!：:\s]+)+",
    re.IGNORECASE,
)
# What says only that somebody else is so too.
_ECHO = re.compile(r"(?<=^I )also |(?<=^I'm )also |,? (?:too|as well)(?=[.!]*$)", re.IGNORECASE)


# Whoever speaks, and what they say of themselves besides without naming themselves again.
_SUBJECT = re.compile(r"(我(?!们)|I\b)(?:'m)?")
_SHARING = re.compile(
    r"[，,]\s*(?=(?:现在|目前|就|也)?(?:住在|住|家在|在[^，,]{1,12}(?:工作|上班|上学|任职)))"
    r"|(?:,\s*|,?\s+and\s+)(?=(?:now |currently )?(?:live|work|study)\s+(?:in|at|as|for|near)\b)"
)


def sayings(text: str, *, later: bool) -> Iterator[Saying]:
    """The memories that one message of a user states; `later`: the assistant has spoken before."""
    said = _MATERIAL.sub(" ", _APOSTROPHE.sub("'", own_words(text)))
    # Many lines of much text are something pasted: only what it asks to remember counts.
    pasted = "\n" in said.strip() and len(said) > _PASTED
    for sentence in sentences(said):
        for clause in _clauses(sentence):
            found = _saying(clause, later, pasted)
            if found is not None:
                yield found


def _clauses(sentence: str) -> list[str]:
    """A sentence cut where another subject begins; not where one part would say nothing."""
    if _SUPPOSED.search(sentence):
        return [sentence]
    if _REDACTED.search(sentence) and not statement_to_remember(sentence):
        parts = [each.strip() for each in _COMMA.split(sentence)]
        return [each for each in parts if each and not _REDACTED.search(each)]
    parts = [each.strip() for each in _CLAUSE.split(sentence) if each and each.strip()]
    parts = [each for part in parts for each in _of_one_subject(part)]
    enough = all(len(words(each)) >= _SHORTEST for each in parts)
    return parts if enough and not statement_to_remember(sentence) else [sentence]


def _of_one_subject(clause: str) -> list[str]:
    """Facts of one's own that share their subject, each with it: where one lives and works may change apart."""
    subject = _SUBJECT.match(clause)
    if subject is None or not FACT.search(clause):
        return [clause]
    first, *others = _SHARING.split(clause)
    return [first, *(f"{subject.group(1)}{'' if subject.group(1) == '我' else ' '}{each}" for each in others)]


def statement_to_remember(sentence: str) -> bool:
    """Whether the whole sentence is what was asked to be remembered."""
    found = statement(sentence, later=False)
    return found is not None and found.kind == "remember"


def asks_to_remember(text: str) -> bool:
    """Whether a message of a user asks for something to be remembered, whatever else it says."""
    return any(statement_to_remember(each) for each in sentences(own_words(text)))


def _saying(clause: str, later: bool, only_asked: bool) -> Saying | None:
    found = statement(clause, later=later)
    if found is not None and found.kind == "remember":
        content = _trimmed(found.what)
        return Saying(_kind_of(content), content, 5, False, "asked to remember")
    if only_asked or asks(clause) or _SUPPOSED.search(clause) or not _SHORTEST <= len(words(clause)) <= _LONGEST:
        return None
    kind, why = _told(clause)
    changed = later and CHANGE.search(clause) is not None
    corrects = found is not None and found.kind == "correction"
    if kind is None and found is not None and not corrects:
        kind, why = _kind_of(clause), found.kind
    if kind is None and (corrects or changed) and _says_new(_trimmed(clause), corrects):
        kind, why, changed = "knowledge", "a correction", True
    return Saying(kind, _trimmed(clause), 4 if changed else 3, changed, why) if kind else None


def _told(clause: str) -> tuple[MemoryType | None, str]:
    rules: tuple[tuple[re.Pattern[str], MemoryType, str], ...] = (
        (EXPERIENCE, "experience", "a lesson"),
        (WISH, "preference", "a preference"),
        (FACT, "knowledge", "a fact"),
    )
    for rule, kind, why in rules:
        match = rule.search(clause)
        if match and not supposes(clause[: match.start()]) and not _vetoed(kind, clause, match.start()):
            return kind, why
    return None, ""


def _vetoed(kind: MemoryType, clause: str, start: int) -> bool:
    """Whether a clause that has the words of a kind is none of it: what a task for now mentions is no lasting fact."""
    if kind == "preference":
        return UNFINISHED.search(clause) is not None
    return kind == "knowledge" and REQUEST.search(clause[:start]) is not None


def _kind_of(text: str) -> MemoryType:
    """The type of what was asked to be remembered."""
    if EXPERIENCE.search(text):
        return "experience"
    return "preference" if strong_wish(text) else "knowledge"


def kind_of(text: str) -> MemoryType:
    """The type of a text that somebody wants kept: preference, knowledge or experience."""
    if EXPERIENCE.search(text):
        return "experience"
    return "preference" if WISH.search(text) else "knowledge"


def _says_new(clause: str, corrects: bool) -> bool:
    """Whether a change says what holds instead; after a plain "no, …" fewer words do."""
    if CHAT.search(clause):
        return False
    enough = len(words(clause)) >= (_SHORTEST + 1 if corrects else 2 * _SHORTEST)
    return enough and (corrects or _HOLDS.search(clause) is not None)


def _trimmed(text: str) -> str:
    """A clause without the words that only tie it to the talk before it."""
    return _ECHO.sub("", _OPENING.sub("", text)).strip(" ,，;；:：") or text.strip()
