"""Curves and tables of the injection task in, matplotlib Axes out; the title says what there is to see.

Lines differ by marker and dash, bars by hatching, besides the colour; lines of reference take the colour of the text,
so that they show on a dark background too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.metrics import shown
from openclaw_lab.experiments.table import Table
from openclaw_lab.knobs import nearest
from openclaw_lab.ui.charts import axes, bounds, labelled, legend, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from openclaw_lab.experiments.curves import Curves

_DASHES = ("-", "--", "-.", ":")
_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
_AREA = {"roc": "auc", "pr": "average_precision"}
_AXES = {"roc": ("fpr", "recall"), "pr": ("recall", "precision")}
_WORDS = {
    "fpr": "false alarms (share of the harmless texts)", "recall": "recall (share of the attacks)",
    "precision": "precision (share of the flagged texts)",
}  # fmt: skip


def plot_curves(curves: Curves, *, ax: Axes | None = None, log: bool = False, fpr: float = 0.01) -> Axes:
    """ROC or precision and recall, a line for each value; ROC has chance and a line at `fpr`, and may be logarithmic.

    With `log`, what raises no false alarm at all stands at the left edge, and lines are steps: what lies between two
    thresholds cannot be had.
    """
    x, y = _AXES[curves.kind]
    area = _AREA[curves.kind]
    known = curves.frame.dropna(subset=[area])
    own = ax is None
    ax = axes(ax, _finding(known, area, curves.by, curves.kind.upper()), (8.0, 4.2))
    edge = 0.5 / max([1, *(curves.frame["harmless"])])
    steps = "steps-post" if log and curves.kind == "roc" else "default"
    for number, row in enumerate(known.to_dict("records")):
        line = curves.points[curves.points[curves.by] == row[curves.by]].dropna(subset=[x, y])
        across = np.maximum(line[x], edge) if log and curves.kind == "roc" else line[x]
        ax.plot(across, line[y], label=f"{row[curves.by]}  {shown(row[area])}", linewidth=1.4, markersize=4,
                markevery=0.2, linestyle=_DASHES[number // 7 % len(_DASHES)], drawstyle=steps,
                **style(number))  # fmt: skip
    if curves.kind == "roc":
        _references(ax, edge, log, fpr)
    ax.set_ylim(-0.02, 1.02)
    if len(known):
        _legend(ax, beside=own)
    return labelled(ax, x=_WORDS[x], y=_WORDS[y])


def plot_bars(
    table: Table, metric: str, *, label: str = "", group: str = "", title: str = "", ax: Axes | None = None
) -> Axes:
    """A metric with its intervals: a bar for each value of the column `label` (the first), and of `group` within it."""
    frame = table.frame
    label = label or str(frame.columns[0])
    _check(frame, label, metric, *([group] if group else []))
    labels = list(dict.fromkeys(frame[label].astype(str)))
    names = list(dict.fromkeys(frame[group].astype(str))) if group else [metric]
    series = []
    for name in names:
        part = frame[frame[group].astype(str) == name] if group else frame
        series.append((name, [_value(part[part[label].astype(str) == each], metric) for each in labels]))
    by = [label, group] if group else [label]
    return _bars(ax, title or _extremes(frame, metric, by), labels, series, metric)


def plot_robustness(table: Table, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Recall plain and in each disguise, on the same attacks; of several datasets each pair has a bar of its own."""
    frame = table.frame
    _check(frame, "disguise", "recall_plain", "recall")
    by = str(frame.columns[0])
    several = frame[by].nunique() > 1
    labels = [
        f"{value}: {kind}" if several else str(kind) for value, kind in frame[[by, "disguise"]].itertuples(index=False)
    ]
    rows = [frame.iloc[[number]] for number in range(len(frame))]
    series = [
        ("plain", [_value(row, "recall_plain") for row in rows]),
        ("in disguise", [_value(row, "recall") for row in rows]),
    ]
    return _bars(ax, title or _costliest(frame, labels), labels, series, "recall")


_Value = tuple[float, float, float]


def _value(rows: pd.DataFrame, metric: str) -> _Value:
    """Value and bounds of the one row, nan where there is none."""
    if rows.empty:
        return math.nan, math.nan, math.nan
    row = rows.iloc[0]
    value = float(row[metric])
    return value, float(row.get(f"{metric}_low", value)), float(row.get(f"{metric}_high", value))


