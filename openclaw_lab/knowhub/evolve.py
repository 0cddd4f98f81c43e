"""An entry with its cases in, the text of its next version out: what it says, and what its uses showed.

Cases that say the same are one line with a count. A dated one is a statement of its time: it stays a line of its own
and is never merged with another. Nothing is rewritten, no model is asked; the cases themselves stay in the entry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from openclaw_lab.knowhub.entry import MAX_CONTENT, Case, Entry, same_form
from openclaw_lab.knowhub.judge import is_dated
from openclaw_lab.text import language

_HEADS = {"zh": ("有效：", "无效：", "（另有 {} 条）"), "en": ("Worked:", "Failed:", "({} more)")}
_SECTION = re.compile(r"\n\n---\n(?:有效：|无效：|Worked:|Failed:)\n- .*\Z", re.DOTALL)
# Lines of each kind that are written out, the latest; the rest is counted.
_LINES = 20
# What a report without words of its own says.
_SILENT = frozenset({"使用成功", "使用失败", "未说明", ""})


def evolved(entry: Entry) -> str:
    """The content of an entry's next version; the same content when its cases add nothing."""
    content = _SECTION.sub("", entry.content)
    heads = _HEADS[language(content)]
    parts = []
    for head, cases in zip(heads, (entry.helpful, entry.harmful), strict=False):
        if lines := _lines(cases, heads[2]):
            parts.append("\n".join([head, *lines]))
    if not parts:
        return content
    section = "\n\n---\n" + "\n".join(parts)
    return content + section if len(content) + len(section) <= MAX_CONTENT else entry.content


def _lines(cases: Sequence[Case], more: str) -> list[str]:
    counts: dict[str, tuple[str, int]] = {}
    for number, case in enumerate(cases):
        said = _said(case)
        if not said:
            continue
        key = f"{number} {said}" if is_dated(said) else same_form(said)
        text, count = counts.get(key, (said, 0))
        counts[key] = (text, count + 1)
    lines = [f"- {text}" if count == 1 else f"- {text} ×{count}" for text, count in counts.values()]
    left = len(lines) - _LINES
    return lines if left <= 0 else [*lines[-_LINES:], f"- {more.format(left)}"]


def _said(case: Case) -> str:
    """A case as one line; empty when nobody said anything."""
    parts = [part for part in (case.task, case.reason) if part not in _SILENT]
    return ": ".join(" ".join(part.split()) for part in dict.fromkeys(parts))
