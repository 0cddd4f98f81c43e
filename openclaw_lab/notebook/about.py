"""What a report was made with: versions, machine, and the data that its notebooks say they used."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Iterable
from typing import Any

from openclaw_lab import __version__

_LIBRARIES = ("numpy", "scipy", "pandas", "scikit-learn", "faiss-cpu", "matplotlib", "jupyterlab", "litellm")
_HASH = re.compile(r"([^\n<>]{1,160}?): ([\d,]+ [a-z_ ]+?)(?:, \d+ bad rows left out)? \(hash ([0-9a-f]{16})\)")


def environment() -> dict[str, str]:
    """Versions of this package, of Python and of the libraries whose answers are in the figures; the machine's kind."""
    found = {"openclaw-lab": __version__, "Python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {**found, "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"}


def data_named(notebooks: Iterable[Any]) -> dict[str, tuple[str, str]]:
    """The data that executed notebooks show: by hash the name and the size."""
    found: dict[str, tuple[str, str]] = {}
    for notebook in notebooks:
        for text in _texts(notebook):
            for name, size, digest in _HASH.findall(text):
                found.setdefault(digest, (name.strip(" '\""), size))
    return found


def _texts(notebook: Any) -> Iterable[str]:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            yield "".join(output.get("text", ""))
            yield "".join(output.get("data", {}).get("text/plain", ""))
