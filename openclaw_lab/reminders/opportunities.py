"""Messages in, moments worth remembering out: a documented rule set that looks only at what has happened so far.

    recovery      a tool result that succeeds after the same tool (for a shell: the same program) failed
    new_resource  the first success of a tool, program or site in the session, other than the everyday ones
    feedback      a later user message that corrects, states a lasting wish, or confirms that something worked
    task_end      the closing answer (no question) of a run with tool calls, if one of the above came since the last

A person's own labels in the data replace these rules in an experiment; the bundled labels measure how good they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from openclaw_lab.messages import Message, Opportunity, OpportunityKind, Session, ToolCall

_SHELLS = frozenset({"bash", "shell", "sh", "exec", "terminal", "run_command", "execute_command"})
_SEARCHES = frozenset({"web_search", "web_fetch", "fetch", "browser", "browse", "search_web", "http_get"})
# What every session does: the first success of these teaches nothing.
_EVERYDAY_PROGRAMS = frozenset({
    "ls", "cat", "cd", "pwd", "echo", "grep", "rg", "head", "tail", "find", "mkdir", "cp", "mv", "rm", "touch", "wc",
    "sort", "sed", "awk", "which", "export", "env", "sleep", "true", "test", "chmod", "git", "python", "python3",
    "node",
    "npm", "npx", "pnpm", "yarn", "pip", "make", "diff", "date", "kill", "ps", "sudo", "curl", "ssh", "scp", "tar",
    "unzip", "df", "du", "apt", "apt-get", "brew", "docker", "kubectl", "psql", "mysql", "sqlite3", "systemctl",
    "journalctl", "dig", "ss", "set", "printf", "xargs", "tee", "cut", "uniq", "tr", "ln", "cmp", "stat", "file",
    "pytest", "cargo", "go", "java", "mvn", "gradle", "helm",
})  # fmt: skip

# Looking around is not trying: a `cat` that fails and another that succeeds are no recovery.
_LOOKS = frozenset(
    {"ls", "cat", "cd", "pwd", "echo", "grep", "rg", "head", "tail", "find", "wc", "which", "sleep", "true"}
)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE | re.MULTILINE)


_FAILED = _any(
    r"traceback \(most recent",
    r"(?:^|\s)(?:\w+\.)*\w*(?:error|exception)\b\s*(?:[:：(\[]|ts\d|[0-9])",
    r"\b(?:npm|pip) (?:err|error)",
    r"\bexit(?:ed)? (?:with )?(?:code|status) ?[:=]? ?[1-9]",
    r"\bcommand not found|\bno such file|\bpermission denied|\bdenied\b",
    r"\btimed? ?out\b|\bconnection (?:refused|reset)",
    r"\bcannot |\bcould not\b|\bunable to\b",
    r"\bis (?:unavailable|not (?:found|supported|allowed|recognized))",
    r"\bcrashloopbackoff\b|\boomkilled\b|\bsegmentation fault",
    r"\b(?:fatal|panic|critical)\b[: ]",
    r"""["']error["']\s*:\s*["'{\[]""",
    r"""["'](?:ok|success)["']\s*:\s*false""",
    r"""["']code["']\s*:\s*(?!2\d\d)[1-9]\d\d""",
    r"""["']status["']\s*:\s*(?:["'](?:error|failed|failure)|[45]\d\d)""",
    r"\bhttp(?:/\d(?:\.\d)?)? (?:error )?[45]\d\d\b|^[45]\d\d$",
    r"^\s*failed\b|\b[1-9]\d* (?:failed|failing|errors?)\b",
    r"失败|超时|权限不足|拒绝访问|报错|错误[:：]|异常[:：]|无法|找不到|不支持",
)
_NO_FAILURE = _any(
    # source code that was read, not what came of running it
    r"^[ \t]*(?:[\w./-]{0,200}[:\t ]?\d{1,7}[:\t ]+)?(?:\}[ \t]*)?"
    r"(?:async def|def|class|except|catch|function|func|import|from)\b.*$",
    r"\b(?:0|no) (?:failed|errors?|failures?)\b|\berrors?: 0\b",
    r"无(?:错误|异常|失败)|没有(?:错误|报错|失败)",
)

_FEEDBACK = _any(
    # corrections
    r"\A\W*(?:no|nope|wrong|incorrect|stop|wait)\b(?! (?:problem|worries|rush|need|idea))[\s,.!:;-]+(?:\S+\s+){3}",
    r"\bthat'?s (?:not|wrong)\b|\bnot what i\b|\bactually,? (?:i|we|it|the|that|you)\b",
    r"不对(?!称|等|齐)[^？?]*$|(?<!没)(?:搞|弄|理解|算|说)错|错了|不是这(?:个|样)|不是(?:让|叫|要)你|应该是|我(?:说|指)的是",
    # wishes and rules that last
    r"\bi (?:prefer|always|never|meant|said|hate|need|want)\b",
    r"\b(?:we|they|it) (?:always|never|prefer|only|don'?t|can'?t|must|needed|got bitten)\b",
    r"\b(?:must|never|always|only|rule|policy)\b",
    r"\b(?:from now on|in (?:the )?future|next time|remember|for the record|keep in mind|turns out|whatever you do)\b",
    r"\b(?:please|pls) (?:use|keep|no|don'?t|never|always)\b",
    r"\b(?:don'?t|do not) (?!know|think|worry|mind|care|understand|see|get it)\w+",
    r"我(?:更)?(?:喜欢|习惯|偏好|最烦|不要|不想)|我们(?:一直|都|从来|这边|单位|公司|组)",
    r"以后(?!再说)|下次|记住|记一下|请?记得|别再|不要(?!紧)|别(?!的|人|墅|处)|不能(?!用吗|吗)",
    r"必须|规定|规矩|只能|都要|都得",
    # it worked
    r"\b(?:that|it|this) (?:worked|works|fixed|did it|solved|helped|is (?:right|correct|perfect|exactly))\b",
    r"\b(?:perfect|exactly (?:what|right)|well spotted|works (?:now|great|perfectly)|that did (?:it|the trick))\b",
    r"(?:可以|搞定|解决|成功|修好|跑通|能用|ok|恢复)了(?!吗|么|？|\?)|完美|正是我(?:要|想)|就是这(?:个|样)[！!。，,]",
)
_LOOKED_AT = 2000


class OpportunityFinder:
    """Goes through one session, message by message.

    `last_call` is the call that the last tool result answered (None: it is not known), `last_failed` whether it failed.
    """

    def __init__(self) -> None:
        self.last_call: ToolCall | None = None
        self.last_failed = False
        self._index = -1
        self._open: dict[str, ToolCall] = {}
        self._latest: list[ToolCall] = []
        self._failing: set[str] = set()
        self._known: set[str] = set()
        self._answered = False
        self._closing: int | None = None
        self._run_calls = 0
        self._taught = False

    def see(self, message: Message) -> list[Opportunity]:
        """The next message; what it made worth remembering."""
        self._index += 1
        if message.role == "user":
            return self._see_user(message)
        if message.role == "assistant":
            self._see_assistant(message)
        elif message.role == "tool":
            return self._see_result(message)
        return []

    def run_end(self) -> list[Opportunity]:
        """The run is over; its closing answer, when the run was one that teaches."""
        closing, calls = self._closing, self._run_calls
        self._closing, self._run_calls = None, 0
        if closing is None or not calls or not self._taught:
            return []
        self._taught = False
        return [Opportunity(closing, "task_end")]

    def _see_user(self, message: Message) -> list[Opportunity]:
        later, text = self._answered, message.text
        if later and len(text) <= _LOOKED_AT and _FEEDBACK.search(text):
            return [self._found("feedback")]
        return []

    def _see_assistant(self, message: Message) -> None:
        self._answered = True
        self._run_calls += len(message.tool_calls)
        closes = not message.tool_calls and message.stop_reason not in ("aborted", "error")
        text = message.text.rstrip()
        self._closing = self._index if closes and text and text[-1] not in "?？" else None
        self._latest = list(message.tool_calls)
        self._open.update({call.id: call for call in message.tool_calls if call.id})

    def _see_result(self, message: Message) -> list[Opportunity]:
        call = self.last_call = self._answered_call(message)
        self.last_failed = failed(message)
        if call is None:
            return []
        subjects, resources = _subjects(call), _resources(call)
        if self.last_failed:
            self._failing |= subjects
            return []
        new = resources - self._known
        self._known |= resources
        if subjects & self._failing:
            self._failing -= subjects
            return [self._found("recovery")]
        return [self._found("new_resource")] if new else []

    def _answered_call(self, result: Message) -> ToolCall | None:
        """The call that a result answers: by its id, else by its name, else the oldest call still open."""
        call = self._open.pop(result.tool_call_id or "", None)
        if call is None and self._latest:
            call = next((each for each in self._latest if each.name == result.name), self._latest[0])
        if call in self._latest:
            self._latest.remove(call)
        return call

    def _found(self, kind: OpportunityKind) -> Opportunity:
        self._taught = True
        return Opportunity(self._index, kind)


def find_opportunities(session: Session) -> tuple[Opportunity, ...]:
    """All moments worth remembering in a recorded session by these rules, in order of their messages."""
    finder, found = OpportunityFinder(), []
    resets = {cut.at for cut in session.cuts if cut.kind == "reset"}
    previous = None
    for index, message in enumerate(session.messages):
        if index in resets or (message.role == "user" and previous not in (None, "user")):
            found += finder.run_end()
        found += finder.see(message)
        previous = message.role if message.role != "system" else previous
    found += finder.run_end()
    return tuple(sorted(found, key=lambda each: each.index))


def failed(result: Message) -> bool:
    """Whether a tool result is a failure: what the host said, else what the text says."""
    if result.failed is not None:
        return result.failed
    text = result.text
    looked_at = text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    return bool(_FAILED.search(_NO_FAILURE.sub("", looked_at)))


def _subjects(call: ToolCall) -> set[str]:
    """What a call tries, for telling a retry: the programs of a shell command, else the tool."""
    if call.name.lower() in _SHELLS:
        return {f"{call.name} {program}" for program in _programs(call.arguments) if program not in _LOOKS}
    return {call.name}


def _resources(call: ToolCall) -> set[str]:
    """What a call draws on that not every session does: uncommon programs, and sites."""
    if call.name.lower() in _SHELLS:
        return _programs(call.arguments) - _EVERYDAY_PROGRAMS
    return _sites(_strings(call.arguments)) if call.name.lower() in _SEARCHES else set()


def _programs(arguments: Mapping[str, Any] | str) -> set[str]:
    """The programs of a shell command, without paths, variables and sudo."""
    programs = set()
    for part in re.split(r"&&|\|\||[;\n|]", next(iter(_strings(arguments)), "")[:_LOOKED_AT]):
        names = [word for word in part.split() if "=" not in word and word not in ("sudo", "time", "env", "timeout")]
        if names and re.fullmatch(r"[\w./+-]+", names[0]):
            programs.add(names[0].rpartition("/")[2].lower())
    return programs - {""}


def _sites(values: Iterable[str]) -> set[str]:
    """The host names of the addresses among the arguments."""
    found = (re.search(r"https?://([^/\s:?#]+)", value[:_LOOKED_AT]) for value in values)
    return {match.group(1).lower() for match in found if match}


def _strings(arguments: Mapping[str, Any] | str) -> list[str]:
    if isinstance(arguments, str):
        return [arguments]
    return [value for value in arguments.values() if isinstance(value, str)]
