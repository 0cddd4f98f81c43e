"""The changes of one transaction: drafts are compared with what is live, stored and linked.

The index is told only after the commit, so that a transaction that fails leaves nothing in memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openclaw_lab.errors import DataError
from openclaw_lab.knowhub.draft import now
from openclaw_lab.knowhub.embed import Vectors
from openclaw_lab.knowhub.entry import PRIVATE, Entry, fingerprint
from openclaw_lab.knowhub.index import Index
from openclaw_lab.knowhub.judge import Action, Verdict, judge, speaks_of_change
from openclaw_lab.knowhub.store import Row, Writing
from openclaw_lab.text import words

# Neighbours a new entry is compared with; drafts that are compared at once.
_NEIGHBOURS, _BLOCK = 5, 256
# Below any cosine: a text that speaks of change is compared with its neighbours however far they are.
_FAR = -2.0


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save did. `id` is the entry that now holds the text; `other_id` the one it was compared with."""

    action: Action
    id: str
    other_id: str = ""
    similarity: float = 0.0
    threshold: float = 0.0
    reason: str = ""
    characters_left_out: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that is stored nowhere yet, with its vectors."""

    entry: Entry
    key: str
    vectors: Vectors
    left_out: int


class Batch:
    """One open transaction over a store, with the index as it was before it."""

    def __init__(self, writing: Writing, index: Index, threshold: float) -> None:
        self._writing, self._index, self._threshold = writing, index, threshold
        self._put: dict[str, Row] = {}
        self._alike: dict[int, list[str]] = {}
        self._changed: dict[str, Entry] = {}
        self._fresh: Index | None = None

    @property
    def revision(self) -> int:
        """The number of this write."""
        return self._writing.revision

    def tell(self, index: Index) -> None:
        """Take what was committed into an index that has everything before it."""
        index.add(self._put.values())
        for entry in self._changed.values():
            index.facts.revise(entry)
        if self._put or self._changed:
            index.revision = self.revision

    # --- single changes -------------------------------------------------------------------------------------------

    def current(self, entry_id: str) -> Entry | None:
        """The current version of an entry, as this transaction sees it."""
        return self._writing.current(entry_id)

    def history(self, entry_id: str) -> list[tuple[str, Entry]]:
        """Every version of an entry, as this transaction sees it."""
        return self._writing.history(entry_id)

    def answered(self, key: str, answer: dict[str, Any]) -> bool:
        """Whether a request with this idempotency key came before; from now on it did."""
        if self._writing.answer(key) is not None:
            return True
        self._writing.remember_answer(key, answer)
        return False

    def put(self, entry: Entry, vectors: Vectors, action: str, form: int | None = None) -> None:
        """Store an entry, or a version of one, whose text is new."""
        if vectors.ndim != 2 or vectors.shape[1] != self._index.dimension or not np.isfinite(vectors).all():
            expected = f"rows of {self._index.dimension} finite numbers"
            raise DataError(f"vectors of {entry.task}", f"an array of shape {vectors.shape}", expected)
        terms, form = words(entry.text), fingerprint(entry) if form is None else form
        checksum = self._writing.put(entry, terms, vectors, action, form)
        self._put[entry.id] = Row(entry, self.revision, terms, vectors, checksum, form)
        self._alike.setdefault(form, []).append(entry.id)

    def change(self, entry: Entry, action: str, **changes: Any) -> Entry:
        """Store a new version of an entry whose text stays."""
        new = next_version(entry, **changes)
        self._writing.change(new, action)
        if new.id in self._put:
            self._put[new.id] = dataclasses.replace(self._put[new.id], entry=new)
        else:
            self._changed[new.id] = new
        return new

    # --- placing --------------------------------------------------------------------------------------------------

    def place(self, drafts: Sequence[Draft]) -> list[Saved]:
        """Compare each draft with what is live, the earlier ones of this batch included; store what is new."""
        saved: list[Saved] = []
        for start in range(0, len(drafts), _BLOCK):
            block = drafts[start : start + _BLOCK]
            before = set(self._put)
            leasts = [_FAR if speaks_of_change(draft.entry) else self._threshold for draft in block]
            found = self._neighbours(block, leasts)
            for number, draft in enumerate(block):
                close = [*found[number], *_within(draft, block[:number], self._put)]
                saved.append(self._once(draft, [pair for pair in close if pair[1] >= leasts[number]]))
            if start + _BLOCK < len(drafts):
                self._fresh = self._fresh or Index(self._index.dimension)
                self._fresh.add(row for key, row in self._put.items() if key not in before)
        return saved

    def _neighbours(self, block: Sequence[Draft], leasts: Sequence[float]) -> list[list[tuple[str, float]]]:
        """For each draft the nearest entries that it may be compared with, before this block."""
        indexes = [each for each in (self._index, self._fresh) if each is not None and len(each)]
        if len(block) == 1:
            asked = block[0].vectors[0], block[0].entry.scopes, _NEIGHBOURS, leasts[0]
            return [[pair for index in indexes for pair in index.nearest_live(*asked)]]
        found: list[list[tuple[str, float]]] = [[] for _ in block]
        scoped: dict[tuple[str, ...], list[int]] = {}
        for number, draft in enumerate(block):
            scoped.setdefault(draft.entry.scopes, []).append(number)
        for index in indexes:
            for scopes, numbers in scoped.items():
                firsts = np.stack([block[number].vectors[0] for number in numbers])
                near = index.neighbours(firsts, index.facts.mask(scopes=scopes), 2 * _NEIGHBOURS)
                for number, pairs in zip(numbers, near, strict=True):
                    found[number] += pairs
        return found

    def _once(self, draft: Draft, close: list[tuple[str, float]]) -> Saved:
        """Place a draft, or give the answer that a request with this key was given before."""
        answer = self._writing.answer(draft.key) if draft.key else None
        if answer is not None:
            return Saved(**answer)
        result = self._place(draft, close)
        if draft.key:
            self._writing.remember_answer(draft.key, dataclasses.asdict(result))
        return result

    def _place(self, draft: Draft, close: list[tuple[str, float]]) -> Saved:
        form = fingerprint(draft.entry)
        same = self._same(draft.entry, form)
        verdict = judge(draft.entry, self._compared(draft, same, close), self._threshold)
        other, entry = verdict.other, draft.entry
        if verdict.action == "duplicate" and other is not None:
            return self._saved(verdict, other.id, 0)
        if other is not None:
            entry = self._linked(entry, other, verdict.action)
        self.put(entry, draft.vectors, "created", form)
        return self._saved(verdict, entry.id, draft.left_out)

    def _saved(self, verdict: Verdict, entry_id: str, left_out: int) -> Saved:
        other_id = verdict.other.id if verdict.other else ""
        return Saved(verdict.action, entry_id, other_id, verdict.similarity, self._threshold, verdict.reason, left_out)

    def _same(self, entry: Entry, form: int) -> list[Entry]:
        """Live entries of the same form that all readers of the entry may see."""
        ids = dict.fromkeys((*self._index.alike(form), *self._alike.get(form, ())))
        if not ids:
            return []
        found = [each for each in map(self.current, ids) if each is not None and fingerprint(each) == form]
        return [each for each in found if each.status == "live" and each.visible_beside(entry)]

    def _compared(
        self, draft: Draft, same: Sequence[Entry], close: list[tuple[str, float]]
    ) -> list[tuple[Entry, float]]:
        """Live entries to compare with, nearest first: those of the same text, then those that are near."""
        if not same and not close:
            return []
        compared = {each.id: (each, self._cosine(draft.vectors[0], each.id)) for each in same}
        if len(close) > 1:
            close.sort(key=lambda pair: (-pair[1], pair[0]))
        for entry_id, cosine in close:
            if len(compared) == 2 * _NEIGHBOURS:
                break
            other = None if entry_id in compared else self.current(entry_id)
            if other is not None and other.status == "live" and other.visible_beside(draft.entry):
                compared[entry_id] = (other, cosine)
        return sorted(compared.values(), key=lambda pair: -pair[1])

    def _cosine(self, vector: Vectors, entry_id: str) -> float:
        known = self._put[entry_id].vectors if entry_id in self._put else self._index.vectors_of(entry_id)
        return min(float(known[0] @ vector), 1.0)

    def _linked(self, entry: Entry, other: Entry, action: Action) -> Entry:
        """Link both ways; a private entry's id is not shown to those who may not see it."""
        if action == "superseded":
            self.change(other, "superseded", status="superseded", superseded_by=entry.id)
            return dataclasses.replace(entry, supersedes=(other.id,))
        if {each for each in entry.scopes if each.startswith(PRIVATE)} <= set(other.scopes):
            self.change(other, "conflict", conflicts_with=(*other.conflicts_with, entry.id))
        return dataclasses.replace(entry, conflicts_with=(other.id,))


def next_version(entry: Entry, **changes: Any) -> Entry:
    """The entry with changes, one version up."""
    return dataclasses.replace(entry, version=entry.version + 1, updated_at=now(), **changes)


def _within(draft: Draft, earlier: Sequence[Draft], put: dict[str, Row]) -> list[tuple[str, float]]:
    """The earlier drafts of the same block that were stored and share a scope."""
    if not earlier:
        return []
    cosines = np.stack([each.vectors[0] for each in earlier]) @ draft.vectors[0]
    best = np.argsort(-cosines)[: 2 * _NEIGHBOURS].tolist()
    return [
        (earlier[place].entry.id, float(cosines[place]))
        for place in best
        if earlier[place].entry.id in put and set(earlier[place].entry.scopes) & set(draft.entry.scopes)
    ]
