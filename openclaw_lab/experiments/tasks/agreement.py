"""Labelled sessions in; how well the opportunity rules find what a person marked, out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from openclaw_lab.experiments.dataset import as_dataset
from openclaw_lab.experiments.metrics import Array, Metric, interval
from openclaw_lab.experiments.table import Table
from openclaw_lab.messages import OPPORTUNITY_KINDS, Opportunity, Session
from openclaw_lab.reminders.opportunities import find_opportunities


def rule_agreement(data: object) -> Table:
    """Precision and recall of the rules against a person's labels, a row a kind; a hit is the same message and kind.

    Sessions without labels do not count, nor do those on which the rules were tuned (`"split": "tune"`); intervals are
    over sessions.
    """
    sessions: list[Session] = [sample.input for sample in as_dataset(data)]
    labelled = [each for each in sessions if each.opportunities is not None and each.fields.get("split") != "tune"]
    pairs = [(_places(session.opportunities), _places(find_opportunities(session))) for session in labelled]
    rows = {}
    for kind in (*OPPORTUNITY_KINDS, "all"):
        wanted = [{each for each in gold if kind in (each[1], "all")} for gold, _ in pairs]
        found = [{each for each in rules if kind in (each[1], "all")} for _, rules in pairs]
        both = np.array([len(a & b) for a, b in zip(wanted, found, strict=True)], dtype=float)
        rows[kind] = {"precision": _share(both, found), "recall": _share(both, wanted)}
    return Table.of_metrics(
        rows, "kind", f"Rules against labels, {len(labelled)} labelled sessions that the rules were not tuned on"
    )


def _places(opportunities: Iterable[Opportunity] | None) -> set[tuple[int, str]]:
    return {(each.index, each.kind) for each in opportunities or ()}


def _share(hits: Array, of: list[set[tuple[int, str]]]) -> Metric:
    total = np.array([len(each) for each in of], dtype=float)
    low, high = interval(hits, total)
    value = float(hits.sum() / total.sum()) if total.sum() else np.nan
    return Metric(value, low, high, int(total.sum()))
