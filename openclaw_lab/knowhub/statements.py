"""A user's message in, the statements in it that are worth keeping out: simple bilingual rules, each with its name.

    remember    "remember …", "keep in mind …", 「记住…」「别忘了…」
    profile     what lastingly holds for the speaker: tastes, name, place, work
    rule        a standing order or a custom: "from now on", "we never", 「以后」「一律」
    correction  of what the assistant said or did: "no, …", "actually it …", 「不对，…」

Questions, suppositions, quotations and code are no statements. It does not judge whether a statement is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from openclaw_lab.reminders.texts import BUILT_IN
from openclaw_lab.text import words

Kind = Literal["remember", "profile", "rule", "correction"]
# Longest sentence that is read as a statement, and longest message in which more than "remember …" is looked for.
_SENTENCE, _MESSAGE = 500, 4000


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence worth keeping: the whole of it, and `what` it says without the words that asked to keep it."""

    kind: Kind
    text: str
    what: str


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_REMEMBER = _any(
    r"\b(?:remember|(?:keep|bear) in mind|don'?t forget|(?:make|take) a note|note down|for the record"
    r"|for future reference)\b[\s,:;-]*(?:of this|that|this|to|of)?[\s,:;-]*(?P<en>.*)",
    r"(?:记住|记下来?|记一下|记着|记好|记得|别忘了?|牢记)[了啊哦：:，,、\s]*(?P<zh>.*)",
)
_NOT_ASKED = _any(
    r"\b(?:i|we|he|she|they|you|do|did|didn'?t|does|doesn'?t|don'?t|can'?t|cannot|hard to|never|not)\s+"
    r"(?:\w+ly\s+|still\s+)?\Z",
    r"(?:我|还|不|不要|不用|别|没|没有|谁|已经|好像|他|她|才|就)\Z",
)
_NO_OBJECT = _any(r"\A(?:when|what|how|if|whether|who|where|why|me|him|her|them|it)\b(?!\s*:)", r"\A(?:吗|么|不)\W*\Z")

_PROFILE = _any(
    r"\bi (?:\w+ly |always |usually )?prefer\b|\bi'?d (?:much )?rather\b",
    r"\bi (?:really )?(?:hate|dislike|can'?t stand|don'?t like) (?!it\b|that\b|this\b|when\b)\w+",
    r"\bi (?:always|never|only) (?:use|want|write|read|work|eat|drink|fly|ask|need|deploy|commit|take|set|keep|talk)\b",
    r"\bmy (?:full |first |last |preferred |favou?rite )?"
    r"(?:name|time ?zone|editor|shell|birthday|pronouns|language|colou?r)\b[^.]*\b(?:is|are)\b",
    r"\b(?:please )?call me [A-Z]\w+",
    r"\bi(?:'m| am) (?:allergic|vegetarian|vegan|colou?r-?blind|left-handed|based in)\b",
    r"\bi(?:'m| am) an? (?:\w+ ){0,3}(?:lawyer|teacher|developer|engineer|doctor|nurse|student|designer|researcher)\b",
    r"\bi (?:live|work) (?:in|at|for|as)\b",
    r"我(?:更|比较|一直|最|平时|通常|一般|个人|还是)*(?:喜欢|习惯|偏好|偏爱|讨厌|烦|不喜欢|不爱|不吃|只用|只看)(?!不)",
    r"我(?:叫(?!你)|的名字是|住在?|家在|对[^，。]{1,8}过敏)|我在[^，。]{1,12}(?:工作|上班)|叫我(?!去|来|做|把)",
    r"我是(?:一?[名个位])?[^，。]{0,8}(?:工程师|老师|律师|医生|学生|设计师|产品经理|研究员|程序员)",
)
_RULE = _any(
    r"\b(?:from now on|in (?:the )?future|going forward|next time|as a rule|general rule|one more rule)\b",
    r"\b(?:our|house|team|company) (?:rule|policy|convention|standard)\b|\bconvention here\b|\bwhatever you do\b",
    r"\A\W*(?:(?:please|pls|and|but|also)\W+)?(?:always|never)\b|\b(?:please|pls) (?:always|never)\b",
    r"\bwe (?:always|never|only|must)\s+\w+|\bmust (?:never|always|not)\b",
    r"\bwe (?:don'?t|do not|can'?t|cannot) "
    r"(?!know|have|see|think|reproduce|find|remember|understand|care|mind|want|get)",
    r"(?:以后|今后)(?!再|会|的事)|从现在起|从今往后|下次(?!再说)|每次都?要|一律|必须|不允许|禁止|规定|规矩|统一口径|惯例",
    r"我们(?:这边|这儿|这里|公司|团队|组|单位|部门)?(?:内部)?(?:一直|都|从来|只|不)(?!知道|会|能|清楚|懂|是|在)|(?:不要|别)再",
)
_CORRECTION = _any(
    r"\A\W*(?:no|nope|wrong|incorrect|not quite)\b(?! (?:problem|worries|rush|need|idea|thanks|thank|one|matter))"
    r"[\s,.:;!-]+(?P<en>.{12,})",
    r"\bthat'?s (?:not (?:right|correct|what)|wrong|incorrect)\b|\bnot what i (?:meant|asked|wanted)\b",
    r"\bactually,? (?:it|we|i|the|that|you|this|our)\b|\b(?:it|that|this) should (?:be|have been)\b",
    r"不对(?!称|等|齐)|(?:搞|弄|理解|算|说|写)错了|错了|不是[^，。]{1,20}[，,]?(?:而是|是|要)|应该(?:是|用|改)|其实是",
)
_RULES: tuple[tuple[Kind, re.Pattern[str]], ...] = (("profile", _PROFILE), ("rule", _RULE), ("correction", _CORRECTION))

