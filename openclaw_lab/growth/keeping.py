"""Found memories in, entries of the store out: new, confirmed, or a new version of what was known at their address.

Nothing is lost silently: what a memory said before stays in its history, and what is refused is said and counted.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from openclaw_lab.errors import DataError, excerpt
from openclaw_lab.growth.calibrate import calibration
from openclaw_lab.growth.catalogue import Catalogue
from openclaw_lab.growth.entry import CORRECTION, MemoryEntry, common_matter, entry_of, name_of, owner_of, uri_of
from openclaw_lab.growth.extracted import ExtractedMemory
from openclaw_lab.growth.journal import Event, Journal
from openclaw_lab.growth.kinds import ABOUT
from openclaw_lab.knowhub.entry import PRIVATE, Entry, same_form
from openclaw_lab.knowhub.service import KnowHub

# Characters of a text that are looked for, and of a title.
QUESTION, _TITLE = 1_000, 200
# What a correction must share with the memory that it replaces: the calibrated similarity, and the words; and how many
# of the nearest are looked at for it.
_SURE, _MATTER, _NEAREST = 0.98, 0.5, 4


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a memory: new, confirmed (known already), superseded (a new version; `before` is what it said).

    `refused`: it looks like a prompt injection and was not kept.
    """

    action: Literal["new", "confirmed", "superseded", "refused"]
    entry: MemoryEntry | None
    before: str = ""

    def __str__(self) -> str:
        return f"{self.action}: {self.entry.uri if self.entry else 'nothing kept'}"


class Keeping:
    """Writes the memories of one agent."""

    def __init__(self, hub: KnowHub, journal: Journal, catalogue: Catalogue, agent_id: str) -> None:
        self._hub, self._journal, self._catalogue, self._agent = hub, journal, catalogue, agent_id
        self._lock = threading.RLock()

    def learn(self, found: ExtractedMemory, session: str) -> Remembered:
        """Keep what a conversation taught, unless it looks like a prompt injection."""
        if self._hub.suspicious(found.content):
            self._journal.add([Event("refused", found.type, "", session)])
            return Remembered("refused", None, found.content)
        return self.keep(found, session, found.evidence)

    def keep(
        self, found: ExtractedMemory, session: str = "", evidence: Sequence[int] = (), uri: str = ""
    ) -> Remembered:
        """Keep one memory, at `uri` or where its category and name say."""
        with self._lock:
            return self._kept(found, session, evidence, uri)

    def put(self, uri: str, content: str, session: str) -> None:
        """Have a conversation's layer say this, at its address."""
        known = self._catalogue.at(uri) or self._saved(
            uri, owner_of(self._agent, "session"), task=excerpt(uri, _TITLE), content=content, types=["session"],
            score=1, source={"name": session, "category": "session"},
        )  # fmt: skip
        if known.content != content:
            self._hub.revise(known.id, content=content)

    def _kept(self, found: ExtractedMemory, session: str, evidence: Sequence[int], uri: str) -> Remembered:
        target = uri or uri_of(self._agent, found.type, found.category, found.name or name_of(found.content))
        known = self._catalogue.at(target) or (self._corrected(found) if found.correction else None)
        place = f"{session}#{','.join(map(str, evidence))}" if session or evidence else ""
        if known is None:
            entry = self._created(found, target, place)
            if same_form(entry.content) == same_form(found.content):
                return self._noted("new" if entry.version == 1 else "confirmed", entry, session)
            known = entry  # another process was quicker with other words
        if known.status == "live" and same_form(known.content) == same_form(found.content):
            return self._noted("confirmed", known, session)
        source = replace(known.source, name=session, message_id=place)
        new = self._hub.revise(
            known.id, task=_title(found), content=found.content, types=(found.type, CORRECTION),
            score=found.importance, source=source,
        )  # fmt: skip
        return self._noted("superseded", new, session, known.content)

    def _created(self, found: ExtractedMemory, uri: str, place: str) -> Entry:
        source = {"name": place.rpartition("#")[0], "category": "memory", "message_id": place}
        types = (found.type, CORRECTION) if found.correction else (found.type,)
        return self._saved(
            uri, owner_of(self._agent, found.type), task=_title(found), content=found.content, types=types,
            score=found.importance, source=source,
        )  # fmt: skip

    def _saved(self, uri: str, owner: str, source: dict[str, Any], **more: Any) -> Entry:
        """A private entry of the agent at an address; the same when another process has just put it there."""
        source |= {"urls": [uri], "agent_id": self._agent}
        scopes = [f"{PRIVATE}{self._agent}"]
        saved = self._hub.save(scopes=scopes, owner=owner, key=f"memory {uri}", source=source, **more)
        entry = self._hub.get(saved.id)
        if entry is None:
            raise DataError(f"memory {uri}", "an entry that vanished", "one that was saved", "verify the store")
        return entry

    def _corrected(self, found: ExtractedMemory) -> Entry | None:
        """The live memory that a correction speaks of: of the same type, near, and on the same matter.

        Near alone is not enough: what is replaced by mistake is found in the history only.
        """
        hits = self._hub.search(
            found.content[:QUESTION], top_k=_NEAREST, min_score=1, types=[found.type], agent=self._agent,
            scopes=[f"{PRIVATE}{self._agent}"], min_similarity=calibration(self._hub.embedder).cosine(_SURE),
        )  # fmt: skip
        owner = owner_of(self._agent, found.type)
        same = [each.entry for each in hits if common_matter(found.content, each.entry.content) >= _MATTER]
        return next((each for each in same if each.owner == owner), None)

    def _noted(
        self, action: Literal["new", "confirmed", "superseded"], entry: Entry, session: str, before: str = ""
    ) -> Remembered:
        memory = entry_of(entry)
        self._journal.add([Event(action, memory.type, entry.id, session)])
        return Remembered(action, memory, before)


def _title(found: ExtractedMemory) -> str:
    return ABOUT.get(found.name) or excerpt(found.content, _TITLE)
