"""What an agent may be given as memory, turned into two functions: recall for a message, remember a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from openclaw_lab.agent.driving import settled
from openclaw_lab.agent.prompt import Recall
from openclaw_lab.agent.tools import Toolbox, result_of
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import ConfigError, TaskError
from openclaw_lab.injection.prompt import Experience, Known
from openclaw_lab.messages import ToolCall
from openclaw_lab.plugins.tool import ToolContext

Remember = Callable[[str, Toolbox], str]
_TASK = 200
# An entry that is further from a message than this has nothing to do with it, unless the config names a limit: for the
# default embedder the cosine from which 72 % of related texts are kept and 4 % of others (`growth.calibrate`).
_LEAST = 0.2
# The tool that keeps a text where there is no memory.
SAVE = "kb_save"


def recall_of(memory: object, config: LabConfig) -> Recall | None:
    """What recalls from a KnowHub, from an object with `inject(message)`, or from a callable."""
    if memory is None:
        return None
    if is_knowhub(memory):
        kb: Any = memory

        def search(message: str) -> Sequence[Experience]:
            settings = config.knowhub
            least = settings.min_similarity if settings.min_similarity > -1 else _LEAST
            hits = kb.search(message[:1000], top_k=settings.top_k, min_score=settings.min_score)
            return [
                Known(hit.entry.id, *_told_once(hit.entry.task, hit.entry.source.name, hit.entry.content))
                for hit in hits
                if not hit.entry.flagged and hit.similarity >= least
            ]

        return search
    inject = getattr(memory, "inject", None)
    if callable(inject):
        return lambda message: _text(inject(message))
    if callable(memory):
        return memory
    raise ConfigError("memory", f"a {type(memory).__name__}", "a KnowHub, a GrowthMemory, or a callable")


def _told_once(task: str, resource: str, content: str) -> tuple[str, str, str]:
    """Task, resource and content; a task that only repeats the content, as of what was remembered, is not shown."""
    return ("…" if content.startswith(task) else task), resource, content


def is_knowhub(memory: object) -> bool:
    """Told by its verbs, a client of a server too."""
    return all(callable(getattr(memory, verb, None)) for verb in ("search", "save"))


def _text(found: Any) -> str:
    return found if isinstance(found, str) else str(getattr(found, "text", found) or "")


def remember_of(memory: object, config: LabConfig) -> Remember:
    """What keeps a text without its secrets: the KnowHub, the memory's own `remember`, or a plugin's kb_save."""

    def remember(text: str, toolbox: Toolbox) -> str:
        if not text.strip():
            raise TaskError("remember", "an empty text", "what to remember")
        from openclaw_lab.redaction.redactor import Redactor

        text = Redactor(config.redaction).redact(text).text
        if is_knowhub(memory):
            kb: Any = memory
            saved = kb.save(task=text[:_TASK], content=text, types=["strategy"])
            said = f"{saved.action}: {saved.id}"
            entry = kb.get(saved.id) if hasattr(kb, "get") else None
            suspect = entry is not None and entry.flagged
            return f"{said}, but it looks like a prompt injection: it is never put into a prompt" if suspect else said
        own = getattr(memory, "remember", None)
        if callable(own):
            return str(own(text) or "remembered")
        if SAVE in toolbox.tools:
            return _by_tool(text, toolbox)
        raise TaskError("remember", "no memory", "a memory, or a plugin with kb_save", "give Agent(memory=…)")

    return remember


def _by_tool(text: str, toolbox: Toolbox) -> str:
    wanted: Mapping[str, Any] = toolbox.tools[SAVE].parameters.get("properties") or {}
    values = {"task": text[:_TASK], "content": text, "types": ["strategy"], "score": 3}
    given = {name: value for name, value in values.items() if name in wanted} or {"content": text}
    answer = toolbox.call(ToolCall("remember", SAVE, given), ToolContext(call_id="remember"))
    result = result_of(SAVE, settled(answer) if hasattr(answer, "__await__") else answer)
    if result.failed:
        raise TaskError("remember", result.text, "a kb_save that works")
    return result.text
