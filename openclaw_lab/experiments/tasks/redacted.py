"""Labelled texts and a redactor in, what it did to each out; with other rules switched off, only what that can change.

A rule that finds nothing at any turn can be taken away without a change. So each text is redacted once with all rules;
which of them find anything in it is told once (`rules`); and without some of them only the texts are redacted again in
which one of those was active.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from openclaw_lab.config import RedactionConfig
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.parallel import spread
from openclaw_lab.experiments.secrets import Secrets
from openclaw_lab.experiments.tasks.outcomes import Outcome, Redact, judged, outcome
from openclaw_lab.redaction.json_text import is_json, leaves
from openclaw_lab.redaction.reading import reading
from openclaw_lab.redaction.redactor import Redactor
from openclaw_lab.redaction.settle import TURNS, settle
from openclaw_lab.redaction.spans import Found, find

Answer = Outcome | str  # or why there is none
_BATCH = 128


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that could find something in a text, by their gates, and those that do, at any turn."""

    possible: frozenset[str] = frozenset()
    active: frozenset[str] = frozenset()


class Variant:
    """What one set of rules does to every text; `rules` are those that matter to a text, as far as they were told."""

    def __init__(self, redactor: Redactor | None, answers: list[Answer], rules: dict[int, Rules]) -> None:
        self.redactor, self.answers, self.rules = redactor, answers, rules


class Redacted:
    """Texts with what a redactor does to them; `redact` is somebody's own, whose rules nobody knows."""

    def __init__(self, data: Dataset, config: RedactionConfig, redact: Redact | None = None) -> None:
        self.samples: tuple[Sample, ...] = data.samples
        self.secrets: list[Secrets] = [sample.label for sample in data]
        self.own = redact is not None
        self._config = replace(config, off=())
        redactor = None if redact else Redactor(self._config)
        verb = redact or (redactor.redact if redactor else str)
        self._frames = {rule.id: rule.replacement for rule in redactor.rules} if redactor else {}
        work = functools.partial(_outcomes, verb, self._frames)
        batches = [data.samples[at : at + _BATCH] for at in range(0, len(data), _BATCH)]
        answers = [each for batch in spread(work, batches, "redact", f"× {_BATCH} texts") for each in batch]
        self._base = Variant(redactor, answers, {})
        self._variants: dict[frozenset[str], Variant] = {frozenset(): self._base}

    def variant(self, off: Collection[str] = ()) -> Variant:
        """What is done with rules switched off; an unknown rule is a RuleError."""
        key = frozenset() if self.own else frozenset(off)
        if key not in self._variants:
            self._variants[key] = self._without(key)
        return self._variants[key]

    def _without(self, off: frozenset[str]) -> Variant:
        redactor = Redactor(replace(self._config, off=tuple(sorted(off))))
        answers, rules = list(self._base.answers), {}
        for number, sample in enumerate(self.samples):
            known = self.rules(self._base, number)
            if known.active & off:
                answers[number] = outcome(redactor.redact, sample.input, sample.label, self._frames)
            else:
                rules[number] = Rules(known.possible - off, known.active)
        return Variant(redactor, answers, rules)

    def rules(self, variant: Variant, number: int) -> Rules:
        """The rules that matter to a text; none where nothing is found."""
        if number not in variant.rules:
            answer, redactor = variant.answers[number], variant.redactor
            empty = isinstance(answer, Outcome) and not answer.spans
            text = self.samples[number].input
            variant.rules[number] = Rules() if empty or redactor is None else self._looked_at(redactor, text)
        return variant.rules[number]

    def _looked_at(self, redactor: Redactor, text: str) -> Rules:
        if self._config.preset == "seed":  # few rules, and each reads what the others wrote
            every = frozenset(rule.id for rule in redactor.rules)
            return Rules(every, every)
        found = [_finding(redactor, reading) for reading in _readings(text)]
        return Rules(*(frozenset().union(*each) for each in zip(*found, strict=True))) if found else Rules()

    def alone(self, off: Collection[str], rule: str) -> Iterator[tuple[int, Outcome, Outcome]]:
        """The texts in which a rule is active: their numbers, what is done with it, and what without it."""
        variant = self.variant(off)
        touched = [number for number in range(len(self.samples)) if rule in self.rules(variant, number).active]
        if not touched or variant.redactor is None:
            return
        # A redactor is made faster of few rules: those that could find something in one of these texts.
        needed = frozenset[str]().union(*(self.rules(variant, number).possible for number in touched)) - {rule}
        unneeded = (each.id for each in variant.redactor.rules if each.id not in needed)
        without = Redactor(replace(self._config, off=(*sorted(off), *unneeded)))
        for number in touched:
            full, sample = variant.answers[number], self.samples[number]
            if isinstance(full, Outcome):
                spans = without.redact(sample.input).spans
                yield number, full, judged(sample.input, sample.label, spans, self._frames)


def _outcomes(verb: Redact, frames: Mapping[str, str], samples: Sequence[Sample]) -> list[Answer]:
    return [outcome(verb, sample.input, sample.label, frames) for sample in samples]


def _readings(text: str) -> Iterator[str]:
    """A text as rules may read it: as it stands, or where it is JSON, its strings, and so on within them."""
    if not is_json(text):
        yield text
        return
    for leaf in leaves(text):
        if leaf.number:
            continue
        yield leaf.text
        if is_json(leaf.text):
            yield from _readings(leaf.text)


def _finding(redactor: Redactor, text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The rules that could find something in a text that is no JSON, and those that do, at any turn.

    The turns are those of the redactor; a finder that finds nothing is shown each piece and takes notes. Where there
    were so many that the last one may have differed, all rules count that could find something.
    """
    rules, turns = redactor.candidates(text), 0
    found: set[str] = set()

    def watched(piece: str) -> Iterator[Found]:
        nonlocal turns
        second = reading(piece)
        read = [piece, second.text] if second else [piece]
        here = {rule.id for rule in rules if any(next(find(rule, each), None) for each in read)}
        found.update(here)
        turns += bool(here)
        return iter(())

    settle(text, rules, redactor.walls, [watched])
    possible = frozenset(rule.id for rule in rules)
    return possible, possible if turns >= TURNS else frozenset(found)
