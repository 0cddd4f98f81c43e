"""What users of similar hosts complained of, one row a complaint: `cases/plugins.jsonl.gz` of the public data set."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plugged import plugin, registering

from openclaw_lab.agent.host import PROFILES
from openclaw_lab.agent.replay import replay_on
from openclaw_lab.config import LabConfig
from openclaw_lab.exports.openclaw import export
from openclaw_lab.messages import Message, Session
from openclaw_lab.plugins.builtin.knowhub.settings import READS
from openclaw_lab.plugins.folders import bundled_plugins
from openclaw_lab.plugins.loader import load_plugins
from openclaw_lab.plugins.manifest import manifest_problems, read_manifest
from openclaw_lab.plugins.sdk import PluginApi, define_plugin_entry

DATA = Path(os.environ.get("OPENCLAW_LAB_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
CASES = DATA / "cases" / "plugins.jsonl.gz"


def a_hook_fires_once_a_message(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    def register(api: PluginApi) -> None:
        for hook in ("before_agent_start", "before_prompt_build"):
            api.on(hook, lambda event: seen.append((event.hook, event.run)))

    plugins = load_plugins(define_plugin_entry(id="counts", register=register))
    session = Session("s", (Message("user", "你好"), Message("assistant", "你好！")))
    trace = replay_on(session, PROFILES["seed"], plugins.bus)
    assert seen == [("before_agent_start", 1), ("before_prompt_build", 1)]
    assert (trace.counts["before_agent_start"], trace.counts["before_prompt_build"]) == (1, 1)
    assert {event.run for event in trace.events} == {1}
    plugins.reload()
    replay_on(session, PROFILES["seed"], plugins.bus)
    assert Counter(hook for hook, _ in seen) == {"before_agent_start": 2, "before_prompt_build": 2}


def no_timer_outlives_its_plugin(tmp_path: Path) -> None:
    said: list[str] = []

    def service(api: PluginApi, name: str) -> None:
        ended = threading.Event()

        def tick() -> None:
            while not ended.wait(0.01):
                said.append(f"tick {name}")

        def stop() -> None:
            ended.set()
            said.append(f"stop {name}")

        api.register_service(name, start=threading.Thread(target=tick, daemon=True).start, stop=stop)

    def register(api: PluginApi) -> None:
        service(api, "一")
        service(api, "二")

    plugins = load_plugins(define_plugin_entry(id="timers", register=register))
    time.sleep(0.05)
    assert plugins.stop() == ()
    assert [each for each in said if each.startswith("stop")] == ["stop 二", "stop 一"]
    time.sleep(0.02)
    count = len(said)
    time.sleep(0.05)
    assert len(said) == count
    assert plugins.stop() == ()
    assert len(said) == count


def a_manifest_that_lacks_a_key_is_found_before_export(tmp_path: Path) -> None:
    knowhub = read_manifest(bundled_plugins()["knowhub"])
    assert manifest_problems(knowhub, READS) == ()
    properties = {name: each for name, each in knowhub.config_schema["properties"].items() if name != "privacyMode"}
    code = registering("api.plugin_config['privacyMode']")
    folder = plugin(tmp_path, "lacking", code, configSchema={**knowhub.config_schema, "properties": properties})
    (problem,) = manifest_problems(read_manifest(folder), READS)
    assert problem.startswith("lacking: configSchema.properties.privacyMode: is missing")
    (report,) = load_plugins(folder).reports
    assert report.status == "disabled"
    assert "plugin_config['privacyMode']: expected a name of the manifest's configSchema" in report.reason


def an_export_asks_for_the_hooks_that_a_plugin_needs(tmp_path: Path) -> None:
    folder = export(LabConfig(), tmp_path / "out").folder
    text = (folder / "openclaw.patch.json5").read_text(encoding="utf-8")
    entry = json.loads(text[text.index("{") :])["plugins"]["entries"]["knowhub"]
    assert entry["hooks"] == {"allowConversationAccess": True}
    assert "agent_end" in PROFILES["openclaw-2026.9"].gated


def the_defaults_upload_nothing_and_stay_on_this_machine(tmp_path: Path) -> None:
    def loaded(**settings: Any) -> Any:
        return load_plugins("knowhub", config={"plugins": {"entries": {"knowhub": {"config": settings}}}}).reports[0]

    schema = read_manifest(bundled_plugins()["knowhub"]).config_schema["properties"]
    assert schema["enableServerExtraction"]["default"] is False
    assert schema["apiUrl"]["default"] == "http://127.0.0.1:9999"
    assert loaded().services == ("knowhub-connection",)
    assert loaded(apiUrl="http://example.com").status == "loaded"
    refused = loaded(apiUrl="http://example.com", enableServerExtraction=True)
    assert refused.status == "disabled"
    assert "expected https (or this machine) while extraction.enabled is true" in refused.reason
    assert loaded(apiUrl="https://example.com", enableServerExtraction=True).status == "loaded"


CHECKS: dict[str, Callable[[Path], None]] = {
    "pm-041": a_hook_fires_once_a_message,
    "pm-044": no_timer_outlives_its_plugin,
    "pm-046": a_manifest_that_lacks_a_key_is_found_before_export,
    "pm-048": an_export_asks_for_the_hooks_that_a_plugin_needs,
    "pm-081": the_defaults_upload_nothing_and_stay_on_this_machine,
}


@pytest.mark.parametrize("case", CHECKS)
def test_a_complaint(case: str, tmp_path: Path) -> None:
    CHECKS[case](tmp_path)


@pytest.mark.skipif(not CASES.exists(), reason=f"{CASES} is not there: set OPENCLAW_LAB_DATA to the public data set")
def test_every_row_has_a_check() -> None:
    with gzip.open(CASES, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert {row["id"] for row in rows} == set(CHECKS)
