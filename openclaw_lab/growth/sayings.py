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


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


# What follows is material to work on, not something said.
_MATERIAL = _any(
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
_COMMA = re.compile(r"[,，;；]\s*")
_SUPPOSED = re.compile(
    r"\A\W*(?:if|suppose|supposing|imagine|pretend|let'?s say|say|what if)\b|\A\W*(?:如果|假如|假设|要是|假装|想象"
    r"|倘若)",
    re.IGNORECASE,
)
_REDACTED = re.compile(r"\[[A-Z][A-Z_]+\]")

_EXPERIENCE = _any(
    r"\blessons? learn(?:ed|t)\b|\bnote to self\b|\blearn(?:ed|t) the hard way\b|\bturn(?:s|ed) out\b|\broot cause\b",
    r"\b(?:was|came|comes|is) caused by\b|\bcame from\b.{3,60}\bfix(?:ed|es)\b|\b(?:that|which|this) fixed it\b",
    r"\bnever\b.{3,60}\b(?:before|until|without)\b|\b(?:always|first)\b.{3,60}\bbefore\b.{3,40}\b(?:otherwise"
    r"|or else)\b",
    r"\bno longer (?:times? out|fails?|crash\w*|hangs?|breaks?)\b|\b(?:does|do|did)n'?t (?:time out|crash"
    r"|hang) any ?more",
    r"\bworks? (?:now|again)\b.{3,}|\b(?:the )?(?:fix|trick|workaround|solution) (?:is|was|turned)\b",
    r"教训|踩(?:了|过)?(?:个|次)?坑|吃(?:过|了)亏|经验是|血泪|原来.{0,30}(?:因为|是).{2,}",
    r"(?:就|才)(?:不会|不再|没有?再).{1,12}了|(?:就|才)(?:好了|行了|正常了|解决了|可以了|能用了|通过了|成功了)",
    r"根本原因|根因|下次(?:要|得|一定|记得|必须)?先|(?:解决|修复)(?:办法|方法|方案)是",
)
_WISH = _any(
    r"\bi (?:\w+ly |always |usually |still |now |much |would )?(?:prefer|like|love|enjoy|hate|dislike|adore|detest"
    r"|favou?r)\b"
    r"(?! (?:it|that|this|these|those|the (?:idea|sound|look)|how you|what you|your|to (?:book|buy|order|know|ask"
    r"|see))\b)",
    r"\bi(?:'d| would) (?:much |really )?(?:rather|prefer)\b|\b(?:can'?t|cannot) stand\b|\bnot a (?:big )?fan of\b",
    r"\bi(?:'m| am) (?:really |very |quite |so )?(?:into|fond of|keen on|a (?:big |huge )?fan of|obsessed with)\b",
    r"\bmy (?:preferred|favou?rite|usual|go-to)\b|\bi(?:'m| am) (?:a )?(?:vegetarian|vegan|pescatarian|teetotal)",
    r"\bno longer (?:eat|drink|like|want|use|prefer|watch|read|enjoy)\b|\bi (?:now |currently |mostly )?use (?!it"
    r"|this|that|to\b)\w+",
    r"\bi (?:always |only |never |don'?t |do not |usually |normally )(?:use|write|read|want|eat|drink|wear|buy|take"
    r"|fly|drive"
    r"|watch|work|need|indent|keep|set|put|answer|like)\b|\bi use\b.{2,60}\b(?:never|not|instead|for)\b",
    r"\bi want (?:all |every |any |each |my |the |your )?(?:\w+ ){0,2}(?:answers?|replies|reports?|code|messages?"
    r"|summar\w+"
    r"|documents?|dates|numbers|names|files|tests|comments|tables|charts|emails?|titles?)\b",
    r"\bcall me [A-Z]",
    r"\b(?:please )?(?:always|never)\b.{0,60}\b(?:me|my|for me|i write|we)\b|\bwith me\b|\bfrom (?:now|here"
    r"|today) on\b"
    r"|\bfrom here\b|\bgoing forward\b|\bin (?:the )?future\b|\bnext time\b|\bas a rule\b",
    r"\A\W*(?:please\s+|pls\s+)?(?:always|never)\b|\bplease (?:always|never)\b",
    r"\A\W*(?:please )?(?:don'?t|do not|stop|no more|avoid)\b.{3,}\b(?:with me|me|in (?:your )?(?:answers|replies)"
    r"|again|any ?more)\b",
    r"我(?:还|也|就|都|更|最|很|比较|一直|平时|通常|一般|个人|特别|非常|真的|真|其实|从来|倒|挺|是)*"
    r"(?:喜欢|习惯|偏好|偏爱|爱吃|爱喝|爱看|讨厌|最烦|反感|受不了|不喜欢|不爱|不吃|不喝|用的是|用的都是|只用|只看"
    r"|只要|更愿意|宁愿|钟爱|热爱|不想再)",
    r"(?:以后|今后|从现在起|从今往后|从今天起|往后|下次).{2,}|一律|统一(?:用|写|成|按|改|为)|每次都?要",
    r"(?:别|不要|不用|少)(?:再|给我|跟我|和我|用|打|写|说|加|讲|先)|跟我(?:讲|说|聊)|给我(?:提|写|讲"
    r"|看).{1,16}(?:直接|先|不用|要)",
    r"不再(?:用|吃|喝|看|喜欢|想)|戒了",
    r"(?:更|比较)(?:愿意|喜欢|习惯)|更希望|(?:希望|麻烦)你?(?:以后|总是|每次|都)|叫我(?!去|来|做|把)",
)
_PEOPLE = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|son|daughter|kids?|child|children|mother|mom|mum|father|dad"
    r"|parents?"
    r"|brother|sister|boss|manager|colleague|teammate|client|dog|cat|pet|team|office|company|car|house|phone|laptop"
    r"|doctor"
    r"|job|family|grand\w+|uncle|aunt|cousin|landlord|neighbou?r|birthday|server|project|department|school|wedding"
    r"|name"
    r"|hometown|major|degree|hobby|hobbies|dream|age|height|budget|address|number|card)"
)
_FACT = _any(
    r"\bi(?:'m| am) (?:(?:just |only |now |currently |also )*(?:an?|the) (?!bit\b|little\b|lot\b|fan\b|big fan)\w+"
    r"|from\b"
    r"|based\b|married|single|divorced|retired|pregnant|allergic|vegetarian|vegan|diabetic|colou?r|left-handed"
    r"|lactose"
    r"|\d+ years|in (?:my|charge)|responsible|studying|majoring|training|teaching|working (?:as|at|for|in|on))",
    r"\bi (?:\w+ly |also |now |just |still )?(?:live|work|moved|joined|started (?:as|at)|study|studied|teach"
    r"|grew up|was born|own"
    r"|speak|play|collect|volunteer|graduated|manage|lead|run (?:a|an|the)|drive an?|belong|used to)\b",
    r"\b(?:mostly|mainly) (?:\w+ ){1,4}(?:in|on|with)\b",
    r"\bi (?:also )?have (?:an? |two |three |four |five |six |\d+ |type |my own |been (?:a|an|married|working"
    r"|living|playing)\b"
    r"|no (?:kids|children|siblings|pets|car))(?!question|problem|few|lot|look|idea|meeting|feeling|minute|issue"
    r"|request)",
    r"\bi(?:'ve| have) (?:\w+ )?(?:two|three|four|five|\d+) \w+|\bi take \w+ (?:before|every|after|twice|once|daily)",
    rf"\bmy (?:\w+[ -]){{0,2}}{_PEOPLE}\b(?:'s)?(?:,? [\w']+){{0,4}} (?:is|are|was|has|have|turns?|lives?|works?"
    rf"|will|likes?"
    r"|loves?|hates?|dislikes?|goes|called|named|comes?|joined|runs?|needs?)\b",
    r"\bmy (?!question|problem|point|guess|issue|concern|request|bad|apolog|mistake|idea|plan|goal|thought|hope"
    r"|understanding"
    r"|impression|thinking|advice|turn|pleasure|fault|opinion)(?:[\w'-]+ ){1,7}(?:is|are|was|were|came (?:back|out)"
    r"|costs?)\b"
    r"(?! (?:\w+ing|not sure)\b)",
    r"\b(?:two|three|one|some|both|all) of (?:them|us|the \w+) (?:is|are|have|has)\b",
    r"\bwe (?:all |now |currently |also |only |always )?(?:run|use|host|deploy|store|keep|moved|migrated|have"
    r"|switched|log|ship"
    r"|release|call|named)\b(?! (?:a problem|to|no idea|lost))",
    r"\bour (?:\w+(?:'s)? ){1,4}(?:is|are|was|runs?|uses?|opens?|has|have|lives?|listens?|expects?|always|called"
    r"|only|must)\b",
    r"\bin our \w+",
    r"我是(?!说|想|问|觉得|不是|指|在问|不|否|来|去|要|用|因为|这个意思)|我(?:叫(?!你)|的名字|姓)|我今年|我来自|我属",
    r"我(?:现在|目前|去年|今年|前年|上个?月|最近|刚刚?|已经|们)?(?:从.{1,8})?(?:住在?|搬|在.{1,14}(?:工作|上班|读"
    r"|念|教书|实习)|换成|换到|改用)",
    r"我(?:的)?(?:儿子|女儿|孩子|老婆|妻子|丈夫|老公|爱人|爸|妈|父|母|哥|姐|弟|妹|领导|老板|上司|同事|导师|客户|狗"
    r"|猫|团队|公司"
    r"|部门|办公室|生日|手机|电脑|车|家|专业|学校|项目|工号|职位)(?!.{0,3}(?:吗|呢|怎么))",
    r"我(?:左|右|的)?(?:膝|腰|腿|眼|胃|手|脚|肩|颈|心脏|血压|血糖|视力|身高|体重|听力)",
    r"我(?:有|患有?|得过|做过|怀孕|对.{1,10}过敏|不能吃|不能喝|养了|负责|会说|从事|主要做|毕业于|学的是)(?!个问题"
    r"|点|空|时间|一?个?疑问)",
    r"(?:我们|咱们|咱)(?:的|这边|这里|公司|团队|部门|组|库里|项目|线上|内部|所有|学校|小区|系统|这)?[^，。]{0,24}?"
    r"(?:是|叫|跑|用|在|有|存|放|部署|开头|规定|采用|没有|搬|改|统一|固定|只|都)",
    r"(?:她|他|他们|其中|有[一两二三]个).{0,6}(?:过敏|不吃|出身|喜欢|讨厌|看重)",
)
_CHANGE = _any(
    r"\bchanged my mind\b|\bno longer\b|\bnot any ?more\b|\bactually\b[, ]|\bcorrection\b|\bscratch that\b"
    r"|\bi meant\b",
    r"\A\W*(?:no|nope|wrong|incorrect|not quite|that'?s (?:wrong|not))\b(?! (?:problem|worries|rush|need|idea"
    r"|thanks|thank|one"
    r"|matter))[\s,.:;!-]",
    r"\b(?:is|are|works?|live|runs?|use|on) .{0,40}\bnow\b\W*\Z|\bswitched (?:to|from)\b"
    r"|\binstead of\b.{2,40}\bnow\b",
    r"更正|不对(?!称|等|齐)|(?:说|写|记|搞|弄|理解|算)错了|不是.{1,20}[，,].{0,12}(?:是|用|要|叫|在)|改主意|改回"
    r"|改成|改为|改用|换成|换到"
    r"|不再|已经不|其实是|应该是|纠正",
)
_ABOUT_ANSWERS = _any(
    r"\b(?:pdf|report|answers?|code|format|bullet|slides?)\b", r"要点|格式|报告|回复|回答|幻灯片|表格"
)
_STRONG = re.compile(r"\bi (?:want|prefer|like|hate)\b|我(?:要|喜欢|讨厌|习惯)", re.IGNORECASE)
_SHORTEST, _LONGEST, _PASTED = 3, 400, 4_000
# The words by which a sentence begins that answer or address nobody's matter.
_OPENING = re.compile(
    r"\A(?:(?:no|nope|actually|correction|scratch that|good|great|nice|ok(?:ay)?|thanks|thank you|well|hi|hello|hey"
    r"|by the way|btw|oh|not quite|that's wrong|also|and|but|so)\b[\s,.!:-]*"
    r"|(?:更正一下|更正|不对|写错了|说错了|记错了|错了|还是算了|好的?|嗯|哦|对了|另外|还有|顺便说一下|顺便|你好"
    r"|您好|谢谢)[，,。！!：:\s]+)+",
    re.IGNORECASE,
)


