"""A name or a path in, the plugin folders there out."""

from __future__ import annotations

from pathlib import Path

from openclaw_lab.errors import PluginError
from openclaw_lab.knobs import nearest
from openclaw_lab.plugins.manifest import FILE

_HERE = Path(__file__).resolve().parent


def bundled_plugins() -> dict[str, Path]:
    """The plugins that come with the package: the built-in one and the examples, by folder name."""
    found = [path.parent for part in ("builtin", "examples") for path in sorted((_HERE / part).glob(f"*/{FILE}"))]
    return {path.name: path for path in found}


def plugin_folders(source: str | Path) -> list[Path]:
    """The folder itself when it has a manifest, else those within it that have one; a bundled plugin by its name."""
    path = Path(source).expanduser()
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