_ASKS = _any(
    r"[?？][\s\"'”」)）]*\Z",
    r"(?:吗|呢|么)[。.!！~～\s]*\Z",
    r"\A\W*(?:do|does|did|can|could|would|is|are|should|shall|what|why|how|when|where|who|which)\b",
    r"是不是|为什么|怎么|什么|哪(?:个|里|些)|多少|能不能|要不要|有没有",
)
_SUPPOSES = _any(
    r"\b(?:if|suppose|supposing|imagine|pretend|let'?s say|hypothetically|for example|e\.g\.|wonder|maybe|perhaps)\b",
    r"\b(?:says?|said|claims?|reads|wrote|writes)\W*\Z",
    r"如果|假如|假设|要是|倘若|万一|比如|例如|譬如|假装|也许|可能",
)
_POLITE = re.compile(r"\A\W*(?:can|could|would|will) you\b|能(?:不能)?(?:帮我)?\Z|可以(?:帮我)?\Z", re.IGNORECASE)
_TOOLS = re.compile(r"\bkb_\w+|knowhub", re.IGNORECASE)

_INJECTED = re.compile(
    r"<(?P<tag>[\w-]*(?:reminder|memor|knowledge|knowhub|experience|context|skill|system|instruction)[\w-]*)\b[^>]*>"
    r".*?(?:</(?P=tag)\s*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_CODE = re.compile(r"```.*?(?:```|\Z)|^\s*>.*$", re.DOTALL | re.MULTILINE)
# A quotation of this length is something pasted, not the speaker's own.
_PASTED = re.compile(r"“[^”]{40,}(?:”|\Z)|「[^」]{40,}(?:」|\Z)|\"[^\"]{80,}\"")
_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|‘[^’]*’")
_END = re.compile(r"(?<=[。！？!?])|(?<=[.])(?=\s)|\n+")
_OPENING = re.compile(r"\A\W*(?:no|nope|wrong|不对|错了|remember(?: this)?|记住|记一下)\W*\Z", re.IGNORECASE)


def statements(text: str, *, later: bool) -> Iterator[Statement]:
    """The statements of one message; `later`: the assistant has spoken before, so that it can be corrected."""
    said = own_words(text)
    for sentence in sentences(said):
        found = statement(sentence, later=later, only_asked=len(said) > _MESSAGE)
        if found:
            yield found


def own_words(text: str) -> str:
    """A message without what a plugin put into it, without code and without what is quoted at length."""
    for injected in BUILT_IN.values():
        text = text.replace(injected, "\n")
    return _PASTED.sub("\n", _CODE.sub("\n", _INJECTED.sub("\n", text)))


def sentences(text: str) -> Iterator[str]:
    """Sentences; a bare "No." or 「记住：」 is read with what follows."""
    opening = ""
    for part in _END.split(text):
        sentence = f"{opening} {part.strip()}".strip()
        if _OPENING.match(sentence):
            opening = sentence
            continue
        opening = ""
        if sentence and len(sentence) <= _SENTENCE and not _TOOLS.search(sentence):
            yield sentence


def asks(sentence: str) -> bool:
    """Whether a sentence is a question."""
    return _ASKS.search(_unquoted(sentence)) is not None


def supposes(beginning: str) -> bool:
    """Whether what follows such a beginning is only supposed."""
    return _SUPPOSES.search(beginning) is not None


def statement(sentence: str, *, later: bool, only_asked: bool = False) -> Statement | None:
    """What one sentence states; `only_asked`: look for nothing but what it asks to remember."""
    unquoted = _unquoted(sentence)
    asked = _REMEMBER.search(unquoted)
    if asked:
        return _to_remember(sentence, asked)
    if only_asked or _ASKS.search(unquoted):
        return None
    for kind, rule in _RULES:
        match = rule.search(unquoted)
        if match and (kind != "correction" or later) and not _SUPPOSES.search(unquoted[: match.start()]):
            return Statement(kind, sentence, sentence) if _says_enough(sentence) else None
    return None


def _unquoted(sentence: str) -> str:
    return _QUOTED.sub(lambda match: "_" * len(match.group()), sentence)


def _to_remember(sentence: str, asked: re.Match[str]) -> Statement | None:
    """What is asked to be remembered; None for "do you remember", "if I asked you to remember", "remember when"."""
    before, name = asked.string[: asked.start()], "en" if asked["en"] is not None else "zh"
    what = sentence[asked.start(name) :].strip()
    polite = bool(_POLITE.search(before))
    if (_NOT_ASKED.search(before) and not polite) or _SUPPOSES.search(before) or _NO_OBJECT.search(what):
        return None
    if _ASKS.search(asked.string) and not polite and re.search(r"[?？]\s*\Z|[吗么]\W*\Z", sentence):
        return None
    return Statement("remember", sentence, what) if _says_enough(what) else None


def _says_enough(text: str) -> bool:
    return len(words(text)) >= 3
