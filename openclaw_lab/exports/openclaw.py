"""A LabConfig and evidence in, an export folder out: written whole or not at all, never over somebody else's files.

    openclaw.patch.json5   what `openclaw config patch --file` takes
    seed-config.json       the same settings in the seed document's config.json shape
    lab-config.json        loads again to an equal LabConfig
    evidence.json          metrics with intervals, data hashes, versions; what `openclaw-lab gate` compares with
    REPORT.md              the same for a reader, in English and Chinese

The first three hold the server's address as it is (OpenClaw needs it), so they are readable by their owner only when
it has a credential in it; the last two never hold one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_lab.agent.host import silent_hosts
from openclaw_lab.config import MODE_INTERVALS, LabConfig, ReminderConfig
from openclaw_lab.errors import ExportError
from openclaw_lab.experiments.compare import Comparison
from openclaw_lab.experiments.evaluate import Results
from openclaw_lab.exports.evidence import evidence_of
from openclaw_lab.exports.report import report
from openclaw_lab.files import write_text
from openclaw_lab.knobs import mask_secrets

PATCH, SEED, LAB, EVIDENCE, REPORT = (
    "openclaw.patch.json5", "seed-config.json", "lab-config.json", "evidence.json", "REPORT.md",
)  # fmt: skip
RECORD = ".openclaw-lab-export.json"


@dataclass(frozen=True, slots=True)
class Exported:
    """Where the export is, its files, what its settings cannot carry, and where the plugin will never remind."""

    folder: Path
    files: tuple[str, ...]
    not_carried: tuple[str, ...] = ()
    silent_on: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.folder}: {', '.join(self.files)}"]
        if self.not_carried:
            lines.append(f"not carried by the plugin's six settings: {', '.join(self.not_carried)} (see {REPORT})")
        if self.silent_on:
            lines.append(
                f"with these six settings the plugin never reminds on {', '.join(self.silent_on)} (see {REPORT})"
            )
        return "\n".join(lines)


def export(config: LabConfig, folder: str | Path, evidence: Sequence[object] | Results | Comparison = ()) -> Exported:
    """Write the export folder; `evidence` are Results (and Comparisons) that the report shows.

    A folder that holds anything this function did not write, or that was edited since, is refused.
    """
    if not isinstance(config, LabConfig):
        raise ExportError("export", f"a {type(config).__name__}", "a LabConfig, then the folder")
    target = _target(folder)
    shown = evidence_of(config, evidence)
    left_out, silent = not_carried(config), silent_hosts(carried(config).reminders)
    texts = {
        PATCH: patch_json5(config),
        SEED: _json(seed_config(config)),
        LAB: config.to_json(),
        EVIDENCE: _json(shown),
        REPORT: report(config, shown, left_out, silent, nearest_mode(config)),
    }
    _write_folder(target, texts, private=_has_secret(config))
    return Exported(target, tuple(texts), left_out, silent)


def carried(config: LabConfig) -> LabConfig:
    """What the plugin of the seed document does when it gets the six settings, whatever the config says besides."""
    return LabConfig.preset("seed").with_({"reminders.mode": nearest_mode(config)})


def plugin_settings(config: LabConfig) -> dict[str, Any]:
    """The six settings of the seed's plugin, by the host's names."""
    return {
        "apiUrl": config.knowhub.api_url,
        "submittedBy": config.knowhub.submitted_by,
        "reminderMode": nearest_mode(config),
        "enableServerExtraction": config.extraction.enabled,
        "privacyMode": "relaxed" if config.redaction.preset == "relaxed" else "strict",
        "extractionTrigger": config.extraction.trigger,
    }


def nearest_mode(config: LabConfig) -> str:
    """The seed's reminder mode that comes closest: the interval's ratio decides.

    A policy that is no interval has no near mode; it gets `minimal`, the one that disturbs least.
    """
    mode, interval = config.reminders.mode, config.reminders.interval
    if mode != "custom":
        return mode
    if config.reminders.policy != "interval":
        return "minimal"
    return min(MODE_INTERVALS, key=lambda name: max(interval / MODE_INTERVALS[name], MODE_INTERVALS[name] / interval))


def not_carried(config: LabConfig) -> tuple[str, ...]:
    """Dotted names whose values would be lost if only the six settings were carried over."""
    carried = {"knowhub.api_url", "knowhub.submitted_by", "extraction.enabled", "extraction.trigger"}
    seed = LabConfig.preset("seed")
    same_mode = config.reminders.mode == nearest_mode(config)
    if same_mode:
        carried |= {"reminders.policy", "reminders.interval"}
    if config.redaction.preset in ("relaxed", "seed"):
        carried.add("redaction.preset")
    # The plugin has no growth memory: what nobody set is nothing lost.
    changed = config.differences(LabConfig())
    carried |= {name for name in config.knobs() if name.startswith("growth.") and name not in changed}
    unused = _unused(config.reminders)
    return tuple(name for name in config.differences(seed) if name not in carried | unused)


def _unused(reminders: ReminderConfig) -> set[str]:
    """Settings that do nothing beside the others, and the host, which is where it runs and not what it does."""
    used = {
        "off": set(), "interval": {"interval"}, "since_save": {"since_save", "since_reminder"},
        "token_gap": {"token_gap"}, "event": {"events", "min_gap"},
    }[reminders.policy]  # fmt: skip
    every = {each.field for each in reminders.knobs()} - {"policy"}
    if reminders.policy != "off":
        used |= {"scope", "start", "language"} | ({"unit"} if reminders.policy != "token_gap" else set())
        texts = {"reminder"} | ({"start"} if reminders.start != "off" else set())
        spoken = ("zh", "en") if reminders.language == "auto" else (reminders.language,)
        used |= {f"{kind}_text_{each}" for kind in texts for each in spoken}
    return {f"reminders.{name}" for name in every - used}


def patch_json5(config: LabConfig) -> str:
    """The text of openclaw.patch.json5."""
    entry = {
        "enabled": True,
        # Without it the host drops the plugin's conversation hooks with a mere warning: no reminder, nothing saved.
        "hooks": {"allowConversationAccess": True},
        "config": plugin_settings(config),
    }
    body = _json({"plugins": {"entries": {"knowhub": entry}}})
    return f"// Apply with: openclaw config patch --file {PATCH}\n{body}"


def seed_config(config: LabConfig) -> dict[str, Any]:
    """The seed document's config.json."""
    return {"plugins": {"entries": {"knowhub": {"enabled": True, "config": plugin_settings(config)}}}}