def _bars(
    ax: Axes | None, title: str, labels: Sequence[str], series: Sequence[tuple[str, Sequence[_Value]]], metric: str
) -> Axes:
    own = ax is None
    ax = axes(ax, title, (8.0, 1.2 + 0.26 * max(4, len(labels) * len(series))))
    ink, height = matplotlib.rcParams["text.color"], 0.8 / max(1, len(series))
    places = np.arange(len(labels))[::-1]
    for number, (name, values) in enumerate(series):
        value, low, high = np.array(values, dtype=float).reshape(-1, 3).T
        ax.barh(
            places - (number - (len(series) - 1) / 2) * height, value, height * 0.9, xerr=bounds(value, low, high),
            label=name, color=style(number)["color"], hatch=_HATCHES[number % len(_HATCHES)], edgecolor=ink,
            linewidth=0.5, alpha=0.85, error_kw={"ecolor": ink, "capsize": 2, "elinewidth": 0.9},
        )  # fmt: skip
    ax.set_yticks(places, labels)
    ax.set_xlim(0, 1.02)
    if len(series) > 1:
        _legend(ax, beside=own)
    return labelled(ax, x=f"{metric} and its 95 % interval")


def _legend(ax: Axes, *, beside: bool) -> None:
    """The legend, beside the chart where there is room for it: in a figure of its own."""
    legend(ax)
    box = ax.get_legend()
    if beside and box is not None:
        box.set_loc("upper left")
        box.set_bbox_to_anchor((1.0, 1.0))


def _references(ax: Axes, edge: float, log: bool, fpr: float) -> None:
    """Chance, and the share of false alarms that one can live with."""
    ink = matplotlib.rcParams["text.color"]
    chance = np.geomspace(edge, 1, 60) if log else np.array([0.0, 1.0])
    ax.plot(chance, chance, color=ink, linewidth=0.8, linestyle=":", label="chance  0.500")
    if log:
        ax.set_xscale("log")
    ax.set_xlim(edge * 0.9 if log else -0.02, 1.02)
    if fpr >= edge or not log:
        ax.axvline(fpr, color=ink, linewidth=0.8, linestyle="--", label=f"{100 * fpr:g} % false alarms")


def _finding(frame: pd.DataFrame, area: str, by: str, name: str) -> str:
    """The best and the worst area, as a title."""
    if frame.empty:
        return f"{name}: no {by} has attacks and harmless texts"
    low, high = _ends(frame, area)
    if len(frame) == 1:
        return f"{name}: area {shown(high[area])} on {high[by]}"
    return f"{name}: area {shown(low[area])} ({low[by]}) to {shown(high[area])} ({high[by]})"


def _extremes(frame: pd.DataFrame, metric: str, by: list[str]) -> str:
    known = frame.dropna(subset=[metric])
    if known.empty:
        return f"{metric}: nothing to measure"
    low, high = _ends(known, metric)
    if len(known) == 1:
        return f"{metric}: {shown(high[metric])} ({_named(high, by)})"
    return f"{metric}: {shown(low[metric])} ({_named(low, by)}) to {shown(high[metric])} ({_named(high, by)})"


def _ends(frame: pd.DataFrame, metric: str) -> tuple[Any, Any]:
    """The rows with the lowest and the highest value."""
    values = frame[metric].to_numpy(float)
    return frame.iloc[int(values.argmin())], frame.iloc[int(values.argmax())]


def _named(row: Any, by: list[str]) -> str:
    return ", ".join(str(row[each]) for each in by)


def _costliest(frame: pd.DataFrame, labels: Sequence[str]) -> str:
    lost = (frame["recall_plain"] - frame["recall"]).to_numpy(float)
    if not len(lost) or np.isnan(lost).all() or np.nanmax(lost) <= 0:
        return "no disguise costs recall"
    worst = int(np.nanargmax(lost))
    row = frame.iloc[worst]
    return f"{labels[worst]} costs most recall: {shown(row['recall_plain'])} plain, {shown(row['recall'])} in disguise"


def _check(frame: pd.DataFrame, *names: str) -> None:
    for name in names:
        if name not in frame:
            raise TaskError(f"plot {name!r}", expected="a column of the table", todo=nearest(name, map(str, frame)))
