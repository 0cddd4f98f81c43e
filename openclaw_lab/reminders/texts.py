"""The words of the start text and of the reminder, in Chinese and English; a config may replace each of the four."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from openclaw_lab.config import ReminderConfig
from openclaw_lab.text import Language

TextKind = Literal["start", "reminder"]

# The Chinese texts are the seed document's own, character for character.
BUILT_IN: dict[tuple[TextKind, Language], str] = {
    ("start", "zh"): """💡 KnowHub 知识库已启用

可用工具：
- kb_search: 搜索知识（遇到复杂任务、不确定用什么工具、多次失败时）
- kb_save: 保存知识（使用资源后、获得用户反馈后、搜索过程有发现时）
- kb_update: 反馈知识有效性（使用知识后）

建议：开始任务前先搜索相关知识，完成后及时保存新发现。""",
    ("start", "en"): """💡 The KnowHub knowledge base is on.

Tools:
- kb_search: look knowledge up (a complex task, unsure which tool to use, repeated failures)
- kb_save: keep knowledge (after using a resource, after user feedback, after a finding on the way)
- kb_update: say whether a piece of knowledge helped (after using it)

Search before you start on a task; save what you learned when it is done.""",
    ("reminder", "zh"): (
        "💡 提醒：如果遇到复杂问题、使用了工具/资源、或获得了用户反馈，记得用 kb_save 保存知识到 KnowHub。"
    ),
    ("reminder", "en"): (
        "💡 Reminder: if you met a complex problem, used a tool or resource, or got user feedback, "
        "keep what you learned in KnowHub with kb_save."
    ),
}


def text_for(kind: TextKind, config: ReminderConfig, spoken: Language = "en") -> str:
    """The text to inject; `spoken` is the user's language, followed when the config's language is `auto`."""
    chosen: Language = spoken if config.language == "auto" else "zh" if config.language == "zh" else "en"
    own: str = getattr(config, f"{kind}_text_{chosen}")
    return own or BUILT_IN[kind, chosen]


def joined(kinds: Iterable[TextKind], config: ReminderConfig, spoken: Language = "en") -> str:
    """Several texts that one hook puts into one prompt."""
    return "\n\n".join(text_for(kind, config, spoken) for kind in kinds)