# Whoever speaks, and what they say of themselves besides without naming themselves again.
_SUBJECT = re.compile(r"(我(?!们)|I\b)(?:'m)?")
_SHARING = re.compile(
    r"[，,]\s*(?=(?:现在|目前|就|也)?(?:住在|住|家在|在[^，,]{1,12}(?:工作|上班|上学|任职)))"
    r"|(?:,\s*|,?\s+and\s+)(?=(?:now |currently )?(?:live|work|study)\s+(?:in|at|as|for|near)\b)"
)


def sayings(text: str, *, later: bool) -> Iterator[Saying]:
    """The memories that one message of a user states; `later`: the assistant has spoken before."""
    said = _MATERIAL.sub(" ", own_words(text))
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
    if subject is None or not _FACT.search(clause):
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
    changed = later and _CHANGE.search(clause) is not None
    if kind is None and found is not None:
        kind, why = ("knowledge" if found.kind == "correction" else _kind_of(clause)), found.kind
        changed |= found.kind == "correction"
    if kind is None and changed and _says_new(clause):
        kind, why = "knowledge", "a correction"
    return Saying(kind, _trimmed(clause), 4 if changed else 3, changed, why) if kind else None


def _told(clause: str) -> tuple[MemoryType | None, str]:
    rules: tuple[tuple[re.Pattern[str], MemoryType, str], ...] = (
        (_EXPERIENCE, "experience", "a lesson"),
        (_WISH, "preference", "a preference"),
        (_FACT, "knowledge", "a fact"),
    )
    for rule, kind, why in rules:
        match = rule.search(clause)
        if match and not supposes(clause[: match.start()]):
            return kind, why
    return None, ""


def _kind_of(text: str) -> MemoryType:
    """The type of what was asked to be remembered."""
    if _EXPERIENCE.search(text):
        return "experience"
    wish = _STRONG.search(text) or (_WISH.search(text) and _ABOUT_ANSWERS.search(text))
    return "preference" if wish else "knowledge"


def kind_of(text: str) -> MemoryType:
    """The type of a text that somebody wants kept: preference, knowledge or experience."""
    if _EXPERIENCE.search(text):
        return "experience"
    return "preference" if _WISH.search(text) else "knowledge"


def _says_new(clause: str) -> bool:
    return (
        len(words(clause)) >= 2 * _SHORTEST
        and re.search(r"\b(?:is|are|was|uses?|has)\b|是|用|在|叫|要", clause) is not None
    )


def _trimmed(text: str) -> str:
    return _OPENING.sub("", text).strip(" ,，;；:：") or text.strip()
