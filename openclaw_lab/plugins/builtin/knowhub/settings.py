"""The plugin's config by OpenClaw's names in, a LabConfig and where the knowledge base is out."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_lab.config import LabConfig

if TYPE_CHECKING:
    from openclaw_lab.knowhub.client import KnowHubClient
    from openclaw_lab.knowhub.service import KnowHub

# What the plugin reads of its config; the manifest must offer all of it.
READS = (
    "apiUrl", "token", "folder", "embedder", "cacheDir", "agentId", "submittedBy", "reminderMode",
    "enableServerExtraction", "privacyMode", "extractionTrigger", "settings",
)  # fmt: skip


def lab_config(values: Mapping[str, Any], base: LabConfig | None = None) -> LabConfig:
    """The settings that the plugin runs with; ConfigError for what does not go together."""
    changes: dict[str, Any] = {
        "knowhub.api_url": values["apiUrl"],
        "knowhub.submitted_by": values["submittedBy"],
        "extraction.enabled": values["enableServerExtraction"],
        "extraction.trigger": values["extractionTrigger"],
        "redaction.preset": values["privacyMode"],
    }
    if values["reminderMode"] != "tuned":
        changes["reminders.mode"] = values["reminderMode"]
    return (base or LabConfig()).with_(changes).with_(values["settings"])


class Bases:
    """The knowledge base as each agent sees it: opened at the first use, closed together."""

    def __init__(self, given: KnowHub | KnowHubClient | None, values: Mapping[str, Any], config: LabConfig) -> None:
        self._given, self._values, self._config = given, values, config
        self._opened: dict[str, KnowHub | KnowHubClient] = {}
        self._lock = threading.Lock()

    def of(self, agent_id: str) -> KnowHub | KnowHubClient:
        """The one for an agent."""
        if self._given is not None:
            return self._given
        name = "" if self._values["folder"] else agent_id
        with self._lock:
            if name not in self._opened:
                self._opened[name] = self._made(agent_id)
            return self._opened[name]

    def _made(self, agent_id: str) -> KnowHub | KnowHubClient:
        values = self._values
        if values["folder"]:
            from openclaw_lab.knowhub.service import KnowHub

            return KnowHub.open(values["folder"], values["embedder"] or None, self._config.knowhub)
        from openclaw_lab.knowhub.client import KnowHubClient

        cache = Path(values["cacheDir"]) if values["cacheDir"] else None
        return KnowHubClient(values["apiUrl"], values["token"], cache, agent_id=agent_id)

    def close(self) -> None:
        """Close what was opened here; what was given stays open."""
        with self._lock:
            opened, self._opened = self._opened, {}
        for each in opened.values():
            each.close()
