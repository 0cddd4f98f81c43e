"""A GrowthTracker in, how a memory grew out: memories by type, what was confirmed and superseded, what was covered."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from openclaw_lab.growth.entry import TYPES
from openclaw_lab.ui.charts import axes, labelled, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from openclaw_lab.growth.track import GrowthTracker

_MOST_LABELS = 14
# What is drawn below the line, by its place in the palette, with a hatch that tells it without colour.
_BELOW = (("confirmed", "said again, confirmed", 5, ""), ("superseded", "corrected, superseded", 4, "////"))


def plot_growth(tracker: GrowthTracker, *, ax: Axes | None = None) -> Axes:
    """Lines: memories of each type at the end of each period. Bars below: those confirmed and those superseded in it.

    Under each period stand the messages that a memory was found for, and all that one was looked for.
    """
    frame = tracker.frame
    every = frame[frame["type"] == "all"]
    periods = every["period"].tolist()
    ax = axes(ax, _title(tracker, every["total"].tolist(), int(every["superseded"].sum())), (8.6, 4.2))
    places = np.arange(len(periods))
    for number, kind in enumerate(TYPES[:-1]):
        ax.plot(places, frame[frame["type"] == kind]["total"], label=kind, linewidth=2, **style(number))
    depth = np.zeros(len(periods))
    for name, label, number, hatch in _BELOW:
        count = every[name].to_numpy(dtype=float)
        if count.any():
            colour = style(number)["color"]
            own = count > 0
            ax.bar(places[own], -count[own], 0.5, depth[own], color=colour, edgecolor="0.4", hatch=hatch, label=label)
            depth -= count
    ax.axhline(0, color="0.5", linewidth=1)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):.0f}"))
    shared, names = _short(periods)
    asked = zip(names, every["covered"].tolist(), every["questions"].tolist(), strict=True)
    marks = [f"{name}\n{found}/{of}" if of else f"{name}\n–" for name, found, of in asked]
    step = max(1, -(-len(periods) // _MOST_LABELS))
    ax.set_xticks(places[::step], marks[::step])
    where = f"{shared}…" if shared else tracker.by
    labelled(ax, x=f"{where}\nbelow it: messages that a memory was found for / all", y="memories")
    ax.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def _title(tracker: GrowthTracker, totals: Sequence[int], corrected: int) -> str:
    """What the picture shows, in a line."""
    covered, asked = tracker.coverage
    known = _counted(totals[-1] if totals else 0, "memory", "memories")
    changed = f" with {_counted(corrected, 'correction', 'corrections')}" if corrected else ""
    periods = _counted(len(totals), tracker.by, f"{tracker.by}s")
    return f"{known}{changed} after {periods}; found for {covered} of {asked} messages"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _short(periods: Sequence[str]) -> tuple[str, list[str]]:
    """What all periods begin with, up to a mark between words, and what is left of each."""
    columns = zip(*periods, strict=False) if len(periods) > 1 else ()
    shared = "".join(column[0] for column in itertools.takewhile(lambda each: len(set(each)) == 1, columns))
    shared = shared[: max(shared.rfind(mark) for mark in "-_ /:#.") + 1]
    return shared, [each[len(shared) :] or "–" for each in periods]
