"""Results of the injection task in, what any threshold would give out: ROC, precision and recall, recall at a set FPR.

    roc(results).table       the area for each dataset, with its interval      roc(results).points   the curves' points
    pr(results).table        average precision for each dataset                roc(results).plot(log=True)
    at_fpr(results, 0.01)    recall where at most 1 % of the harmless texts are flagged

The scores are those of the detector; nothing is scored again. What has no score is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.areas import area, average_precision, points
from openclaw_lab.experiments.evaluate import Results
from openclaw_lab.experiments.metrics import Array, Metric, interval, numbered
from openclaw_lab.experiments.table import Displayed, Table, flat_metrics
from openclaw_lab.experiments.tasks.scored import Scored

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Pool = Literal["own", "all"]


@dataclass(frozen=True, repr=False)
class Curves(Displayed):
    """A curve for each value of an attribute: `points` has its points, the table its area."""

    kind: Literal["roc", "pr"]
    by: str
    shown: Table
    points: pd.DataFrame

    @property
    def table(self) -> Table:
        """The area for each value of the attribute, and how many attacks and harmless texts it rests on."""
        return self.shown

    @property
    def frame(self) -> pd.DataFrame:
        """The table's plain numbers."""
        return self.table.frame

    def plot(self, ax: Axes | None = None, *, log: bool = False, fpr: float = 0.01) -> Axes:
        """The curves; ROC with a line at `fpr`, over a logarithmic axis with `log`."""
        from openclaw_lab.ui.curves import plot_curves

        return plot_curves(self, ax=ax, log=log, fpr=fpr)


@dataclass(frozen=True, slots=True)
class Slice:
    """What one value of an attribute holds, without what has no score."""

    value: str
    scores: Array
    attack: NDArray[np.bool_]
    clusters: NDArray[np.intp]


def roc(results: Results, by: str = "dataset") -> Curves:
    """ROC for each value of `by`: points (threshold, fpr, recall) and area; 0.5 is chance, 1 parts all.

    A value without attacks or without harmless texts has no curve; its area is nan.
    """
    rows, drawn = [], []
    for part in slices(results, by):
        rows.append(
            {by: part.value, **flat_metrics({"auc": area(part.scores, part.attack, part.clusters)}), **_n(part)}
        )
        thresholds, caught, alarms = _ends(part)
        drawn.append((part.value, thresholds, alarms / _count(~part.attack), caught / _count(part.attack)))
    return _curves("roc", by, rows, drawn, ("fpr", "recall"), "Area under the ROC curve")


def pr(results: Results, by: str = "dataset") -> Curves:
    """Precision over recall for each value of `by`, with average precision; `chance` is the share of attacks."""
    rows, drawn = [], []
    for part in slices(results, by):
        found = average_precision(part.scores, part.attack, part.clusters)
        chance = float(part.attack.mean()) if len(part.attack) else math.nan
        rows.append({by: part.value, **flat_metrics({"average_precision": found}), "chance": chance, **_n(part)})
        thresholds, caught, alarms = _ends(part)
        flagged = np.where(caught + alarms > 0, caught + alarms, math.nan)
        drawn.append((part.value, thresholds, caught / _count(part.attack), caught / flagged))
    return _curves("pr", by, rows, drawn, ("recall", "precision"), "Average precision")


def together(curves: Mapping[str, Curves]) -> Curves:
    """Curves of several detectors as one, to be drawn on one chart: `detector: dataset` in the place of the dataset."""
    import pandas as pd

    if not curves or len({(each.kind, each.by) for each in curves.values()}) > 1:
        raise TaskError("together", f"{len(curves)} curves", "curves of one kind and attribute, by name")
    first = next(iter(curves.values()))
    frames, drawn = (
        pd.concat([getattr(each, part).assign(**{each.by: f"{name}: " + getattr(each, part)[each.by].astype(str)})
                   for name, each in curves.items()], ignore_index=True)
        for part in ("frame", "points")
    )  # fmt: skip
    return Curves(first.kind, first.by, Table(frames, first.table.title, first.table.folded), drawn)


