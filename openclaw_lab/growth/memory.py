"""GrowthMemory: what an agent keeps of its conversations. Remember, extract, retrieve, inject, track; one folder.

Memories are entries of a KnowHub (the same store, index, versions and search) that only their agent may see; the
journal beside it counts. Several agents and processes may share a folder. How it is written is in `keeping` and
`sessions`, how it is asked in `lookup` and `retrieve`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Self

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import ConfigError, DataError
from openclaw_lab.growth.calibrate import Calibration, calibration
from openclaw_lab.growth.catalogue import Catalogue
from openclaw_lab.growth.entry import LAYERS, Layer, MemoryEntry, MemoryType, entry_of, name_of, parts_of, uri_of
from openclaw_lab.growth.extract import MemoryExtractor, classified
from openclaw_lab.growth.inject import Injected, inject
from openclaw_lab.growth.journal import Event, Journal
from openclaw_lab.growth.keeping import Keeping
from openclaw_lab.growth.keeping import Remembered as Remembered
from openclaw_lab.growth.lookup import hits, standing
from openclaw_lab.growth.retrieve import RETRIEVED, Retrieval, within_budgets
from openclaw_lab.growth.sessions import Reading, joined, keep_layers
from openclaw_lab.growth.track import GrowthTracker
from openclaw_lab.knowhub.embed import Embedder
from openclaw_lab.knowhub.entry import Entry
from openclaw_lab.knowhub.extract import message_of, redacted
from openclaw_lab.knowhub.service import KnowHub
from openclaw_lab.messages import Message
from openclaw_lab.redaction.redactor import default_redactor

JOURNAL = "growth.sqlite"


class GrowthMemory:
    """The memory of one agent; `with GrowthMemory.open(folder, agent_id) as memory:` closes it."""

    def __init__(self, hub: KnowHub, journal: Journal, agent_id: str, config: LabConfig) -> None:
        self.agent_id, self.config = agent_id, config
        self._hub, self._journal, self._catalogue = hub, journal, Catalogue(hub, agent_id)
        self._keeping, self._reading = Keeping(hub, journal, self._catalogue, agent_id), Reading(journal)

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
        if config is not None and not isinstance(config, LabConfig):
            raise ConfigError("GrowthMemory.open: config", f"a {type(config).__name__}", "a whole LabConfig")
        settings, path = config or LabConfig(), Path(folder).expanduser()
        with ExitStack() as opened:
            hub = opened.enter_context(KnowHub.open(path, embedder, settings.knowhub))
            memory = cls(hub, Journal(path / JOURNAL, agent_id), agent_id, settings)
            opened.pop_all()  # from here on it is the memory that closes
            return memory

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
        return self._keeping.keep(found, session, tuple(evidence), uri)

    def extract(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        session: str = "",
        extractor: str = "rules",
        layers: bool = True,
        **options: Any,
    ) -> list[Remembered]:
        """Keep what a conversation teaches, and (`layers`) the conversation itself in its three layers.

        Of a `session` that was read before only the new messages are looked at; read again whole, nothing changes.
        `extractor`: `rules`, or `litellm:<model>` with the options of `models.complete` (`cassette`, `api_key`, …).
        """
        read = [redacted(message_of(each, f"messages[{number}]")) for number, each in enumerate(messages)]
        start, finder = self._reading.start(session, read), MemoryExtractor(extractor, **options)
        found = finder.extract(read, start=start) if start < len(read) else []
        least = self.config.extraction.min_importance
        kept = [self._keeping.learn(each, session) for each in found if each.importance >= least]
        if session:
            self._reading.mark(session, read)
        if session and layers:
            self._keep_layers(session, read)
        return kept

    def follow(self, session: str, parent: str) -> None:
        """A `session` goes on from another one (a fork): what was read of that one is not looked at again."""
        for place in (str, _layers_of):
            self._reading.follow(place(session), place(parent))

    def _keep_layers(self, session: str, read: Sequence[Message]) -> None:
        place = _layers_of(session)
        start = self._reading.start(place, read)
        if start < len(read):
            own = [each for each in self._catalogue.live() if each.source.name == session]
            kept = [entry_of(each) for each in own if each.types[0] in RETRIEVED]
            keep_layers(self._keeping, self.agent_id, session, read, start, kept)
            self._reading.mark(place, read)

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
        return joined(uri, parts) if uri.endswith("/raw") and parts else None

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
        found = hits(self._hub, self.agent_id, query, history, settings)
        always = standing(self._catalogue, found) if settings.standing else []
        chosen = within_budgets(query, [*found, *always], settings)
        events = [Event("accessed", each.entry.type, each.entry.id, session) for each in chosen.memories]
        self._journal.add([*events, Event("question", "", name_of(query), session, float(bool(found)))])
        return chosen

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


def _layers_of(session: str) -> str:
    """The name under which it is noted how far a conversation's layers go."""
    return f"layers of {session}"
