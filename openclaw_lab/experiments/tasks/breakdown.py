"""Results of the redaction task in, tables out: by type, by rule (what each alone gains and costs), and the time.

A rule's gain and cost are leave-one-out: the same settings without it. Only texts in which the rule finds something are
redacted again, overlaps resolved anew; so a find that another rule makes as well is no gain.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.metrics import numbered
from openclaw_lab.experiments.table import Table
from openclaw_lab.experiments.tasks.outcomes import REMOVED, Outcome, Redact, touches
from openclaw_lab.experiments.tasks.redacted import Redacted
from openclaw_lab.experiments.tasks.redaction import RedactionTask
from openclaw_lab.knobs import nearest
from openclaw_lab.redaction.redactor import Redactor

if TYPE_CHECKING:
    from openclaw_lab.experiments.evaluate import Results

_PER_SPAN = ("recall", "partial", "leaked")
_RULE_COLUMNS = ("redactions", "false", "gains", "costs", "spoilt")


def by_type(results: Results) -> Table:
    """Recall, partial and leaked for each labelled type, the most frequent first, with intervals."""
    prepared = _prepared(results)
    answers = prepared.variant(results.config.redaction.off).answers
    kinds = Counter(span.type for secrets in prepared.secrets for span in secrets.spans)
    groups = numbered([sample.group or sample.id for sample in results.data])
    clusters = groups if groups.max() > 0 else None
    rows = {}
    for kind in sorted(kinds, key=lambda each: (-kinds[each], each)):
        states = [
            [state for span, state in zip(secrets.spans, answer.states, strict=True) if span.type == kind]
            if isinstance(answer, Outcome) else []
            for secrets, answer in zip(prepared.secrets, answers, strict=True)
        ]  # fmt: skip
        tallies = {
            name: np.array([each.count(state) for each in states], dtype=float)
            for state, name in enumerate(("leaked", "partly", "removed"))
        }
        tallies["secrets"] = np.array([len(each) for each in states], dtype=float)
        rows[kind] = {name: results.task.spec(name).measure(tallies, clusters) for name in _PER_SPAN}
    return Table.of_metrics(rows, "type", f"redaction by type on {results.data.name}")


def by_rule(results: Results, by: str = "", rules: Iterable[str] = ()) -> Table:
    """What each rule does, and what it alone gains and costs; the most useful first.

    redactions  removed intervals that bear its name; `false`: of these, the wrong ones
    gains       labelled spans that are removed whole with it and not without it
    costs       false redactions that are made with it and not without it
    spoilt      texts with false redactions, all of which would be gone without it

    `by` (`dataset`, `kind`, a field) gives a row for each of its values; `rules` names the rules to look at.
    """
    prepared = _prepared(results)
    if prepared.own:
        raise TaskError("by_rule", "a redactor of your own", "the config's", "its rules are not known here")
    off = results.config.redaction.off
    known = {rule.id: rule.type for rule in _redactor(prepared, off).rules}
    chosen = [rules] if isinstance(rules, str) else list(rules)
    for name in chosen:
        if name not in known:
            raise TaskError(f"by_rule {name!r}", expected="a rule that is on", todo=nearest(name, known))
    values = np.array(results.data.values(by) if by else ["all"] * len(results.data), dtype=object)
    rows = []
    for name in chosen or known:
        counts = _counts(prepared, off, name)
        used = sorted(set(values)) if chosen else sorted(set(values[counts.any(axis=1)]))
        rows += [
            [name, known[name], *([value] if by else []), *counts[values == value].sum(axis=0).tolist()]
            for value in used
        ]
    gains, costs = -len(_RULE_COLUMNS) + 2, -len(_RULE_COLUMNS) + 3
    rows.sort(key=lambda row: (-row[gains], row[costs], -row[gains - 2]))
    columns = ["rule", "type", *([by] if by else []), *_RULE_COLUMNS]
    return Table.of_rows(rows, columns, f"what each rule alone does on {results.data.name}")


def _counts(prepared: Redacted, off: Collection[str], rule: str) -> NDArray[np.int_]:
    """One row a text, with the counts of _RULE_COLUMNS."""
    counts = np.zeros((len(prepared.samples), len(_RULE_COLUMNS)), dtype=int)
    for number, full, less in prepared.alone(off, rule):
        named = [each.rule == rule for each in full.spans]
        gains = sum(a == REMOVED != b for a, b in zip(full.states, less.states, strict=True))
        false = costs = spoilt = 0
        if prepared.secrets[number].complete:
            wrong = [each for each, bad in zip(full.spans, full.wrong, strict=True) if bad]
            false = sum(each.rule == rule for each in wrong)
            costs = sum(not any(touches(each, other) for other in less.spans) for each in wrong)
            spoilt = bool(wrong) and not any(less.wrong)
        counts[number] = sum(named), false, gains, costs, spoilt
    return counts


def latency(
    data: Dataset, config: LabConfig | None = None, redactor: Redact | None = None, by: str = "dataset", runs: int = 3
) -> Table:
    """Microseconds of CPU for 1,000 characters, the least of a few runs; not a metric, for it depends on the machine.

    `longest` is the milliseconds that the slowest text took.
    """
    redact = redactor or Redactor((config or LabConfig()).redaction).redact
    values = np.array(data.values(by), dtype=object)
    spent = np.min([[_seconds(redact, sample.input) for sample in data] for _ in range(runs)], axis=0)
    sizes = np.array([len(sample.input) for sample in data])
    rows = []
    for value in sorted(set(values)):
        seconds, size = spent[values == value], int(sizes[values == value].sum())
        per_thousand = float(seconds.sum()) * 1e9 / size if size else float("nan")
        rows.append([value, len(seconds), size, per_thousand, float(seconds.max()) * 1e3])
    columns = [by, "texts", "characters", "us_per_1000", "longest_ms"]
    return Table.of_rows(rows, columns, f"time to redact {data.name}")


def _seconds(redact: Redact, text: str) -> float:
    begin = time.process_time()
    redact(text)
    return time.process_time() - begin


def _prepared(results: Any) -> Redacted:
    task = getattr(results, "task", None)
    if not isinstance(task, RedactionTask):
        raise TaskError("breakdown", f"a {type(results).__name__}", 'what evaluate("redaction", …) gave')
    prepared: Redacted = results.prepared
    return prepared


def _redactor(prepared: Redacted, off: Collection[str]) -> Redactor:
    redactor = prepared.variant(off).redactor
    if redactor is None:
        raise TaskError("by_rule", "a redactor of your own", "the config's", "its rules are not known here")
    return redactor
