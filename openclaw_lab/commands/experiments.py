"""Commands about experiments: export, gate, bench."""

from __future__ import annotations

import argparse
from pathlib import Path

from openclaw_lab.commands.arguments import Commands, changes, config_named, pairs


def add(commands: Commands) -> None:
    """Add them to the command line."""
    export = commands.add_parser("export", help="write a config for OpenClaw, with evidence")
    export.add_argument("folder", type=Path, help="a new folder, or one that export wrote")
    export.add_argument("--config", default="tuned", help="seed, tuned, or a lab-config.json (default: tuned)")
    export.add_argument(
        "--set", action="append", default=[], metavar="SETTING=VALUE", help="for example reminders.interval=4"
    )
    export.add_argument(
        "--evidence",
        action="append",
        default=[],
        metavar="TASK=DATA",
        help="measure and attach, for example injection=injection/mini",
    )
    export.set_defaults(command=_export)

    gate = commands.add_parser("gate", help="exit 1 when a metric is significantly worse than recorded")
    gate.add_argument("file", type=Path, metavar="FILE", help="the evidence.json of an export")
    gate.add_argument("--data", help="where the recorded data is now")
    gate.add_argument("--config", help="other settings than the recorded ones: seed, tuned, or a lab-config.json")
    gate.add_argument("--summary", type=Path, metavar="FILE", help="append a summary in Markdown, for a pull request")
    gate.set_defaults(command=_gate)

    bench = commands.add_parser("bench", help="what the costly parts cost on this machine")
    bench.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="import, reminders, injection, redaction, knowhub, skills, agent (all when none)",
    )
    bench.add_argument("--data", default="", help="sessions to measure on (default: the bundled ones)")
    bench.set_defaults(command=_bench)


def _export(options: argparse.Namespace) -> int:
    from openclaw_lab.experiments.evaluate import evaluate
    from openclaw_lab.exports.openclaw import export

    config = config_named(options.config).with_(changes(options.set))
    measured = [evaluate(task, data, config) for task, data in pairs(options.evidence, "--evidence")]
    print(export(config, options.folder, evidence=measured))
    return 0


def _gate(options: argparse.Namespace) -> int:
    from openclaw_lab.experiments.gate import gate

    checks = gate(options.file, data=options.data, config=config_named(options.config) if options.config else None)
    for check in checks:
        print(check)
    if options.summary:
        with options.summary.open("a", encoding="utf-8") as file:  # a CI collects those of several steps in one file
            file.write(checks.markdown)
    return 0 if checks.ok else 1


def _bench(options: argparse.Namespace) -> int:
    from openclaw_lab.bench import bench

    for cost in bench(options.names, options.data):
        print(cost)
    return 0
