"""A new entry and its nearest neighbours in, what it is to them out: created, duplicate, superseded or conflict.

A fixed similarity alone cannot tell "the same again" from "the opposite", nor either from a look-alike: all are near.
So only the same text is a duplicate; anything near with other words is kept, and linked. An older entry is retired
only when its own owner says that what it says has ended, or says the same and more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from openclaw_lab.knowhub.entry import Entry, same_form
from openclaw_lab.text import words

Action = Literal["created", "duplicate", "superseded", "conflict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a new entry is to another one, and why in one line."""

    action: Action
    other: Entry | None = None
    similarity: float = 0.0
    reason: str = ""


_ALONE = Verdict("created")


def judge(new: Entry, near: Sequence[tuple[Entry, float]], threshold: float) -> Verdict:
    """Compare a new entry with live ones, nearest first; `threshold` is the similarity that counts as near."""
    if not near:
        return _ALONE
    for other, similarity in near:
        if _mine(new, other) and _same(new.task, other.task) and _same(new.content, other.content):
            if (set(new.types), new.score) == (set(other.types), other.score):
                return Verdict("duplicate", other, similarity, "the same words")
            return Verdict("superseded", other, similarity, "the same words with other types or score")
    for other, similarity in near:
        if _mine(new, other) and (reason := _replaces(new, other)):
            return Verdict("superseded", other, similarity, reason)
    for other, similarity in near:
        if reason := _speaks_against(new, other) or ("near, with other words" if similarity >= threshold else ""):
            return Verdict("conflict", other, similarity, reason)
    return _ALONE


def speaks_of_change(entry: Entry) -> bool:
    """Whether a text may end what another one says, so that neighbours matter however far they are."""
    return _SPEAKS.search(entry.content) is not None


def is_dated(text: str) -> bool:
    """Whether a text says when: then it holds for that time, and another time's text does not replace it."""
    return bool(_DATE.search(text))


def _mine(new: Entry, other: Entry) -> bool:
    return new.owner == other.owner and set(new.scopes) == set(other.scopes)


def _same(one: str, other: str) -> bool:
    return one == other or same_form(one) == same_form(other)


