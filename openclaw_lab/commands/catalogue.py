"""Commands about data: data list, show, preview, fetch."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openclaw_lab.commands.aligned import aligned
from openclaw_lab.commands.arguments import Commands, Parser, count, pairs

_FOLDER = "OPENCLAW_LAB_DATA"
_PATTERNS = ("injection/*.json*", "redaction/*.json*", "extraction/*.json*", "sessions/*.json*", "*/*_queries.*",
             "*/queries_*")  # fmt: skip
_HEAD = ("name", "task", "language", "rows", "licence", "how to get it")


def add(commands: Commands) -> None:
    """Add them to the command line."""
    data = commands.add_parser("data", help="what data there is, what is in it, and how to get more")
    actions = data.add_subparsers(required=True, metavar="ACTION", parser_class=Parser)
    listing = actions.add_parser("list", help=f"bundled datasets, those under ${_FOLDER}, and known public ones")
    listing.add_argument("--json", action="store_true", help="everything that is known, as JSON")
    listing.set_defaults(command=_data_list)
    show = actions.add_parser("show", help="counts and first rows of a dataset, or what is known of a public one")
    show.add_argument("source", help="a bundled name, a path, hf:owner/name, or a name of the list")
    show.add_argument("--rows", type=count, default=5, help="rows to show")
    show.add_argument("--skip-bad", action="store_true", help="leave bad rows out and count them")
    _mapping(show)
    show.set_defaults(command=_data_show)
    preview = actions.add_parser("preview", help="which columns a file has, and how to load it")
    preview.add_argument("source", help="a path or hf:owner/name")
    preview.add_argument("--encoding", default="", help="of a text file that is not UTF-8, for example gb18030")
    preview.add_argument("--mirror", default="", help="a folder that holds owner/name, or the address of a hub")
    preview.set_defaults(command=_data_preview)
    fetch = actions.add_parser("fetch", help="get a public data set from the Hugging Face Hub")
    fetch.add_argument("name", help="a name of the list, or hf:owner/name")
    fetch.add_argument("--to", type=Path, default=Path(), metavar="FOLDER", help="where it goes (default: here)")
    fetch.add_argument("--replace", action="store_true", help="write over a file that is there")
    _mapping(fetch, encoding=False)
    fetch.set_defaults(command=_data_fetch)


def _mapping(parser: argparse.ArgumentParser, *, encoding: bool = True) -> None:
    parser.add_argument("--column", action="append", default=[], metavar="FIELD=COLUMN", help="for example text=prompt")
    parser.add_argument("--label", action="append", default=[], metavar="VALUE=LABEL", help="for example jailbreak=1")
    parser.add_argument("--mirror", default="", help="a folder that holds owner/name, or the address of a hub")
    if encoding:
        parser.add_argument("--encoding", default="", help="of a text file that is not UTF-8, for example gb18030")


def _said(options: argparse.Namespace) -> dict[str, Any]:
    """The columns and labels that were named; a number is one, and so is `none`."""
    labels: dict[str, object] = {
        value: {"0": 0, "1": 1, "none": None}.get(label.lower(), label)
        for value, label in pairs(options.label, "--label")
    }
    columns: dict[str, object] = {
        name: int(column) if column in ("0", "1") and name == "label" else column
        for name, column in pairs(options.column, "--column")
    }
    return {"columns": columns or None, "labels": labels or None, "mirror": options.mirror}


# --- list ---------------------------------------------------------------------------------------------------------


def _data_list(options: argparse.Namespace) -> int:
    bundled, here, public = _bundled(), _here(), _public()
    if options.json:
        print(json.dumps({"bundled": bundled, "here": here, "public": public}, ensure_ascii=False, indent=1))
        return 0
    sections = [("bundled", bundled), (f"${_FOLDER}", here), ("public, not here", public)]
    lines = [_HEAD, *(row for _, rows in sections for row in map(_cells, rows))]
    head, *shown = aligned(lines)
    print(head)
    for title, rows in sections:
        if rows:
            print(f"\n{title}")
            for _ in rows:
                print(shown.pop(0))
    print("\nopenclaw-lab data show NAME says more; data fetch NAME gets one of those with hf:")
    return 0


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    rows = f"{row['rows']:,}" if isinstance(row["rows"], int) else str(row["rows"] or "–")
    return (row["name"], row["task"], row["languages"] or "–", rows, row["licence"] or "–", row["get"] or row["where"])


def _bundled() -> list[dict[str, Any]]:
    from openclaw_lab.experiments.dataset import bundled_names, bundled_path

    found = []
    for name in bundled_names():
        path, task = bundled_path(name), name.partition("/")[0]
        with path.open("rb") as file:
            rows = sum(1 for line in file if line.strip())
        about = {"name": name, "task": task, "languages": "en zh", "rows": rows, "licence": "MIT"}
        found.append({**about, "where": str(path), "get": name})
    return found


def _here() -> list[dict[str, Any]]:
    """The files of the folder that the environment names."""
    more = os.environ.get(_FOLDER)
    if not more:
        return []
    root = Path(more)
    paths = dict.fromkeys(path for pattern in _PATTERNS for path in sorted(root.glob(pattern)))
    return [{"name": _short(path), "task": path.parent.name, "languages": "", "rows": "", "licence": "",
             "where": str(path), "get": str(path)} for path in paths]  # fmt: skip


def _short(path: Path) -> str:
    stem = path.name.removesuffix(".gz").rpartition(".")[0]
    return f"{path.parent.name}/{stem.removesuffix('_queries').removeprefix('queries_')}"


def _public() -> list[dict[str, Any]]:
    from openclaw_lab.experiments.catalogue import catalogue

    return [each.to_dict() for each in catalogue()]


# --- show, preview, fetch -----------------------------------------------------------------------------------------


def _data_show(options: argparse.Namespace) -> int:
    from openclaw_lab.experiments.catalogue import catalogue
    from openclaw_lab.experiments.dataset import load_dataset

    entry = next((each for each in catalogue() if each.name == options.source), None)
    if entry is not None and not Path(options.source).exists():
        return _about(entry.to_dict())
    skip = "skip" if options.skip_bad else "raise"
    said = {"on_error": skip, "encoding": options.encoding, **_said(options)}
    data = load_dataset(options.source, **said)
    print(data)
    for line in data.summary():
        print(line)
    for sample in data[: options.rows]:
        print(f"- {sample.id}: {data.excerpt(sample)}")
    return 0


def _about(entry: Mapping[str, Any]) -> int:
    names: Sequence[tuple[str, str]] = (
        ("name", "name"), ("task", "task"), ("language", "languages"), ("rows", "rows"), ("licence", "licence"),
        ("page", "where"), ("load", "call"), ("made of it", "also"), ("beware", "note"), ("注意", "note_zh"),
    )  # fmt: skip
    for line in aligned([(title, str(entry[name])) for title, name in names if entry[name]]):
        print(line)
    return 0


def _data_preview(options: argparse.Namespace) -> int:
    from openclaw_lab.experiments.preview import preview

    print(preview(options.source, encoding=options.encoding, mirror=options.mirror))
    return 0


def _data_fetch(options: argparse.Namespace) -> int:
    from openclaw_lab.experiments.catalogue import fetch
    from openclaw_lab.experiments.dataset import load_dataset

    path = fetch(options.name, options.to, replace=options.replace, **_said(options))
    print(load_dataset(path))
    print(f"{path}; where it is from and its licence: {path.stem}.about.json")
    return 0
