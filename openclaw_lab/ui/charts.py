"""Metrics in, matplotlib Axes out: legible without colour, intervals drawn, Chinese labels where a font has them."""

from __future__ import annotations

import contextlib
import functools
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import font_manager
from matplotlib.text import Text

from openclaw_lab.errors import LabWarning, TaskError
from openclaw_lab.experiments.metrics import Metric
from openclaw_lab.experiments.table import marked_name
from openclaw_lab.experiments.task import Task
from openclaw_lab.knobs import nearest

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from openclaw_lab.experiments.sweep import Sweep

# Okabe & Ito's colours, told apart by colour-blind readers; markers differ too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LEGEND_ROWS = 12
_NOTHING = Metric(math.nan, math.nan, math.nan, 0)
_HAN = re.compile("[\u3400-\u9fff]")
_CHINESE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "PingFang SC", "Microsoft YaHei",
    "Hiragino Sans GB", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "SimHei", "Noto Sans CJK JP", "Droid Sans Fallback",
)  # fmt: skip


def axes(ax: Axes | None, title: str, size: tuple[float, float] = (7.0, 3.6)) -> Axes:
    """The Axes to draw on (new ones when none are given), with its title."""
    _add_chinese_fallback()
    if ax is None:
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    # An Axes that was made before has texts of its own, without the fallback.
    ax.set_title(title, loc="left", fontsize=11, fontfamily=families())
    ax.tick_params(labelfontfamily=families())
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
        _points(ax, [metrics.get(name, _NOTHING) for name in names], places - shift, number, label)
    every = [metrics[name] for metrics in rows.values() for name in names if name in metrics]
    ax.set_yticks(places, [_marked(name, rows) for name in names])
    if not any(bound > 1 or bound < 0 for each in every for bound in (each.value, each.low, each.high)):
        ax.set_xlim(-0.02, 1.02)
    if len(rows) > 1:
        legend(ax)
    return labelled(ax, x="value and its 95 % interval")


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
    return labelled(ax, x="difference and its 95 % interval")


def plot_sweep(sweep: Sweep, *, ax: Axes | None = None, x: str = "", y: str = "", by: str = "") -> Axes:
    """`y` (a metric) over `x` (a setting or a metric), a line for each value of the setting `by` (or of all others).

    Over a metric, the first setting is the one that runs along the line.
    """
    frame = sweep.frame
    _check_names(frame, x, y, by)
    x = x or sweep.names[0]
    y = y or next(name for name in (*sweep.task.headline, *frame.columns) if name in frame)
    along = x if x in sweep.names else sweep.names[0]
    others = [by] if by else [name for name in sweep.names if name not in (along, y)]
    lines = [", ".join(f"{name} = {value}" for name, value in zip(others, row, strict=True))
             for row in frame[others].astype(object).to_numpy().tolist()]  # fmt: skip
    ax = axes(ax, f"{sweep.task.name}: {y} over {x}")
    for number, label in enumerate(dict.fromkeys(lines)):
        _line(ax, frame[[line == label for line in lines]], x, y, number, label)
    if others:
        legend(ax)
    return labelled(ax, x=_axis_name(frame, x), y=_axis_name(frame, y))


def plot_frontier(sweeps: Mapping[str, Sweep], *, x: str, y: str, title: str, ax: Axes | None = None) -> Axes:
    """Two metrics against each other, a line a sweep: what each kind of setting buys at what price."""
    if not sweeps:
        raise TaskError("plot_frontier", "no sweeps", "at least one, by name")
    for sweep in sweeps.values():
        _check_names(sweep.frame, x, f"{y}_low", y)
    ax = axes(ax, title)
    for number, (label, sweep) in enumerate(sweeps.items()):
        part = sweep.frame.sort_values(x)
        ax.errorbar(
            part[x], part[y], yerr=bounds(part[y], part[f"{y}_low"], part[f"{y}_high"]), label=label, linewidth=1.2,
            markersize=5, capsize=2, elinewidth=0.6, **style(number),
        )  # fmt: skip
    first = next(iter(sweeps.values())).frame
    legend(ax)
    return labelled(ax, x=_axis_name(first, x), y=_axis_name(first, y))


