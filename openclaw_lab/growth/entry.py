"""One memory of an agent, and its address: `agent://{agent_id}/{folder}/…`. Values only; nothing is stored here.

agent://{id}/preferences/{category}/{name}   communication-style response-format language-preference topic-interests
agent://{id}/knowledge/{category}/{name}     user-facts domain-knowledge lessons-learned
agent://{id}/experience/{skill-…|hand-…|…}/{name}
agent://{id}/sessions/{session}/{layer}      layers: raw summary keywords
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import quote, unquote

from openclaw_lab.errors import DataError
from openclaw_lab.knowhub.entry import PRIVATE, Entry, quality_score
from openclaw_lab.text import words

MemoryType = Literal["preference", "knowledge", "experience", "session"]
TYPES: tuple[MemoryType, ...] = get_args(MemoryType)
FOLDERS: Mapping[MemoryType, str] = {
    "preference": "preferences",
    "knowledge": "knowledge",
    "experience": "experience",
    "session": "sessions",
}
# In the seed document's order: level 0 is the conversation itself.
Layer = Literal["raw", "summary", "keywords"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
# Categories of preferences that hold whatever is asked.
STANDING = ("communication-style", "response-format", "language-preference")
SCHEME = "agent://"
# The mark of a memory that took the place of what was known before, among an entry's types.
CORRECTION = "correction"
_KEYWORDS = 8
# Words that say nothing of what a text is about.
_DULL_WORDS = (
    "the a an to of in on and or is are am was be it its i we you he she they my our your at for with that this any not"
    " do does did have has had will would can from as by but so if me us them there here what when which who how use"
    " user always never please assistant"
    " 的 了 是 在 我 我们 用户 他 她 你 和 就 都 要 不 也 有 这 那 用 请 对 把 会 说 给 吧 啊"
)
_DULL = frozenset(_DULL_WORDS.split(" "))


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """A memory as it is now. `importance` is 1 to 5; times are ISO 8601, UTC; `evidence` are message indexes.

    `correction`: it took the place of something known before. `helpful`, `harmful`: reports of its use; `quality` is
    the importance moved by them (see `knowhub.entry.quality_score`).
    """

    uri: str
    type: MemoryType
    content: str
    importance: int
    access_count: int
    created_at: str
    last_accessed: str
    updated_at: str = ""
    version: int = 1
    correction: bool = False
    flagged: bool = False
    session: str = ""
    evidence: tuple[int, ...] = ()
    helpful: int = 0
    harmful: int = 0
    quality: float = 3.0
    id: str = ""

    @property
    def keywords(self) -> tuple[str, ...]:
        """The words that say most of it; looked for when they are asked for, which a question never does."""
        return keywords_of(self.content)

    @property
    def category(self) -> str:
        """The folder under the type's: `response-format`, `user-facts`, a skill, a session."""
        return self.uri.split("/")[4]

    @property
    def standing(self) -> bool:
        """Whether it holds whatever is asked: how to answer."""
        return self.type == "preference" and self.category in STANDING


def uri_of(agent_id: str, kind: MemoryType, category: str, name: str = "") -> str:
    """The address of a memory; what may not stand in one is percent-encoded."""
    if not agent_id or kind not in TYPES or not category:
        raise DataError("memory address", f"{agent_id!r}, {kind!r}, {category!r}", "an agent, a type and a category")
    parts = [agent_id, FOLDERS[kind], category, *name.split("/")]
    return SCHEME + "/".join(quote(each, safe="") for each in parts if each)


def parts_of(uri: str) -> tuple[str, MemoryType, str]:
    """Agent, type and the rest of an address; a DataError for what is none."""
    if uri.startswith(SCHEME):
        agent, _, rest = uri.removeprefix(SCHEME).partition("/")
        folder, _, name = rest.partition("/")
        for kind, own in FOLDERS.items():
            if own == folder and agent and name.strip("/"):
                return unquote(agent), kind, name
    expected = f"agent://AGENT/({'|'.join(FOLDERS.values())})/NAME"
    raise DataError("memory address", uri, expected)


def owner_of(agent_id: str, kind: MemoryType) -> str:
    """Who owns a memory: sessions have an owner of their own, so that a transcript never replaces a memory."""
    return f"{PRIVATE}{agent_id}#sessions" if kind == "session" else f"{PRIVATE}{agent_id}"


def name_of(content: str) -> str:
    """The last part of an address for a content that has no name of its own: the same for the same words."""
    return hashlib.sha256(" ".join(words(content)).encode()).hexdigest()[:12]


def keywords_of(text: str, count: int = _KEYWORDS) -> tuple[str, ...]:
    """The words that say most of a text: the most frequent, the longer first; without empty ones."""
    found = Counter(each for each in words(text[:20_000]) if each not in _DULL and (len(each) > 1 or each.isdigit()))
    kept: list[str] = []
    for word, _ in sorted(found.items(), key=lambda pair: (-pair[1], -len(pair[0]))):
        if not any(word in each for each in kept):
            kept.append(word)
    return tuple(kept[:count])


def common_matter(one: str, other: str) -> float:
    """The share of the shorter text's words (empty ones aside) that the other one has too."""
    first, second = (frozenset(words(each)) - _DULL for each in (one, other))
    return len(first & second) / max(min(len(first), len(second)), 1)


def session_of(place: str) -> tuple[str, tuple[int, ...]]:
    """The conversation and the messages that `source.message_id` names."""
    session, _, listed = place.rpartition("#")
    return session, tuple(int(each) for each in re.findall(r"\d+", listed))


def entry_of(entry: Entry, accesses: tuple[int, str] = (0, "")) -> MemoryEntry:
    """A stored entry as a memory; `accesses`: how often it was retrieved, and when last."""
    uri = entry.source.urls[0] if entry.source.urls else uri_of("unknown", "knowledge", entry.id)
    session, evidence = session_of(entry.source.message_id)
    count, last = accesses
    return MemoryEntry(
        uri=uri,
        type=parts_of(uri)[1],
        content=entry.content,
        importance=entry.score,
        access_count=count,
        created_at=entry.created_at,
        last_accessed=last,
        updated_at=entry.updated_at,
        version=entry.version,
        correction=CORRECTION in entry.types,
        flagged=entry.flagged,
        session=session,
        evidence=evidence,
        helpful=len(entry.helpful),
        harmful=len(entry.harmful),
        quality=quality_score(entry),
        id=entry.id,
    )
