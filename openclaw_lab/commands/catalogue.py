"""Commands about data: data list, data show."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from openclaw_lab.commands.arguments import Commands, Parser, count


def add(commands: Commands) -> None:
    """Add them to the command line."""
    data = commands.add_parser("data", help="what data there is and what is in it")
    actions = data.add_subparsers(required=True, metavar="ACTION", parser_class=Parser)
    listing = actions.add_parser("list", help="bundled datasets, and those under $OPENCLAW_LAB_DATA")
    listing.set_defaults(command=_data_list)
    show = actions.add_parser("show", help="counts and first rows of a dataset")
    show.add_argument("source", help="a bundled name or a path")
    show.add_argument("--rows", type=count, default=5, help="rows to show")
    show.add_argument("--skip-bad", action="store_true", help="leave bad rows out and count them")
    show.set_defaults(command=_data_show)


def _data_list(_: argparse.Namespace) -> int:
    from openclaw_lab.experiments.dataset import bundled_names

    for name in bundled_names():
        print(name)
    more = os.environ.get("OPENCLAW_LAB_DATA")
    if more:
        root = Path(more)
        for pattern in ("injection/*.json*", "redaction/*.json*", "sessions/*.json*", "*/*_queries.*", "*/queries_*"):
            for path in sorted(root.glob(pattern)):
                print(path)
    return 0


def _data_show(options: argparse.Namespace) -> int:
    from openclaw_lab.experiments.dataset import load_dataset

    data = load_dataset(options.source, on_error="skip" if options.skip_bad else "raise")
    print(data)
    for line in data.summary():
        print(line)
    for sample in data[: options.rows]:
        print(f"- {sample.id}: {data.excerpt(sample)}")
    return 0