def _check_names(frame: pd.DataFrame, *names: str) -> None:
    for name in names:
        if name and name not in frame:
            wanted = name.removesuffix("_low")
            raise TaskError(f"plot {wanted!r}", expected="a column of the sweep", todo=nearest(wanted, map(str, frame)))


def labelled(ax: Axes, *, x: str, y: str = "") -> Axes:
    """The axes' names; and one warning when there is Chinese to show and no font that has it."""
    ax.set_xlabel(x, fontfamily=families())
    ax.set_ylabel(y, fontfamily=families())
    shown = [each.get_text() for each in (*ax.get_xticklabels(), *ax.get_yticklabels(), *ax.findobj(Text))]
    if chinese_font() is None and any(_HAN.search(each) for each in shown):
        warnings.warn(
            f"no font with Chinese characters found; install one of {', '.join(_CHINESE_FONTS[:3])}",
            LabWarning,
            stacklevel=3,
        )
    return ax


def _axis_name(frame: pd.DataFrame, name: str) -> str:
    return marked_name(frame, name)


def _marked(name: str, rows: Mapping[str, Mapping[str, Metric]]) -> str:
    kinds = {metrics[name].kind for metrics in rows.values() if name in metrics} - {"measured"}
    return f"{name} ({', '.join(sorted(kinds))})" if kinds else name


def bounds(values: Any, low: Any, high: Any) -> Any:
    """Distances from a value to its bounds, as errorbar takes them."""
    return np.nan_to_num(np.maximum(np.array([values - low, high - values], dtype=float), 0))


def _line(ax: Axes, part: pd.DataFrame, x: str, y: str, number: int, label: str) -> None:
    numeric = part[x].dtype.kind in "iuf"
    part = part.sort_values(x) if numeric else part
    look = style(number)
    values = part[x] if numeric else part[x].astype(str)
    ax.plot(values, part[y], label=label, linewidth=1.4, markersize=4, **look)
    if f"{y}_low" in part:
        ax.fill_between(values, part[f"{y}_low"], part[f"{y}_high"], color=look["color"], alpha=0.15, linewidth=0)


def _points(ax: Axes, metrics: Sequence[Metric], places: Any, number: int, label: str) -> None:
    values, low, high = (np.array([getattr(each, name) for each in metrics]) for name in ("value", "low", "high"))
    ax.errorbar(
        values,
        places,
        xerr=bounds(values, low, high),
        label=label,
        linestyle="none",
        capsize=3,
        markersize=5,
        **style(number),
    )


def style(number: int) -> dict[str, Any]:
    """Colour and marker of the line or group of that number."""
    return {"color": _COLOURS[number % len(_COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}


def legend(ax: Axes) -> None:
    """The legend, in columns where it is long; a long one may cover the chart but never squeezes it to nothing."""
    count = len(ax.get_legend_handles_labels()[1])
    box = ax.legend(frameon=False, fontsize=9, ncols=max(1, math.ceil(count / _LEGEND_ROWS)))
    box.set_in_layout(count <= _LEGEND_ROWS)


def families() -> list[str]:
    """The fonts that a text may fall back on."""
    return list(matplotlib.rcParams["font.family"])


@functools.cache
def chinese_font() -> str | None:
    """The first installed font that has Chinese characters."""
    return _known_chinese_font() or _new_chinese_font()


def _known_chinese_font() -> str | None:
    known = {font.name for font in font_manager.fontManager.ttflist}
    return next((name for name in _CHINESE_FONTS if name in known), None)


def _new_chinese_font() -> str | None:
    """One that was installed since matplotlib made its list of fonts, which it keeps from then on."""
    listed = {font.fname for font in font_manager.fontManager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - listed):
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # a damaged font is no font
            font_manager.fontManager.addfont(path)
    return _known_chinese_font()


def _add_chinese_fallback() -> None:
    """Let every text fall back on a Chinese font. Not in an rc_context: leaving it would undo what a notebook's
    drawing back end sets when the first figure is made, and later figures would never be shown.
    """
    font, families = chinese_font(), matplotlib.rcParams["font.family"]
    if font and font not in families:
        matplotlib.rcParams["font.family"] = [*families, font]
