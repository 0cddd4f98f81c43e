"""Plugin folders in, one line for each out: as a load reports them, or from manifests and configs alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from openclaw_lab.errors import PluginError
from openclaw_lab.plugins.code import FILE
from openclaw_lab.plugins.folders import bundled_plugins, no_plugin, plugin_folders
from openclaw_lab.plugins.loader import load_plugins
from openclaw_lab.plugins.manifest import read_manifest
from openclaw_lab.plugins.report import Report
from openclaw_lab.plugins.settings import HostConfig, host_config, plugin_config


def plugin_status(
    sources: Sequence[str | Path] = (),
    *,
    config: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    run: bool = True,
    isolated: bool = False,
) -> tuple[Report, ...]:
    """What becomes of the plugins in some folders (those that come with the package when none is named).

    Their code runs, their services do not start; with `run` false no code runs at all.
    """
    named = tuple(sources) or tuple(bundled_plugins())
    host = host_config(config)
    if run:
        plugins = load_plugins(*named, config=host, environment=environment, isolated=isolated, start=False)
        plugins.stop()
        return plugins.reports
    reports: list[Report] = []
    for each in named:
        folders = plugin_folders(each)
        reports += [read_status(folder, host, environment or {}) for folder in folders]
        reports += [] if folders else [no_plugin(Path(each))]
    return tuple(reports)


def read_status(folder: Path, host: HostConfig, environment: Mapping[str, str]) -> Report:
    """What a plugin's manifest and config say, without running its code."""
    name = folder.name
    try:
        manifest = read_manifest(folder)
        name = manifest.id
        if refused := host.refusal(manifest):
            return Report(name, "disabled", str(folder), refused)
        plugin_config(manifest, host, environment)
        host.hook_limits(name)
        if not (folder / FILE).is_file():
            raise PluginError(str(folder / FILE), expected="the plugin's Python code")
    except PluginError as error:
        return Report(name, "disabled", str(folder), str(error), fault=True)
    return Report(name, "ready", str(folder), tools=manifest.tools or (), notes=(*manifest.notes, *host.notes(name)))


def print_status(
    sources: Sequence[str | Path], config: Path | None, environment: Mapping[str, str], run: bool, isolated: bool
) -> int:
    """Print the lines; the exit code, 1 when a plugin is at fault."""
    reports = plugin_status(sources, config=config, environment=environment, run=run, isolated=isolated)
    for report in reports:
        print(report)
    return 1 if any(report.fault for report in reports) else 0
