"""The KnowHub plugin: three tools, start text and reminders, and uploads for extraction when they are on."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_lab.config import LabConfig
from openclaw_lab.plugins.builtin.knowhub.reminders import PLUGIN_ID as PLUGIN_ID
from openclaw_lab.plugins.builtin.knowhub.reminders import KnowHubHooks as KnowHubHooks
from openclaw_lab.plugins.builtin.knowhub.reminders import SessionReminders as SessionReminders
from openclaw_lab.plugins.builtin.knowhub.reminders import StepReader as StepReader
from openclaw_lab.plugins.builtin.knowhub.reminders import starts as starts

if TYPE_CHECKING:
    from openclaw_lab.knowhub.client import KnowHubClient
    from openclaw_lab.knowhub.service import KnowHub
    from openclaw_lab.plugins.entry import PluginEntry
    from openclaw_lab.plugins.sdk import PluginApi


def register(api: PluginApi) -> None:
    """Register the plugin with what its config says."""
    _registered(api, None, None)


def knowhub_entry(base: KnowHub | KnowHubClient | None = None, config: LabConfig | None = None) -> PluginEntry:
    """The same plugin for a notebook or an agent: on a knowledge base that is open, with a whole LabConfig.

    `config` says what the plugin's own config does not; the knowledge base stays open when the plugin is unloaded.
    """
    from openclaw_lab.plugins.entry import define_plugin_entry
    from openclaw_lab.plugins.manifest import read_manifest

    manifest = read_manifest(Path(__file__).parent)
    made = define_plugin_entry(
        id=PLUGIN_ID,
        name=manifest.name,
        description=manifest.description,
        tools=manifest.tools,
        config_schema=manifest.config_schema,
        register=lambda api: _registered(api, base, config),
    )
    return dataclasses.replace(made, trusted=True)


def _registered(api: PluginApi, base: KnowHub | KnowHubClient | None, given: LabConfig | None) -> None:
    from openclaw_lab.plugins.builtin.knowhub.settings import Bases, lab_config
    from openclaw_lab.plugins.builtin.knowhub.tools import KnowHubTools
    from openclaw_lab.plugins.builtin.knowhub.uploads import Uploads

    values = api.plugin_config
    config = given or lab_config(values)
    bases = Bases(base, {**values, "apiUrl": config.knowhub.api_url}, config)
    for function in KnowHubTools(bases, config, api.logger).functions:
        api.register_tool(function)
    api.register_service("knowhub-connection", stop=bases.close)
    reminders = SessionReminders(config.reminders)
    api.on("before_agent_start", reminders.before_agent_start)
    for hook in StepReader.HOOKS:
        api.on(hook, reminders.observe)
    if config.extraction.enabled:
        uploads = Uploads(bases, config, values["agentId"], api.logger)
        for hook in ("before_prompt_build", "agent_end", "before_compaction", "session_end"):
            api.on(hook, uploads.observe)
        api.register_service("knowhub-uploads", start=uploads.start, stop=uploads.stop)
