"""The live task: agent tasks in; what an agent does under a reminder setting out: searches, saves, success, cost.

With a model this is what it did. Without one the simulated agent stands in, and every figure is marked `simulated`: its
interval is over the tasks, for one assumed behaviour.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from openclaw_lab.agent.agent import Agent
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.agent_tasks import AgentTask
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.live import Outcome, PerTask, SimulatedAgent, run_task
from openclaw_lab.experiments.metrics import Measured, MetricSpec
from openclaw_lab.experiments.progress import progress
from openclaw_lab.experiments.rows import asked_rows, given_options, live_options
from openclaw_lab.experiments.task import Task
from openclaw_lab.models import PREFIX
from openclaw_lab.reminders.behaviour import Behaviour
from openclaw_lab.spending import LIMITS, Bill, Limits, Spending, summed

if TYPE_CHECKING:
    import pandas as pd

_SIMULATED = "simulated"
# Counts of an Outcome, as the tables call them.
_COLUMNS = {"right": "right_saves", "worth": "worth_saving", "needless": "needless_saves"}


@dataclass(frozen=True, slots=True)
class Prepared:
    """What came of every task, and what asking a live model took for each."""

    outcomes: tuple[Outcome, ...]
    bills: tuple[Bill, ...] = ()


class LiveTask(Task):
    """`model`: `simulated`, or what Agent takes (`litellm:provider/model`, a callable), which is then asked for every
    turn of every task. `options` go to the Agent (`cassette`, `cassette_only`, `max_steps`, …), or as its
    `model_options` to litellm (`api_base`, `max_tokens`, …). `budget`, `price`, `concurrency` and `per_minute` hold for
    all that the task asks; a model that is not litellm's takes `concurrency` only (1 by default).
    """

    name = "live"
    format = "agent_tasks"
    section = "reminders"
    headline = ("right_saves", "searched", "solved")
    columns = ("reminders", "searches", "saves", "right_saves", "needless_saves", "solved", "tokens")
    metrics = (
        MetricSpec("reminders", "reminders", "tasks", "reminders that came in a task", "a task", proportion=False),
        MetricSpec("searches", "searches", "tasks", "kb_search calls in a task", "a task", proportion=False),
        MetricSpec("saves", "saves", "tasks", "kb_save calls in a task", "a task", proportion=False),
        MetricSpec("searched", "searched", "tasks", "share of tasks in which kb_search was called", better="higher"),
        MetricSpec(
            "right_saves", "right", "worth", "share of what is worth saving that was saved", better="higher"
        ),
        MetricSpec(
            "needless_saves", "needless", "tasks", "kb_save calls in a task that say nothing new", "a task",
            better="lower", proportion=False,
        ),
        MetricSpec("solved", "solved", "tasks", "share of tasks whose answer says what it had to", better="higher"),
        MetricSpec("tokens", "tokens", "tasks", "of all its model calls", "tokens", better="lower", proportion=False),
        MetricSpec(
            "reminder_tokens", "reminder_tokens", "tasks", "of them, what reminders put in, in each call that has it",
            "tokens", better="lower", proportion=False,
        ),
        MetricSpec("cost", "cost", "priced", "price of a task, if known", "$", better="lower", proportion=False),
    )  # fmt: skip

    def __init__(
        self, model: object = _SIMULATED, behaviour: Behaviour | Mapping[str, float] | None = None, **options: Any
    ) -> None:
        if behaviour is not None and model != _SIMULATED:
            raise TaskError("task live: behaviour", model, "the simulated model", "leave one of them out")
        self.model = model
        self.behaviour = Behaviour(**behaviour) if isinstance(behaviour, Mapping) else behaviour or Behaviour()
        self._live = isinstance(model, str) and model.startswith(PREFIX)
        self._options, self._spending = self._sorted(options)

    def _sorted(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], Spending]:
        """What is for the Agent, and the account of all that is asked."""
        known = inspect.signature(Agent).parameters
        own = {name: value for name, value in options.items() if name in known and name != "model_options"}
        for_model = {name: value for name, value in options.items() if name not in known}
        for_model |= options.get("model_options") or {}
        if self._live:
            made = live_options({"cassette": own.pop("cassette", None), **for_model})
            return {**own, "model_options": made}, made["spending"]
        for_model = given_options(for_model)
        limits = {name: for_model.pop(name) for name in LIMITS if name in for_model}
        if odd := [*for_model, *(name for name in limits if name != "concurrency")]:
            raise TaskError("task live", f"the options {', '.join(odd)}", "those of a model litellm:<model> only")
        return own, Spending(Limits(**{"concurrency": 1, **limits}))

    @property
    def simulated(self) -> bool:
        """Whether the simulated agent stands in for a model."""
        return isinstance(self.model, str) and self.model == _SIMULATED

    def options(self) -> dict[str, Any]:
        """The model by its name, and a behaviour other than the default."""
        name = self.model if isinstance(self.model, str) else getattr(self.model, "__qualname__", "a callable")
        own = {} if self.behaviour == Behaviour() else {"behaviour": dataclasses.asdict(self.behaviour)}
        return {"model": name, **own}

    def prepared_by(self, config: LabConfig) -> Hashable:
        """The agents run anew for every setting of the reminders."""
        return config.reminders

    def asks(self, config: LabConfig) -> bool:
        """Whether the agents run on a live model."""
        return self._live

    def bill(self, prepared: Prepared) -> Bill:
        """The sum over all tasks."""
        return summed(prepared.bills)

    def prepare(self, data: Dataset, config: LabConfig) -> Prepared:
        """Run every task."""
        model: object = self.model
        if self.simulated:
            model = PerTask(lambda task_id, task: SimulatedAgent(task_id, task, self.behaviour))

        def run(sample: Sample) -> Outcome:
            return run_task(sample.id, _task(sample.label), config, model, **self._options)

        label = f"live {self.options()['model']}"
        if self._spending.limits.concurrency == 1 and not self._live:  # it may need the thread of its maker
            return Prepared(tuple(run(each) for each in progress(list(data), label, "task")))
        rows = asked_rows(run, list(data), self._spending, label, "task")
        outcomes = tuple(dataclasses.replace(outcome, seconds=bill.seconds) for outcome, bill in rows)
        return Prepared(outcomes, tuple(bill for _, bill in rows))

    def measure(self, prepared: Prepared, config: LabConfig) -> Measured:
        """One unit a task; a task that failed for want of an answer is not counted."""
        outcomes = prepared.outcomes
        good = np.array([not each.error for each in outcomes], dtype=bool)
        names = ("reminders", "searches", "saves", "right", "needless", "solved", "tokens", "reminder_tokens")
        tallies = {name: np.array([float(getattr(each, name)) for each in outcomes])[good] for name in names}
        kept = [each for each in outcomes if not each.error]
        tallies["searched"] = np.minimum(tallies["searches"], 1.0)
        tallies["tasks"] = np.ones(len(kept))
        tallies["worth"] = np.array([float(each.worth) for each in kept])
        tallies["priced"] = np.array([float(each.cost is not None) for each in kept])
        tallies["cost"] = np.array([each.cost or 0.0 for each in kept])
        kinds = {spec.name: "simulated" for spec in self.metrics} if self.simulated else {}
        return Measured(tallies, np.flatnonzero(good), kinds)  # type: ignore[arg-type]

    def rows(self, data: Dataset, prepared: Prepared, config: LabConfig) -> pd.DataFrame:
        """A row a task: what was done, what came of it, the reason of what went wrong.

        `worth_saving`: things that a good agent saves; `right_saves`: how many of them were saved; `error`: why a task
        has no result.
        """
        import pandas as pd

        frame = pd.DataFrame([dataclasses.asdict(each) for each in prepared.outcomes]).rename(columns=_COLUMNS)
        for at, name in enumerate(("id", "lang", "kind")):
            frame.insert(at, name, [getattr(sample, name) for sample in data])
        said = (frame["right_saves"] == frame["worth_saving"]) & (frame["needless_saves"] == 0)
        frame["correct"] = said & frame["solved"]
        return frame

    def errors(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Tasks with something unsaved, saved needlessly or unsolved, worst first."""
        wrong = frame[~frame["correct"]].copy()
        misses = wrong["worth_saving"] - wrong["right_saves"] + wrong["needless_saves"] + ~wrong["solved"]
        return wrong.loc[misses.sort_values(ascending=False, kind="stable").index]


def _task(label: object) -> AgentTask:
    if not isinstance(label, AgentTask):
        raise TaskError("task live", f"a {type(label).__name__}", "rows of agent tasks")
    return label
