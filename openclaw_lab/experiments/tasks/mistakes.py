"""An Outcome in, its mistakes out, one by one, with the rule and the text around; what secrets say is masked.

Masked are the labelled spans, what was removed, and whatever the full set of rules would remove besides: labels may be
missing. `reveal` shows the text as it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from openclaw_lab.config import RedactionConfig
from openclaw_lab.errors import excerpt
from openclaw_lab.experiments.dataset import Sample
from openclaw_lab.experiments.secrets import Placed, mask, masked
from openclaw_lab.experiments.tasks.outcomes import LEAKED, REMOVED, Outcome, touches
from openclaw_lab.messages import Span
from openclaw_lab.redaction.redactor import Redactor
from openclaw_lab.redaction.spans import Found

_AROUND = 40
_KINDS = ("leaked", "partly leaked", "false redaction", "broken JSON", "not idempotent", "unscored")


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that went wrong: what, of which type, by which rule, the value (masked), why, the text around it."""

    error: str
    type: str
    rule: str
    value: str
    reason: str
    text: str
    size: int

    def __str__(self) -> str:
        return f"{self.error}: {self.reason}"


def by_size(mistake: Mistake) -> tuple[int, int]:
    """The order of mistakes, worst first."""
    return _KINDS.index(mistake.error), -mistake.size


class Reader:
    """Reads mistakes out of outcomes, and shows texts."""

    def __init__(self, *, reveal: bool = False) -> None:
        self._reveal = reveal

    def mistakes(self, sample: Sample, outcome: Outcome) -> tuple[Mistake, ...]:
        """All of one text, worst first."""
        found = [*self._leaks(sample, outcome), *self._false(sample, outcome), *self._broken(sample, outcome)]
        return tuple(sorted(found, key=by_size))

    def failed(self, sample: Sample, why: str) -> tuple[Mistake, ...]:
        """The one mistake of a text on which the redactor failed; what it said may hold the text."""
        if not self._reveal:
            for span in sample.label.spans:
                value = sample.input[span.start : span.end]
                why = why.replace(value, mask(value, span.type))
            why = masked(why, _further(why))
        return (Mistake("unscored", "", "", "", excerpt(why), excerpt(self.text(sample, ()), 2 * _AROUND), 0),)

    def text(self, sample: Sample, spans: Iterable[Placed]) -> str:
        """The text of a sample as it may be shown."""
        return str(sample.input) if self._reveal else masked(sample.input, self._hidden(sample, spans))

    def _leaks(self, sample: Sample, outcome: Outcome) -> Iterator[Mistake]:
        for secret, state in zip(sample.label.spans, outcome.states, strict=True):
            if state == REMOVED:
                continue
            by = [each for each in outcome.spans if touches(each, secret)]
            rules = ", ".join(dict.fromkeys(each.rule for each in by))
            taken = sum(min(each.end, secret.end) - max(each.start, secret.start) for each in by)
            size = secret.end - secret.start
            why = "no rule removes it" if state == LEAKED else f"{rules} removes {taken} of {size} characters"
            shown = self._shown(sample, outcome, secret)
            yield Mistake("leaked" if state == LEAKED else "partly leaked", secret.type, rules, *shown[:1],
                          f"{secret.type} {shown[0]}: {why}", shown[1], size - taken)  # fmt: skip

    def _false(self, sample: Sample, outcome: Outcome) -> Iterator[Mistake]:
        for each, wrong in zip(outcome.spans, outcome.wrong, strict=True):
            if wrong and sample.label.complete:
                value, text = self._shown(sample, outcome, each)
                why = f"{each.rule} removes {value}, which is no secret"
                yield Mistake("false redaction", each.type, each.rule, value, why, text, each.end - each.start)

    def _broken(self, sample: Sample, outcome: Outcome) -> Iterator[Mistake]:
        text = excerpt(self.text(sample, outcome.spans), 2 * _AROUND)
        if outcome.json is False:
            yield Mistake("broken JSON", "", "", "", "the text is no JSON any more", text, 0)
        if not outcome.stable:
            yield Mistake("not idempotent", "", "", "", "a second pass changes more", text, 0)

    def _shown(self, sample: Sample, outcome: Outcome, at: Placed) -> tuple[str, str]:
        """What stands at a place, and the line around it."""
        text: str = sample.input
        value = text[at.start : at.end]
        if self._reveal:
            before, after = text[: at.start], text[at.end :]
            shown = value
        else:
            hidden = self._hidden(sample, outcome.spans)
            before = masked(text[: at.start], _within(hidden, 0, at.start))
            after = masked(text[at.end :], _within(hidden, at.end, len(text)))
            shown = mask(value, at.type or "text")
        before, after = _one_line(before), _one_line(after)
        head = before if len(before) <= _AROUND else f"…{before[-_AROUND:]}"
        tail = after if len(after) <= _AROUND else f"{after[:_AROUND]}…"
        return excerpt(shown), excerpt(f"{head}»{shown}«{tail}", 4 * _AROUND)

    def _hidden(self, sample: Sample, spans: Iterable[Placed]) -> list[Placed]:
        return [*sample.label.spans, *spans, *_further(sample.input)]


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _within(spans: Iterable[Placed], start: int, end: int) -> list[Span]:
    """Spans cut to an interval, counted from its start."""
    cut = ((max(each.start, start), min(each.end, end), each.type) for each in spans)
    return [Span(low - start, high - start, kind) for low, high, kind in cut if low < high]


@functools.cache
def _guard() -> Redactor:
    return Redactor(RedactionConfig())


@functools.lru_cache(maxsize=1)  # one text is looked at several times in a row
def _further(text: str) -> tuple[Found, ...]:
    """What the full set of rules removes."""
    return _guard().redact(text).spans
