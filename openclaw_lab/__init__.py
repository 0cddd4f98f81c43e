"""openclaw_lab: measure, compare, tune and export the knobs of an OpenClaw agent with a knowledge base.

Names are loaded at first use, so that importing the package stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# public name -> the module that holds it
_HOME = {
    "LabConfig": "config",
    "LabError": "errors",
    "load_sessions": "transcripts",
    "load_dataset": "experiments.dataset",
    "Dataset": "experiments.dataset",
    "Sample": "experiments.dataset",
    "preview": "experiments.preview",
    "to_label": "experiments.to_label",
    "with_labels": "experiments.labels",
    "Task": "experiments.task",
    "Metric": "experiments.metrics",
    "evaluate": "experiments.evaluate",
    "compare": "experiments.compare",
    "gate": "experiments.gate",
    "sweep": "experiments.sweep",
    "stream": "experiments.stream",
    "tune": "experiments.tune",
    "Range": "experiments.space",
    "When": "experiments.space",
    "replay": "agent.replay",
    "Agent": "agent.agent",
    "SkillRegistry": "skills.registry",
    "Detector": "injection.detectors",
    "Detection": "injection.verdict",
    "Redactor": "redaction.redactor",
    "Redaction": "redaction.spans",
    "Table": "experiments.table",
    "export": "exports.openclaw",
    "KnowHub": "knowhub.service",
    "KnowHubClient": "knowhub.client",
    "GrowthMemory": "growth.memory",
    "load_plugins": "plugins.loader",
}

__all__ = [
    "Agent",
    "Dataset",
    "Detection",
    "Detector",
    "GrowthMemory",
    "KnowHub",
    "KnowHubClient",
    "LabConfig",
    "LabError",
    "Metric",
    "Range",
    "Redaction",
    "Redactor",
    "Sample",
    "SkillRegistry",
    "Table",
    "Task",
    "When",
    "__version__",
    "compare",
    "evaluate",
    "export",
    "gate",
    "load_dataset",
    "load_plugins",
    "load_sessions",
    "preview",
    "replay",
    "stream",
    "sweep",
    "to_label",
    "tune",
    "with_labels",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'openclaw_lab' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"openclaw_lab.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from openclaw_lab.agent.agent import Agent
    from openclaw_lab.agent.replay import replay
    from openclaw_lab.config import LabConfig
    from openclaw_lab.errors import LabError
    from openclaw_lab.experiments.compare import compare
    from openclaw_lab.experiments.dataset import Dataset, Sample, load_dataset
    from openclaw_lab.experiments.evaluate import evaluate
    from openclaw_lab.experiments.gate import gate
    from openclaw_lab.experiments.labels import with_labels
    from openclaw_lab.experiments.metrics import Metric
    from openclaw_lab.experiments.preview import preview
    from openclaw_lab.experiments.space import Range, When
    from openclaw_lab.experiments.stream import stream
    from openclaw_lab.experiments.sweep import sweep
    from openclaw_lab.experiments.table import Table
    from openclaw_lab.experiments.task import Task
    from openclaw_lab.experiments.to_label import to_label
    from openclaw_lab.experiments.tune import tune
    from openclaw_lab.exports.openclaw import export
    from openclaw_lab.growth.memory import GrowthMemory
    from openclaw_lab.injection.detectors import Detector
    from openclaw_lab.injection.verdict import Detection
    from openclaw_lab.knowhub.client import KnowHubClient
    from openclaw_lab.knowhub.service import KnowHub
    from openclaw_lab.plugins.loader import load_plugins
    from openclaw_lab.redaction.redactor import Redactor
    from openclaw_lab.redaction.spans import Redaction
    from openclaw_lab.skills.registry import SkillRegistry
    from openclaw_lab.transcripts import load_sessions
