"""The redaction task: labelled texts in; what was removed, what leaked and what was wrongly removed out, with reasons.

Rows with `"partial": true` have one type labelled: they count where labelled spans are counted (recall, partial,
leaked), and not where anything else that is removed would be called wrong. Frames and errors mask what secrets say;
`reveal=True` shows it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.metrics import Measured, MetricSpec
from openclaw_lab.experiments.secrets import Secrets
from openclaw_lab.experiments.task import Task
from openclaw_lab.experiments.tasks.mistakes import Reader, by_size
from openclaw_lab.experiments.tasks.outcomes import LEAKED, PARTLY, REMOVED, Outcome, Redact
from openclaw_lab.experiments.tasks.redacted import Answer, Redacted

if TYPE_CHECKING:
    import pandas as pd


class RedactionTask(Task):
    """Measures a redactor; `redactor` replaces the config's own: a callable from a text to a Redaction or a str."""

    name = "redaction"
    format = "redaction"
    section = "redaction"
    reads = ("redaction",)
    headline = ("recall", "partial", "leaked", "false_redactions", "precision")
    goal = ("recall", {"false_redactions": 0.05})
    columns = ("recall", "partial", "leaked", "false_redactions", "precision")
    metrics = (
        MetricSpec("recall", "removed", "secrets", "labelled spans that are removed whole", better="higher"),
        MetricSpec("partial", "partly", "secrets", "labelled spans of which a part is removed", better="lower"),
        MetricSpec("leaked", "leaked", "secrets", "labelled spans of which nothing is removed", better="lower"),
        MetricSpec(
            "false_redactions", "spoilt", "complete", "completely labelled texts that lose what is no secret",
            better="lower",
        ),
        MetricSpec(
            "precision", "right", "redactions", "removed intervals that touch a labelled span, where all are labelled",
            better="higher",
        ),
        MetricSpec(
            "excess", "excess", "characters", "characters removed of those not labelled, where all are labelled",
            better="lower",
        ),
        MetricSpec("structure", "still_json", "json", "JSON texts that still are JSON", better="higher"),
        MetricSpec("idempotent", "stable", "scored", "texts in which a second pass changes nothing", better="higher"),
        MetricSpec(
            "unscored", "failed", "all", "texts on which the redactor failed; in no other metric", better="lower"
        ),
    )  # fmt: skip

    def __init__(self, redactor: Redact | None = None, reveal: bool = False) -> None:
        if redactor is not None and not callable(redactor):
            raise TaskError("task redaction: redactor", redactor, "a callable from a text to a Redaction or a str")
        self._redactor, self._reveal = redactor, bool(reveal)

    def options(self) -> dict[str, Any]:
        """The name of the redactor that replaces the config's own."""
        return {"redactor": getattr(self._redactor, "__name__", "a callable")} if self._redactor else {}

    def repeatable(self, config: LabConfig) -> bool:
        """With the config's own redactor."""
        return self._redactor is None

    def prepared_by(self, config: LabConfig) -> Hashable:
        """The rules and the placeholders; rules are switched off afterwards, by looking at what they touch."""
        return (
            () if self._redactor else (config.redaction.preset, config.redaction.rules, config.redaction.placeholders)
        )

    def prepare(self, data: Dataset, config: LabConfig) -> Redacted:
        """Redact every text once, with all rules."""
        for sample in data:
            check_labelled(sample)
        return Redacted(data, config.redaction, self._redactor)

    def measure(self, prepared: Redacted, config: LabConfig) -> Measured:
        """Counts a text, with the config's rules switched off."""
        answers = prepared.variant(config.redaction.off).answers
        rows = [_counts(sample, answer) for sample, answer in zip(prepared.samples, answers, strict=True)]
        tallies = {name: np.array([row.get(name, 0) for row in rows], dtype=float) for name in _COUNTED}
        return Measured(tallies, np.arange(len(rows)))

    def rows(self, data: Dataset, prepared: Redacted, config: LabConfig) -> pd.DataFrame:
        """id, dataset, lang, kind, complete, spans, removed, partly, leaked, redactions, false, correct, reason, text.

        `correct`: all spans removed, nothing else, JSON and a second pass sound; none where unscored. `mistakes` holds
        the mistakes one by one, for `errors`.
        """
        import pandas as pd

        reader = Reader(reveal=self._reveal)
        rows = []
        for sample, answer in zip(data, prepared.variant(config.redaction.off).answers, strict=True):
            about = [sample.id, sample.dataset, sample.lang, sample.kind, sample.label.complete]
            rows.append([*about, len(sample.label.spans), *_row(reader, sample, answer)])
        counts = ["spans", "removed", "partly", "leaked", "redactions", "false"]
        columns = ["id", "dataset", "lang", "kind", "complete", *counts, "correct", "reason", "text", "mistakes"]
        frame = pd.DataFrame(rows, columns=columns)
        return frame.astype({**dict.fromkeys(counts, "Int64"), "correct": "boolean"})

    def errors(self, frame: pd.DataFrame) -> pd.DataFrame:
        """One row a mistake: what leaked, longest first; what leaked in part; then what was wrongly removed."""
        import pandas as pd

        kept = frame[["id", "dataset", "lang", "kind"]].to_dict("records")
        pairs = [(row, each) for row, all_ in zip(kept, frame["mistakes"], strict=True) for each in all_]
        pairs.sort(key=lambda pair: by_size(pair[1]))
        columns = ["error", *frame.columns[:4], "type", "rule", "value", "reason", "text"]
        made = [
            [each.error, *row.values(), each.type, each.rule, each.value, each.reason, each.text] for row, each in pairs
        ]
        return pd.DataFrame(made, columns=columns)


