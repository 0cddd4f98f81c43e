"""A plugin folder in, the entry of its `plugin.py` out: run anew each time, without a trace of the last time.

The file is a package of its own, so `from . import other` finds the files beside it.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import itertools
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openclaw_lab.errors import LabError, PluginError, excerpt
from openclaw_lab.files import read_text
from openclaw_lab.plugins.entry import PluginEntry, define_plugin_entry
from openclaw_lab.plugins.manifest import Manifest

FILE = "plugin.py"
_ELSEWHERE = ("index.ts", "index.js", "index.mjs", "index.py")
_NUMBERS = itertools.count(1)


def new_module_name(manifest: Manifest) -> str:
    """A name that no module has had."""
    return f"_openclaw_plugin_{next(_NUMBERS)}_{''.join(c if c.isalnum() else '_' for c in manifest.id)}"


def run_file(folder: Path, name: str) -> types.ModuleType:
    """Run a folder's plugin.py as the module `name`; what it raises is raised."""
    path = folder / FILE
    if not path.is_file():
        other = next((each for each in _ELSEWHERE if (folder / each).exists()), "")
        found = f"only {other}, which an OpenClaw host runs and the lab does not" if other else None
        raise PluginError(str(path), found, "the plugin's Python code")
    module = types.ModuleType(name)
    module.__file__, module.__path__, module.__package__ = str(path), [str(folder)], name
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, origin=str(path), is_package=True)
    code = compile(read_text(path), str(path), "exec", dont_inherit=True)
    sys.modules[name] = module
    with _nothing_cached():
        exec(code, module.__dict__)
    return module


@contextmanager
def _nothing_cached() -> Iterator[None]:
    """No .pyc for the files beside it: one that was written within the same second would be taken for an older one."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def entry_of(module: Any, manifest: Manifest) -> PluginEntry:
    """The entry that a module offers: `entry`, or a function `register`."""
    entry = getattr(module, "entry", None)
    if entry is None and callable(getattr(module, "register", None)):
        return define_plugin_entry(id=manifest.id, register=module.register, name=manifest.name)
    if not isinstance(entry, PluginEntry):
        found = "no entry" if entry is None else f"entry is a {type(entry).__name__}"
        raise PluginError(
            f"{getattr(module, '__file__', 'module')}", found, "entry = define_plugin_entry(…), or register(api)"
        )
    if entry.id != manifest.id:
        raise PluginError(str(module.__file__), f"the id '{entry.id}'", f"'{manifest.id}', as in the manifest")
    return entry


def forget(name: str) -> None:
    """Take a plugin's modules out of the interpreter."""
    for each in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[each]


def fault(error: BaseException, folder: Path | None) -> str:
    """An error of a plugin in one line, with the place in its own files."""
    if isinstance(error, LabError):
        return str(error)
    if isinstance(error, SyntaxError):
        return f"{Path(error.filename or FILE).name}:{error.lineno}: {excerpt(error.msg, 120)}"
    frames = traceback.extract_tb(error.__traceback__)
    place = next((f for f in reversed(frames) if folder and f.filename.startswith(str(folder))), None)
    said = f"{type(error).__name__}: {excerpt(str(error), 200)}".removesuffix(": ")
    return f"{said} ({Path(place.filename).name}:{place.lineno})" if place else said