def at_fpr(results: Results, fpr: float = 0.01, by: str = "dataset", harmless: Pool = "own") -> Table:
    """Recall for each value of `by` at the lowest threshold that flags at most the share `fpr` of harmless texts.

    The threshold comes from the harmless texts of that value itself (`harmless="own"`) or from all of the data
    (`"all"`: one threshold for all, as a deployed detector has). It is found on the texts that it is measured on, so
    recall is a little optimistic; the intervals are those at this threshold. `threshold` is the lowest score that is
    flagged, nan where too many harmless texts have the highest score there is: then nothing may be flagged. `met`:
    whether the upper bound of `fpr` keeps the limit too, which takes 381 harmless texts or more at 1 %.
    """
    if not isinstance(fpr, int | float) or not 0 <= fpr <= 1:
        raise TaskError("at_fpr", fpr, "a share of the harmless texts from 0 to 1, such as 0.01")
    if harmless not in ("own", "all"):
        raise TaskError("at_fpr harmless", harmless, '"own" or "all"')
    parts = list(slices(results, by))
    everything = np.concatenate([part.scores[~part.attack] for part in parts])
    rows = []
    for part in parts:
        used = everything if harmless == "all" else part.scores[~part.attack]
        threshold = lowest_threshold(used, part.scores if harmless == "own" else _all_scores(parts), float(fpr))
        flagged = part.scores >= threshold if not math.isnan(threshold) else np.zeros(len(part.scores), dtype=bool)
        known = len(used) > 0
        metrics = {
            "recall": share(flagged, part.attack, part.clusters) if known else _NOTHING,
            "fpr": share(flagged, ~part.attack, part.clusters),
        }
        met = bool(metrics["fpr"].high <= fpr)
        rows.append(
            {by: part.value, "threshold": threshold, **flat_metrics(metrics), "met": met, "found_on": len(used)}
        )
    where = "each one's own" if harmless == "own" else "all"
    return Table(_frame(rows), f"Recall at {100 * fpr:g} % false alarms, threshold from {where} harmless texts",
                 ("recall", "fpr"))  # fmt: skip


_NOTHING = Metric(math.nan, math.nan, math.nan, 0)


def lowest_threshold(harmless: Array, scores: Array, fpr: float) -> float:
    """The lowest of the scores at which at most the share `fpr` of the harmless ones is reached; nan if there is none.

    Where no score lies above the harmless ones that must pass, it is the next number above them, up to 1.
    """
    n = len(harmless)
    if not n:
        return math.nan
    allowed = min(n, math.floor(fpr * n) + 1)  # 0.29 · 100 is a little less than 29
    while allowed / n > fpr:
        allowed -= 1
    if allowed == n:
        return 0.0
    limit = np.sort(harmless)[n - 1 - allowed]
    above = scores[scores > limit]
    if len(above):
        return float(above.min())
    return float(np.nextafter(limit, 2.0)) if limit < 1 else math.nan


def share(hit: NDArray[np.bool_], of: NDArray[np.bool_], clusters: NDArray[np.intp]) -> Metric:
    """The share of some texts that are hit, with its interval over clusters."""
    top, bottom = (hit & of).astype(float), of.astype(float)
    n = int(bottom.sum())
    several = len(clusters) > 0 and bool((clusters != clusters[0]).any())
    low, high = interval(top, bottom, clusters if several else None)
    return Metric(float(top.sum()) / n if n else math.nan, low, high, n)


def slices(results: Results, by: str) -> Iterator[Slice]:
    """The scored texts of each value of an attribute, sorted by value."""
    prepared = results.prepared
    if not isinstance(prepared, Scored):
        raise TaskError(f"curves of {results.task.name}", "a task without scores", "Results of the injection task")
    known, attack = ~np.isnan(prepared.scores), prepared.attack == 1
    values = np.array(results.data.values(by), dtype=object)
    clusters = numbered([sample.group or sample.id for sample in results.data.samples])
    for value in sorted(set(values)):
        here = known & (values == value)
        yield Slice(value, prepared.scores[here], attack[here], clusters[here])


def _all_scores(parts: list[Slice]) -> Array:
    return np.concatenate([part.scores for part in parts])


def _n(part: Slice) -> dict[str, int]:
    return {"attacks": int(part.attack.sum()), "harmless": int((~part.attack).sum())}


def _count(of: NDArray[np.bool_]) -> float:
    return float(of.sum()) or math.nan


def _ends(part: Slice) -> tuple[Array, Array, Array]:
    """Thresholds, attacks and harmless texts flagged, from nothing flagged (a threshold above all) to everything."""
    thresholds, caught, alarms = points(part.scores, part.attack)
    return np.append(np.inf, thresholds), np.append(0.0, caught), np.append(0.0, alarms)


def _curves(
    kind: Literal["roc", "pr"], by: str, rows: Sequence[Mapping[str, object]],
    drawn: list[tuple[str, Array, Array, Array]], axes: tuple[str, str], title: str,
) -> Curves:  # fmt: skip
    import pandas as pd

    frames = [
        pd.DataFrame({by: value, "threshold": thresholds, axes[0]: x, axes[1]: y}) for value, thresholds, x, y in drawn
    ]
    every = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=[by, "threshold", *axes])
    folded = ("auc",) if kind == "roc" else ("average_precision",)
    return Curves(kind, by, Table(_frame(rows), title, folded), every)


def _frame(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(rows))
