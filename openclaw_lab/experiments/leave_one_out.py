"""Data and a config in; what each rule, or each view, alone gains and costs at the config's threshold out.

    by_rule(texts, config)     attacks that only this rule catches, false alarms that only it makes
    by_view(texts, config)     the same for the readings that undo a disguise

A rule is left out only on the texts where it hit; elsewhere nothing changes. Where the detector is the sum of weighed
hits, its hits are weighed again without the rule's; else it runs again with the rule in `injection.off`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import InjectionConfig, LabConfig
from openclaw_lab.errors import RuleError, TaskError
from openclaw_lab.experiments.curves import share
from openclaw_lab.experiments.dataset import Dataset, as_dataset
from openclaw_lab.experiments.evaluate import check_fits, settings_of
from openclaw_lab.experiments.metrics import Array, numbered
from openclaw_lab.experiments.table import Table, flat_metrics
from openclaw_lab.experiments.tasks.injection import InjectionTask
from openclaw_lab.experiments.tasks.scored import Scored
from openclaw_lab.injection.detectors import Detector, scorer
from openclaw_lab.injection.patterns import RuleScorer, score

if TYPE_CHECKING:
    import pandas as pd

_Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Whole:
    """The data scored with nothing left out."""

    data: Dataset
    config: InjectionConfig
    scored: Scored

    @property
    def texts(self) -> list[str]:
        """The texts, in order."""
        return [sample.input for sample in self.data.samples]


def by_rule(data: object, config: LabConfig | None = None, *, by: str = "dataset") -> Table:
    """A row a rule and value of `by` where it hits: texts that it hits, and what only it decides.

    `gain`: attacks flagged with the rule and not without it, a share of the attacks. `cost`: the same for harmless
    texts. A rule with no gain anywhere and a cost somewhere is one to switch off (`injection.off`). For the detectors
    with rules: seed, rules, ensemble.
    """
    whole = _whole(data, config)
    if whole.config.detector not in ("seed", "rules", "ensemble"):
        raise TaskError("by_rule", f"the detector {whole.config.detector}", "one with rules: seed, rules, ensemble")
    hits = _places(whole.scored)
    without = _by_weights(whole, hits) if whole.config.detector != "ensemble" else _by_running(whole, hits)
    return _table("rule", by, whole, {rule: (hits[rule], scores) for rule, scores in without})


def by_view(data: object, config: LabConfig | None = None, *, by: str = "dataset") -> Table:
    """A row a view of `injection.views` and value of `by`: attacks flagged only with it, false alarms only with it.

    Every text is read again without the view, so this takes as long as one evaluation for each view.
    """
    whole = _whole(data, config)
    if whole.config.detector == "seed":
        raise TaskError("by_view", "the detector seed", "one with views: rules, classifier, ensemble")
    every = np.arange(len(whole.data))
    left: dict[str, tuple[_Places, Array]] = {}
    for view in whole.config.views:
        views = tuple(each for each in whole.config.views if each != view)
        task, setting = InjectionTask(), LabConfig(injection=_changed(whole.config, views=views))
        left[view] = (every, task.prepare(whole.data, setting).scores)
    return _table("view", by, whole, left)


def _whole(data: object, config: LabConfig | None) -> _Whole:
    dataset, settings, task = as_dataset(data), settings_of(config), InjectionTask()
    check_fits(task, dataset)
    return _Whole(dataset, settings.injection, task.prepare(dataset, settings))


def _changed(config: InjectionConfig, **changes: tuple[str, ...]) -> InjectionConfig:
    return LabConfig(injection=config).with_({f"injection.{name}": each for name, each in changes.items()}).injection


def _places(scored: Scored) -> dict[str, _Places]:
    """The texts that each rule hit, by rule."""
    found: dict[str, list[int]] = {}
    for place, detection in enumerate(scored.detections):
        for rule in {hit.rule for hit in detection.hits} if detection else ():
            found.setdefault(rule, []).append(place)
    return {rule: np.array(places, dtype=np.intp) for rule, places in sorted(found.items())}


def _by_weights(whole: _Whole, hits: Mapping[str, _Places]) -> Iterator[tuple[str, Array]]:
    """Scores without each rule: of the seed whether another rule hit, of the rules the sum of the other hits."""
    detector, texts = scorer(whole.config), whole.texts
    if isinstance(detector, RuleScorer):
        hit = sorted({int(place) for places in hits.values() for place in places})
        weighed = {place: detector.weighed(texts[place]) for place in hit}
        for rule, places in hits.items():
            left = ([each for each in weighed[place] if each.hit.rule != rule] for place in places)
            yield rule, np.array([score(each) if each else 0.0 for each in left], dtype=float)
        return
    for rule, places in hits.items():
        detections = (whole.scored.detections[place] for place in places)
        others = [any(hit.rule != rule for hit in each.hits) if each else False for each in detections]
        yield rule, np.array(others, dtype=float)


def _by_running(whole: _Whole, hits: Mapping[str, _Places]) -> Iterator[tuple[str, Array]]:
    """Scores without each rule, from a detector without it; reasons that are no rules are left out."""
    for rule, places in hits.items():
        try:
            detector = Detector(_changed(whole.config, off=(*whole.config.off, rule)))
        except RuleError:
            continue
        yield rule, np.array([detector.detect(whole.texts[place]).score for place in places], dtype=float)


def _table(name: str, by: str, whole: _Whole, left: Mapping[str, tuple[_Places, Array]]) -> Table:
    """Rows of a rule (or view) and value: hits, gain and cost; the most attacks gained first."""
    import pandas as pd

    threshold, flagged = whole.config.threshold, whole.scored.flagged(whole.config.threshold)
    values = np.array(whole.data.values(by), dtype=object)
    clusters = numbered([sample.group or sample.id for sample in whole.data.samples])
    known, attack = ~np.isnan(whole.scored.scores), whole.scored.attack == 1
    rows = []
    for each, (places, scores) in left.items():
        hit = np.zeros(len(flagged), dtype=bool)
        hit[places] = True
        decided = np.zeros(len(flagged), dtype=bool)
        decided[places] = flagged[places] & ~(scores >= threshold)
        for value in sorted(set(values[places])):
            here = known & (values == value)
            metrics = {
                "gain": share(decided[here], attack[here], clusters[here]),
                "cost": share(decided[here], ~attack[here], clusters[here]),
            }
            counts = {
                "hits": int((hit & here).sum()), "hits_attacks": int((hit & here & attack).sum()),
                "only_attacks": int((decided & here & attack).sum()),
                "only_alarms": int((decided & here & ~attack).sum()),
            }  # fmt: skip
            rows.append({name: each, by: value, **counts, **flat_metrics(metrics)})
    columns = [name, by, "hits", "hits_attacks", "only_attacks", "only_alarms", "gain", "cost"]
    frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)
    order = frame.sort_values(["only_attacks", "only_alarms"], ascending=[False, True], kind="stable")
    return Table(_without_hits(order, name), f"What each {name} alone gains and costs", ("gain", "cost"))


def _without_hits(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """A view hits every text: the columns that say so are of no use."""
    kept = frame.drop(columns=["hits", "hits_attacks"]) if name == "view" else frame
    return kept.reset_index(drop=True)
