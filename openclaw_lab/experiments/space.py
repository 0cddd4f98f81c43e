"""What a person says may vary, in; the settings to try, out.

{"injection.threshold": Range(0.2, 0.9, steps=71)}     a grid: every combination is tried
{"skills.top_k": [1, 2, 3]}                            the same; any list does
{"knowhub.blend": Range(0, 1)}                         no grid: settings are drawn (see `search`)
{"reminders.min_gap": When({"reminders.policy": ["event"]}, [1, 2, 4])}   varied only where it matters
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.task import Task
from openclaw_lab.knobs import Knob


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`: `steps` of them, or any where no steps are given; `log`: equal ratios."""

    low: float
    high: float
    steps: int = 0
    log: bool = False

    def __post_init__(self) -> None:
        numbers = all(isinstance(each, int | float) and math.isfinite(each) for each in (self.low, self.high))
        if not numbers or self.low >= self.high or (self.log and self.low <= 0):
            raise TaskError(
                "Range", f"{self.low} to {self.high}", "a low end below the high one" + self.log * ", above 0"
            )
        if not isinstance(self.steps, int) or self.steps < 0 or self.steps == 1:
            raise TaskError("Range steps", self.steps, "at least two, or none for any number in between")

    def values(self) -> list[float]:
        """The steps."""
        made = np.geomspace if self.log else np.linspace
        return [float(f"{value:.12g}") for value in made(self.low, self.high, self.steps)]


@dataclass(frozen=True, slots=True)
class When:
    """Values that are tried where other fields have one of the values given; elsewhere the field stays as it is."""

    condition: Mapping[str, Sequence[Any]]
    values: Iterable[Any] | Range

    def holds(self, config: LabConfig) -> bool:
        """Whether the condition holds in a config."""
        return all(config.get(name) in values for name, values in self.condition.items())


Space = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Axis:
    """One field of a space: a list of values, or a range of any numbers; and when it is varied."""

    name: str
    values: tuple[Any, ...]
    between: Range | None = None
    when: When | None = None


def axes_of(space: Space, base: LabConfig) -> tuple[Axis, ...]:
    """The checked axes of a space, those that others depend on first."""
    if not isinstance(space, Mapping) or not space:
        raise TaskError("space", space, "values by setting, {'injection.threshold': Range(0.2, 0.9, steps=71)}")
    axes = {name: _axis(name, each, base) for name, each in space.items()}
    ordered: dict[str, Axis] = {}
    while len(ordered) < len(axes):
        ready = {
            name: axis
            for name, axis in axes.items()
            if name not in ordered and (axis.when is None or not (set(axis.when.condition) & set(axes)) - set(ordered))
        }
        if not ready:
            raise TaskError("space", ", ".join(set(axes) - set(ordered)), "conditions that do not go in a circle")
        ordered |= ready
    return tuple(ordered.values())


def is_grid(axes: Sequence[Axis]) -> bool:
    """Whether every axis is a list of values."""
    return all(axis.between is None for axis in axes)


def grid(axes: Sequence[Axis], base: LabConfig) -> list[LabConfig]:
    """Every setting of a grid, each once, in order."""
    found = [base]
    for axis in axes:  # an axis multiplies only those settings in which it matters
        varies = [axis.when is None or axis.when.holds(config) for config in found]
        several = (
            [config.with_({axis.name: value}) for value in axis.values] if varied else [config]
            for config, varied in zip(found, varies, strict=True)
        )
        found = list(dict.fromkeys(config for some in several for config in some))
    return found


def settled(axes: Sequence[Axis], values: Sequence[Any], base: LabConfig) -> LabConfig:
    """A config with the values of the axes whose conditions hold."""
    config = base
    for axis, value in zip(axes, values, strict=True):
        if axis.when is None or axis.when.holds(config):
            config = config.with_({axis.name: value})
    return config


def default_space(task: Task, base: LabConfig) -> dict[str, object]:
    """What is tuned when nobody says what: the fields that decide most, over the ranges that the config gives them."""
    varied = _VARIED.get(task.name)
    if varied is None:
        raise TaskError(f"tune {task.name}", "no space", "values by setting", "say what may vary with space={…}")
    knobs = base.knobs()
    space: dict[str, object] = {name: _spread(knobs[name], steps) for name, steps in varied.items()}
    if task.name == "redaction":
        from openclaw_lab.redaction.redactor import rules_of

        space["redaction.off"] = [(), *((rule.id,) for rule in rules_of(base.redaction) if rule.enabled)]
    for name, policy in _POLICIES.items() if task.name == "reminders" else ():
        space[name] = When({"reminders.policy": [policy]}, space[name])  # type: ignore[arg-type]
    return space


# The fields of a default space: values to try, or None for all choices; an int for so many steps of the field's range.
_VARIED: Mapping[str, Mapping[str, Sequence[Any] | int | None]] = {
    "injection": {"injection.threshold": 201},
    "skills": {"skills.threshold": 41, "skills.top_k": (1, 2, 3, 5)},
    "redaction": {},
    "extraction": {"extraction.min_importance": (1, 2, 3, 4, 5)},
    "reminders": {
        "reminders.policy": None, "reminders.unit": None, "reminders.scope": None,
        "reminders.interval": tuple(range(1, 13)), "reminders.since_save": (2, 3, 5, 8, 12, 20),
        "reminders.token_gap": (1000, 2000, 4000, 8000, 16_000), "reminders.min_gap": (1, 2, 3, 4, 6),
    },
    "retrieval": {
        "knowhub.lexical_weight": (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0),
        "knowhub.language_balance": (0.0, 0.25, 0.5, 0.75, 1.0),
        "knowhub.quality_weight": (0.0, 0.02, 0.05),
    },
}  # fmt: skip
# Of the reminders, which policy reads which field.
_POLICIES = {
    "reminders.interval": "interval",
    "reminders.since_save": "since_save",
    "reminders.token_gap": "token_gap",
    "reminders.min_gap": "event",
}


def _spread(knob: Knob, steps: Sequence[Any] | int | None) -> list[Any]:
    if isinstance(steps, int):
        return Range(knob.low or 0.0, knob.high or 1.0, steps).values()
    return list(knob.choices if steps is None else steps)


def _axis(name: str, given: object, base: LabConfig) -> Axis:
    base.get(name)  # an unknown name is refused
    when = given if isinstance(given, When) else None
    values = when.values if when else given
    if isinstance(values, Range) and not values.steps:
        for end in (values.low, values.high):
            base.with_({name: end})
        return Axis(name, (), values, when)
    listed = values.values() if isinstance(values, Range) else values
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise TaskError(f"space {name}", values, "a list of values, or a Range")
    kept = tuple(dict.fromkeys(base.with_({name: value}).get(name) for value in listed))
    if not kept:
        raise TaskError(f"space {name}", "no values", "at least one")
    return Axis(name, kept, None, when)
