"""A GrowthTracker in, how a memory grew out: memories by type, what was superseded, which questions they covered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from openclaw_lab.growth.entry import TYPES
from openclaw_lab.ui.charts import axes, labelled, legend, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from openclaw_lab.growth.track import GrowthTracker

_MOST_LABELS = 20


def plot_growth(tracker: GrowthTracker, *, ax: Axes | None = None) -> Axes:
    """Lines: memories of each type at the end of each period. Bars: what was superseded, downwards.

    Below each period stand the questions that a memory was found for, and all questions.
    """
    frame = tracker.frame
    covered, asked = tracker.coverage
    periods = list(dict.fromkeys(frame["period"])) if len(frame) else []
    total = int(frame[frame["type"] == "all"]["total"].iloc[-1]) if periods else 0
    title = f"{total} memories after {len(periods)} {tracker.by}s; found for {covered} of {asked} questions"
    ax = axes(ax, title, (8.0, 4.0))
    places = np.arange(len(periods))
    for number, kind in enumerate(TYPES[:-1]):
        own = frame[frame["type"] == kind]
        marks = style(number)
        ax.plot(places, own["total"], label=kind, **{**marks, "linestyle": "-"})
        gone = own["superseded"].to_numpy()
        if gone.any():
            ax.bar(places, -gone, width=0.5, alpha=0.5, color=marks["color"], label=f"{kind} superseded")
    ax.axhline(0, color="0.5", linewidth=0.8)
    every = frame[frame["type"] == "all"]
    asking = zip(periods, every["covered"].tolist(), every["questions"].tolist(), strict=True)
    shown = [f"{period}\n{found}/{of}" if of else str(period) for period, found, of in asking]
    step = max(1, -(-len(periods) // _MOST_LABELS))
    ax.set_xticks(places[::step], shown[::step])
    labelled(ax, x=f"{tracker.by} (questions covered / asked)", y="memories")
    legend(ax)
    return ax
