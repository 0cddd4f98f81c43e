"""Commands about notebooks: start, run."""

from __future__ import annotations

import argparse
from pathlib import Path

from openclaw_lab.commands.arguments import Commands, pairs, positive


def add(commands: Commands) -> None:
    """Add them to the command line."""
    start = commands.add_parser("start", help="open JupyterLab on a working copy of the notebooks")
    start.add_argument(
        "folder", nargs="?", type=Path, default=Path("openclaw-lab"), help="working folder (default: ./openclaw-lab)"
    )
    start.add_argument("--port", type=int, help="port (default: a free one)")
    start.add_argument("--no-browser", action="store_true", help="only print the address")
    start.set_defaults(command=_start)

    run = commands.add_parser("run", help="run notebooks headless; tables, pictures and one HTML report")
    run.add_argument("names", nargs="*", metavar="NAME", help="a notebook's name, its number or a path (default: all)")
    run.add_argument("--out", type=Path, default=Path("openclaw-lab-report"), help="where the results go")
    run.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the notebooks")
    run.add_argument("--timeout", type=positive, default=600, help="seconds a cell may take")
    run.set_defaults(command=_run)


def _start(options: argparse.Namespace) -> int:
    from openclaw_lab.notebook.server import start

    return start(options.folder, port=options.port, browser=not options.no_browser)


def _run(options: argparse.Namespace) -> int:
    from openclaw_lab.notebook.runner import run

    values = {name: _as_path(value) for name, value in pairs(options.set, "--set")}
    report = run(options.names, options.out, parameters=values, timeout=options.timeout)
    print(report)
    return 0 if report.ok else 1


def _as_path(text: str) -> str:
    """A value that names something here, as an absolute path: a notebook runs in another folder."""
    try:
        return str(Path(text).absolute()) if Path(text).exists() else text
    except (OSError, ValueError):
        return text
