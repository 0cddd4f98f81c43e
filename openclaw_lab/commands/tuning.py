"""The command that tunes: a task, data, what may vary and what must hold in; the setting, its promise and files out."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from openclaw_lab.commands.arguments import Commands, config_named, count, pairs, positive
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import LabError
from openclaw_lab.files import write_text
from openclaw_lab.knobs import nearest

# What each task is tuned on when nobody names data: what comes with the package.
DATA = {
    "reminders": "sessions/mini",
    "skills": "skills/mini",
    "redaction": "redaction/mini",
    "injection": "injection/mini",
    "extraction": "extraction/mini",
    "retrieval": "retrieval/mini",
}


def add(commands: Commands) -> None:
    """Add it to the command line."""
    tune = commands.add_parser("tune", help="choose the setting that keeps its limits on fresh data; exit 1 when none")
    tune.add_argument("task", metavar="TASK", help=f"{', '.join(DATA)}, or all")
    tune.add_argument("--data", help="a bundled name or a path (default: what comes with the package)")
    tune.add_argument(
        "--vary", action="append", default=[], metavar="SETTING=VALUES",
        help="low:high:steps, low:high (drawn), or a,b,c; again for each setting (default: the task's own)",
    )  # fmt: skip
    wish = tune.add_mutually_exclusive_group()
    wish.add_argument("--maximise", default="", metavar="METRIC", help="default: the task's own, with its limits")
    wish.add_argument("--minimise", default="", metavar="METRIC")
    tune.add_argument(
        "--limit", action="append", default=[], metavar="METRIC=VALUE", help="for example fpr=0.01; again for each"
    )
    tune.add_argument("--confidence", type=float, default=0.95, help="that the limits hold (default: 0.95)")
    tune.add_argument("--config", default="tuned", help="seed, tuned, or a lab-config.json to start from")
    tune.add_argument("--seed", type=count, default=0, help="of the split and of what is drawn (default: 0)")
    tune.add_argument("--trials", type=positive, default=96, help="settings that are drawn where the space is no grid")
    tune.add_argument("--storage", default="", help="database URL or file of a search that several machines share")
    tune.add_argument("--workers", type=positive, default=1, help="processes (default: 1); the result is the same")
    tune.add_argument("--cache", default="auto", metavar="FOLDER", help="where figures are kept, or off")
    tune.add_argument("--table", type=Path, metavar="FILE", help="write every setting that was tried, as CSV")
    tune.add_argument("--out", type=Path, metavar="FOLDER", help="export what was chosen, with the evidence")
    tune.set_defaults(command=_tune)


def _tune(options: argparse.Namespace) -> int:
    from openclaw_lab.experiments.parallel import over
    from openclaw_lab.experiments.tune import tune

    if options.task not in DATA and options.task != "all":
        raise LabError("tune TASK", options.task, "a task", nearest(options.task, [*DATA, "all"]))
    if options.task == "all" and (
        options.data or options.vary or options.limit or options.maximise or options.minimise
    ):
        raise LabError("tune all", "data, settings or metrics of one task", "none", "tune one task at a time")
    config, found = config_named(options.config), []
    limits: dict[str, float] | None = {
        name: _number(f"--limit {name}", value) for name, value in pairs(options.limit, "--limit")
    } or None
    for task in DATA if options.task == "all" else (options.task,):
        with over(options.workers):
            tuned = tune(
                task, options.data or DATA[task], _space(options.vary), maximise=options.maximise,
                minimise=options.minimise, subject_to=limits or None, confidence=options.confidence, config=config,
                seed=options.seed, trials=options.trials, storage=options.storage, cache=options.cache,
            )  # fmt: skip
        print(tuned, end="\n\n", flush=True)
        config = tuned.config  # each task varies settings of its own
        found.append(tuned)
    if options.table:
        write_text(options.table, "\n".join(each.frame.to_csv(index=False) for each in found))
    if options.out:
        from openclaw_lab.exports.openclaw import export

        print(export(config, options.out, evidence=found))
    return 0 if all(each.feasible for each in found) else 1


def _space(texts: list[str]) -> Mapping[str, object] | None:
    knobs = LabConfig.knobs()
    space: dict[str, object] = {}
    for name, text in pairs(texts, "--vary"):
        if name not in knobs:
            raise LabError(f"--vary {name}", expected="a known setting", todo=nearest(name, knobs))
        space[name] = _values(name, text)
    return space or None


def _values(name: str, text: str) -> object:
    from openclaw_lab.experiments.space import Range

    knob = LabConfig.knobs()[name]
    if ":" in text and knob.kind in (int, float):
        low, high, *steps = (_number(f"--vary {name}", part) for part in text.split(":"))
        if len(steps) > 1:
            raise LabError(f"--vary {name}", text, "low:high:steps, low:high, or a,b,c")
        if knob.kind is int and not steps:
            return list(range(int(low), int(high) + 1))
        return Range(low, high, int(steps[0]) if steps else 0)
    parts = text.split(";" if knob.kind is tuple else ",")  # a list of lists: a,b;c
    return [knob.parse(part.strip()) for part in parts]


def _number(where: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise LabError(where, text, "a number") from None
