"""A name or a path in, the plugin folders there out."""

from __future__ import annotations

from pathlib import Path

from openclaw_lab import given
from openclaw_lab.errors import PluginError
from openclaw_lab.knobs import nearest
from openclaw_lab.plugins.manifest import FILE
from openclaw_lab.plugins.report import Report

# Files that a plugin may have beside its manifest, or instead of it by mistake.
_NEAR = ("plugin.py", "plugin.json", "package.json", "manifest.json", "openclaw-plugin.json", "openclaw.json")
_HERE = Path(__file__).resolve().parent


def bundled_plugins() -> dict[str, Path]:
    """The plugins that come with the package: the built-in one and the examples, by folder name."""
    found = [path.parent for part in ("builtin", "examples") for path in sorted((_HERE / part).glob(f"*/{FILE}"))]
    return {path.name: path for path in found}


def plugin_folders(source: str | Path) -> list[Path]:
    """The folder itself when it has a manifest, else those within it that have one; a bundled plugin by its name."""
    path = given.path("load_plugins", source, expected="a plugin's folder", error=PluginError)
    if isinstance(source, str) and not path.exists() and source in bundled_plugins():
        return [bundled_plugins()[source]]
    if path.name == FILE and path.is_file():
        return [path.parent.resolve()]
    if not path.is_dir():
        found = "a file" if path.exists() else None
        hint = nearest(str(source), bundled_plugins())
        raise PluginError(str(path), found, "a plugin's folder, or one with such folders", hint)
    if (path / FILE).is_file():
        return [path.resolve()]
    return [each.parent.resolve() for each in sorted(path.glob(f"*/{FILE}")) if not each.parent.name.startswith(".")]


def no_plugin(folder: Path) -> Report:
    """The line for a folder without a plugin, with what in it looks as if it were meant to be one."""
    files = [*folder.glob("*.json"), *folder.glob("*/*.json"), *folder.glob("plugin.py"), *folder.glob("*/plugin.py")]
    near = next((str(each.relative_to(folder)) for each in sorted(files) if each.name in _NEAR), "")
    found = f"found {near} and no plugin" if near else "found no plugin"
    reason = f"{folder}: {found}; expected {FILE} in it, or in folders in it"
    return Report(folder.name or str(folder), "disabled", str(folder), reason, fault=True)
