"""Results of detectors on the same texts in; one table out with what is asked of each, per dataset, never pooled."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.curves import at_fpr, roc
from openclaw_lab.experiments.evaluate import Results
from openclaw_lab.experiments.metrics import Metric
from openclaw_lab.experiments.table import Table, flat_metrics
from openclaw_lab.experiments.tasks.injection import length_baseline

if TYPE_CHECKING:
    import pandas as pd

_METRICS = ("recall", "fpr", "over_defence")


def scoreboard(results: Mapping[str, Results], by: str = "dataset", fpr: float = 0.01) -> Table:
    """A row a dataset and detector: recall, fpr and over_defence at the detector's threshold, AUC, recall at `fpr`.

    `recall_at` is that at the threshold found on the dataset's own harmless texts (see `at_fpr`); `length_auc` is how
    far the length of a text alone tells attacks from harmless texts there.
    """
    import pandas as pd

    if not results:
        raise TaskError("scoreboard", "no results", "Results by name, {'seed': a, 'rules': b}")
    lengths: dict[str, float] = {}
    rows = []
    for name, each in results.items():
        lengths |= _column(length_baseline(each.data, by).frame, by)
        areas, recalls = _metrics(roc(each, by).frame, by, "auc"), _metrics(at_fpr(each, fpr, by).frame, by, "recall")
        for value, metrics in each.metrics_by(by).items():
            shown = {metric: metrics[metric] for metric in _METRICS}
            known = {"auc": areas[value], "recall_at": recalls[value]}
            rows.append({by: value, "detector": name, **flat_metrics({**shown, **known}), "length_auc": lengths[value]})
    frame = pd.DataFrame(rows).sort_values(by, kind="stable").reset_index(drop=True)
    return Table(
        frame, f"Detectors by {by}; recall_at: with {100 * fpr:g} % false alarms", (*_METRICS, "auc", "recall_at")
    )


def _column(frame: pd.DataFrame, by: str) -> dict[str, float]:
    return dict(zip(frame[by], frame["length_auc"], strict=True))


def _metrics(frame: pd.DataFrame, by: str, name: str) -> dict[str, Metric]:
    """A folded metric of a table, by the value of its first column."""
    rows = frame[[by, name, f"{name}_low", f"{name}_high", f"{name}_n"]].itertuples(index=False)
    return {value: Metric(number, low, high, 0 if math.isnan(n) else int(n)) for value, number, low, high, n in rows}
