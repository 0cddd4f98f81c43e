"""Rows without labels and one setting or several in, the rows most worth labelling out, each once.

Worth looking at is a row whose score stands near the threshold (`uncertain`, 1 at the threshold, 0 at 0 or 1), and one
on which the settings disagree (`disagree`, 1 when half of them flag it). `worth` is the mean of both, with one setting
the first alone. Of rows that say nearly the same the first is taken, and none that is like a labelled one.

Rows chosen so are hard on purpose: they show where a detector errs, and teach the most. A rate measured on them says
nothing of all your rows: for that, label rows drawn at random (`how="random"`).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError, excerpt
from openclaw_lab.experiments.cache import Cache
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.duplicates import near_duplicates
from openclaw_lab.experiments.labels import unlabelled
from openclaw_lab.experiments.memo import Memo
from openclaw_lab.experiments.metrics import Array
from openclaw_lab.experiments.progress import progress
from openclaw_lab.experiments.samples import Sample
from openclaw_lab.experiments.table import Displayed, Table
from openclaw_lab.experiments.tasks.injection import InjectionTask
from openclaw_lab.given import whole

if TYPE_CHECKING:
    import pandas as pd

TASKS = ("injection", "redaction")
HOW = ("worth", "random")
# So many rows for each that is wanted are compared with one another, at least so many.
_WIDER, _LEAST = 10, 500


@dataclass(frozen=True, repr=False)
class ToLabel(Displayed):
    """The rows to label, best first: `data` is a Dataset of them, `frame` their figures; `left` are so many others."""

    data: Dataset
    frame: pd.DataFrame
    title: str
    left: int
    source: Dataset = field(repr=False)

    @property
    def table(self) -> Table:
        """The rows with the reason for each."""
        short = self.frame.copy()
        short["text"] = [excerpt(text, 60) for text in short["text"]]
        return Table(short, self.title)

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True)
class _Judged:
    """What the settings say of each row: shares in 0 to 1, a score a setting, and why in words."""

    uncertain: Array
    disagree: Array
    scores: Mapping[str, Array]
    reasons: Sequence[str]

    @property
    def worth(self) -> Array:
        several = len(self.scores) > 1
        return (
            (self.uncertain + self.disagree) / 2 if several and self.uncertain.any() else self.uncertain + self.disagree
        )


def to_label(
    data: object, configs: object = None, count: int = 20, *, task: str = "", how: str = "worth", cache: object = None
) -> ToLabel:
    """The unlabelled rows of `data` that are most worth labelling, at most `count`.

    `data` is a Dataset, a path, rows or texts; rows with a label stay out. `configs` is a LabConfig, a list of them or
    several by name; without any, the rules and the classifier are asked (injection), the seed's and the full set of
    rules (redaction). `how="random"` draws rows without looking, always the same ones.
    """
    rows = unlabelled(data)
    name, number = task or rows.format, whole("to_label: count", count, error=TaskError)
    if name not in TASKS or rows.format not in TASKS:
        raise TaskError("to_label", f"task {name!r} on {rows.format} rows", f"texts, for one of {', '.join(TASKS)}")
    if how not in HOW:
        raise TaskError("to_label: how", how, " or ".join(HOW))
    open_rows = tuple(sample for sample in rows.samples if sample.label is None)
    if not open_rows:
        raise TaskError(
            "to_label", f"a label in each of {len(rows)} rows", "rows without one", "labelled=False keeps them"
        )
    settings = _named(configs, name)
    judged = _JUDGES[name](replace(rows, samples=open_rows), settings, cache)
    order = _drawn(open_rows) if how == "random" else _ranked(judged.worth, open_rows)
    chosen = _apart(order, open_rows, [each for each in rows.samples if each.label is not None], number)
    title = f"{len(chosen)} of {len(open_rows)} rows to label, {'at random' if how == 'random' else 'by worth'}"
    picked = replace(rows, samples=tuple(open_rows[at] for at, _ in chosen), problems=())
    return ToLabel(picked, _frame(chosen, open_rows, judged), title, len(open_rows) - len(chosen), rows)


def _named(configs: object, task: str) -> dict[str, LabConfig]:
    """The settings by name."""
    if configs is None:
        base = LabConfig()
        field_name, values = ("injection.detector", ("rules", "classifier")) if task == "injection" else (
            "redaction.preset", ("seed", "strict"))  # fmt: skip
        return {value: base.with_({field_name: value}) for value in values}
    if isinstance(configs, LabConfig):
        return {"config": configs}
    listed: Iterable[tuple[object, object]] = ()
    if isinstance(configs, Mapping):
        listed = configs.items()
    elif isinstance(configs, list | tuple):
        listed = enumerate(configs, 1)
    found = {str(name): each for name, each in listed if isinstance(each, LabConfig)}
    if not found or len(found) < len(configs):  # type: ignore[arg-type]
        raise TaskError("to_label: configs", configs, "a LabConfig, a list of them, or several by name")
    return found


# --- judged -------------------------------------------------------------------------------------------------------


def _injection(rows: Dataset, settings: Mapping[str, LabConfig], cache: object) -> _Judged:
    as_if = replace(rows, format="injection", samples=tuple(replace(each, label=0) for each in rows.samples))
    memo = Memo(InjectionTask(), as_if, Cache.at(cache))
    scores = {name: np.asarray(memo.prepared(config).scores, dtype=float) for name, config in settings.items()}
    limits = {name: config.injection.threshold for name, config in settings.items()}
    near = np.array([_nearness(scores[name], limits[name]) for name in scores])
    flagged = np.array([np.nan_to_num(scores[name], nan=0.0) >= limits[name] for name in scores])
    share = flagged.mean(axis=0)
    reasons = [_why(at, scores, limits) for at in range(len(rows))]
    return _Judged(near.mean(axis=0), 4 * share * (1 - share), scores, reasons)


def _nearness(scores: Array, limit: float) -> Array:
    """1 at the threshold, 0 at 0 and at 1, straight between; 0 where there is no score."""
    below = scores / limit if limit > 0 else np.ones_like(scores)
    above = (1 - scores) / (1 - limit) if limit < 1 else np.ones_like(scores)
    return np.asarray(np.nan_to_num(np.clip(np.where(scores < limit, below, above), 0.0, 1.0), nan=0.0))


def _why(at: int, scores: Mapping[str, Array], limits: Mapping[str, float]) -> str:
    flags = {name: bool(each[at] >= limits[name]) for name, each in scores.items()}
    yes, no = [name for name, flag in flags.items() if flag], [name for name, flag in flags.items() if not flag]
    if yes and no:
        return f"{', '.join(yes)} {'flags' if len(yes) == 1 else 'flag'} it, {', '.join(no)} not"
    name = min(scores, key=lambda each: abs(scores[each][at] - limits[each]))
    if np.isnan(scores[name][at]):
        return f"{name} failed on it"
    return f"{name}: {scores[name][at]:.2f}, threshold {limits[name]:.2f}"


def _redaction(rows: Dataset, settings: Mapping[str, LabConfig], cache: object) -> _Judged:
    from openclaw_lab.redaction.redactor import Redactor

    if len(settings) < 2:
        raise TaskError("to_label: configs", "one setting", "two or more", "redaction has no score, only disagreement")
    places = {}
    for name, config in settings.items():
        redactor = Redactor(config.redaction)
        texts = progress(rows.samples, f"redact {name}", "text")
        places[name] = [_characters(redactor.redact(each.input).spans) for each in texts]
    disagree = np.array([_apartness([each[at] for each in places.values()]) for at in range(len(rows))])
    counts = {name: np.array([float(len(each)) for each in found]) for name, found in places.items()}
    reasons = [", ".join(f"{name} removes {int(each[at])} characters" for name, each in counts.items())
               for at in range(len(rows))]  # fmt: skip
    return _Judged(np.zeros(len(rows)), disagree, counts, reasons)


def _characters(spans: Sequence[Any]) -> frozenset[int]:
    return frozenset(at for span in spans for at in range(span.start, span.end))


def _apartness(found: Sequence[frozenset[int]]) -> float:
    """One less the Jaccard index of what each two remove, on average."""
    pairs = list(itertools.combinations(found, 2))
    return sum(1 - len(one & other) / len(one | other) for one, other in pairs if one | other) / len(pairs)


_JUDGES = {"injection": _injection, "redaction": _redaction}


# --- chosen -------------------------------------------------------------------------------------------------------


def _ranked(worth: Array, rows: Sequence[Sample]) -> list[int]:
    """The most worth first; equals in an order that is by chance and always the same."""
    chance = {at: place for place, at in enumerate(_drawn(rows))}
    return sorted(range(len(rows)), key=lambda at: (-round(float(worth[at]), 9), chance[at]))


def _drawn(rows: Sequence[Sample]) -> list[int]:
    """An order by chance that depends on the texts alone."""
    keys = [hashlib.sha256(str(each.input).encode("utf-8", "surrogatepass")).digest() for each in rows]
    return sorted(range(len(rows)), key=lambda at: keys[at])


def _apart(order: Sequence[int], rows: Sequence[Sample], known: Sequence[Sample], count: int) -> list[tuple[int, int]]:
    """The first rows that are like none before them and none that is labelled, each with how many are like it."""
    wide = max(_LEAST, _WIDER * count)
    chosen: list[tuple[int, int]] = []
    labelled = [str(each.input) for each in known]
    for start in range(0, len(order), wide):
        before = [at for at, _ in chosen]
        here = [*before, *order[start : start + wide]]
        alike = _neighbours(labelled + [str(rows[at].input) for at in here])
        taken = set(range(len(labelled) + len(before)))
        for place in range(len(taken), len(labelled) + len(here)):
            if len(chosen) < count and not alike.get(place, set()) & taken:
                taken.add(place)
                chosen.append((here[place - len(labelled)], len(alike.get(place, ()))))
        if len(chosen) >= count:
            break
    return chosen


def _neighbours(texts: Sequence[str]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for one, other in near_duplicates(texts):
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return found


def _frame(chosen: Sequence[tuple[int, int]], rows: Sequence[Sample], judged: _Judged) -> pd.DataFrame:
    import pandas as pd

    picked = [at for at, _ in chosen]
    columns: dict[str, Any] = {
        "id": [rows[at].id for at in picked],
        "worth": judged.worth[picked],
        "uncertain": judged.uncertain[picked],
        "disagree": judged.disagree[picked],
        **{f"score_{name}": scores[picked] for name, scores in judged.scores.items()},
        "alike": [number for _, number in chosen],
        "reason": [judged.reasons[at] for at in picked],
        "text": [rows[at].input for at in picked],
    }
    return pd.DataFrame(columns)
