"""A conversation in, what is worth keeping of it out, as items for `KnowHub.save_many`; everything redacted first.

    rules            what the user said (see `statements`), and failures of a tool that were overcome
    litellm:<model>  not there yet

Only what a user said and what tools really answered is knowledge; an assistant's claims, system texts and injected
reminders are not. Each item names its conversation and messages in `source.message_id` (`session#first-last`) and has
an idempotency key made of its own words, so that the whole history may be sent again and again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from openclaw_lab.errors import DataError, TaskError, excerpt
from openclaw_lab.knowhub.statements import Kind, statements
from openclaw_lab.messages import Message, ToolCall
from openclaw_lab.redaction.redactor import redact
from openclaw_lab.reminders.opportunities import OpportunityFinder
from openclaw_lab.text import Language, language
from openclaw_lab.transcripts.fields import message_from

EXTRACTORS = ("rules", "litellm:<model>")
# Characters of a tool's arguments and of its answer that are kept.
_ARGUMENTS, _ANSWER, _TITLE = 300, 300, 80
_FAULT = re.compile(
    r"error|fail|fatal|denied|refused|cannot|could not|unable|invalid|not found|exception|timed? ?out"
    r"|错误|失败|无法|拒绝|超时|异常",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing worth keeping, from the messages `first` to `last`."""

    task: str
    content: str
    types: tuple[str, ...]
    score: int
    first: int
    last: int


_LABELS: Mapping[Kind, tuple[str, str, tuple[str, ...], int]] = {
    "remember": ("To remember", "要记住", ("strategy",), 4),
    "profile": ("About the user", "关于用户", ("user_profile",), 4),
    "rule": ("A standing rule", "长期规则", ("strategy",), 4),
    "correction": ("A correction", "更正", ("strategy",), 3),
}
_OVERCOME: Mapping[Language, tuple[str, str, str, str]] = {
    "en": ("A failure of {tool} overcome: {error}", "Failed", "Answer", "Worked"),
    "zh": ("{tool} 失败后的解决办法：{error}", "失败的做法", "报错", "有效的做法"),
}


def extract_items(
    messages: Sequence[Message | Mapping[str, Any]],
    *,
    agent_id: str = "",
    session_key: str = "",
    submitted_by: str = "",
    extractor: str = "rules",
) -> list[dict[str, Any]]:
    """What is worth keeping of a conversation, as items for `KnowHub.save_many`.

    `messages` are Messages or plain objects in any format that transcripts may have; a bad one is a DataError.
    """
    if extractor.startswith("litellm:"):
        raise TaskError(f"extractor {extractor}", expected="rules", todo="extraction by a model is not there yet")
    if extractor != "rules":
        raise TaskError("extractor", extractor, f"one of {', '.join(EXTRACTORS)}")
    source = {"name": session_key, "category": "exp", "agent_id": agent_id, "submitted_by": submitted_by}
    owner = f"agent:{agent_id}" if agent_id else ""
    items: dict[str, dict[str, Any]] = {}
    for found in candidates([_read(each, f"messages[{index}]") for index, each in enumerate(messages)]):
        key = _key(agent_id, session_key, found)
        place = f"{session_key}#{found.first}-{found.last}"
        item = {"task": found.task, "content": found.content, "types": found.types, "score": found.score}
        items.setdefault(key, {**item, "owner": owner, "source": {**source, "message_id": place}, "key": key})
    return list(items.values())


def candidates(messages: Sequence[Message]) -> list[Candidate]:
    """What is worth keeping, in the order in which it became known."""
    clean = [_redacted(message) for message in messages]
    return sorted([*_said(clean), *_overcome(clean)], key=lambda each: (each.last, each.first))


def _said(messages: Sequence[Message]) -> Iterator[Candidate]:
    """What the user said."""
    later = False
    for index, message in enumerate(messages):
        later |= message.role == "assistant"
        for found in statements(message.text, later=later) if message.role == "user" else ():
            english, chinese, types, score = _LABELS[found.kind]
            label = f"{chinese}：" if language(found.text) == "zh" else f"{english}: "
            yield Candidate(f"{label}{excerpt(found.what, _TITLE)}", found.text, types, score, index, index)


def _overcome(messages: Sequence[Message]) -> Iterator[Candidate]:
    """Failures of a tool that another call of it overcame; the same call once more teaches nothing."""
    finder = OpportunityFinder()
    failures: dict[str, tuple[int, ToolCall, str]] = {}
    for index, message in enumerate(messages):
        found = finder.see(message)
        call = finder.last_call
        if message.role != "tool" or call is None:
            continue
        if finder.last_failed:
            failures[call.name] = (index, call, message.text)
        elif any(each.kind == "recovery" for each in found) and call.name in failures:
            first, failure, answer = failures.pop(call.name)
            if failure.arguments != call.arguments:
                yield _lesson(first, index, failure, answer, call, _spoken(messages[:index]))


def _lesson(first: int, last: int, failure: ToolCall, answer: str, success: ToolCall, spoken: Language) -> Candidate:
    title, failed, said, worked = _OVERCOME[spoken]
    error = _telling(answer)
    lines = [
        f"{failed}: {failure.name} {_arguments(failure)}",
        f"{said}: {excerpt(error, _ANSWER)}",
        f"{worked}: {success.name} {_arguments(success)}",
    ]
    task = title.format(tool=success.name, error=excerpt(error, _TITLE))
    return Candidate(task, "\n".join(lines), ("tool", "strategy"), 4, first, last)


def _telling(answer: str) -> str:
    """The line of a failed answer that says most: the last one of a traceback, else the first that names a fault."""
    lines = [line.strip() for line in answer.splitlines() if line.strip()] or ["-"]
    if lines[0].lower().startswith("traceback"):
        return lines[-1]
    return next((line for line in lines if _FAULT.search(line)), lines[0])


def _arguments(call: ToolCall) -> str:
    plain = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return excerpt(redact(plain), _ARGUMENTS)


def _spoken(messages: Sequence[Message]) -> Language:
    return next((language(each.text) for each in reversed(messages) if each.role == "user" and each.text), "en")


def _redacted(message: Message) -> Message:
    return replace(message, content=redact(message.text.encode("utf-8", "replace").decode()))


def _read(message: object, where: str) -> Message:
    if isinstance(message, Message):
        return message
    if not isinstance(message, Mapping):
        raise DataError(where, message, "a message: an object with role and content")
    return message_from(message, where)


def _key(agent_id: str, session_key: str, found: Candidate) -> str:
    """The same words in the same conversation, wherever in it they stand: a tail may be sent, or all of it."""
    said = json.dumps([agent_id, session_key, found.task, found.content], ensure_ascii=False)
    return f"extract {hashlib.sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
