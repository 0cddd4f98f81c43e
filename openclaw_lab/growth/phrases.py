"""The words by which a clause states a lesson, a wish, a fact or a change, in English and Chinese.

EXPERIENCE  what went wrong and what helped
WISH        tastes, habits of use, standing wishes
FACT        facts about the speaker, their people, work and systems
CHANGE      that something said before no longer holds
UNFINISHED  a wish that points at something said elsewhere ("I love it too"), or serves the moment
REQUEST     a task for now: what it mentions is no fact to keep
CHAT        an answer or thanks that looks like a correction
"""

from __future__ import annotations

import re


def any_of(*patterns: str) -> re.Pattern[str]:
    """One pattern that finds any of these, whatever the case."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


# Words that may stand between a speaker and what they do.
_ADVERBS = r"(?:(?:\w+ly|also|just|still|now|always|often|sometimes|even|only|both|do|mostly) ){0,3}"
_DEGREES = r"(?:(?:\w+ly|also|just|still|now|very|so|quite|only|always|both|such|a bit of|kind of) ){0,3}"

EXPERIENCE = any_of(
    r"\blessons? learn(?:ed|t)\b|\bnote to self\b|\blearn(?:ed|t) the hard way\b|\broot cause\b",
    r"\bturn(?:s|ed) out (?!(?:really |so |very |quite |just )*(?:well|great|good|nice\w*|delicious|fine|bad\w*|ok\w*"
    r"|perfect\w*|beautiful\w*|amazing)\b)",
    r"\b(?:was|came|comes|is) caused by\b|\bcame from\b.{3,60}\bfix(?:ed|es)\b|\b(?:that|which|this) fixed it\b",
    r"(?<!i've )(?<!have )(?<!had )\bnever\b(?! been\b).{3,60}\b(?:before|until|without)\b",
    r"\b(?:always|first)\b.{3,60}\bbefore\b.{3,40}\b(?:otherwise|or else)\b",
    r"\bno longer (?:times? out|fails?|crash\w*|hangs?|breaks?)\b|\b(?:does|do|did)n'?t (?:time out|crash"
    r"|hang) any ?more",
    r"\bworks? (?:now|again)\b.{3,}|\b(?:the )?(?:fix|trick|workaround|solution) (?:is|was|turned)\b",
    r"教训|踩(?:了|过)?(?:个|次)?坑|吃(?:过|了)亏|经验是|血泪|原来.{0,30}(?:因为|是).{2,}",
    r"(?:就|才)(?:不会|不再|没有?再).{1,12}了|(?<!附近)(?:就|才)(?:好了|行了|正常了|解决了|可以了|能用了|通过了|成功了)",
    r"根本原因|根因|下次(?:要|得|一定|记得|必须)?先|(?:解决|修复)(?:办法|方法|方案)是",
)

_ELSEWHERE = (
    r"(?:it|that|this|these|those|them|him|her|you|both|one|too|all of|the (?:idea|sound|look|same)|how you|what you"
    r"|your|(?:a lot|some|most) of (?:it|that|them|these|those|the same)|doing (?:it|that|this|those)|to\W*\Z"
    r"|to (?:book|buy|order|know|ask|see|hear|do (?:it|that|this|those|all|a lot of the same|the same)))\b"
)
WISH = any_of(
    rf"\bi {_ADVERBS}(?:prefer|like|love|enjoy|hate|dislike|adore|detest|favou?r)\b(?! {_ELSEWHERE})",
    r"\bi(?:'d| would) (?:much |really |also )?(?:rather|prefer)\b|\b(?:can'?t|cannot) stand\b"
    r"|\bnot a (?:big |huge )?fan of\b",
    rf"\bi(?:'m| am) {_DEGREES}(?:into|fond of|keen on|(?:an? )?(?:(?:big|huge|massive|avid|real) )?fan of"
    rf"|obsessed with"
    r"|addicted to|passionate about)\b(?! (?:it|that|this|them)\b)",
    rf"\bi(?:'m| am) {_DEGREES}(?:a )?(?:vegetarian|vegan|pescatarian|teetotal)",
    r"\bmy (?:all-time |absolute )?(?:preferred|favou?rite|usual|go-to|passion)\b",
    r"\bno longer (?:eat|drink|like|want|use|prefer|watch|read|enjoy)\b|\bi (?:now |currently |mostly )?use (?!it"
    r"|this|that|to\b)\w+",
    r"\bi (?:always |only |never |don'?t |do not |usually |normally )(?:use|write|read|want(?! to\b)|eat|drink|wear|buy"
    r"|take|fly|drive|watch|work|need|indent|keep|set|put|answer"
    rf"|like(?! {_ELSEWHERE}))\b|\bi use\b.{{2,60}}\b(?:never|not|instead|for)\b",
    r"\bi want (?:all |every |any |each |my |the |your )?(?:\w+ ){0,2}(?:answers?|replies|reports?|code|messages?"
    r"|summar\w+|documents?|dates|numbers|names|files|tests|comments|tables|charts|emails?|titles?)\b",
    r"\bcall me (?-i:[A-Z])",
    r"\b(?:please )?(?:always|never)\b.{0,60}\b(?:me|my|for me|i write|we)\b"
    r"|\b(?:be|stay|speak|talk|keep|use|go)\b.{0,40}\bwith me\b|\Awith me\b"
    r"|\bfrom (?:now|here|today) on\b|\bgoing forward\b|\bin (?:the )?future\b|\bnext time\b|\bas a rule\b",
    r"\A\W*(?:please\s+|pls\s+)?(?:always|never)\b|\bplease (?:always|never)\b",
    r"\A\W*(?:please )?(?:don'?t|do not|stop|no more|avoid)\b.{3,}\b(?:with me|me|in (?:your )?(?:answers|replies)"
    r"|again|any ?more)\b",
    r"我(?:还|也|就|都|更|最|很|比较|一直|平时|通常|一般|个人|特别|非常|真的|真|其实|从来|倒|挺|是)*"
    r"(?:喜欢|习惯|偏好|偏爱|爱吃|爱喝|爱看|爱听|讨厌|最烦|反感|受不了|不喜欢|不爱|不吃|不喝|用的是|用的都是|只用|只看"
    r"|只要|更愿意|宁愿|钟爱|热爱|不想再)",
    r"(?:以后|今后|从现在起|从今往后|从今天起|往后|下次).{2,}|一律|统一(?:用|写|成|按|改|为)|每次都?要",
    r"(?:别|不要|不用|少)(?:再|给我|跟我|和我|用|打|写|说|加|讲|先)|跟我(?:讲|说|聊)|给我(?:提|写|讲"
    r"|看).{1,16}(?:直接|先|不用|要)",
    r"不再(?:用|吃|喝|看|喜欢|想)|戒了",
    r"(?:更|比较)(?:愿意|喜欢|习惯)|更希望|(?:希望|麻烦)你?(?:以后|总是|每次|都)|叫我(?!去|来|做|把)",
)
UNFINISHED = any_of(
    r"\A\W*(?:that|it|this|those|these|they)(?:'s|'re| is| are| was| were)\b.{0,24}\bmy (?:favou?rite|go-to)\b",
    r"\b(?:it|them|that|those|him|her)(?: too| as well| either| though)?\W*\Z",
    r"\bi(?:'ll| will| can)\b.{0,60}\b(?:next time|in (?:the )?future)\b",
    r"(?:以后|今后|往后|下次)我?也?(?:会|一定会)|我.{0,6}(?:以后|今后|下次).{0,3}会",
)

_PEOPLE = (
    r"(?:wife|husband|partner|girlfriend|boyfriend|fianc\wé?e?|ex|son|daughter|kids?|child|children|mother|mom|mum"
    r"|father|dad|parents?|brothers?|sisters?|twins?|niece|nephew|friends?|roommates?|boss|manager|colleague|teammate"
    r"|client|dogs?|cats?|pets?|team|office|company|car|house|phone|laptop|doctor|job|family|grand\w+|uncle|aunt"
    r"|cousins?|landlord|neighbou?r|birthday|server|project|department|school|wedding|name|hometown|major|degree|hobby"
    r"|hobbies|dream|age|height|budget|address|number|card)"
)
# What somebody does as part of their life; what they do in a task (run, open, send, try) is not among it.
_DOES = (
    r"(?:live|work(?!ing)|moved|joined|started (?:as|at|playing|my)|study|studied|teach|taught|grew up|was born|own"
    r"|speak|play|played|collect|volunteer|graduated|manage|lead|run (?:a|an|the)|ran (?:a|my)|drive an?|belong|used to"
    r"|attend|dance|sing|paint|knit|sew|sculpt|garden|jog|perform|compete|coach|mentor|tutor|babysit|raise|breed|foster"
    r"|homeschool|commute|rent|exercise|meditate|bake|spend (?:my|most|a lot|every)|listen to|travel|travell?ed|suffer"
    r"|majored|minored|retired|got (?:married|divorced|engaged|promoted|laid off|fired)|dropped out"
    r"|broke up|turned \d+|served|adopted|was (?:raised|adopted|diagnosed|in the|on the|an? )|visit(?:ed)?|bought"
    r"|wrote|write (?!(?:to|this|that|it|you|down|the)\b)|read a lot|help (?:tend|out|run|my)|help at"
    r"|grow (?!tired|up)|quit|fantasi[sz]e|(?:had|have) to have)\b"
)
_WHEN = (
    r"(?:every (?:\w+ )?(?:day|morning|afternoon|evening|night|week\w*|month|year|summer|winter|\w+day)s?"
    r"|(?:once|twice|\w+ (?:days|times|nights|hours)) (?:a|an|per) (?:day|week|month|year)"
    r"|on (?:weekends|weekdays|\w+days)|in the (?:mornings|evenings|afternoons)|daily|weekly|since i was"
    r"|for (?:over |about |almost |nearly )?(?:\w+ )?(?:years|decades))\b"
)
FACT = any_of(
    rf"\bi(?:'m| am) {_DEGREES}(?:an?|the) (?!bit\b|little\b|lot\b|fan\b|big fan|opposite\b|same\b|one\b)\w+",
    rf"\bi(?:'m| am) {_DEGREES}(?:from\b|based\b|married|single|divorced|retired|pregnant|allergic|vegetarian|vegan"
    r"|diabetic|colou?r|left-handed|lactose|\d+ years|\d{1,2}(?= and\b|,|[.!]|\Z)|in (?:my|charge"
    r"|the (?:army|navy|military"
    r"|air force)|college|high school)|responsible|studying|majoring|training (?:to|for|as|at)|teaching|expecting"
    r"|working (?:as|at|for|in|with)|serving|stationed|moving to|homeschool\w*|self-employed|unemployed|adopted|engaged"
    r"|bilingual|deaf|blind|disabled|afraid of|scared of|terrified of|worried about (?:the|my)|lonely"
    r"|close (?:with|to) my"
    r"|going to (?:be (?:an?|working)|college|have (?:a baby|twins)|start))\b",
    r"\bi(?:'m| am) (?-i:[A-Z][a-z]+)(?=[,.!]| and\b|\Z)",
    rf"\bi {_ADVERBS}{_DOES}",
    rf"\bi (?!need|want|think|hope|wonder|know|guess|will|would|can|could)(?:\w+ ){{1,8}}{_WHEN}",
    r"\bi (?:usually|typically|generally|normally|mostly) \w+(?! (?:it|that|this)\b)",
    r"\bi(?:'ve| have) (?:been \w+ing\b.{0,40}\b(?:for|since)\b|(?:\w+ly )?(?:traveled|travelled|lived|worked|studied"
    r"|visited|written|made|owned|played|taught|had)\b(?! (?:it|them|that|this|one)\b)"
    r"|always wanted (?:an?\b|to (?:be|become|write|learn|have|own|live|open)\b))",
    rf"\bi {_ADVERBS}want(?:ed)? to (?:be|become|learn|open (?:a|my)|own|write|travel the|have (?:kids"
    rf"|children|a family))\b"
    r"|\bi (?:don'?t|do not) (?:want|have)(?: any| many)? (?:kids|children|siblings|friends|pets|brothers|sisters)\b",
    r"\b(?:mostly|mainly) (?:\w+ ){1,4}(?:in|on|with)\b",
    r"\bi (?:also |only |just |still |currently )?have (?:(?:an? |two |three |four |five |six |\d+ |several |my own )"
    r"(?!question|problem|few|lot|look|idea|meeting|feeling|minute|issue|request|good|great)\w"
    r"|type |been (?:a|an|married|working|living|playing)\b"
    r"|no (?:kids|children|siblings|pets|car)|(?:\w+ ){1,2}(?:kids|children|grandchildren|siblings"
    r"|brothers|sisters|dogs"
    r"|cats|pets)\b)",
    r"\bi(?:'ve| have) (?:\w+ )?(?:two|three|four|five|\d+) \w+|\bi take \w+ (?:before|every|after|twice|once|daily)",
    rf"\bmy (?:\w+[ -]){{0,2}}{_PEOPLE}\b(?:'s)?(?:,? [\w']+){{0,4}} (?:is|are|was|were|has|have|had"
    rf"|turns?|lives?|lived"
    r"|works?|worked|will|likes?|loves?|hates?|dislikes?|goes|called|named|comes?|joined|runs?|ran|needs?|plays?|played"
    r"|teaches|taught|owns?|owned|died|passed|left|cheated|raised|cooks?|moved)\b",
    r"\bmy (?!question|problem|point|guess|issue|concern|request|bad|apolog|mistake|idea|plan|goal|thought|hope"
    r"|understanding|impression|thinking|advice|turn|pleasure|fault|opinion|favou?rite part)(?:[\w'-]+ ){1,7}"
    r"(?:is|are|was|were|came (?:back|out)|costs?)\b(?! (?:\w+ing|not sure)\b)",
    r"\b(?:two|three|one|some|both|all) of (?:them|us|the \w+) (?:is|are|have|has)\b",
    r"\bwe (?:all |now |currently |also |only |always )?(?:run|use|host|deploy|store|keep|moved|migrated|have"
    r"|switched|log|ship|release|call|named)\b(?! (?:a problem|to|no idea|lost|a lot in common|so much in common"
    r"|something in common))",
    r"\bour (?:\w+(?:'s)? ){1,4}(?:is|are|was|runs?|uses?|opens?|has|have|lives?|listens?|expects?|always|called"
    r"|only|must)\b",
    r"\bin our \w+",
    r"我是(?!说|想|问|觉得|不是|指|在问|不|否|来|去|要|用|因为|这个意思)|我(?:叫(?!你)|的名字|姓)|我今年|我来自|我属",
    r"我(?:现在|目前|去年|今年|前年|上个?月|最近|刚刚?|已经|们)?(?:从.{1,8})?(?:住在?|搬|在.{1,14}(?:工作|上班|读"
    r"|念|教书|实习)|换成|换到|改用)",
    r"我(?:的)?(?:儿子|女儿|孩子|老婆|妻子|丈夫|老公|爱人|爸|妈|父|母|哥|姐|弟|妹|领导|老板|上司|同事|导师|客户|狗"
    r"|猫|团队|公司|部门|办公室|生日|手机|电脑|车|家|专业|学校|项目|工号|职位)(?!.{0,3}(?:吗|呢|怎么))",
    r"我(?:左|右|的)?(?:膝|腰|腿|眼|胃|手|脚|肩|颈|心脏|血压|血糖|视力|身高|体重|听力)",
    r"我(?:有(?!点|些|一些|一点)|患有?|得过|做过|怀孕|对.{1,10}过敏|不能吃|不能喝|养了|负责|会说|从事|主要做|毕业于"
    r"|学的是)(?!个问题|点|空|时间|一?个?疑问)",
    r"(?:我们|咱们|咱)(?:的|这边|这里|公司|团队|部门|组|库里|项目|线上|内部|所有|学校|小区|系统|这)?[^，。]{0,24}?"
    r"(?:是|叫|跑|用|在|有|存|放|部署|开头|规定|采用|没有|搬|改|统一|固定|只|都)",
    r"(?:她|他|他们|其中|有[一两二三]个).{0,6}(?:过敏|不吃|出身|喜欢|讨厌|看重)",
    r"我(?:们)?(?:每(?:天|周|月|年|晚|隔)|通常|平时|一般|一直|从小|小时候|曾经|以前)(?!都?觉得|以为)",
)
REQUEST = any_of(
    r"\A\W*(?:please|kindly)\b|\b(?:help|tell|show|give|find|get|book|send) me\b|\bi need (?:you|help|to)\b",
    r"\bi(?:'m| am) (?:looking|trying|calling|writing|here|reaching|hoping) (?:for|to|about|out)\b",
    r"帮我|帮我们|帮忙|麻烦你|麻烦您|告诉我|请你?(?:给|推荐|查|找)|推荐|吧[。！!]?\Z",
)

CHANGE = any_of(
    r"\bchanged my mind\b|\bno longer\b|\bnot any ?more\b|\bactually\b[, ]|\bcorrection\b|\bscratch that\b"
    r"|\bi meant\b",
    r"\A\W*(?:no|nope|wrong|incorrect|not quite|that'?s (?:wrong|not))\b(?! (?:problem|worries|rush|need|idea"
    r"|thanks|thank|one|matter))[\s,.:;!-]",
    r"\b(?:is|are|works?|live|runs?|use|on) .{0,40}\bnow\b\W*\Z|\bswitched (?:to|from)\b"
    r"|\binstead of\b.{2,40}\bnow\b",
    r"更正|不对(?!称|等|齐)|(?:说|写|记|搞|弄|理解|算)错了|不是.{1,20}[，,].{0,12}(?:是|用|要|叫|在)|改主意|改回"
    r"|改成|改为|改用|换成|换到|不再|已经不|其实是|应该是|纠正",
)
CHAT = any_of(
    r"\A\W*(?:that'?s|that is|that will be|that would be|it'?s|this is) (?:all|it|ok\w*|fine|right|good|great|enough"
    r"|perfect|not what)\b|\bthank|\A\W*(?:a lot\b|for (?:your|the|all|sharing)\b|you'?re\b|you are\b"
    r"|not really\b|try\b"
    r"|yeah\b|i'?m (?:good|fine|done|all set)\b|i don'?t\W*\Z)",
    r"谢谢|多谢|不用了|没事|就这些",
)

_ABOUT_ANSWERS = any_of(
    r"\b(?:pdf|report|answers?|code|format|bullet|slides?)\b", r"要点|格式|报告|回复|回答|幻灯片|表格"
)
_STRONG = re.compile(r"\bi (?:want|prefer|like|hate)\b|我(?:要|喜欢|讨厌|习惯)", re.IGNORECASE)


def strong_wish(text: str) -> bool:
    """Whether a text that is to be remembered is a wish: it says so strongly, or is about answers."""
    return bool(_STRONG.search(text) or (WISH.search(text) and _ABOUT_ANSWERS.search(text)))
