"""Results of the extraction task in; what another threshold would give, every pair, and a judge's word, out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from openclaw_lab import models
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.rows import asked_rows, live_options
from openclaw_lab.experiments.table import Table
from openclaw_lab.experiments.tasks.extraction import Dialogue, ExtractionTask, counted, pairs_of

if TYPE_CHECKING:
    from openclaw_lab.experiments.evaluate import Results

THRESHOLDS = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
_JUDGE = (
    "Do these two notes about a user or their work say the same, so that keeping one is enough? Answer with JSON. "
    "这两条关于用户或其工作的笔记说的是同一件事，只留一条就够吗？只用 JSON 回答。"
)
_SCHEMA = {
    "type": "object",
    "properties": {"same": {"type": "boolean"}},
    "required": ["same"],
    "additionalProperties": False,
}


def sensitivity(results: Results, thresholds: Sequence[float] = THRESHOLDS) -> Table:
    """Precision, recall and F1 for each similarity from which a pair may count; nothing is extracted again."""
    task = _task(results)
    rows = {}
    for least in thresholds:
        counts = [counted(each, least, results.config.extraction.min_importance) for each in results.prepared]
        tallies = {name: np.array([each[name] for each in counts], dtype=float) for name in counts[0]}
        rows[f"{least:g}"] = {
            name: task.spec(name).measure(tallies, results.groups) for name in ("precision", "recall", "f1")
        }
    return Table.of_metrics(rows, "least", f"What the similarity that counts decides: {results.data.name}")


def pairs(results: Results) -> Table:
    """A row a written or predicted memory: id, type, written, predicted, similarity, verdict, why, evidence."""
    task, rows = _task(results), []
    for sample, each in zip(results.data, results.prepared, strict=True):
        kept = each.kept(results.config.extraction.min_importance)
        matched = pairs_of(each, task.least, kept)
        for pair in matched:
            gold, found = each.label.gold[pair.gold], each.found[pair.found]
            rows.append([sample.id, gold.type, gold.text, found.content, pair.similarity, "right", found.why,
                         found.evidence])  # fmt: skip
        missed = set(range(len(each.label.gold))) - {pair.gold for pair in matched}
        for number in sorted(missed):
            gold = each.label.gold[number]
            rows.append(
                [sample.id, gold.type, gold.text, "", _nearest(each, number, kept), "missed", "", gold.evidence]
            )
        for number in [number for number in kept if number not in {pair.found for pair in matched}]:
            found = each.found[number]
            rows.append([sample.id, found.type, "", found.content, np.nan, "false", found.why, found.evidence])
    columns = ["id", "type", "written", "predicted", "similarity", "verdict", "why", "evidence"]
    return Table.of_rows(rows, columns, f"Memories of {results.data.name}, written and predicted")


def agreement(results: Results, judge: str, **options: Any) -> Table:
    """What a model says of each written memory and the nearest predicted one, against the assignment.

    `judge` is `litellm:<model>`, `options` those of `models.complete` (`cassette`, `budget`, …). Columns: pairs, agree,
    kappa (Cohen 1960, doi 10.1177/001316446002000104), same_by_judge, same_by_similarity.
    """
    from sklearn.metrics import cohen_kappa_score

    task, live, pairs, counts = _task(results), live_options(options), [], []
    for each in results.prepared:
        kept = each.kept(results.config.extraction.min_importance)
        right = {pair.gold for pair in pairs_of(each, task.least, kept)}
        for number, gold in enumerate(each.label.gold):
            if kept and each.similar[number, kept].max() >= 0:
                best = kept[int(each.similar[number, kept].argmax())]
                pairs.append((gold.text, each.found[best].content))
                counts.append(number in right)
    if not pairs:
        raise TaskError("agreement", "no pairs to judge", "results with memories found")
    asked = asked_rows(lambda pair: _same(judge, *pair, live), pairs, live["spending"], "judge", "pair")
    said = [answer for answer, _ in asked]
    agree = float(np.mean(np.array(said) == np.array(counts)))
    constant = len(set(said)) == len(set(counts)) == 1
    kappa = float("nan") if constant else float(cohen_kappa_score(said, counts))
    row = [len(said), agree, kappa, sum(said), sum(counts)]
    return Table.of_rows(
        [row], ["pairs", "agree", "kappa", "same_by_judge", "same_by_similarity"], f"{judge} as a judge"
    )


def _same(judge: str, one: str, other: str, options: dict[str, Any]) -> bool:
    request = [{"role": "system", "content": _JUDGE}, {"role": "user", "content": f"1. {one}\n2. {other}"}]
    return models.complete_json(judge, request, _verdict, schema=_SCHEMA, **options)


def _verdict(answer: Any) -> bool:
    if not isinstance(answer, dict) or type(answer.get("same")) is not bool:
        raise ValueError("not an object with same: true or false")
    return bool(answer["same"])


def _nearest(each: Dialogue, gold: int, kept: Sequence[int]) -> float:
    """The best similarity of a written memory with any predicted one of its type; nan without one."""
    best = float(each.similar[gold, list(kept)].max()) if kept else -1.0
    return best if best >= 0 else float("nan")


def _task(results: Results) -> ExtractionTask:
    if not isinstance(results.task, ExtractionTask):
        raise TaskError("results", f"of the task {results.task.name}", "results of the task extraction")
    return results.task
