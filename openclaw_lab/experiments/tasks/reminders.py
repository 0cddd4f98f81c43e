"""The reminders task: recorded sessions in; how often each policy reminds, what that costs and what it covers out.

Facts come from replaying the sessions under a host profile. An opportunity counts as covered when a reminder was
injected within `window` model calls up to and including the call that answers it; as late when the first one came
fewer than `window` calls after that. `p_save` is the outcome of the behaviour model, not a fact.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.metrics import Array, Kind, Measured, MetricSpec, summed
from openclaw_lab.experiments.task import Task
from openclaw_lab.experiments.tasks.recordings import GAP, Recordings, record
from openclaw_lab.plugins.builtin.knowhub.plugin import starts
from openclaw_lab.reminders.behaviour import BAND, Behaviour
from openclaw_lab.reminders.policy import ReminderPolicy
from openclaw_lab.reminders.texts import TextKind, joined
from openclaw_lab.text import Language, count_tokens

if TYPE_CHECKING:
    import pandas as pd

Labels = Literal["auto", "rules", "labels"]
_LANGUAGES: tuple[Language, Language] = ("en", "zh")
_Index = NDArray[np.intp]
_BAND = tuple(f"p_save_{number}" for number in range(len(BAND)))


class RemindersTask(Task):
    """`window`: model calls within which a reminder serves an opportunity. `opportunities`: where the moments worth
    remembering come from: a person's labels where a session has them and the rules elsewhere (auto), or only one kind.
    """

    name = "reminders"
    format = "sessions"
    section = "reminders"
    reads = ("reminders",)
    headline = ("coverage", "late", "precision", "repeats")
    goal = ("coverage", {"per_100_calls": 25.0})
    columns = ("reminders", "tokens", "paid_tokens", "coverage", "reached", "precision")
    metrics = (
        MetricSpec("reminders", "reminders", "sessions", "reminders in a session", "a session", proportion=False),
        MetricSpec(
            "per_100_calls", "reminders", "calls", "reminders in 100 model calls", "/100 calls", 100.0, proportion=False
        ),
        MetricSpec(
            "tokens", "tokens", "sessions", "tokens injected in a session, start text included", "tokens",
            better="lower", proportion=False,
        ),
        MetricSpec(
            "paid_tokens", "paid_tokens", "sessions", "the same with every re-sending the host makes of them", "tokens",
            better="lower", proportion=False,
        ),
        MetricSpec("coverage", "covered", "opportunities", "opportunities reminded of in time", better="higher"),
        MetricSpec("late", "late", "opportunities", "opportunities first reminded of soon after"),
        MetricSpec("reached", "reached", "opportunities", "opportunities covered or late", better="higher"),
        MetricSpec("precision", "useful", "reminders", "reminders near an opportunity", better="higher"),
        MetricSpec("repeats", "repeats", "reminders", "reminders with nothing new since the last", better="lower"),
        MetricSpec(
            "p_save", "p_save", "opportunities", "chance that an opportunity is saved, by the behaviour model",
            better="higher", band=("p_save", *_BAND),
        ),
    )  # fmt: skip

    def __init__(
        self,
        window: int = 3,
        opportunities: Labels = "auto",
        behaviour: Behaviour | Mapping[str, float] | None = None,
    ) -> None:
        if not hasattr(window, "__index__") or isinstance(window, bool) or window < 1:
            raise TaskError("task reminders: window", repr(window), "a whole number of model calls, at least 1")
        if opportunities not in ("auto", "rules", "labels"):
            raise TaskError("task reminders: opportunities", repr(opportunities), "auto, rules or labels")
        self.window, self.opportunities = operator.index(window), opportunities
        self.behaviour = Behaviour(**behaviour) if isinstance(behaviour, Mapping) else behaviour or Behaviour()
        self._behaviours = (self.behaviour, *BAND)

    def options(self) -> dict[str, Any]:
        """The window, where the opportunities come from, and a behaviour model other than the default."""
        own = {} if self.behaviour == Behaviour() else {"behaviour": dataclasses.asdict(self.behaviour)}
        return {"window": self.window, "opportunities": self.opportunities, **own}

    def prepared_by(self, config: LabConfig) -> Hashable:
        """The replay depends on the host; tokens are counted only for the policy that reads them."""
        return config.reminders.host, config.reminders.policy == "token_gap"

    def prepare(self, data: Dataset, config: LabConfig) -> Recordings:
        """Replay every session under the host."""
        return record(
            data, config.reminders.host, self.opportunities, with_tokens=config.reminders.policy == "token_gap"
        )

    def measure(self, prepared: Recordings, config: LabConfig) -> Measured:
        """Run the policy over every session; the units are the runs."""
        reminded, started = self.decide(prepared, config)
        tallies = self._tallies(prepared, config, reminded, started)
        return Measured(tallies, prepared.run_session, _kinds(prepared, config))

    def decide(self, prepared: Recordings, config: LabConfig) -> tuple[_Index, _Index]:
        """The prompts that carry a reminder, and those that carry the start text (as indexes into the prompts)."""
        settings = config.reminders
        if settings.policy == "off":
            nothing = np.empty(0, dtype=np.intp)
            return nothing, nothing
        reminded: list[int] = []
        for steps, prompts in zip(prepared.steps, prepared.prompts, strict=True):
            policy = ReminderPolicy(settings)
            answers = [policy.step(step) for step in steps]
            reminded += [prompt for answer, prompt in zip(answers, prompts, strict=True) if answer]
        where = prepared.starts_of(settings.start) if starts(settings) else np.empty(0, dtype=np.intp)
        return np.array(reminded, dtype=np.intp), where

    def _tallies(self, prepared: Recordings, config: LabConfig, reminded: _Index, started: _Index) -> dict[str, Array]:
        runs = len(prepared.run_session)
        moments = _moments(prepared, reminded, self.window)
        by_run = {
            name: summed(prepared.prompt_run[reminded], values, runs)
            for name, values in {
                "reminders": np.ones(len(reminded)), "useful": moments["useful"], "repeats": moments["repeat"],
            }.items()
        }  # fmt: skip
        chances = _chances(prepared, reminded, moments, self._behaviours)
        for name, values in {
            "opportunities": np.ones(len(prepared.moment_run)), "covered": moments["covered"], "late": moments["late"],
            "reached": moments["covered"] | moments["late"],
            **dict(zip(("p_save", *_BAND), chances, strict=True)),
        }.items():  # fmt: skip
            by_run[name] = summed(prepared.moment_run, values, runs)
        injected, paid = _tokens(prepared, config, reminded, started)
        return {
            **by_run, "calls": prepared.run_calls, "sessions": prepared.run_share,
            "tokens": injected, "paid_tokens": paid,
        }  # fmt: skip

    def rows(self, data: Dataset, prepared: Recordings, config: LabConfig) -> pd.DataFrame:
        """A row a session: turns, calls, opportunities (and whether a person labelled them), what each metric counts,
        `reminded_at` and `missed` as message indexes.
        """
        import pandas as pd

        reminded, started = self.decide(prepared, config)
        tallies = self._tallies(prepared, config, reminded, started)
        sums = {
            name: summed(prepared.run_session, values, len(data))
            for name, values in tallies.items()
            if name not in ("sessions", *_BAND)
        }
        frame = pd.DataFrame(
            {
                "id": [s.id for s in data],
                "dataset": [s.dataset for s in data],
                "lang": [s.lang for s in data],
                "turns": prepared.turns,
            }
        )
        whole = {
            "calls",
            "reminders",
            "useful",
            "repeats",
            "opportunities",
            "covered",
            "late",
            "reached",
            "tokens",
            "paid_tokens",
        }
        for name, values in sums.items():
            frame[name] = values.round().astype(int) if name in whole else values
        frame["labelled"] = prepared.labelled
        frame["reminded_at"] = _grouped(prepared.prompt_at[reminded], prepared.prompt_session[reminded], len(data))
        missed = ~_moments(prepared, reminded, self.window)["covered"]
        frame["missed"] = _grouped(prepared.moment_at[missed], prepared.moment_session[missed], len(data))
        frame["correct"] = frame["covered"] == frame["opportunities"]
        return frame

    def errors(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Sessions with missed opportunities, most first; `missed` names the messages."""
        wrong = frame[~frame["correct"]].copy()
        misses = wrong["opportunities"] - wrong["covered"]
        wrong.insert(3, "misses", misses)
        return wrong.loc[misses.sort_values(ascending=False, kind="stable").index]


