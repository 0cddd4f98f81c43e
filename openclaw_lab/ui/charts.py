"""Metrics in, matplotlib Axes out: legible without colour, intervals drawn, Chinese labels where a font has them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import font_manager

from openclaw_lab.errors import LabWarning
from openclaw_lab.experiments.metrics import Metric
from openclaw_lab.experiments.task import Task
from openclaw_lab.text import language

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from openclaw_lab.experiments.sweep import Sweep

# Okabe & Ito's colours, told apart by colour-blind readers; markers differ too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_CHINESE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "PingFang SC", "Microsoft YaHei",
    "Hiragino Sans GB", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "SimHei", "Noto Sans CJK JP", "Droid Sans Fallback",
)  # fmt: skip


def axes(ax: Axes | None, title: str, size: tuple[float, float] = (7.0, 3.6)) -> Axes:
    """The Axes to draw on (new ones when none are given), with its title."""
    if ax is None:
        with matplotlib.rc_context({"font.sans-serif": _fonts()}):
            ax = plt.subplots(figsize=size, layout="constrained")[1]
    ax.set_title(title, loc="left", fontsize=11, **_text_style(title))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="both", alpha=0.25)
    return ax


def plot_metrics(rows: Mapping[str, Mapping[str, Metric]], task: Task, *, title: str, ax: Axes | None = None) -> Axes:
    """The headline metrics of each row (a setting, a dataset) as points with their intervals."""
    names = [name for name in task.headline if any(name in metrics for metrics in rows.values())]
    ax = axes(ax, title, (7.0, 1.2 + 0.32 * max(4, len(names) * len(rows))))
    places = np.arange(len(names))[::-1]
    for number, (label, metrics) in enumerate(rows.items()):
        shift = (number - (len(rows) - 1) / 2) * 0.7 / max(1, len(rows))
        _points(ax, [metrics[name] for name in names], places - shift, number, label)
    ax.set_yticks(places, names)
    ax.set_xlim(-0.02, 1.02)
    if len(rows) > 1:
        _legend(ax, rows)
    return ax


def plot_differences(frame: pd.DataFrame, *, title: str, ax: Axes | None = None) -> Axes:
    """Paired differences with their intervals; each metric on its own scale would mislead, so only shares are drawn."""
    known = frame.dropna(subset=["difference"])
    shares = known[known[["baseline", "value", "difference"]].abs().max(axis=1) <= 1.0]
    ax = axes(ax, title, (7.0, 1.0 + 0.32 * max(3, len(shares))))
    settings = list(dict.fromkeys(shares["setting"]))
    rows = shares[["setting", "metric", "difference", "low", "high", "pairs"]].to_dict("records")
    labels = [f"{row['metric']}  ({row['setting']})" if len(settings) > 1 else str(row["metric"]) for row in rows]
    places = np.arange(len(shares))[::-1]
    metrics = [Metric(row["difference"], row["low"], row["high"], row["pairs"]) for row in rows]
    _points(ax, metrics, places, 0, "difference")
    ax.axvline(0, color="black", linewidth=1)
    ax.set_yticks(places, labels)
    return ax


def plot_sweep(sweep: Sweep, *, ax: Axes | None = None, x: str = "", y: str = "", by: str = "") -> Axes:
    """`y` (a metric) over `x` (a setting or a metric), a line for each value of the setting `by`."""
    frame = sweep.frame
    x = x or sweep.names[0]
    y = y or next(name for name in (*sweep.task.headline, *frame.columns) if name in frame)
    by = by or next((name for name in sweep.names if name != x), "")
    ax = axes(ax, f"{sweep.task.name}: {y} over {x}")
    for number, (label, part) in enumerate(frame.groupby(by, sort=False) if by else [("", frame)]):
        _line(ax, part, x, y, number, f"{by} = {label!s}" if by else "")
    ax.set_xlabel(_axis_name(frame, x))
    ax.set_ylabel(_axis_name(frame, y))
    if by:
        _legend(ax, [f"{by} = {label}" for label in frame[by].unique()])
    return ax


def plot_frontier(sweeps: Mapping[str, Sweep], *, x: str, y: str, title: str, ax: Axes | None = None) -> Axes:
    """Two metrics against each other, a line a sweep: what each kind of setting buys at what price."""
    ax = axes(ax, title)
    for number, (label, sweep) in enumerate(sweeps.items()):
        part = sweep.frame.sort_values(x)
        ax.errorbar(
            part[x], part[y], yerr=_bounds(part[y], part[f"{y}_low"], part[f"{y}_high"]), label=label, linewidth=1.2,
            markersize=5, capsize=2, elinewidth=0.6, **_style(number),
        )  # fmt: skip
    first = next(iter(sweeps.values())).frame
    ax.set_xlabel(_axis_name(first, x))
    ax.set_ylabel(_axis_name(first, y))
    _legend(ax, sweeps)
    return ax


def _axis_name(frame: pd.DataFrame, name: str) -> str:
    return f"{name} (simulated)" if f"{name}_kind" in frame else name


def _bounds(values: Any, low: Any, high: Any) -> Any:
    """Distances from a value to its bounds, as errorbar takes them."""
    return np.nan_to_num(np.maximum(np.array([values - low, high - values], dtype=float), 0))


def _line(ax: Axes, part: pd.DataFrame, x: str, y: str, number: int, label: str) -> None:
    numeric = part[x].map(lambda value: isinstance(value, int | float)).all()
    part = part.sort_values(x) if numeric else part
    style = _style(number)
    values = part[x] if numeric else part[x].astype(str)
    ax.plot(values, part[y], label=label, linewidth=1.4, markersize=4, **style)
    if f"{y}_low" in part:
        ax.fill_between(values, part[f"{y}_low"], part[f"{y}_high"], color=style["color"], alpha=0.15, linewidth=0)


def _points(ax: Axes, metrics: Sequence[Metric], places: Any, number: int, label: str) -> None:
    values, low, high = (np.array([getattr(each, name) for each in metrics]) for name in ("value", "low", "high"))
    ax.errorbar(
        values,
        places,
        xerr=_bounds(values, low, high),
        label=label,
        linestyle="none",
        capsize=3,
        markersize=5,
        **_style(number),
    )


def _style(number: int) -> dict[str, Any]:
    return {"color": _COLOURS[number % len(_COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}


def _legend(ax: Axes, labels: Sequence[str] | Mapping[str, object]) -> None:
    ax.legend(frameon=False, fontsize=9, prop=_text_style(" ".join(labels)).get("fontproperties"))


def _text_style(text: str) -> dict[str, Any]:
    """A Chinese font for a Chinese text; a warning, once, when the machine has none."""
    if language(text) == "en":
        return {}
    font = chinese_font()
    if font is None:
        warnings.warn(
            f"no font with Chinese characters found; install one of {', '.join(_CHINESE_FONTS[:3])}",
            LabWarning,
            stacklevel=4,
        )
        return {}
    return {"fontproperties": font_manager.FontProperties(family=font)}


@functools.cache
def chinese_font() -> str | None:
    """The first installed font that has Chinese characters."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return next((name for name in _CHINESE_FONTS if name in installed), None)


def _fonts() -> list[str]:
    found = chinese_font()
    return [*([found] if found else []), *matplotlib.rcParams["font.sans-serif"]]
