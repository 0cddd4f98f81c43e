"""Sessions replayed under a host, as flat columns: what the reminders task computes with.

Runs, prompts and opportunities of all sessions are numbered through. Model calls are numbered through as well, with a
wide gap after each session, so that "within so many calls" never reaches into another one.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.agent.host import HostProfile, host_profile
from openclaw_lab.agent.replay import hook_events
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.metrics import Array
from openclaw_lab.experiments.progress import progress
from openclaw_lab.messages import Opportunity, Session
from openclaw_lab.plugins.builtin.knowhub.plugin import StepReader
from openclaw_lab.plugins.hooks import HookEvent
from openclaw_lab.reminders.opportunities import find_opportunities
from openclaw_lab.reminders.policy import Step

GAP = 1_000_000
_Ints = NDArray[np.intp]


@dataclass(frozen=True)
class Recordings:
    """Columns over runs (`run_…`), prompts that a hook may write to (`prompt_…`) and opportunities (`moment_…`).

    `labelled` and `turns` (user turns, answered or not) are a session's own.
    `steps[s]` are session s's policy steps and `prompts[s]` the prompt that each belongs to (-1: none). `run_share` is
    one session divided among its runs. `prompt_lives` counts the model calls whose prompt still holds a text injected
    there. `moments_known` is how many opportunities had come up by then. `start_hooks` are the prompts at which the
    host's start hook fires, `first_prompts` those that open a session.
    """

    labelled: NDArray[np.bool_]
    turns: _Ints
    steps: Sequence[Sequence[Step]]
    prompts: Sequence[Sequence[int]]
    run_session: _Ints
    run_calls: Array
    run_share: Array
    prompt_session: _Ints
    prompt_run: _Ints
    prompt_call: _Ints
    prompt_turn: _Ints
    prompt_at: _Ints
    prompt_lives: Array
    prompt_chinese: _Ints
    moments_known: _Ints
    moment_session: _Ints
    moment_run: _Ints
    moment_call: _Ints
    moment_turn: _Ints
    moment_at: _Ints
    start_hooks: _Ints
    first_prompts: _Ints
    host: HostProfile

    def starts_of(self, where: str) -> _Ints:
        """The prompts that carry the start text: where the start hook fires (`run`), or the first of each session."""
        return self.start_hooks if where == "run" and self.host.start_hook else self.first_prompts


@dataclass(frozen=True, slots=True)
class _Prompt:
    call: int
    run: int
    turn: int
    at: int
    chinese: bool
    first: bool


@dataclass(frozen=True)
class _Replayed:
    """One session: its steps, prompts, the run of each model call and the calls at which text is dropped."""

    session: Session
    steps: list[Step]
    step_prompts: list[int]
    prompts: list[_Prompt]
    start_hooks: list[int]
    call_runs: list[int]
    call_at: list[int]
    dropped_at: list[int]
    moments: list[tuple[int, Opportunity]]
    turns: int


def record(data: Dataset, host: str, opportunities: str, *, with_tokens: bool) -> Recordings:
    """Replay all sessions; the label kind is `auto`, `rules` or `labels`."""
    profile = host_profile(host)
    sessions: list[Session] = [sample.input for sample in data]
    replayed = [
        _replay(session, profile, _opportunities(session, opportunities), with_tokens)
        for session in progress(sessions, f"replay on {host}", "session")
    ]
    labelled = [opportunities != "rules" and each.opportunities is not None for each in sessions]
    return _columns(replayed, profile, labelled)


def _opportunities(session: Session, kind: str) -> tuple[Opportunity, ...]:
    if kind == "labels" and session.opportunities is None:
        raise TaskError(f"session {session.id}", "no labelled opportunities", "labels", 'use opportunities="auto"')
    if kind == "rules" or session.opportunities is None:
        return find_opportunities(session)
    return session.opportunities


def _replay(session: Session, host: HostProfile, found: Iterable[Opportunity], with_tokens: bool) -> _Replayed:
    reader = StepReader(with_tokens=with_tokens)
    steps: list[Step] = []
    step_prompts: list[int] = []
    prompts: list[_Prompt] = []
    starts: list[int] = []
    dropped: list[int] = []
    first = True
    for event in hook_events(session, host):
        new = reader.read(event)
        steps += new
        step_prompts += [-1] * len(new)
        if event.hook == "before_prompt_build":
            step_prompts[-1] = len(prompts)
            prompts.append(_prompt(event, reader, first))
            first = False
        elif event.hook == "before_agent_start":
            starts.append(len(prompts))
        elif event.hook in ("before_compaction", "session_end"):
            dropped.append(event.call)
            first = first or event.hook == "session_end"
    call_at = [index for index, message in enumerate(session.messages) if message.role == "assistant"]
    runs = _call_runs(session, len(call_at))
    at = np.asarray(call_at)
    moments = sorted(((_answer(each, at), each) for each in found), key=lambda pair: pair[0])
    for message in session.messages[reader.tracker.seen :]:  # what came after the host's last event
        reader.tracker.see(message)
    return _Replayed(
        session, steps, step_prompts, prompts, starts, runs, call_at, dropped, moments if call_at else [],
        reader.tracker.turns,
    )  # fmt: skip


def _prompt(event: HookEvent, reader: StepReader, first: bool) -> _Prompt:
    tracker = reader.tracker
    return _Prompt(event.call - 1, event.run - 1, tracker.turns, event.at, tracker.spoken == "zh", first)


def _call_runs(session: Session, calls: int) -> list[int]:
    """The run of every model call, from the profile that fires a hook at each call."""
    events = hook_events(session, host_profile("seed"))
    runs = [event.run - 1 for event in events if event.hook == "before_prompt_build"]
    assert len(runs) == calls
    return runs


def _answer(opportunity: Opportunity, call_at: _Ints) -> int:
    """The model call that can act on an opportunity: for a closing answer the call that wrote it, else the next one."""
    closing = opportunity.kind == "task_end"
    call = int(np.searchsorted(call_at, opportunity.index, side="left" if closing else "right"))
    return min(call, len(call_at) - 1)


def _columns(replayed: Sequence[_Replayed], host: HostProfile, labelled: list[bool]) -> Recordings:
    runs_of = [max((*each.call_runs, 0)) + 1 for each in replayed]
    run_base = np.concatenate([[0], np.cumsum(runs_of)]).astype(np.intp)
    prompt_base = np.concatenate([[0], np.cumsum([len(each.prompts) for each in replayed])]).astype(np.intp)
    call_base = [number * GAP for number in range(len(replayed))]
    prompts = [(s, p) for s, each in enumerate(replayed) for p in each.prompts]
    moments = [(s, call, m) for s, each in enumerate(replayed) for call, m in each.moments]
    return Recordings(
        labelled=np.array(labelled, dtype=bool),
        turns=_ints(each.turns for each in replayed),
        steps=[each.steps for each in replayed],
        prompts=[[p + int(prompt_base[s]) for p in each.step_prompts] for s, each in enumerate(replayed)],
        run_session=np.repeat(np.arange(len(replayed)), runs_of),
        run_calls=np.concatenate(
            [np.bincount(each.call_runs, minlength=n) for each, n in zip(replayed, runs_of, strict=True)]
        ).astype(float),
        run_share=np.repeat(1 / np.array(runs_of), runs_of),
        prompt_session=_ints(s for s, _ in prompts),
        prompt_run=_ints(run_base[s] + p.run for s, p in prompts),
        prompt_call=_ints(call_base[s] + p.call for s, p in prompts),
        prompt_turn=_ints(p.turn for _, p in prompts),
        prompt_at=_ints(p.at for _, p in prompts),
        prompt_lives=np.concatenate([_lives(each, host) for each in replayed]).astype(float),
        prompt_chinese=_ints(p.chinese for _, p in prompts),
        moments_known=np.concatenate([_known(each) for each in replayed]).astype(np.intp),
        moment_session=_ints(s for s, _, _ in moments),
        moment_run=_ints(run_base[s] + replayed[s].call_runs[call] for s, call, _ in moments),
        moment_call=_ints(call_base[s] + call for s, call, _ in moments),
        moment_turn=np.concatenate([_turns(each) for each in replayed]).astype(np.intp),
        moment_at=_ints(m.index for _, _, m in moments),
        start_hooks=_ints(p + prompt_base[s] for s, each in enumerate(replayed) for p in each.start_hooks),
        first_prompts=_ints(index for index, (_, p) in enumerate(prompts) if p.first),
        host=host,
    )


def _ints(values: Iterable[int]) -> _Ints:
    return np.fromiter(values, dtype=np.intp)


def _known(each: _Replayed) -> _Ints:
    """How many opportunities had come up when each prompt was built."""
    shown = sorted(m.index for _, m in each.moments)
    return np.searchsorted(shown, [p.at for p in each.prompts], side="left")


def _turns(each: _Replayed) -> _Ints:
    """The user turn of the model call that answers each opportunity."""
    turns = np.array([0, *(p.turn for p in each.prompts)])
    calls = [call for call, _ in each.moments]
    return turns[np.searchsorted([p.call for p in each.prompts], calls, side="right")] if calls else np.empty(0, int)


def _lives(each: _Replayed, host: HostProfile) -> list[int]:
    """For each prompt, the model calls whose prompt holds a text injected there. A compaction is taken to drop it."""
    if host.text_lives == "call":
        return [1] * len(each.prompts)
    ends = [*each.dropped_at, len(each.call_runs)]
    dropped = [ends[bisect.bisect_right(each.dropped_at, p.call)] for p in each.prompts]
    if host.text_lives == "turn":
        run_end = {run: call + 1 for call, run in enumerate(each.call_runs)}
        dropped = [min(end, run_end[p.run]) for end, p in zip(dropped, each.prompts, strict=True)]
    return [end - p.call for end, p in zip(dropped, each.prompts, strict=True)]
