"""KnowHub: save, search, update, evolve, undo, verify. One folder, several processes; what is acknowledged stays."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from openclaw_lab.config import InjectionConfig, KnowHubConfig
from openclaw_lab.errors import ConfigError, DataError
from openclaw_lab.injection.detectors import Detector
from openclaw_lab.knowhub.batch import Batch, Draft, next_version
from openclaw_lab.knowhub.batch import Saved as Saved
from openclaw_lab.knowhub.cache import file_revision, load_index, save_index
from openclaw_lab.knowhub.care import INDEX, STORE, problems, reindex
from openclaw_lab.knowhub.draft import draft, now, revised, text_fault
from openclaw_lab.knowhub.embed import Embedder, Vectors, embedder_named, full_name
from openclaw_lab.knowhub.entry import MAX_TASK, Case, Entry
from openclaw_lab.knowhub.evolve import evolved, evolved_by
from openclaw_lab.knowhub.extract import extract_items
from openclaw_lab.knowhub.index import Candidate, Index
from openclaw_lab.knowhub.ranking import embed_entries, embed_queries, query_words
from openclaw_lab.knowhub.store import Store
from openclaw_lab.knowhub.undo import undo
from openclaw_lab.messages import Message


@dataclass(frozen=True, slots=True)
class Hit:
    """One entry that a search found, how near it is, how good it is, and why it was chosen."""

    entry: Entry
    similarity: float
    quality: float
    score: float
    why: str


class KnowHub:
    """An open knowledge base; `with KnowHub.open(folder) as kb:` closes it."""

    def __init__(
        self, store: Store, embedder: Embedder, config: KnowHubConfig, folder: Path, detector: Detector
    ) -> None:
        self.folder, self.config, self.embedder = folder, config, embedder
        self._store, self._detect = store, detector.detect
        self._lock = threading.RLock()  # the index is for one thread at a time; embedding and writing are not
        self._index = load_index(folder / INDEX, store)
        self._closed, self._in_file = False, file_revision(folder / INDEX)

    @classmethod
    def open(
        cls,
        folder: str | Path,
        embedder: str | Embedder | Callable[[Sequence[str]], Any] | None = None,
        config: KnowHubConfig | None = None,
        detector: Detector | None = None,
    ) -> Self:
        """Open a folder, or make it. The embedder must be the one that the store was made with.

        The detector (by default the rules, which cost a save less than the classifier would) looks once at each text
        that is saved, and flags it.
        """
        if config is not None and not isinstance(config, KnowHubConfig):
            raise ConfigError("KnowHub.open: config", f"a {type(config).__name__}", "config.knowhub of a LabConfig")
        if not isinstance(folder, str | Path) or not str(folder):
            raise ConfigError("KnowHub.open", folder, "a folder")
        settings = config or KnowHubConfig()
        chosen = embedder_named(embedder or settings.embedder)
        path = Path(folder).expanduser()
        if os.path.isfile(path):  # which a folder closed to us does not stop
            raise DataError(str(path), "a file", "a folder, which holds the store")
        store = Store(path / STORE, full_name(chosen), chosen.dimension)
        try:
            return cls(store, chosen, settings, path, detector or Detector(InjectionConfig(detector="rules")))
        except BaseException:
            store.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._store.count()

    @property
    def revision(self) -> int:
        """Grows with every write, of whatever process."""
        return self._store.revision()

    def close(self) -> None:
        """Write the index's file (when anything is new) and close the store; a second time does nothing.

        Whatever keeps the file from being written only costs time at the next opening: the store has everything.
        """
        with self._store.alone(), self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                with contextlib.suppress(DataError):  # another process gave the store another embedder
                    self._refresh()
                    if self._store.writable and self._index.revision != self._in_file:
                        save_index(self._index, self.folder / INDEX, self._store)
            finally:
                self._store.close()

    # --- saving ---------------------------------------------------------------------------------------------------

    def save(
        self, *, task: str, content: str, types: Sequence[str], score: int = 3, key: str = "", **more: Any
    ) -> Saved:
        """Save one piece of knowledge; `more`: scopes, owner, source. Says what happened to it.

        With a `key`, a repetition of the same request changes nothing and gets the same answer.
        """
        return self.save_many([{"task": task, "content": content, "types": types, "score": score, "key": key, **more}])[
            0
        ]

    def save_many(self, items: Iterable[Mapping[str, Any]]) -> list[Saved]:
        """Save several in one transaction, in order; a later one is compared with the earlier ones too."""
        given = list(items)
        named = ["knowledge"] if len(given) == 1 else [f"knowledge {number}" for number in range(1, len(given) + 1)]
        checked = [draft(item, self.suspicious, where) for where, item in zip(named, given, strict=True)]
        embedded = embed_entries(self.embedder, [(entry.task, entry.text) for entry, _ in checked])
        drafts = [
            Draft(entry, key, vectors, left_out)
            for (entry, key), (vectors, left_out) in zip(checked, embedded, strict=True)
        ]
        with self._writing() as batch:
            return batch.place(drafts)

    def extract(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        agent_id: str = "",
        session_key: str = "",
        submitted_by: str = "",
        extractor: str = "rules",
        **options: Any,
    ) -> list[Saved]:
        """Save what a conversation teaches, redacted; what the same conversation gave before is a duplicate.

        With the extractor `litellm:<model>`, `options` are those of `models.complete` (`cassette`, `api_key`, …).
        """
        names = {"agent_id": agent_id, "session_key": session_key, "submitted_by": submitted_by}
        items = extract_items(messages, **names, extractor=extractor, **options)
        began = now()
        return [self._seen_before(each, began) for each in self.save_many(items)] if items else []

    def _seen_before(self, saved: Saved, began: str) -> Saved:
        """The answer to an item that an earlier extraction had already saved."""
        entry = self.get(saved.id)
        if entry is None or entry.created_at >= began:
            return saved
        return replace(saved, action="duplicate", other_id=saved.id, reason="extracted before")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Batch]:
        """One transaction; the index is told when it is committed, so that a failure leaves nothing behind."""
        with self._store.write() as writing:
            with self._lock:
                if self._index.revision != writing.revision - 1 or self._index.sparse:
                    self._refresh()
            batch = Batch(writing, self._index, self.config.near_similarity)
            yield batch
        with self._lock:
            if self._index.revision == batch.revision - 1:
                batch.tell(self._index)
            else:  # another thread or process was quicker: the store says what is last
                self._refresh()

    def suspicious(self, text: str) -> bool:
        """Whether a text looks like a prompt injection: then it is kept flagged."""
        return self._detect(text).flagged

    def _vectors(self, task: str, text: str) -> Vectors:
        return embed_entries(self.embedder, [(task, text)])[0][0]

    # --- reading --------------------------------------------------------------------------------------------------

    def get(self, entry_id: str) -> Entry | None:
        """The current version of an entry, whatever its status; None when there is none."""
        return self._store.get(entry_id)

    def history(self, entry_id: str) -> list[tuple[str, Entry]]:
        """Every version of an entry with the action that made it, oldest first."""
        return self._store.history(entry_id)

    def written_since(self, revision: int) -> Iterator[Entry]:
        """The entries, whatever their status, that were written after a revision, oldest write first."""
        return (row.entry for row in self._store.since(revision, vectors=False))

    def entries(self, *, include_superseded: bool = False) -> list[Entry]:
        """All entries, oldest first."""
        found = [row.entry for row in self._store.since(0, vectors=False)]
        return sorted(
            (e for e in found if include_superseded or e.status == "live"), key=lambda e: (e.created_at, e.id)
        )

    def search(
        self,
        query: str,
        *,
        top_k: int | None = None,
        min_score: int | None = None,
        types: Sequence[str] | None = None,
        scopes: Sequence[str] | None = None,
        owner: str | None = None,
        agent: str | None = None,
        history: Sequence[str] = (),
        min_similarity: float | None = None,
        include_superseded: bool = False,
        include_flagged: bool = True,
    ) -> list[Hit]:
        """The entries that answer a query best; `history`: the turns before it, oldest first.

        `scopes`: only entries with one of them (all when None). `agent`: who asks; of entries with a private scope
        `agent:<id>`, an agent finds its own ("": none; None: those named in `scopes`; neither given: all, for the
        owner of the store). Ranked by cosine + lexical_weight · shared words + language_balance · the language's lift
        + quality_weight · quality (see `ranking`).
        """
        settings = self.config
        if not query.strip():
            raise DataError("search", "an empty query", "words to search for")
        count = settings.top_k if top_k is None else top_k
        if count < 1:
            raise DataError("search", f"top_k {count}", "at least 1")
        vector, terms = embed_queries(self.embedder, [(query, history)])[0], query_words(query, history)
        with self._lock:
            self._refresh()
            allowed = self._index.facts.mask(
                min_score=settings.min_score if min_score is None else min_score,
                types=types or (),
                scopes=scopes,
                owner=owner,
                agent=agent,
                include_superseded=include_superseded,
                include_flagged=include_flagged,
            )
            weights = (settings.lexical_weight, settings.language_balance)
            least = settings.min_similarity if min_similarity is None else min_similarity
            return self._hits(self._index.search(vector, terms, allowed, max(count * 4, 20), *weights, least), count)

    def _hits(self, found: Sequence[Candidate], count: int) -> list[Hit]:
        """The best of what was found, quality counted in; only these are read from the store."""
        qualities = self._index.facts.qualities([each.row for each in found])
        weight = self.config.quality_weight / 5
        scored = [(each.blend + weight * (good - 3), each, good) for each, good in zip(found, qualities, strict=True)]
        scored.sort(key=lambda part: -part[0])
        ids, hits = self._index.facts.ids, []
        entries = self._store.get_many([ids[each.row] for _, each, _ in scored[:count]])
        for score, each, quality in scored[:count]:
            entry = entries.get(ids[each.row])
            words = f", shared words {each.lexical:.2f}" if each.lexical else ""
            why = f"similarity {each.similarity:.2f}{words}, quality {quality:.1f}"
            if entry is not None:
                hits.append(Hit(entry, each.similarity, quality, score, why))
        return hits

    def _refresh(self) -> None:
        """Take in what other processes wrote; build the index again when much of it is out of date."""
        if self._store.revision() > self._index.revision:
            self._index.add(self._store.since(self._index.revision))
        if self._index.sparse:
            index = Index(self._store.dimension)
            index.add(self._store.since(0))
            self._index = index

    # --- feedback and versions ------------------------------------------------------------------------------------

    def update(
        self, entry_id: str, *, is_helpful: bool, feedback: str = "", case: Case | None = None, key: str = ""
    ) -> Entry:
        """Add a helpful or a harmful case; the seed's words stand where no feedback (and no whole `case`) is given.

        With a `key`, a repetition of the same request changes nothing.
        """
        if feedback and (fault := text_fault("feedback", feedback, MAX_TASK)):
            raise DataError(f"knowledge {entry_id}", fault, f"a text of at most {MAX_TASK:,} characters")
        with self._writing() as batch:
            entry = _existing(batch, entry_id)
            if key and batch.answered(f"update {key}", {"id": entry_id}):
                return entry
            new = case or _case(is_helpful, feedback)
            if is_helpful:
                return batch.change(entry, "helpful", helpful=(*entry.helpful, new))
            return batch.change(entry, "harmful", harmful=(*entry.harmful, new))

    def evolve(self, entry_id: str, *, model: str = "", **options: Any) -> Entry:
        """Write what an entry's helpful and harmful cases say into its text, as a new version; `undo` takes it back.

        With a `model` (`litellm:<model>`) that one merges them; `options` are those of `models.complete`.
        """
        if not model and options:
            raise ConfigError("evolve", ", ".join(options), "no options without a model")
        before = self.get(entry_id) if model else None
        merged = evolved_by(before, model, **options) if before else ""  # asked before writing: it may take long
        with self._writing() as batch:
            entry = _existing(batch, entry_id)
            if before and before.content != entry.content:
                raise DataError(f"knowledge {entry_id}", "a text that changed meanwhile", todo="evolve it again")
            content = merged or evolved(entry)
            if content == entry.content:
                return entry
            flagged = entry.flagged or self.suspicious(f"{entry.task}\n{content}")
            new = next_version(entry, content=content, flagged=flagged)
            batch.put(new, self._vectors(new.task, new.text), "evolved")
            return new

    def revise(self, entry_id: str, **changes: Any) -> Entry:
        """Give an entry another `content` (or task, types, score, source) as a new version; what it said is kept.

        What changes nothing makes no version.
        """
        with self._writing() as batch:
            entry = _existing(batch, entry_id)
            other = revised(entry, changes)
            if other == entry:
                return entry
            new = next_version(other, flagged=self.suspicious(other.text))
            batch.put(new, self._vectors(new.task, new.text), "revised")
            return new

    def undo(self, entry_id: str, version: int | None = None) -> Entry:
        """Take back the last change of an entry that was not taken back yet; the change stays in the history.

        Undoing the creation of an entry retires it and makes live again what it had superseded; undoing that brings it
        back. With a `version`, what the entry said then is said again.
        """
        with self._writing() as batch:
            return undo(batch, _existing(batch, entry_id), version, self._vectors)

    # --- care -----------------------------------------------------------------------------------------------------

    def verify(self) -> list[str]:
        """Every difference between the store, the index in memory and the index's file; empty when there is none."""
        with self._lock:
            self._refresh()
            return problems(self._store, self._index, self.folder / INDEX)

    def rebuild(self) -> None:
        """Build the index and its file again from the store."""
        with self._lock:
            self._index = Index(self._store.dimension)
            self._refresh()
            if self._store.writable:
                save_index(self._index, self.folder / INDEX, self._store)

    def reindex(self, embedder: str | Embedder | Callable[[Sequence[str]], Any]) -> None:
        """Give every entry the vectors of another embedder and go on with it; texts and history stay."""
        chosen = embedder_named(embedder)
        with self._store.alone(), self._lock:
            reindex(self._store, chosen, full_name(chosen))
            self.embedder = chosen
            self.rebuild()


def _existing(batch: Batch, entry_id: str) -> Entry:
    entry = batch.current(entry_id)
    if entry is None:
        raise DataError(f"knowledge {entry_id}", expected="the id of an entry", todo="search for it first")
    return entry


def _case(is_helpful: bool, feedback: str) -> Case:
    if is_helpful:
        return Case(feedback or "使用成功", "有效", "", now())
    return Case(feedback or "使用失败", "无效", feedback or "未说明", now())
