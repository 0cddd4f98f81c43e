"""GrowthMemory: what an agent keeps of its conversations. Remember, extract, retrieve, inject, track; one folder.

Memories are entries of a KnowHub (the same store, index, versions and search) that only their agent may see; the
journal beside it counts. Several agents and processes may share a folder.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import DataError, excerpt
from openclaw_lab.growth.calibrate import Calibration, calibration
from openclaw_lab.growth.catalogue import Catalogue
from openclaw_lab.growth.entry import (
    CORRECTION,
    LAYERS,
    Layer,
    MemoryEntry,
    MemoryType,
    common_matter,
    entry_of,
    keywords_of,
    name_of,
    owner_of,
    parts_of,
    uri_of,
)  # fmt: skip
from openclaw_lab.growth.extract import MemoryExtractor, classified
from openclaw_lab.growth.extracted import ExtractedMemory
from openclaw_lab.growth.inject import Injected, inject
from openclaw_lab.growth.journal import Event, Journal
from openclaw_lab.growth.kinds import ABOUT
from openclaw_lab.growth.retrieve import RETRIEVED, Recalled, Retrieval, ranked, within_budgets
from openclaw_lab.growth.summary import parts_of_raw, summary_of, transcript_of
from openclaw_lab.growth.track import GrowthTracker
from openclaw_lab.knowhub.embed import Embedder
from openclaw_lab.knowhub.entry import PRIVATE, Entry, same_form
from openclaw_lab.knowhub.extract import message_of, redacted
from openclaw_lab.knowhub.service import KnowHub
from openclaw_lab.messages import Message
from openclaw_lab.redaction.redactor import default_redactor

JOURNAL = "growth.sqlite"
# Characters of a question that are looked for.
_QUESTION = 1_000
_TASK = 200
# What a correction must share with the memory that it replaces: the calibrated similarity, and the words.
_SURE, _MATTER = 0.98, 0.5
# Memories that are looked at for each one that may go into the prompt.
_LOOK = 4


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


class GrowthMemory:
    """The memory of one agent; `with GrowthMemory.open(folder, agent_id) as memory:` closes it."""

    def __init__(self, hub: KnowHub, journal: Journal, agent_id: str, config: LabConfig) -> None:
        self.agent_id, self.config = agent_id, config
        self._hub, self._journal, self._lock = hub, journal, threading.RLock()
        self._catalogue = Catalogue(hub, agent_id)

    @classmethod
    def open(
        cls,
        folder: str | Path,
        agent_id: str,
        *,
        embedder: str | Embedder | Callable[[Sequence[str]], Any] | None = None,
        config: LabConfig | None = None,
    ) -> Self:
        """Open a folder, or make it, for one agent. The embedder must be the one that the store was made with."""
        if not isinstance(agent_id, str) or not agent_id.strip() or agent_id != agent_id.strip():
            raise DataError("growth agent_id", agent_id, "a name without space around it")
        settings, path = config or LabConfig(), Path(folder).expanduser()
        hub = KnowHub.open(path, embedder, settings.knowhub)
        try:
            return cls(hub, Journal(path / JOURNAL, agent_id), agent_id, settings)
        except BaseException:
            hub.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._catalogue.live())

    def close(self) -> None:
        """Close the store and the journal; everything acknowledged is on the disk already."""
        self._hub.close()
        self._journal.close()

    def under(self, config: LabConfig) -> Self:
        """The same memory as other settings see it; it need not be closed, and is gone with this one."""
        return type(self)(self._hub, self._journal, self.agent_id, config)

    @property
    def calibration(self) -> Calibration:
        """What the cosines of this store's embedder mean."""
        return calibration(self._hub.embedder)

    def verify(self) -> list[str]:
        """Every difference within the store; empty when there is none."""
        return self._hub.verify()

    # --- keeping --------------------------------------------------------------------------------------------------

    def remember(
        self,
        text: str,
        *,
        type: MemoryType | None = None,
        uri: str = "",
        importance: int = 4,
        session: str = "",
        evidence: Sequence[int] = (),
        correction: bool = False,
    ) -> Remembered:
        """Keep one text, redacted. Without an address its type and category are told from its words.

        The same words again confirm; other words at the same address, or a correction of something like it, are a new
        version, and what it said before stays in the history.
        """
        clean = default_redactor().redact(" ".join(str(text).split())).text
        if not clean:
            raise DataError("remember", "an empty text", "what to remember")
        found = classified(clean, type=type, importance=importance, correction=correction)
        if uri:
            agent, kind, _ = parts_of(uri)
            if agent != self.agent_id:
                raise DataError("remember", uri, f"an address of agent {self.agent_id}")
            if type is not None and kind != type:
                raise DataError("remember", uri, f"an address of a {type}")
        return self._keep(found, session, tuple(evidence), uri)

    def _keep(self, found: ExtractedMemory, session: str, evidence: Sequence[int], uri: str = "") -> Remembered:
        with self._lock:
            return self._kept(found, session, evidence, uri)

    def _kept(self, found: ExtractedMemory, session: str, evidence: Sequence[int], uri: str) -> Remembered:
        target = uri or uri_of(self.agent_id, found.type, found.category, found.name or name_of(found.content))
        known = self._catalogue.at(target) or (self._corrected(found) if found.correction else None)
        place = f"{session}#{','.join(map(str, evidence))}" if session or evidence else ""
        if known is None:
            entry = self._create(found, target, place)
            if same_form(entry.content) == same_form(found.content):
                return self._noted("new" if entry.version == 1 else "confirmed", entry, session)
            known = entry  # another process was quicker with other words
        if known.status == "live" and same_form(known.content) == same_form(found.content):
            return self._noted("confirmed", known, session)
        types = (found.type, CORRECTION)
        source = replace(known.source, name=session, message_id=place)
        new = self._hub.revise(
            known.id, task=_title(found), content=found.content, types=types, score=found.importance,
            source=source,
        )  # fmt: skip
        return self._noted("superseded", new, session, known.content)

    def _create(self, found: ExtractedMemory, target: str, place: str) -> Entry:
        session = place.rpartition("#")[0]
        types = (found.type, CORRECTION) if found.correction else (found.type,)
        saved = self._hub.save(
            task=_title(found), content=found.content, types=types, score=found.importance,
            scopes=[f"{PRIVATE}{self.agent_id}"], owner=owner_of(self.agent_id, found.type), key=f"memory {target}",
            source={"name": session, "category": "memory", "urls": [target], "agent_id": self.agent_id,
                    "message_id": place},
        )  # fmt: skip
        entry = self._hub.get(saved.id)
        if entry is None:
            raise DataError(f"memory {target}", "an entry that vanished", "one that was saved", "verify the store")
        return entry

    def _corrected(self, found: ExtractedMemory) -> Entry | None:
        """The live memory that a correction speaks of: of the same type, near, and on the same matter.

        Near alone is not enough: what is replaced by mistake is found in the history only.
        """
        hits = self._hub.search(
            found.content[:_QUESTION], top_k=_LOOK, min_score=1, types=[found.type], agent=self.agent_id,
            scopes=[f"{PRIVATE}{self.agent_id}"], min_similarity=self.calibration.cosine(_SURE),
        )  # fmt: skip
        owner = owner_of(self.agent_id, found.type)
        same = [each.entry for each in hits if common_matter(found.content, each.entry.content) >= _MATTER]
        return next((each for each in same if each.owner == owner), None)

    def _noted(
        self, action: Literal["new", "confirmed", "superseded"], entry: Entry, session: str, before: str = ""
    ) -> Remembered:
        memory = entry_of(entry)
        self._journal.add([Event(action, memory.type, entry.id, session)])
        return Remembered(action, memory, before)

    # --- learning -------------------------------------------------------------------------------------------------

    def extract(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        session: str = "",
        extractor: str = "rules",
        **options: Any,
    ) -> list[Remembered]:
        """Keep what a conversation teaches, and the conversation itself in its three layers.

        Of a `session` that was read before only the new messages are looked at; read again whole, nothing changes.
        `extractor`: `rules`, or `litellm:<model>` with the options of `models.complete` (`cassette`, `api_key`, …).
        """
        read = [redacted(message_of(each, f"messages[{number}]")) for number, each in enumerate(messages)]
        start = self._start(session, read)
        found = MemoryExtractor(extractor, **options).extract(read, start=start)
        least = self.config.extraction.min_importance
        kept = [self._learned(each, session) for each in found if each.importance >= least]
        if session and start < len(read):
            self._keep_session(session, read, start, [each.entry for each in kept if each.entry])
            self._journal.mark(session, len(read), _digest(read))
        return kept

    def _start(self, session: str, read: Sequence[Message]) -> int:
        """The first message that is new; 0 where the conversation is not the one that was read (a reset)."""
        count, digest = self._journal.seen(session) if session else (0, "")
        return count if count <= len(read) and _digest(read[:count]) == digest else 0

    def _learned(self, found: ExtractedMemory, session: str) -> Remembered:
        if self._hub.suspicious(found.content):
            self._journal.add([Event("refused", found.type, "", session)])
            return Remembered("refused", None, found.content)
        return self._keep(found, session, found.evidence)

    def _keep_session(self, session: str, read: Sequence[Message], start: int, kept: Sequence[MemoryEntry]) -> None:
        for name, text in parts_of_raw(read, start):
            self._put_layer(session, f"raw/{name}", text)
        self._put_layer(session, "summary", summary_of(read, kept))
        words = keywords_of(transcript_of([each for each in read if each.role in ("user", "assistant")]), 12)
        self._put_layer(session, "keywords", " ".join(words) or "-")

    def _put_layer(self, session: str, layer: str, text: str) -> None:
        target = uri_of(self.agent_id, "session", session, layer)
        known = self._catalogue.at(target)
        if known is None:
            saved = self._hub.save(
                task=excerpt(target, _TASK), content=text, types=["session"], score=1, key=f"memory {target}",
                scopes=[f"{PRIVATE}{self.agent_id}"], owner=owner_of(self.agent_id, "session"),
                source={"name": session, "category": "session", "urls": [target], "agent_id": self.agent_id},
            )  # fmt: skip
            known = self._hub.get(saved.id)
        if known is not None and known.content != text:
            self._hub.revise(known.id, content=text)

    # --- looking up -----------------------------------------------------------------------------------------------

    def entries(self, type: MemoryType | None = None) -> list[MemoryEntry]:
        """The live memories of this agent, oldest first; sessions only when asked for."""
        wanted = RETRIEVED if type is None else (type,)
        return self._memories([each for each in self._catalogue.live() if each.types[0] in wanted])

    def find(self, prefix: str) -> list[MemoryEntry]:
        """The live memories whose address begins so: `agent://a1/preferences/`, or only `preferences/`."""
        own = uri_of(self.agent_id, "session", "x").rpartition("/sessions/")[0] + "/"
        whole = prefix if prefix.startswith("agent://") else own + prefix.lstrip("/")
        if not whole.startswith(own):
            return []
        return self._memories(self._catalogue.under(whole))

    def read(self, uri: str, layer: Layer | None = None) -> MemoryEntry | None:
        """The memory at an address; of a session, one of its layers (raw, summary, keywords). None: not there."""
        if parts_of(uri)[0] != self.agent_id:
            return None
        if layer is not None:
            if layer not in LAYERS:
                raise DataError("layer", layer, f"one of {', '.join(LAYERS)}")
            uri = f"{uri.rstrip('/')}/{layer}"
        entry = self._catalogue.at(uri)
        if entry is not None:
            return self._memories([entry])[0]
        parts = self._memories(self._catalogue.under(f"{uri}/"))
        return _joined(uri, parts) if uri.endswith("/raw") and parts else None

    def history(self, uri: str) -> list[MemoryEntry]:
        """Every version of the memory at an address, oldest first."""
        entry = self._catalogue.at(uri) if parts_of(uri)[0] == self.agent_id else None
        return [entry_of(each) for _, each in self._hub.history(entry.id)] if entry else []

    def _memories(self, entries: Sequence[Entry]) -> list[MemoryEntry]:
        counts = self._journal.accesses([each.id for each in entries])
        return [entry_of(each, counts[each.id]) for each in entries]

    # --- using ----------------------------------------------------------------------------------------------------

    def retrieve(self, query: str, *, history: Sequence[str] = (), session: str = "") -> Retrieval:
        """What is known on a question, best first, within the budgets of `config.growth`; `history`: turns before."""
        if not query.strip():
            return Retrieval(query, ())
        settings = self.config.growth
        found = self._hits(query, history)
        answered = bool(found)
        known = {each.entry.id for each in found}
        if settings.standing:
            found += [each for each in self._standing() if each.entry.id not in known]
        chosen = within_budgets(query, ranked(found, settings), settings)
        events = [Event("accessed", each.entry.type, each.entry.id, session) for each in chosen.memories]
        self._journal.add([*events, Event("question", "", name_of(query), session, float(answered))])
        return chosen

    def _hits(self, query: str, history: Sequence[str]) -> list[Recalled]:
        hits = self._hub.search(
            query[:_QUESTION], top_k=_LOOK * self.config.growth.max_results, min_score=1, types=RETRIEVED,
            scopes=[f"{PRIVATE}{self.agent_id}"], agent=self.agent_id, history=history, include_flagged=False,
            min_similarity=self._least(),
        )  # fmt: skip
        level = self.calibration.level
        return [
            Recalled(entry_of(each.entry), each.similarity, level(each.similarity), each.score, each.why)
            for each in hits
        ]

    def _standing(self) -> list[Recalled]:
        return [
            Recalled(memory, 0.0, 0.0, 0.0, "how to answer, whatever is asked", asked=False)
            for memory in map(entry_of, self._catalogue.standing())
            if not memory.flagged
        ]

    def _least(self) -> float:
        """The lowest cosine that counts."""
        settings = self.config.growth
        return self.calibration.cosine(settings.min_similarity) if settings.calibrated else settings.min_similarity

    def inject(self, query: str, *, history: Sequence[str] = (), session: str = "") -> Injected:
        """The block for the prompt of a message: sections in the safe frame; empty when growth is off."""
        if not self.config.growth.enabled:
            return Injected("", 0)
        return inject(self.retrieve(query, history=history, session=session), self.config.growth)

    def feedback(self, uri: str, *, useful: bool, reason: str = "") -> MemoryEntry:
        """Say whether a memory helped; it moves its rank within bounds, and nothing is ever deleted by it."""
        entry = self._catalogue.at(uri) if parts_of(uri)[0] == self.agent_id else None
        if entry is None:
            raise DataError(f"memory {uri}", expected="the address of a memory of this agent")
        new = self._hub.update(entry.id, is_helpful=useful, feedback=reason)
        memory = self._memories([new])[0]
        self._journal.add([Event("useful" if useful else "useless", memory.type, entry.id)])
        return memory

    def track(self, by: Literal["day", "session"] = "day") -> GrowthTracker:
        """How the memory grew and what it was worth; `.frame` is a table."""
        return GrowthTracker(tuple(self._journal.events()), tuple(self.entries()), by)


def _title(found: ExtractedMemory) -> str:
    return ABOUT.get(found.name) or excerpt(found.content, _TASK)


def _digest(messages: Sequence[Message]) -> str:
    """What tells whether a conversation is the one that was read."""
    said = json.dumps([[each.role, each.text] for each in messages], ensure_ascii=False)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _joined(uri: str, parts: Sequence[MemoryEntry]) -> MemoryEntry:
    """The parts of a conversation as one memory, in their order."""
    ordered = sorted(parts, key=lambda each: [int(n) for n in each.uri.rpartition("/")[2].split("-")])
    return replace(ordered[0], uri=uri, content="\n".join(each.content for each in ordered))
