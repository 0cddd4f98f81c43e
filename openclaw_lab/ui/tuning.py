"""A Tuned in, the settings that were tried out: objective against limit, what is certified, what was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openclaw_lab.ui.charts import axes, labelled, legend, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from openclaw_lab.experiments.tune import Tuned


def plot_tuned(tuned: Tuned, *, ax: Axes | None = None) -> Axes:
    """Every setting on the part to choose on; the front that no other beats, the limit, and the chosen one."""
    frame, y = tuned.frame, f"{tuned.objective}_validation"
    limit = tuned.promises[0].limit if tuned.promises else None
    x = f"{limit.metric}_validation" if limit else y
    values = ", ".join(map(_set, tuned.values.items())) or "the setting started from"
    shown = "" if tuned.feasible else "not shown: "
    ax = axes(ax, f"{shown}{values} is chosen of {len(frame)} settings", (7.0, 4.0))
    for number, (label, rows) in enumerate(
        (
            ("tried", frame[~frame["certified"]]),
            ("certified", frame[frame["certified"]]),
            ("chosen", frame[frame["chosen"]]),
        )
    ):
        look = style(number)
        ax.scatter(rows[x], rows[y], s=70 if label == "chosen" else 16, label=label, color=look["color"],
                   marker=look["marker"], zorder=number + 2)  # fmt: skip
    front = tuned.front
    ax.plot(front[x], front[y], color="0.5", linewidth=1, label="front", zorder=1)
    if limit:
        ax.axvline(limit.value, color="0.3", linestyle="--", linewidth=1, label=str(limit))
    labelled(ax, x=x.removesuffix("_validation"), y=tuned.objective)
    legend(ax)
    return ax


def _set(changed: tuple[str, object]) -> str:
    name, value = changed[0].partition(".")[2], changed[1]
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