# Only where json.dumps broke lines, which no string in JSON does.
_NUMBERS = re.compile(r"\[\n\s+(-?\d[-\d.,\se+]*?)\n\s*\]")


def _json(value: object) -> str:
    """Indented JSON with lists of numbers on one line."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=str)
    return _NUMBERS.sub(lambda match: f"[{' '.join(match.group(1).split())}]", text) + "\n"


def _has_secret(config: LabConfig) -> bool:
    return mask_secrets(config.knowhub.api_url) != config.knowhub.api_url


# --- the folder ---------------------------------------------------------------------------------------------------


def _target(folder: str | Path) -> Path:
    """Where to export to, as a path without `..`; an ExportError where that would touch what is not ours."""
    try:
        target = Path(os.path.abspath(Path(folder).expanduser()))
        _check_target(target)
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: `~nobody`; ValueError: a NUL in the name
        raise _unusable(folder, error) from None
    return target


def _unusable(folder: str | Path, error: Exception) -> ExportError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return ExportError(str(folder), reason, "a place that can be written", "choose another folder")


def _check_target(target: Path) -> None:
    if target.is_symlink():
        raise ExportError(str(target), "a link", "a new folder, or one that export wrote", "name what it points to")
    if not target.exists():
        return
    if not target.is_dir():
        raise ExportError(str(target), "a file", "a new folder, or one that export wrote", "choose another name")
    if Path.cwd().is_relative_to(target):
        # The folder is replaced as a whole; whoever stands in it would be left in a deleted one.
        raise ExportError(str(target), "the current folder", "a folder inside or beside it", "name a new folder")
    present = {path.name for path in target.iterdir()}
    if not present:
        return
    written = _record(target)
    foreign = sorted(present - written.keys() - {RECORD})
    if foreign:
        raise ExportError(str(target), f"{foreign[0]}, which export did not write", todo="choose another folder")
    edited = [name for name, digest in written.items() if name in present and _digest(target / name) != digest]
    if edited:
        raise ExportError(
            str(target / edited[0]), "changes made after the export", todo="move it away or choose another folder"
        )


def _record(target: Path) -> Mapping[str, str]:
    try:
        written = json.loads((target / RECORD).read_bytes())["sha256"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return written if isinstance(written, dict) else {}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _write_folder(target: Path, texts: Mapping[str, str], *, private: bool) -> None:
    """Write all files into a folder beside, then put it in place in one step."""
    beside: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        for name, text in texts.items():
            write_text(beside / name, text, private=private and name in (PATCH, SEED, LAB))
        record = {"sha256": {name: _digest(beside / name) for name in texts}}
        write_text(beside / RECORD, _json(record))
        os.chmod(beside, 0o755)
        _put_in_place(beside, target)
    except (OSError, ValueError) as error:
        raise _unusable(target, error) from None
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


def _put_in_place(beside: Path, target: Path) -> None:
    old = target.with_name(f".{target.name}.old-{os.getpid()}")
    replaced = target.exists()
    if replaced:
        os.replace(target, old)
    try:
        os.replace(beside, target)
    except BaseException:
        if replaced:
            with contextlib.suppress(OSError):
                os.replace(old, target)
        raise
    if replaced:
        shutil.rmtree(old, ignore_errors=True)
