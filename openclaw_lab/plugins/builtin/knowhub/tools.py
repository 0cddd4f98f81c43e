"""The three tools: a model's arguments in, a text for it out. What a search finds is escaped, and framed as reference.

Entries that look like an injected instruction are left out. In strict mode secrets are removed from what is saved.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import LabError
from openclaw_lab.plugins.builtin.knowhub.settings import Bases
from openclaw_lab.plugins.sdk import ToolContext, ToolResult
from openclaw_lab.text import Language, language

if TYPE_CHECKING:
    from openclaw_lab.injection.detectors import Detector
    from openclaw_lab.knowhub.service import Hit

# Characters of an entry's content that a search shows.
_SHOWN = 500
_WORDS: dict[Language, dict[str, str]] = {
    "zh": {
        "found": "找到 {n} 条相关知识：", "none": "未找到相关知识", "from": "来源", "types": "类型", "content": "内容",
        "score": "评分", "quality": "质量分", "left": "（另有 {n} 条疑似含有指令注入，未显示）",
        "stale": "（知识库暂时连不上；这是 {at} 的结果）",
        "updated": "✅ 反馈已提交", "removed": "，已去除 {n} 处敏感信息",
        "created": "✅ 知识已保存 (ID: {id})", "queued": "✅ 知识库暂时连不上，知识已留存，稍后提交",
        "duplicate": "知识库中已有相同知识 (ID: {id})", "superseded": "✅ 知识已保存 (ID: {id})，取代 {other}",
        "conflict": "✅ 知识已保存 (ID: {id})，与 {other} 矛盾，请核对",
    },
    "en": {
        "found": "Found {n}:", "none": "No knowledge found", "from": "from", "types": "types", "content": "content",
        "score": "score", "quality": "quality", "left": "({n} more left out: they look like injected instructions)",
        "stale": "(the knowledge base does not answer; this is the result of {at})", "updated": "✅ Reported",
        "removed": "; {n} secrets removed", "created": "✅ Saved (ID: {id})",
        "queued": "✅ The knowledge base does not answer; kept, and sent later",
        "duplicate": "The knowledge base has the same already (ID: {id})",
        "superseded": "✅ Saved (ID: {id}); it takes the place of {other}",
        "conflict": "✅ Saved (ID: {id}); it contradicts {other}: please check",
    },
}  # fmt: skip


class KnowHubTools:
    """kb_search, kb_save and kb_update over a knowledge base, local or remote."""

    def __init__(self, bases: Bases, config: LabConfig, logger: logging.Logger) -> None:
        self._bases, self._config, self._log = bases, config, logger
        self._kept: Detector | None = None

    @property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The tools, as plain functions."""
        return (self.kb_search, self.kb_save, self.kb_update)

    def kb_search(
        self,
        context: ToolContext,
        query: Annotated[str, "what to search for 搜索查询"],
        top_k: Annotated[int, "how many at most 返回数量"] = 5,
        min_score: Annotated[int, "lowest score, 1 to 5 最低评分"] = 3,
        types: Annotated[list[str] | None, "only these types 知识类型过滤, e.g. tool, strategy"] = None,
    ) -> ToolResult:
        """从 KnowHub 搜索相关知识：遇到复杂任务、不确定用什么工具、多次失败时。Search the knowledge base: for a complex
        task, when unsure which tool to use, after repeated failures."""
        words = _WORDS[language(query)]
        if not 1 <= top_k <= 100 or not 1 <= min_score <= 5:
            return ToolResult("kb_search: top_k is 1 to 100, min_score 1 to 5", failed=True)
        try:
            base = self._bases.of(context.agent_id)
            asked: dict[str, Any] = {
                "top_k": top_k,
                "min_score": min_score,
                "types": tuple(types or ()),
                "include_flagged": False,
            }
            if hasattr(base, "entries"):  # a local one does not know who asks
                asked["agent"] = context.agent_id
            hits = base.search(query, **asked)
        except LabError as error:
            return ToolResult(f"kb_search: {error}", failed=True)
        return self._shown(hits, words, language(query), getattr(hits, "stale", ""))

    def kb_save(
        self,
        context: ToolContext,
        task: Annotated[str, "when it is of use: the situation, in one line 任务场景描述"],
        content: Annotated[str, "the knowledge itself, complete 核心知识内容"],
        types: Annotated[list[str], "user_profile, strategy, tool, usecase, definition, plan 知识类型"],
        score: Annotated[int, "how valuable, 1 to 5 评分"] = 3,
        source_name: Annotated[str, "name of the tool or resource 资源名称"] = "",
        source_urls: Annotated[list[str] | None, "links 参考链接"] = None,
    ) -> ToolResult:
        """保存新知识到 KnowHub：使用资源后、获得用户反馈后、搜索过程有发现时。Save new knowledge: after using a
        resource, after user feedback, after a finding on the way."""
        words = _WORDS[language(f"{task} {content}")]
        clean, removed = self._clean((task, content, source_name, *(source_urls or ())))
        source = {
            "name": clean[2], "category": "exp", "urls": tuple(clean[3:]), "agent_id": context.agent_id,
            "submitted_by": self._config.knowhub.submitted_by, "message_id": context.call_id,
        }  # fmt: skip
        item: dict[str, Any] = {"task": clean[0], "content": clean[1], "types": types, "score": score, "source": source}
        try:
            saved = self._bases.of(context.agent_id).save(
                **item, owner=f"agent:{context.agent_id}", key=_key("save", context, clean)
            )
        except LabError as error:
            return ToolResult(f"kb_save: {error}", failed=True)
        said = words[saved.action].format(id=getattr(saved, "id", ""), other=getattr(saved, "other_id", ""))
        said += words["removed"].format(n=removed) if removed else ""
        return ToolResult(said, details={"action": saved.action, "id": getattr(saved, "id", ""), "redacted": removed})

    def kb_update(
        self,
        context: ToolContext,
        knowledge_id: Annotated[str, "the ID that kb_search shows 知识 ID"],
        is_helpful: Annotated[bool, "whether it helped 是否有用"],
        feedback: Annotated[str, "what it was used for, and how it went 反馈说明"] = "",
    ) -> ToolResult:
        """使用知识后，反馈它是否有效。Report whether a piece of knowledge helped, after using it."""
        words = _WORDS[language(feedback)] if feedback else _WORDS["zh"]
        clean, removed = self._clean((feedback,))
        key = _key("update", context, (knowledge_id, str(is_helpful), clean[0]))
        try:
            base = self._bases.of(context.agent_id)
            base.update(knowledge_id, is_helpful=is_helpful, feedback=clean[0], key=key)
        except LabError as error:
            return ToolResult(f"kb_update: {error}", failed=True)
        said = words["updated"] + (words["removed"].format(n=removed) if removed else "")
        return ToolResult(said, details={"id": knowledge_id, "redacted": removed})

    def _clean(self, texts: Sequence[str]) -> tuple[list[str], int]:
        """Texts without secrets, and how many were removed."""
        from openclaw_lab.redaction.redactor import Redactor

        made = Redactor(self._config.redaction).redact_many(texts)
        return [each.text for each in made], sum(len(each.spans) for each in made)

    def _detector(self) -> Detector:
        from openclaw_lab.injection.detectors import Detector

        if self._kept is None:
            self._kept = Detector(self._config.injection)
        return self._kept

    def _shown(self, hits: Sequence[Hit], words: dict[str, str], spoken: Language, stale: str) -> ToolResult:
        from openclaw_lab.injection.prompt import framed

        detect, lines, ids = self._detector().detect, [], []
        for hit in hits:
            entry = hit.entry
            if any(detect(text).flagged for text in (entry.task, entry.content, entry.source.name) if text):
                self._log.warning("knowhub: skipping suspicious experience %s", entry.id)
                continue
            ids.append(entry.id)
            lines.append(_line(len(ids), hit, words))
        left = len(hits) - len(ids)
        notes = [words["left"].format(n=left)] if left else []
        notes += [words["stale"].format(at=stale)] if stale else []
        if not ids:
            return ToolResult("\n".join([words["none"], *notes]), details={"count": 0, "ids": []})
        text = "\n".join([words["found"].format(n=len(ids)), framed(lines, spoken), *notes])
        return ToolResult(text, details={"count": len(ids), "ids": ids})


def _line(number: int, hit: Hit, words: dict[str, str]) -> str:
    from openclaw_lab.injection.prompt import escape_for_prompt as safe

    entry = hit.entry
    content = entry.content if len(entry.content) <= _SHOWN else f"{entry.content[:_SHOWN]}…"
    origin = f" ({words['from']}: {safe(entry.source.name)})" if entry.source.name else ""
    return (
        f"{number}. [{safe(entry.task)}]{origin}\n   ID: {safe(entry.id)}\n"
        f"   {words['types']}: {safe(', '.join(entry.types))}\n   {words['content']}: {safe(content)}\n"
        f"   {words['score']}: {entry.score}/5 ({words['quality']}: {hit.quality:.1f})"
    )


def _key(verb: str, context: ToolContext, said: Sequence[str]) -> str:
    """The same call, repeated by a host, changes nothing; without an id every call is a new one."""
    if not context.call_id:
        return ""
    parts = json.dumps([verb, context.session_id, context.call_id, *said], ensure_ascii=False)
    return f"{verb}-{hashlib.sha256(parts.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