_COUNTED = (
    "removed", "partly", "leaked", "secrets", "spoilt", "complete", "right", "redactions", "excess", "characters",
    "still_json", "json", "stable", "scored", "failed", "all",
)  # fmt: skip


def check_labelled(sample: Sample) -> None:
    """Refuse a sample whose label is no Secrets within its text."""
    if not isinstance(sample.label, Secrets) or not isinstance(sample.input, str):
        found = f"a {type(sample.label).__name__}"
        raise TaskError(f"sample {sample.id} label", found, "Secrets", "load_dataset makes them of rows with spans")
    for span in sample.label.spans:
        if not 0 <= span.start < span.end <= len(sample.input):
            raise TaskError(f"sample {sample.id}", f"the span {span.start}:{span.end}", f"one in 0:{len(sample.input)}")


def _counts(sample: Sample, answer: Answer) -> dict[str, int]:
    """What one text adds to the tallies."""
    if not isinstance(answer, Outcome):
        return {"failed": 1, "all": 1}
    counts = {
        "removed": answer.states.count(REMOVED), "partly": answer.states.count(PARTLY),
        "leaked": answer.states.count(LEAKED), "secrets": len(answer.states), "stable": answer.stable, "scored": 1,
        "json": answer.json is not None, "still_json": answer.json is True, "all": 1,
    }  # fmt: skip
    if sample.label.complete:
        plain = len(sample.input) - sum(span.end - span.start for span in sample.label.spans)
        counts |= {
            "complete": 1, "spoilt": any(answer.wrong), "redactions": len(answer.wrong),
            "right": answer.wrong.count(False), "excess": answer.excess, "characters": max(plain, answer.excess),
        }  # fmt: skip
    return counts


def _row(reader: Reader, sample: Sample, answer: Answer) -> list[Any]:
    """removed, partly, leaked, redactions, false, correct, reason, text, mistakes of one text."""
    if not isinstance(answer, Outcome):
        mistakes = reader.failed(sample, answer)
        return [*[None] * 6, mistakes[0].reason, reader.text(sample, ()), mistakes]
    mistakes = reader.mistakes(sample, answer)
    states = [answer.states.count(each) for each in (REMOVED, PARTLY, LEAKED)]
    false = sum(answer.wrong) if sample.label.complete else None
    reason = "; ".join(f"{each.error}: {each.reason}" for each in mistakes) or _fine(answer)
    text = reader.text(sample, answer.spans)
    return [*states, len(answer.spans), false, not mistakes, reason, text, mistakes]


def _fine(answer: Outcome) -> str:
    rules = dict.fromkeys(each.rule for each in answer.spans)
    return f"removed by {', '.join(rules)}" if rules else "nothing removed"
