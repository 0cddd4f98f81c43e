"""A config and its evidence in, the files that OpenClaw and a reader take out."""

from __future__ import annotations

from openclaw_lab.exports.openclaw import Exported, export

__all__ = ["Exported", "export"]
