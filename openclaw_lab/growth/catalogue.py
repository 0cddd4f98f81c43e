"""The memories of one agent by address, kept in step with the store: read once, then only what was written since."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Iterator

from openclaw_lab.growth.entry import STANDING, parts_of, uri_of
from openclaw_lab.knowhub.entry import PRIVATE, Entry
from openclaw_lab.knowhub.service import KnowHub


class Catalogue:
    """Addresses and entries of an agent."""

    def __init__(self, hub: KnowHub, agent_id: str) -> None:
        self._hub, self._scope, self._agent = hub, f"{PRIVATE}{agent_id}", agent_id
        self._revision, self._lock = 0, threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._id_at: dict[str, str] = {}
        self._addresses: list[str] = []

    def at(self, uri: str) -> Entry | None:
        """The entry at an address; where another one took its place, that one."""
        with self._lock:
            self._refresh()
            entry = self._entries.get(self._id_at.get(uri, ""))
            while entry is not None and entry.superseded_by in self._entries:
                entry = self._entries[entry.superseded_by]
        return entry

    def under(self, *prefixes: str) -> list[Entry]:
        """The live entries whose address begins with one of these, in the order of addresses."""
        with self._lock:
            self._refresh()
            found = [self._entries[self._id_at[uri]] for prefix in prefixes for uri in self._beginning(prefix)]
        return [each for each in found if each.status == "live"]

    def _beginning(self, prefix: str) -> Iterator[str]:
        place = bisect_left(self._addresses, prefix)
        while place < len(self._addresses) and self._addresses[place].startswith(prefix):
            yield self._addresses[place]
            place += 1

    def live(self) -> list[Entry]:
        """All live entries, oldest first."""
        with self._lock:
            self._refresh()
            found = [each for each in self._entries.values() if each.status == "live"]
        return sorted(found, key=lambda each: (each.created_at, each.id))

    def standing(self) -> list[Entry]:
        """The live preferences of how to answer, newest first."""
        found = self.under(*(f"{self._prefix}preferences/{folder}/" for folder in STANDING))
        return sorted(found, key=lambda each: each.updated_at, reverse=True)

    @property
    def _prefix(self) -> str:
        return uri_of(self._agent, "preference", "x").removesuffix("preferences/x")

    def _refresh(self) -> None:
        revision = self._hub.revision
        if revision == self._revision:
            return
        for entry in self._hub.written_since(self._revision):
            if self._scope in entry.scopes and entry.source.urls:
                self._take(entry)
        self._revision = revision

    def _take(self, entry: Entry) -> None:
        uri = entry.source.urls[0]
        if parts_of(uri)[0] != self._agent:
            return
        self._entries[entry.id] = entry
        if uri not in self._id_at:
            insort(self._addresses, uri)
        if uri not in self._id_at or entry.status == "live":
            self._id_at[uri] = entry.id