def _kinds(prepared: Recordings, config: LabConfig) -> dict[str, Kind]:
    """What the figures about opportunities rest on, unless a person labelled every session that has some.

    The event policy reminds by the very rules that find the opportunities: judged by them it cannot but look good.
    """
    if prepared.labelled[prepared.moment_session].all():
        return {}
    kind: Kind = "circular" if config.reminders.policy == "event" else "rules"
    return dict.fromkeys(("coverage", "late", "reached", "precision", "repeats"), kind)


def _grouped(values: _Index, owner: _Index, count: int) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in range(count)]
    for value, index in zip(values.tolist(), owner.tolist(), strict=True):
        groups[index].append(value)
    return groups


def _moments(prepared: Recordings, reminded: _Index, window: int) -> dict[str, NDArray[np.bool_]]:
    """Per opportunity: covered, late. Per reminder: useful (an opportunity within the window on either side), repeat.

    Calls of different sessions are numbered so far apart that no window reaches across (see Recordings).
    """
    at, answers = prepared.prompt_call[reminded], prepared.moment_call
    window = min(window, GAP // 2)
    latest = np.searchsorted(at, answers, side="right") - 1
    padded = np.concatenate([at, [np.iinfo(np.int64).max // 2]])
    covered = (latest >= 0) & (answers - padded[latest] < window)
    late = ~covered & (padded[latest + 1] - answers < window)
    near = np.searchsorted(answers, at - window, side="right")
    last_near = np.searchsorted(answers, at + window, side="left")
    return {"covered": covered, "late": late, "useful": last_near > near, "repeat": _repeats(prepared, reminded)}


def _repeats(prepared: Recordings, reminded: _Index) -> NDArray[np.bool_]:
    """Reminders for which no opportunity has come up since the reminder before in the same session."""
    if not len(reminded):
        return np.empty(0, dtype=bool)
    known = prepared.moments_known[reminded]
    same = np.diff(prepared.prompt_session[reminded], prepend=-1) == 0
    return np.asarray(same & (np.diff(known, prepend=-1) == 0))


def _chances(
    prepared: Recordings,
    reminded: _Index,
    moments: dict[str, NDArray[np.bool_]],
    behaviours: tuple[Behaviour, ...],
) -> list[Array]:
    """p(save) of every opportunity under each behaviour."""
    at = prepared.prompt_call[reminded]
    latest = np.searchsorted(at, prepared.moment_call, side="right") - 1
    index = np.maximum(latest, 0)
    if not len(reminded):
        never = np.full(len(prepared.moment_call), np.inf)
        nothing = np.zeros_like(never)
        return [each.p_save(never, nothing, nothing) for each in behaviours]
    seen = (latest >= 0) & (prepared.prompt_session[reminded][index] == prepared.moment_session)
    gap = np.where(seen, prepared.moment_turn - prepared.prompt_turn[reminded][index], np.inf).astype(float)
    first_of_run = np.searchsorted(prepared.prompt_run[reminded], prepared.moment_run, side="left")
    extra = np.where(seen, np.maximum(latest - first_of_run, 0), 0).astype(float)
    first_of_session = np.searchsorted(prepared.prompt_session[reminded], prepared.moment_session, side="left")
    total = np.concatenate([[0], np.cumsum(moments["repeat"])])
    count = np.maximum(latest + 1 - first_of_session, 1)
    repeats = np.where(seen, (total[index + 1] - total[np.minimum(first_of_session, index)]) / count, 0.0)
    return [each.p_save(gap, extra, repeats) for each in behaviours]


def _tokens(prepared: Recordings, config: LabConfig, reminded: _Index, started: _Index) -> tuple[Array, Array]:
    """Tokens injected in each run, and tokens paid for with every call in whose prompt the text still is."""
    runs = len(prepared.run_session)
    injected, paid = np.zeros(runs), np.zeros(runs)
    # A host without a start hook puts both into the prompt as one text.
    both = np.intersect1d(reminded, started) if not prepared.host.start_hook else reminded[:0]
    injections: dict[tuple[TextKind, ...], _Index] = {
        ("reminder",): np.setdiff1d(reminded, both),
        ("start",): np.setdiff1d(started, both),
        ("start", "reminder"): both,
    }
    for kinds, prompts in injections.items():
        if not len(prompts):
            continue
        in_english, in_chinese = (float(count_tokens(joined(kinds, config.reminders, each))) for each in _LANGUAGES)
        lengths = np.where(prepared.prompt_chinese[prompts], in_chinese, in_english)
        injected += summed(prepared.prompt_run[prompts], lengths, runs)
        paid += summed(prepared.prompt_run[prompts], lengths * prepared.prompt_lives[prompts], runs)
    return injected, paid
