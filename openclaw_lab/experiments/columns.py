"""A row with somebody's own names of columns and labels in, a row of ours out.

    columns={"text": "prompt", "label": "is_attack"}     our field: your column, or a number for every row
    columns={"id": None}                                 your column of this name is no such field
    labels={"jailbreak": 1, "benign": 0, "unsure": None} your value: our label; None leaves the row out

Injection: labels become 1 or 0. Redaction: marked places as other tools write them become spans (see `annotations`),
`labels` renames their types, None leaves a type out. Other formats: columns are renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.experiments.annotations import spans_from, types_in
from openclaw_lab.experiments.formats import fields_known, missing
from openclaw_lab.knobs import nearest

Row = Mapping[str, Any]
_SHAPE = '{our field: your column}, for example columns={"text": "prompt", "label": "is_attack"}'


@dataclass(frozen=True)
class Columns:
    """Which columns become which fields, and which values which labels; checked, made by `of`."""

    columns: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
    types: set[str] = field(default_factory=set, compare=False)  # of spans that came by

    @classmethod
    def of(cls, columns: object = None, labels: object = None) -> Columns:
        """What a person gave, or a DataError."""
        if columns is not None and not isinstance(columns, Mapping):
            raise DataError("columns=", columns, _SHAPE)
        if labels is not None and not isinstance(labels, Mapping):
            raise DataError("labels=", labels, '{your value: our label}, for example labels={"benign": 0, "attack": 1}')
        for ours, theirs in (columns or {}).items():
            if not isinstance(ours, str) or isinstance(theirs, Mapping):
                raise DataError(f"columns= {ours!r}", theirs, _SHAPE)
        return cls(dict(columns or {}), _by_text(labels or {}))

    def __bool__(self) -> bool:
        return bool(self.columns or self.labels)

    @property
    def fields(self) -> tuple[str, ...]:
        """Our fields that it names."""
        return tuple(ours for ours, theirs in self.columns.items() if theirs is not None)

    def checked(self, where: str, row: Row) -> None:
        """Refuse columns that the first row of a file does not have."""
        for ours, theirs in self.columns.items():
            if isinstance(theirs, str) and theirs not in row:
                raise self._no_column(where, row, ours, theirs)

    def row(self, where: str, row: Row) -> Row | None:
        """A row under our names, its other columns beside; None where its label says to leave it out.

        A column that this row lacks is a field that it lacks.
        """
        if not self:
            return row
        renamed = dict(row)
        for ours, theirs in self.columns.items():
            if theirs is not None and not isinstance(theirs, str):
                renamed[ours] = theirs
            elif theirs is not None and theirs in row:
                renamed[ours] = row[theirs]
            else:
                renamed.pop(ours, None)
        if "spans" in renamed and ("spans" in self.columns or "label" not in self.columns):
            if missing(renamed["spans"]):
                return renamed
            if self.labels:
                self.types.update(types_in(where, renamed["spans"]))
            renamed["spans"] = spans_from(where, renamed.get("text"), renamed["spans"], self.labels)
            return renamed
        return self._labelled(where, renamed)

    def check_used(self) -> None:
        """Refuse to rename types that no span had: that is a mistake."""
        for name in self.labels if self.types else ():
            if name not in self.types:
                raise DataError("labels=", name, "a type that the spans have", nearest(name, sorted(self.types)))

    def _labelled(self, where: str, row: dict[str, Any]) -> Row | None:
        if not self.labels or missing(row.get("label")):
            return row
        name = written(row["label"])
        if name not in self.labels:
            known = ", ".join(map(repr, self.labels))
            todo = f"add labels={{{row['label']!r}: 1}}, 0, or None to leave such rows out"
            raise DataError(f"{where} label", row["label"], f"one of {known}", todo)
        row["label"] = self.labels[name]
        return None if row["label"] is None else row

    def _no_column(self, where: str, row: Row, ours: str, theirs: str) -> DataError:
        found = f"the columns {', '.join(map(str, list(row)[:12]))}"
        if ours in row and theirs in fields_known():
            turned = {each: name for name, each in self.columns.items() if isinstance(each, str)}
            return DataError(where, found, _SHAPE, f"did you mean columns={turned!r}?")
        return DataError(where, found, f"a column {theirs!r} (columns={{{ours!r}: …}})", nearest(theirs, map(str, row)))


def written(value: object) -> str:
    """A label's value as text, to be compared: a number and the same number of a CSV are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value).strip()
    low = text.lower()
    if low in ("true", "false"):
        return low
    return text[:-2] if text.endswith(".0") and text[:-2].lstrip("-").isdigit() else text


def _by_text(labels: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for value, label in labels.items():
        name = written(value)
        if name in found and found[name] != label:
            raise DataError(f"labels= {value!r}", label, f"one meaning; {name!r} is {found[name]!r} too")
        found[name] = label
    return found
