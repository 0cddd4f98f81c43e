"""What a filter asks of entries, as columns: which rows may be found is array arithmetic, whatever their number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.knowhub.columns import Column
from openclaw_lab.knowhub.entry import PRIVATE, Entry, quality_score
from openclaw_lab.text import language

Mask = NDArray[np.bool_]
_DROPPED, _NOT_LIVE, _LIVE = 0, 1, 2


class _Sets:
    """A column of sets of words. Each distinct set has a number, so a filter looks at the sets and not at the rows."""

    def __init__(self) -> None:
        self.column = Column(np.int32)
        self._numbers: dict[tuple[str, ...], int] = {}
        self._having: dict[str, list[int]] = {}
        self._private: list[int] = []

    def number(self, values: tuple[str, ...]) -> int:
        known = self._numbers.get(values)  # most are one word, or in order
        if known is not None:
            return known
        key = tuple(sorted(set(values)))
        if key not in self._numbers:
            number = self._numbers[key] = len(self._numbers)
            for value in key:
                self._having.setdefault(value, []).append(number)
            if any(value.startswith(PRIVATE) for value in key):
                self._private.append(number)
        return self._numbers[key]

    def any_of(self, wanted: Iterable[str]) -> Mask:
        """The rows whose set has one of these words."""
        return self._rows(self._with(wanted))

    def visible(self, scopes: Sequence[str] | None, agent: str | None) -> Mask:
        """The rows that an asker may see: a private one needs the asker's own scope, not a shared one."""
        return self._rows(self.shown(scopes, agent))

    def shown(self, scopes: Sequence[str] | None, agent: str | None) -> Mask:
        """The same by number of a set."""
        shown = np.ones(len(self._numbers), dtype=bool) if scopes is None else self._with(scopes)
        own = None if agent is None else [f"{PRIVATE}{agent}"] if agent else []
        if own is None and scopes is not None:
            own = [each for each in scopes if each.startswith(PRIVATE)]
        if own is not None:
            shown[self._private] &= self._with(own)[self._private]
        return shown

    def _with(self, wanted: Iterable[str]) -> Mask:
        table = np.zeros(len(self._numbers), dtype=bool)
        for value in wanted:
            table[self._having.get(value, [])] = True
        return table

    def _rows(self, table: Mask) -> Mask:
        found: Mask = np.ones(len(self.column), dtype=bool) if table.all() else table[self.column.values]
        return found


class Facts:
    """One row an entry; when an entry's text changes it gets another row, and the row before is dropped."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.row_of: dict[str, int] = {}
        self._score, self._quality, self._state = Column(np.int8), Column(np.float32), Column(np.int8)
        self._flagged, self._chinese = Column(np.bool_), Column(np.bool_)
        self._types, self._scopes, self._owner = _Sets(), _Sets(), _Sets()
        self._waiting: list[str] = []

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def _numbers(self) -> tuple[Column, ...]:
        return self._score, self._quality, self._state, self._flagged, self._chinese

    @property
    def dropped(self) -> int:
        """Rows of earlier texts."""
        return len(self.ids) - len(self.row_of)

    def add(self, entry: Entry) -> int:
        """A row for an entry; the row of its earlier text is dropped."""
        before = self.row_of.get(entry.id)
        if before is not None:
            self._state.values[before] = _DROPPED
        row = self.row_of[entry.id] = len(self.ids)
        self.ids.append(entry.id)
        self._waiting.append(entry.text)
        for column, value in self._columns(entry):
            column.append(value)
        return row

    def revise(self, entry: Entry) -> None:
        """A new version of an entry whose text stayed."""
        row = self.row_of[entry.id]
        for column, value in self._columns(entry):
            column.values[row] = value

    def qualities(self, rows: Sequence[int]) -> list[float]:
        """The quality scores of rows' entries."""
        return [float(self._quality.values[row]) for row in rows]

    def languages(self) -> tuple[Mask, Mask]:
        """The rows in Chinese, and all others."""
        self._take_in()
        chinese: Mask = self._chinese.values
        return chinese, ~chinese

    def _take_in(self) -> None:
        """Tell the languages of new rows: only searches ask for them, so that a save does not wait for it."""
        waiting, self._waiting = self._waiting, []
        for text in waiting:
            self._chinese.append(language(text) == "zh")

    def summary(self, entry_id: str) -> tuple[float, ...]:
        """All numbers of an entry but those that depend on the order of writes, so that two indexes can be compared."""
        self._take_in()
        row = self.row_of[entry_id]
        return tuple(float(column.values[row]) for column in self._numbers)

    def live_in(self, row: int, shown: Mask) -> bool:
        """Whether a row is live and its scopes are `shown_in` some: what `mask(scopes=…)` says of it."""
        return bool(self._state.values[row] == _LIVE and shown[self._scopes.column.values[row]])

    def shown_in(self, scopes: Sequence[str]) -> Mask:
        """The numbers of those sets of scopes that have one of these, private ones by their own alone."""
        return self._scopes.shown(scopes, None)

    def mask(
        self,
        *,
        min_score: int = 1,
        types: Iterable[str] = (),
        scopes: Sequence[str] | None = None,
        owner: str | None = None,
        agent: str | None = None,
        include_superseded: bool = False,
        include_flagged: bool = True,
    ) -> Mask:
        """Which rows may be found.

        `scopes`: only rows with one of them, and private ones only with their own; None: all. `agent`: who asks;
        of private rows it sees its own ("": none; None: those among `scopes`).
        """
        allowed: Mask = self._state.values >= (_NOT_LIVE if include_superseded else _LIVE)
        allowed &= self._scopes.visible(scopes, agent)
        if not include_flagged:
            allowed &= ~self._flagged.values
        if min_score > 1:
            allowed &= self._score.values >= min_score
        if wanted := tuple(types):
            allowed &= self._types.any_of(wanted)
        if owner is not None:
            allowed &= self._owner.any_of((owner,))
        return allowed

    def _columns(self, entry: Entry) -> Iterable[tuple[Column, float]]:
        return (
            (self._score, entry.score),
            (self._quality, quality_score(entry)),
            (self._state, _LIVE if entry.status == "live" else _NOT_LIVE),
            (self._flagged, entry.flagged),
            (self._types.column, self._types.number(entry.types)),
            (self._scopes.column, self._scopes.number(entry.scopes)),
            (self._owner.column, self._owner.number((entry.owner,))),
        )
