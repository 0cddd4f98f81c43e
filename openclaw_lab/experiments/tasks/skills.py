"""The skills task: messages with the skills they call for in; precision, recall, F1, needless skills and tokens out.

A label can name all skills that a message calls for, or speak of a few only (`not_skills`); the pair metrics count the
named ones, the set metrics take every other skill for a wrong one. What a message costs is measured on what its
catalogue holds: of names and descriptions alone, the description stands for the instructions.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import LabConfig, SkillConfig
from openclaw_lab.errors import DataWarning, TaskError, excerpt
from openclaw_lab.experiments.corpus import Corpus
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.metrics import Array, Measured, MetricSpec
from openclaw_lab.experiments.picks import Picks
from openclaw_lab.experiments.task import Task
from openclaw_lab.skills.catalogue import Catalogue
from openclaw_lab.skills.matchers import Matcher, scores
from openclaw_lab.skills.scores import Mask, Scores, picked
from openclaw_lab.text import count_tokens

if TYPE_CHECKING:
    import pandas as pd

# What scores depend on; thresholds and limits are applied afterwards.
_READ = ("matcher", "embedder", "model")
# A message longer than the first that stands in a description is a copy of it; more than this share of them is a leak.
_SHORT, _COPIED = 8, 0.2


@dataclass(frozen=True)
class Matched:
    """One catalogue and its messages: `samples[i]` is the number of row i's sample; matrices are in ranked order.

    `wanted` marks the right skills, `named` those that the label speaks of (all, where it speaks of all), `costs` has
    the tokens; `pairs` says whether near misses were judged.
    """

    samples: NDArray[np.intp]
    scores: Scores
    tokens: NDArray[np.intp]
    wanted: Mask
    named: Mask
    pairs: NDArray[np.bool_]

    @functools.cached_property
    def costs(self) -> NDArray[np.intp]:
        """The tokens of each place of the ranking."""
        return self.tokens[self.scores.order]

    @functools.cached_property
    def wanted_count(self) -> NDArray[np.intp]:
        """Wanted skills a message."""
        return np.asarray(self.wanted.sum(axis=1), dtype=np.intp)

    @functools.cached_property
    def named_count(self) -> NDArray[np.intp]:
        """Skills that a label speaks of."""
        return np.asarray(self.named.sum(axis=1), dtype=np.intp)

    @functools.cached_property
    def first(self) -> NDArray[np.bool_]:
        """Whether the best-scored skill is a wanted one; a score of nothing is no best one."""
        return self.wanted[:, 0] & (self.scores.ranked[:, 0] > 0)


class SkillsTask(Task):
    """Measures a matcher; `matcher` replaces the config's own: a callable (messages, catalogue) -> scores, 0 to 1."""

    name = "skills"
    format = "skills"
    section = "skills"
    reads = ("skills",)
    headline = ("precision", "recall", "f1", "none_injects")
    goal = ("f1", {})
    columns = ("precision", "recall", "f1", "top1", "none_injects", "injected", "tokens", "pair_f1")
    metrics = (
        MetricSpec("precision", "right", "picked", "picked skills that are wanted", better="higher"),
        MetricSpec("recall", "right", "wanted", "wanted skills that are picked", better="higher"),
        MetricSpec("f1", "twice_right", "f1_base", "2·TP / (2·TP + FP + FN)", better="higher"),
        MetricSpec("top1", "first", "some", "messages for a skill whose best-scored one is wanted, picked or not",
                   better="higher"),
        MetricSpec("none_injects", "noise", "none", "messages for no skill that pick one", better="lower"),
        MetricSpec("missed", "silent", "some", "messages for a skill that pick no wanted one", better="lower"),
        MetricSpec("injected", "picked", "all", "skills picked a message", better="lower", proportion=False),
        MetricSpec("tokens", "spent", "all", "tokens of the picked skills a message", "tokens", better="lower",
                   proportion=False),
        MetricSpec("pair_precision", "pair_right", "pair_picked", "picked among the judged skills that are wanted",
                   better="higher"),
        MetricSpec("pair_recall", "pair_right", "pair_wanted", "wanted among the judged skills that are picked",
                   better="higher"),
        MetricSpec("pair_f1", "pair_twice", "pair_base", "F1 over the judged skills alone", better="higher"),
        MetricSpec("pair_fpr", "pair_wrong", "pair_refused", "near misses that are picked", better="lower"),
    )  # fmt: skip

    def __init__(self, matcher: object = None) -> None:
        if matcher is not None and not callable(matcher):
            expected = "a callable (messages, catalogue) -> scores; built-in matchers are the setting skills.matcher"
            raise TaskError("task skills: matcher", matcher, expected)
        self._matcher: Matcher | None = matcher

    def options(self) -> dict[str, Any]:
        """The name of the matcher that replaces the config's own."""
        return {} if self._matcher is None else {"matcher": getattr(self._matcher, "__name__", "a callable")}

    def repeatable(self, config: LabConfig) -> bool:
        """With a matcher of the package."""
        return self._matcher is None

    def prepared_by(self, config: LabConfig) -> Hashable:
        """Scores depend on the matcher, its embedder and its model alone."""
        return () if self._matcher is not None else tuple(getattr(config.skills, name) for name in _READ)

    def prepare(self, data: Dataset, config: LabConfig) -> tuple[Matched, ...]:
        """Score every message against every skill of its catalogue, and sort once."""
        numbers: dict[str, list[int]] = {}
        for number, sample in enumerate(data):
            if sample.dataset not in data.corpora or not isinstance(sample.label, Picks):
                raise TaskError(f"task skills: sample {sample.id}", expected="a catalogue", todo="use load_dataset")
            numbers.setdefault(sample.dataset, []).append(number)
        return tuple(self._matched(data, name, rows, config.skills) for name, rows in numbers.items())

    def _matched(self, data: Dataset, name: str, numbers: list[int], config: SkillConfig) -> Matched:
        corpus = data.corpora[name]
        found = scores([data[number].input for number in numbers], catalogue_of(corpus), config, self._matcher)
        labels = [data[number].label for number in numbers]
        wanted, named = _marked(labels, corpus)
        if self._matcher is not None and wanted.any() and len(found.names) > 1 and not np.ptp(found.score):
            raise TaskError(f"task skills on {name}", "one score for every pair", "scores that differ",
                            "the matcher is suspect: nothing that it is tuned to would mean anything")  # fmt: skip
        _warn_of_copies([data[number].input for number in numbers], labels, corpus)
        order = found.order
        tokens = np.array([count_tokens(f"### {each.id}\n{each.text}") for each in corpus.documents], dtype=np.intp)
        return Matched(
            np.array(numbers), found, tokens,
            np.take_along_axis(wanted, order, axis=1), np.take_along_axis(named, order, axis=1),
            np.array([label.unwanted is not None for label in labels]),
        )  # fmt: skip

    def decided_by(self, prepared: Sequence[Matched], config: LabConfig) -> Hashable:
        """How many scores reach the threshold, where that and the limits decide alone."""
        single = config.skills
        counts = tuple(int((each.scores.score >= np.float32(single.threshold)).sum()) for each in prepared)
        return (
            single.min_hits,
            single.thresholds,
            single.threshold if single.thresholds else -1,
            single.top_k,
            single.max_tokens,
            counts,
        )

    def measure(self, prepared: Sequence[Matched], config: LabConfig) -> Measured:
        """Tallies a message under the config's threshold and limits."""
        parts = [_tallies(each, picked(each.scores, config.skills, each.tokens)) for each in prepared]
        tallies = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Measured(tallies, np.concatenate([each.samples for each in prepared]))

    def rows(self, data: Dataset, prepared: Sequence[Matched], config: LabConfig) -> pd.DataFrame:
        """id, dataset, lang, kind, group, message, wanted, unwanted, picked, first, score, correct, reason.

        `correct`: exactly what is wanted is picked; where only some skills were judged, all of those rightly. `reason`
        is that of the picked skills, or of the best one where none is picked.
        """
        import pandas as pd

        made: dict[int, list[Any]] = {}
        for each in prepared:
            mask = picked(each.scores, config.skills, each.tokens)
            for row, number in enumerate(each.samples):
                made[int(number)] = _row(data, int(number), each, mask[row], row)
        columns = ["id", "dataset", "lang", "kind", "group", "message", "wanted", "unwanted", "picked", "first"]
        frame = pd.DataFrame(
            [made[number] for number in sorted(made)], columns=[*columns, "score", "correct", "reason"]
        )
        return frame.astype({"correct": "boolean"})

    def errors(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Silent misses first (nothing wanted was picked), then partly wrong picks, then needless ones by score."""
        wrong = frame[~frame["correct"].astype(bool)].copy()
        picks = [set(each.split()) for each in wrong["picked"]]
        wanted = [set(each.split()) for each in wrong["wanted"]]
        kinds = [
            "needless" if not want else "missed" if not want & got else "partly"
            for want, got in zip(wanted, picks, strict=True)
        ]
        wrong.insert(0, "error", kinds)
        order = wrong["error"].map({"missed": 0, "partly": 1, "needless": 2})
        return wrong.iloc[np.lexsort((-wrong["score"].to_numpy(float), order.to_numpy(int)))]


def catalogue_of(corpus: Corpus) -> Catalogue:
    """The skills of a data file, as matchers take them."""
    return Catalogue(tuple(each.id for each in corpus.documents), tuple(each.text for each in corpus.documents))


def _warn_of_copies(messages: Sequence[str], labels: Sequence[Picks], corpus: Corpus) -> None:
    """Warn when messages stand word for word in the descriptions that they are to find."""
    folded = {each.id: each.text.casefold() for each in corpus.documents}
    pairs = [(message.strip().casefold(), label.wanted) for message, label in zip(messages, labels, strict=True)]
    judged = [(message, wanted) for message, wanted in pairs if wanted and len(message) > _SHORT]
    copies = sum(any(message in folded[name] for name in wanted) for message, wanted in judged)
    if copies > _COPIED * max(len(judged), 10):
        text = f"{copies} of {len(judged)} messages stand word for word in a description: figures on them say nothing"
        warnings.warn(text, DataWarning, stacklevel=2)


def _marked(labels: Sequence[Picks], corpus: Corpus) -> tuple[Mask, Mask]:
    """Which skills each label wants, and which it speaks of."""
    wanted = np.zeros((len(labels), len(corpus.documents)), dtype=bool)
    named = np.zeros_like(wanted)
    for row, label in enumerate(labels):
        wanted[row, [corpus.row_of[each] for each in label.wanted]] = True
        named[row, [corpus.row_of[each] for each in label.named]] = True
        if label.unwanted is None:
            named[row] = True
    return wanted, named


def _tallies(matched: Matched, mask: Mask) -> dict[str, Array]:
    """Counts a message; the mask has the first columns of the ranking, where no others can be picked."""
    seen = mask.shape[1]
    wanted, judged, pairs = matched.wanted_count, matched.named_count, matched.pairs
    count = mask.sum(axis=1)
    right = (mask & matched.wanted[:, :seen]).sum(axis=1)
    named = (mask & matched.named[:, :seen]).sum(axis=1)
    spent = (mask * matched.costs[:, :seen]).sum(axis=1)
    some = wanted > 0
    tallies = {
        "right": right, "picked": count, "wanted": wanted, "twice_right": 2 * right, "f1_base": count + wanted,
        "first": matched.first, "some": some, "none": ~some, "noise": ~some & (count > 0),
        "silent": some & (right == 0), "spent": spent, "all": np.ones(len(mask)),
        "pair_right": pairs * right, "pair_picked": pairs * named, "pair_wanted": pairs * wanted,
        "pair_twice": pairs * 2 * right, "pair_base": pairs * (named + wanted),
        "pair_wrong": pairs * (named - right), "pair_refused": pairs * (judged - wanted),
    }  # fmt: skip
    return {name: np.asarray(each, dtype=float) for name, each in tallies.items()}


def _row(data: Dataset, number: int, matched: Matched, mask: Mask, row: int) -> list[Any]:
    sample, found = data[number], matched.scores
    columns = [int(found.order[row, place]) for place in np.flatnonzero(mask)]
    best = int(found.order[row, 0])
    names = [found.names[column] for column in columns]
    label: Picks = sample.label
    if label.complete:
        correct = set(names) == set(label.wanted)
    else:
        correct = set(label.wanted) <= set(names) and not set(label.unwanted or ()) & set(names)
    reasons = [f"{found.names[column]}: {found.reason(row, column)}" for column in columns[:3] or [best]]
    about = [sample.id, sample.dataset, sample.lang, sample.kind, sample.group, sample.input, " ".join(label.wanted)]
    verdict = [
        " ".join(label.unwanted or ()),
        " ".join(names),
        found.names[best],
        float(found.score[row, best]),
        correct,
    ]
    return [*about, *verdict, excerpt("; ".join(reasons), 400)]
