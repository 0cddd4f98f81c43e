"""A space that is no grid in; settings out, drawn a batch at a time by what the earlier ones were worth.

Optuna draws (tree-structured Parzen estimator; Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization").
Each batch is drawn anew from the seed and from what was found before it, and the batches are always as large. So the
same seed gives the same settings for any number of workers, and after an interruption.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError, excerpt
from openclaw_lab.experiments.cache import Cache, key_of
from openclaw_lab.experiments.space import Axis, Range, settled
from openclaw_lab.experiments.trials import Tried
from openclaw_lab.knobs import mask_secrets

if TYPE_CHECKING:
    import optuna

# Settings that are drawn when nobody says how many, and at a time.
TRIALS = 96
_BATCH = 8
_FILE = "studies.sqlite"


@dataclass(frozen=True)
class Study:
    """Where the settings of one search are written down: a database (none: nowhere), and a name within it."""

    url: str
    name: str

    @classmethod
    def at(cls, storage: str | Path, cache: Cache, about: Sequence[object]) -> Study:
        """At a URL or file; without one, beside the cache, and nowhere when there is none."""
        if not isinstance(storage, str | Path):
            raise TaskError("tune: storage", storage, "the URL of a database, or a file")
        if not str(storage):
            storage = cache.path.with_name(_FILE) if cache.path else ""
        url = str(storage) if not str(storage) or "://" in str(storage) else f"sqlite:///{Path(storage).absolute()}"
        return cls(url, f"openclaw-lab {key_of(*about)[:24]}")


def drawn(
    axes: Sequence[Axis], base: LabConfig, measure: Callable[[list[LabConfig]], list[Tried]],
    worth: Callable[[Tried], float], trials: int, seed: int, study: Study,
) -> tuple[Tried, ...]:  # fmt: skip
    """`trials` settings (the one that is started from among them), measured, in the order in which they were drawn."""
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 2:
        raise TaskError("tune: trials", trials, "a whole number, at least 2")
    with _quiet():
        held = _studied(study)
        while len(done := _points(held)) < trials:
            whole = len(done) - len(done) % _BATCH  # a batch that was cut is drawn as it was, and ended
            batch = _suggested(axes, base, done[:whole], seed)[len(done) - whole : trials - whole]
            for point, each in zip(batch, measure([settled(axes, point, base) for point in batch]), strict=True):
                _write(held, point, worth(each))
        points = [point for point, _ in done[:trials]]
    return tuple(measure(list(dict.fromkeys(settled(axes, point, base) for point in points))))


def _studied(study: Study) -> optuna.Study:
    """The study, as far as it was done."""
    try:
        made: optuna.Study = _optuna().create_study(
            storage=study.url or None, study_name=study.name, direction="maximize", load_if_exists=True
        )
        return made
    except Exception as error:  # whatever a database's driver raises
        raise TaskError(
            "tune: storage", f"{excerpt(mask_secrets(study.url))} ({type(error).__name__})",
            "a database that can be written, such as sqlite:///search.sqlite",
        ) from None  # fmt: skip


def _points(study: optuna.Study) -> list[tuple[list[Any], float]]:
    """The values of the axes that were drawn, in order, and what they were worth."""
    trials = sorted(study.get_trials(deepcopy=False), key=lambda trial: trial.number)
    ours = [(each.user_attrs.get("point"), each.value) for each in trials]
    return [(json.loads(point), float(value)) for point, value in ours if point is not None and value is not None]


def _write(study: optuna.Study, point: Sequence[Any], value: float) -> None:
    optuna = _optuna()
    study.add_trial(optuna.trial.create_trial(value=value, user_attrs={"point": json.dumps(point)}))


def _suggested(
    axes: Sequence[Axis], base: LabConfig, done: Sequence[tuple[list[Any], float]], seed: int
) -> list[list[Any]]:
    """The next batch of points; the very first is what is started from, as near as the space has it."""
    optuna = _optuna()
    sampler = optuna.samplers.TPESampler(seed=seed + len(done), multivariate=True, group=True, constant_liar=True)
    inner = optuna.create_study(direction="maximize", sampler=sampler)
    for point, value in done:
        params, distributions = _params(axes, base, point)
        inner.add_trial(optuna.trial.create_trial(value=value, params=params, distributions=distributions))
    points = [_asked(inner.ask(), axes, base) for _ in range(_BATCH)]
    return [_started(axes, base), *points[1:]] if not done else points


def _asked(trial: optuna.Trial, axes: Sequence[Axis], base: LabConfig) -> list[Any]:
    """One point; an axis whose condition does not hold is not drawn, and stays as it is."""
    config, point = base, list[Any]()
    for axis in axes:
        value = config.get(axis.name)
        if axis.when is None or axis.when.holds(config):
            value = _value(trial, axis, base)
            config = config.with_({axis.name: value})
        point.append(value)
    return point


def _value(trial: optuna.Trial, axis: Axis, base: LabConfig) -> Any:
    if axis.between is None:
        return axis.values[trial.suggest_categorical(axis.name, list(range(len(axis.values))))]
    low, high = axis.between.low, axis.between.high
    if isinstance(base.get(axis.name), int):
        return trial.suggest_int(axis.name, int(low), int(high), log=axis.between.log)
    return float(f"{trial.suggest_float(axis.name, low, high, log=axis.between.log):.6g}")


def _params(
    axes: Sequence[Axis], base: LabConfig, point: Sequence[Any]
) -> tuple[dict[str, Any], dict[str, optuna.distributions.BaseDistribution]]:
    """A point as Optuna would have drawn it."""
    config, params, distributions = base, dict[str, Any](), dict[str, Any]()
    for axis, value in zip(axes, point, strict=True):
        if axis.when is None or axis.when.holds(config):
            value = tuple(value) if isinstance(value, list) else value
            config = config.with_({axis.name: value})
            params[axis.name] = value if axis.between else axis.values.index(value)
            distributions[axis.name] = _distribution(axis, base)
    return params, distributions


def _distribution(axis: Axis, base: LabConfig) -> optuna.distributions.BaseDistribution:
    known = _optuna().distributions
    made: optuna.distributions.BaseDistribution
    if axis.between is None:
        made = known.CategoricalDistribution(list(range(len(axis.values))))
    else:
        kind = known.IntDistribution if isinstance(base.get(axis.name), int) else known.FloatDistribution
        made = kind(axis.between.low, axis.between.high, log=axis.between.log)
    return made


def _started(axes: Sequence[Axis], base: LabConfig) -> list[Any]:
    """What is started from; where the space does not have it, the nearest that it has."""
    return [_nearest(axis.between, axis.values, base.get(axis.name)) for axis in axes]


def _nearest(between: Range | None, values: Sequence[Any], value: Any) -> Any:
    if between:
        return type(value)(min(max(value, between.low), between.high))
    return value if value in values else values[0]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's log and its warnings about features that may change."""
    optuna = _optuna()
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise TaskError(
            "tune: space", "a range without steps", "Optuna, which draws from it",
            "install openclaw-lab[tune], or give steps: Range(low, high, steps=21)",
        ) from None  # fmt: skip
    return optuna
