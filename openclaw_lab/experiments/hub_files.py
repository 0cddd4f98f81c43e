"""The files of a data repository in, those to read out, with their split: by the card's `configs`, else by their names.

Knows nothing of networks or folders: names only.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.knobs import nearest

# Kinds of files that are read, the most preferred first.
KINDS = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv", ".json")
_PACKED = tuple(f"{kind}.gz" for kind in KINDS if kind != ".parquet")
_NOT_ROWS = {"dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json", "config.json",
             "package.json", "croissant.json", "metadata.json"}  # fmt: skip
_SPLITS = {"train": "train", "training": "train", "test": "test", "testing": "test", "eval": "test",
           "evaluation": "test", "validation": "validation", "valid": "validation", "val": "validation",
           "dev": "validation"}  # fmt: skip
_WORD = re.compile(r"[a-z]+")
_SHARD = re.compile(r"[-_.]?\d{4,5}(-of-\d{4,5})?(-[0-9a-f]{8,})?$")
_ANYWHERE = ("data", "default", "")


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository, by its name there."""

    name: str
    config: str
    split: str


def is_rows(name: str) -> bool:
    """Whether a file is one that rows are read from."""
    path = PurePosixPath(name)
    hidden = any(part.startswith(".") for part in path.parts)
    return name.lower().endswith((*KINDS, *_PACKED)) and path.name not in _NOT_ROWS and not hidden


def chosen(where: str, names: Iterable[str], card: Mapping[str, Any], wanted: str) -> list[HubFile]:
    """The files to read: of one config, of one kind, of the split that is wanted or of all.

    `wanted` is `config`, `split` or `config/split`; empty where nobody said. Raises DataError with what there is.
    """
    every = list(names)
    files = _by_card(every, card.get("configs")) or _by_name(every)
    if not files:
        found = "an archive of the library datasets (.arrow)" if any(".arrow" in each for each in every) else None
        todo = "" if "@" in where else f"try {where}@refs/convert/parquet, which the Hub makes of most repositories"
        raise DataError(where, found or "no data files", f"files ending in {', '.join(KINDS)}", todo)
    config, split = _wanted(where, files, wanted, _default(card.get("configs")))
    of_config = _one_kind([each for each in files if each.config == config])
    return [each for each in of_config if not split or each.split == split]


def _wanted(where: str, files: Sequence[HubFile], wanted: str, default: str) -> tuple[str, str]:
    configs = list(dict.fromkeys(each.config for each in files))
    first, _, second = wanted.partition("/")
    if first in configs:
        config, split = first, second
    elif second:
        raise DataError(where, f"no config {first!r}", "one that there is", nearest(first, configs))
    else:
        config, split = _config(where, configs, default), first
    splits = list(dict.fromkeys(each.split for each in files if each.config == config))
    found = split if split in splits else _SPLITS.get(split, split)
    if found and found not in splits:
        raise DataError(where, f"no {split!r}", "a split or a config", nearest(split, [*splits, *configs]))
    return config, found


def _config(where: str, configs: Sequence[str], default: str) -> str:
    for each in (default, "default", ""):
        if each in configs:
            return each
    if len(configs) > 1:
        raise DataError(where, f"the configs {', '.join(configs[:12])}", "one of them", f"say {where}:{configs[0]}")
    return configs[0]


def _default(configs: object) -> str:
    named = [each for each in configs if isinstance(each, Mapping)] if isinstance(configs, list) else []
    return next((str(each.get("config_name", "")) for each in named if each.get("default") is True), "")


def _one_kind(files: Sequence[HubFile]) -> list[HubFile]:
    """Files of the kind that most are of: a repository may hold the same rows twice."""
    kinds = Counter(_kind(each.name) for each in files)
    best = max(kinds, key=lambda kind: (kinds[kind], -KINDS.index(kind)))
    return [each for each in files if _kind(each.name) == best]


def _kind(name: str) -> str:
    return PurePosixPath(name.lower().removesuffix(".gz")).suffix


def _by_card(names: Sequence[str], configs: object) -> list[HubFile]:
    """As the card lists them: `configs: [{config_name, data_files: [{split, path}]}]`."""
    found: dict[tuple[str, str], HubFile] = {}
    for config in configs if isinstance(configs, list) else ():
        if isinstance(config, Mapping):
            called = str(config.get("config_name", "default"))
            for split, pattern in _patterns(config.get("data_files")):
                for name in (each for each in names if is_rows(each) and _fits(each, pattern)):
                    found.setdefault((called, name), HubFile(name, called, split or _split(name)))
    return list(found.values())


def _patterns(listed: object) -> list[tuple[str, str]]:
    if isinstance(listed, str):
        return [("", listed)]
    if isinstance(listed, Mapping) and "path" in listed:
        paths = listed["path"] if isinstance(listed["path"], list) else [listed["path"]]
        return [(str(listed.get("split", "")), str(path)) for path in paths]
    if isinstance(listed, list):
        return [pattern for each in listed for pattern in _patterns(each)]
    return []


def _fits(name: str, pattern: str) -> bool:
    plain = pattern.removeprefix("./")
    return fnmatch.fnmatchcase(name, plain) or fnmatch.fnmatchcase(name, plain.replace("**/", ""))


def _by_name(names: Sequence[str]) -> list[HubFile]:
    return [HubFile(each, _config_of(each), _split(each)) for each in names if is_rows(each)]


def _config_of(name: str) -> str:
    folders = [part for part in PurePosixPath(name).parts[:-1] if part.lower() not in _SPLITS]
    return next((part for part in folders if part.lower() not in _ANYWHERE), "default")


def _split(name: str) -> str:
    """`train`, `test` or `validation` where the file's name or a folder says so, else the file's own name."""
    path = PurePosixPath(name.removesuffix(".gz"))
    for part in (path.stem, *reversed(path.parts[:-1])):
        said = [_SPLITS[word] for word in _WORD.findall(part.lower()) if word in _SPLITS]
        if said:
            return said[0]
    return _SHARD.sub("", path.stem) or path.stem