_DATE = re.compile(
    r"\b(?:19|20)\d\d[-/.](?:0?[1-9]|1[0-2])\b|(?:19|20)\d\d\s*年|\d{1,2}\s*月\s*\d{1,2}\s*[日号]|\d{1,2}:\d\d\b"
    r"|\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?\s+\d{1,4}\b|\b(?:on|in|since|as of)\s+(?:19|20)\d\d\b"
    r"|\b(?:yesterday|today|last (?:week|month|year|night))\b|昨[天晚]|今天|上(?:周|个月|个星期)|去年",
    re.IGNORECASE,
)
_ENDING = (
    r"(?:\b(?:no longer|not any ?more|stopped|quit|gave up)\b(?P<en>(?:[^\w.;!?\n]+[\w'-]+){1,4})"
    r"|(?:不再|已经不|戒了|停用|不用了)(?P<zh>[^，。,.；;！!？?\n]{1,12}))"
)
_CHANGING = (
    r"(?:\b(?:now|just|recently|moved|joined|switched|changed|from today)\b"
    r"|现在|刚刚?|最近|改(?:成|用|为)|换(?:成|到|了)|搬到|加入|离职|跳槽)"
)
# Both begin with a look at the first letter: most places of a text end there, which halves the time.
_ENDED = re.compile(f"(?=[nsqg不已戒停]){_ENDING}", re.IGNORECASE)
_CHANGED = re.compile(f"(?=[njrmscf现刚最改换搬加离跳]){_CHANGING}", re.IGNORECASE)
# Whether either is found. `re` leaps to a first letter that is taken, not looked at, and whose case is written out (the
# long s is a case of s); then the look goes one letter back.
_SPEAKS = re.compile(
    r"(?-i:[nsqgjrmcfNSQGJRMCF\u017f不已戒停现刚最改换搬加离跳])" rf"(?<=(?=(?:{_ENDING}|{_CHANGING})).)",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(
    r"\b(?:if|when|unless|until|once|whether)\b[^.;!?\n]*$|(?:如果|若|当|一旦|是否)[^，。；！？\n]*$", re.I
)
# Words that carry no matter of their own when two sentences are compared.
_EMPTY_WORDS = (
    "the a an to of in on and or is are am was be been it its i we you he she they my our at for with that this any"
    " use uses used using have has had do does did user users by 的 了 是 在 我 我们 用户 他 她 使用 用 着 过"
)
_EMPTY = frozenset(_EMPTY_WORDS.split(" "))


def _matter(text: str) -> set[str]:
    return set(words(text)) - _EMPTY


def _ends(new: Entry, other: Entry) -> list[tuple[set[str], str]]:
    """What the new text says has ended, each as its words and as it stands; what the other says has ended too does not
    count, nor do conditions."""
    found = []
    for match in _ENDED.finditer(new.content):
        said = (match["en"] or match["zh"] or "").strip()
        conditional = _CONDITION.search(new.content[: match.start()])
        already = said in other.content and _ENDED.search(other.content)
        if _matter(said) and not conditional and not already:
            found.append((_matter(said), said.strip("了的吧啦 ")))
    return found


def _replaces(new: Entry, other: Entry) -> str:
    """Why an owner's new text stands in place of an older one; empty when it does not clearly do so."""
    if is_dated(other.text):
        return ""
    ends = _ends(new, other)
    before = _matter(other.content) if ends else set()
    for ended, said in ends:
        whole = said in other.content and 2 * len(said) >= len(same_form(other.content)) - 4
        if whole or (ended <= before and 2 * len(ended) >= len(before)):
            return f"says that {said!r} has ended"
    if not _same(new.task, other.task) or is_dated(new.text):
        return ""
    if _goes_on(new.content, other.content):
        return "the same words and more"
    profile = "user_profile" in new.types and "user_profile" in other.types
    if profile and _CHANGED.search(new.content) and _role(new, other):
        return "a change in what is known of the user"
    return ""


def _goes_on(new: str, old: str) -> bool:
    """Whether a text starts with the older one, ends its sentence there, and goes on."""
    new, old = same_form(new), same_form(old)
    return len(old) >= 8 and new.startswith(old) and re.match(r"[.!;]\s", new[len(old) :]) is not None


def _speaks_against(new: Entry, other: Entry) -> str:
    """Why two texts should be read together, though they may be far from one another."""
    ends = _ends(new, other)
    before = _matter(other.content) if ends else set()
    for ended, said in ends:
        if ended <= before or (said in other.content and len(said) > 1):
            return f"says that {said!r} has ended"
    changed = _CHANGED.search(new.content) or _ENDED.search(new.content)
    if changed and _SELF.search(new.content) and _SELF.search(other.content) and _role(new, other):
        return "a change in the same part of a life"
    return ""


_SELF = re.compile(r"^\W*(?:i|we)\b|^\W*我", re.IGNORECASE)
_ROLES = (
    re.compile(
        r"\b(?:works? (?:at|for)|working (?:at|for)|employ\w*|hired|job at)\b|\bjoined [A-Z]|上班|工作|入职|加入|任职"
    ),
    re.compile(r"\b(?:lives? in|living in|moved to|home is)\b|住在|搬到|定居", re.IGNORECASE),
    re.compile(r"\b(?:diet|vegetarian|vegan|steak|meat)\b|素食|吃素|吃肉|牛排|饮食", re.IGNORECASE),
)


def _role(new: Entry, other: Entry) -> bool:
    """Both speak of the same part of life: work, home, food."""
    return any(role.search(new.content) and role.search(other.content) for role in _ROLES)
