"""The export folder: what is in it, whom it may show it to, and that it is written whole or not at all."""

from __future__ import annotations

import importlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talks import call, called, result, said, steady, talk, turn, user

import openclaw_lab as lab
from openclaw_lab.cli import main
from openclaw_lab.errors import ConfigError, ExportError
from openclaw_lab.experiments.dataset import from_sessions
from openclaw_lab.experiments.evaluate import Results
from openclaw_lab.experiments.metrics import shown
from openclaw_lab.exports.openclaw import (
    EVIDENCE,
    LAB,
    PATCH,
    RECORD,
    REPORT,
    SEED,
    Exported,
    export,
    nearest_mode,
    not_carried,
    patch_json5,
    plugin_settings,
)
from openclaw_lab.files import write_text

FILES = (PATCH, SEED, LAB, EVIDENCE, REPORT)
SEED_CONFIG = lab.LabConfig.preset("seed")
SESSIONS = from_sessions(
    [
        talk(turn("hi", 3), turn("不对，应该用 pnpm", 4), id="一"),
        talk(user("go"), called(call("1", "bash", command="ffmpeg -i a")), result("1"), said("转好了。"), id="b"),
        talk(turn("hi", 2), turn("again", 1), id="c", opportunities=[(0, "feedback")]),
    ],
    "我的会话",
)


def settings(base: lab.LabConfig | None = None, /, **changes: Any) -> lab.LabConfig:
    return (base or lab.LabConfig()).with_({f"reminders.{name}": value for name, value in changes.items()})


def measured(config: lab.LabConfig | None = None) -> Results:
    return lab.evaluate("reminders", SESSIONS, config or lab.LabConfig())


def json5(text: str) -> Any:
    """JSON with // comments on lines of their own or after a value."""
    plain, quoted, at = [], False, 0
    while at < len(text):
        if not quoted and text.startswith("//", at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
            continue
        if quoted and text[at] == "\\":
            plain.append(text[at : at + 2])
            at += 2
            continue
        quoted ^= text[at] == '"'
        plain.append(text[at])
        at += 1
    return json.loads("".join(plain))


def everything(folder: Path) -> dict[str, bytes]:
    """Every file under a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- what is in it ------------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    made = export(lab.LabConfig(), tmp_path / "新 folder" / "tuned", evidence=[measured()])
    silent = ("openclaw-2026.3", "openclaw-2026.9")
    assert made == Exported(tmp_path / "新 folder" / "tuned", FILES, made.not_carried, silent)
    assert set(everything(made.folder)) == {*FILES, RECORD}
    assert os.listdir(made.folder.parent) == ["tuned"]
    assert str(made).startswith(f"{made.folder}: {PATCH}, {SEED}, {LAB}, {EVIDENCE}, {REPORT}\n")


PATCHED = lab.LabConfig().with_({
    "knowhub.api_url": "https://知识.example.cn/api//v1", "knowhub.submitted_by": 'ann "the // one" [ 1 ]\\',
    "reminders.mode": "aggressive", "extraction.enabled": True, "extraction.trigger": "before_compaction",
    "redaction.preset": "relaxed",
})  # fmt: skip


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (
            SEED_CONFIG,
            {"apiUrl": "http://127.0.0.1:9999", "submittedBy": "", "reminderMode": "normal",
             "enableServerExtraction": False, "privacyMode": "strict", "extractionTrigger": "agent_end"},
        ),
        (
            PATCHED,
            {"apiUrl": "https://知识.example.cn/api//v1", "submittedBy": 'ann "the // one" [ 1 ]\\',
             "reminderMode": "aggressive", "enableServerExtraction": True, "privacyMode": "relaxed",
             "extractionTrigger": "before_compaction"},
        ),
    ],
)  # fmt: skip
def test_what_the_host_gets(tmp_path: Path, config: lab.LabConfig, wanted: dict[str, Any]) -> None:
    """pm-048: a non-bundled plugin that uses agent_end needs allowConversationAccess."""
    folder = export(config, tmp_path / "out").folder
    patch = json5((folder / PATCH).read_text("utf-8"))
    assert patch == {
        "plugins": {
            "entries": {
                "knowhub": {"enabled": True, "hooks": {"allowConversationAccess": True}, "config": wanted},
            }
        }
    }
    # The seed's file has no hooks; its own section "config.json" shows just this.
    seed = json.loads((folder / SEED).read_text("utf-8"))
    assert seed == {"plugins": {"entries": {"knowhub": {"enabled": True, "config": wanted}}}}


def test_the_defaults_stay_at_home() -> None:
    """pm-081: no upload and a loopback address; uploads to a plain-http address are refused."""
    assert plugin_settings(lab.LabConfig())["enableServerExtraction"] is False
    assert plugin_settings(lab.LabConfig())["apiUrl"] == "http://127.0.0.1:9999"
    remote = lab.LabConfig().with_({"knowhub.api_url": "http://43.106.118.91:9999"})
    assert plugin_settings(remote)["enableServerExtraction"] is False
    with pytest.raises(ConfigError, match="https"):
        remote.with_({"extraction.enabled": True})


@steady
@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_text_survives_the_patch(text: str) -> None:
    config = lab.LabConfig().with_({"knowhub.submitted_by": text})
    entry = json5(patch_json5(config))["plugins"]["entries"]["knowhub"]
    assert entry["config"]["submittedBy"] == text


def test_lab_config_loads_again(tmp_path: Path) -> None:
    for number, config in enumerate((SEED_CONFIG, lab.LabConfig(), PATCHED, settings(reminder_text_zh="记一下[ 3 ]"))):
        folder = export(config, tmp_path / str(number)).folder
        assert lab.LabConfig.from_json(folder / LAB) == config
        assert main(["export", str(tmp_path / f"again {number}"), "--config", str(folder / LAB)]) == 0
        again = everything(tmp_path / f"again {number}")
        assert again == everything(folder)


def test_evidence_is_what_was_measured(tmp_path: Path) -> None:
    config, other = lab.LabConfig(), settings(policy="interval", interval=1)
    results, baseline = measured(config), measured(other)
    injection = lab.evaluate("injection", "injection/mini", config)
    compared = lab.compare({"every turn": baseline, "event": results})
    folder = export(config, tmp_path / "out", evidence=[results, injection, compared, baseline]).folder
    evidence = json.loads((folder / EVIDENCE).read_text("utf-8"))
    assert list(evidence) == [
        "format", "openclaw_lab", "python", "packages", "config", "results", "promises", "comparisons",
    ]  # fmt: skip
    assert (evidence["openclaw_lab"], evidence["config"]) == (lab.__version__, config.digest())
    assert [each["of_this_config"] for each in evidence["results"]] == [True, True, False]
    for each, source in zip(evidence["results"], (results, injection, baseline), strict=True):
        assert each["task"] == source.task.name
        assert each["data"] == {
            "name": source.data.name, "hash": source.data.hash, "samples": len(source.data), "left_out": 0,
            "split": "all samples; nothing was held out",
        }  # fmt: skip
        assert lab.LabConfig.from_dict(each["config"]) == source.config
        for name, metric in source.metrics.items():
            written = each["metrics"][name]
            assert (written["n"], written["kind"]) == (metric.n, metric.kind)
            for part in ("value", "low", "high"):
                value = getattr(metric, part)
                assert written[part] == (None if value != value else value), (name, part)
        assert {"p_save", *each["tallies"]} >= {*each["metrics"]}
        assert "p_save" not in each["tallies"]
    (comparison,) = evidence["comparisons"]
    assert (comparison["task"], comparison["baseline"]) == ("reminders", "every turn")
    frame = compared.frame
    assert [row["metric"] for row in comparison["rows"]] == frame["metric"].tolist()
    for row, value in zip(comparison["rows"], frame["difference"], strict=True):
        assert row["difference"] == (None if value != value else value)


def test_evidence_holds_no_text_of_the_data(tmp_path: Path) -> None:
    folder = export(lab.LabConfig(), tmp_path / "out", evidence=[measured()]).folder
    for name in (EVIDENCE, REPORT):
        content = (folder / name).read_text("utf-8")
        assert "pnpm" not in content
        assert "转好了" not in content


def test_report_in_both_languages(tmp_path: Path) -> None:
    config, other = settings(reminder_text_en="one | two\nthree"), settings(policy="interval", interval=1)
    compared = lab.compare({"all | 全部": measured(other), "event": measured(config)})
    folder = export(config, tmp_path / "out", evidence=[measured(config), measured(other), compared]).folder
    english, chinese = (folder / REPORT).read_text("utf-8").split("\n---\n")
    for part, words in [
        (english, ("# Exported settings", "## Evidence", "95 % interval", "Not carried", "samples: 3", "verdict",
                   "measured with other settings", "simulated", "No sample was held out")),
        (chinese, ("# 导出的设置", "## 证据", "95% 区间", "无法表达", "样本数: 3", "结论",
                   "测量时该任务的设置与导出的不同", "simulated", "没有留出样本")),
    ]:  # fmt: skip
        for word in words:
            assert word in part, word
        assert f"`我的会话` ({SESSIONS.hash})" in part
        metric = measured(config).metrics["per_100_calls"]
        assert f"| per_100_calls | {shown(metric.value)} |" in part
        assert "one \\| two⏎three" in part, "a table cell stays one cell"
        assert "all \\| 全部" in part
        for line in part.splitlines():
            if line.startswith("|"):
                assert line.endswith("|")
    assert "never reminds on" in english


def test_report_without_evidence(tmp_path: Path) -> None:
    text = (export(SEED_CONFIG, tmp_path / "out").folder / REPORT).read_text("utf-8")
    assert "nothing here says that these settings are good" in text
    assert "这里没有任何内容说明这些设置是好的" in text
    assert "None." in text
    assert "无。" in text
    assert "Not carried" not in text


def test_a_setting_that_never_fires_says_so(tmp_path: Path) -> None:
    """pm-079: the seed's modes count to 1 on OpenClaw; whoever exports them is told."""
    made = export(SEED_CONFIG, tmp_path / "out")
    assert made.silent_on == ("openclaw-2026.3", "openclaw-2026.9")
    assert "never reminds on openclaw-2026.3, openclaw-2026.9" in str(made)
    text = (made.folder / REPORT).read_text("utf-8")
    assert "**With these six settings the plugin never reminds on openclaw-2026.3, openclaw-2026.9**" in text
    assert "**只凭这六项设置，插件在 openclaw-2026.3, openclaw-2026.9 上永远不会提醒**" in text
    off = export(settings(SEED_CONFIG, mode="off"), tmp_path / "off")
    assert off.silent_on == ()
    assert "never reminds" not in (off.folder / REPORT).read_text("utf-8")


@pytest.mark.parametrize("config", [settings(SEED_CONFIG, scope="session"), lab.LabConfig()])
def test_settings_that_the_plugin_cannot_hear_do_not_cure_it(tmp_path: Path, config: lab.LabConfig) -> None:
    """The report speaks of what the patch does, not of what the laboratory's own plugin would do."""
    made = export(config, tmp_path / "out")
    assert made.silent_on == ("openclaw-2026.3", "openclaw-2026.9")
    text = (made.folder / REPORT).read_text("utf-8")
    assert text.index("never reminds on") < text.index("## Settings that differ")
    assert ("reminderMode `minimal`" in text) == (config == lab.LabConfig())


@pytest.mark.parametrize("item", ["text", 3, None, {"recall": 1.0}, lab.LabConfig()])
def test_evidence_of_another_kind(tmp_path: Path, item: object) -> None:
    with pytest.raises(ExportError, match=r"evidence: found .*; expected Results, a Comparison or a Tuned"):
        export(lab.LabConfig(), tmp_path / "out", evidence=[item])
    assert os.listdir(tmp_path) == []


# --- what the six settings carry ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        ({"policy": "off"}, "off"),
        ({"policy": "off", "interval": 2}, "off"),
        *(({"policy": "interval", "interval": interval}, mode) for interval, mode in [
            (1, "aggressive"), (2, "aggressive"), (3, "normal"), (4, "minimal"), (5, "minimal"), (6, "minimal"),
            (8, "minimal"), (1000, "minimal"),
        ]),
        ({"policy": "since_save"}, "minimal"),
        ({"policy": "token_gap", "interval": 2}, "minimal"),
        ({"policy": "event", "interval": 3}, "minimal"),
    ],
)  # fmt: skip
def test_nearest_mode(changes: dict[str, Any], mode: str) -> None:
    assert nearest_mode(settings(**changes)) == mode


def r(*names: str) -> set[str]:
    return {f"reminders.{name}" for name in names}


OTHERS = {"skills.matcher", "redaction.preset"}  # where "tuned" differs from the seed outside the reminders
CARRIED: list[tuple[str, lab.LabConfig, set[str]]] = [
    ("seed", SEED_CONFIG, set()),
    ("another host", settings(SEED_CONFIG, host="openclaw-2026.9"), set()),
    ("a mode", settings(SEED_CONFIG, mode="minimal"), set()),
    ("off", settings(SEED_CONFIG, mode="off"), set()),
    ("off, whatever else is set", settings(SEED_CONFIG, mode="off", unit="user_turn", scope="session", start="off",
                                           language="en", interval=9, start_text_zh="x", min_gap=3), set()),
    ("an interval without a word", settings(SEED_CONFIG, interval=4), r("interval")),
    ("a unit", settings(SEED_CONFIG, unit="user_turn"), r("unit")),
    ("scope and start", settings(SEED_CONFIG, scope="session", start="session"), r("scope", "start")),
    ("a setting of another policy", settings(SEED_CONFIG, min_gap=4, token_gap=500, since_save=3), set()),
    ("another policy", settings(SEED_CONFIG, policy="since_save", since_save=3), r("policy", "since_save")),
    ("tokens have no unit", settings(SEED_CONFIG, policy="token_gap", unit="user_turn"), r("policy")),
    ("events", settings(SEED_CONFIG, policy="event", events=["feedback"]), r("policy", "events")),
    ("own words", settings(SEED_CONFIG, reminder_text_zh="记"), r("reminder_text_zh")),
    ("own words in a language that is not used", settings(SEED_CONFIG, reminder_text_en="keep"), set()),
    ("own words for a start text that is off", settings(SEED_CONFIG, start="off", start_text_zh="x"), r("start")),
    ("tuned", lab.LabConfig(), OTHERS | r("policy", "unit", "scope", "start", "language") | {"injection.detector"}),
    ("uploads", SEED_CONFIG.with_({"extraction.enabled": True, "extraction.trigger": "before_compaction"}), set()),
    ("the server", SEED_CONFIG.with_({"knowhub.api_url": "https://x.cn", "knowhub.submitted_by": "ann"}), set()),
    ("how it is searched", SEED_CONFIG.with_({"knowhub.top_k": 9}), {"knowhub.top_k"}),
    ("relaxed", SEED_CONFIG.with_({"redaction.preset": "relaxed"}), set()),
    ("memory", SEED_CONFIG.with_({"growth.max_tokens": 9}), {"growth.max_tokens"}),
    ("a threshold", SEED_CONFIG.with_({"injection.threshold": 0.9}), {"injection.threshold"}),
]  # fmt: skip


@pytest.mark.parametrize(("config", "lost"), [row[1:] for row in CARRIED], ids=[row[0] for row in CARRIED])
def test_not_carried(tmp_path: Path, config: lab.LabConfig, lost: set[str]) -> None:
    assert set(not_carried(config)) == lost
    made = export(config, tmp_path / "out")
    assert set(made.not_carried) == lost
    text = (made.folder / REPORT).read_text("utf-8")
    for name in lost:
        assert text.count(f"- `{name}`") == 2
        assert name in str(made)


# --- secrets and names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "secrets"),
    [
        ("https://ann:hunter2@kb.example.cn/api", ["hunter2", "ann:"]),
        ("https://ann:p%40ss-w0rd@kb.example.cn", ["p%40ss-w0rd"]),
        ("https://tok3n-only@kb.example.cn", ["tok3n-only"]),
        ("https://kb.example.cn/?token=s3cr3t-value&org=acme", ["s3cr3t-value"]),
        ("https://kb.example.cn/?s3cr3t-flag", ["s3cr3t-flag"]),
        ("https://kb.example.cn/#access_token=s3cr3t-value", ["s3cr3t-value"]),
        ("https://用户:密码八位@知识.cn/?口令=秘密值", ["密码八位", "秘密值"]),
    ],
)
def test_secrets_are_only_where_the_host_needs_them(tmp_path: Path, address: str, secrets: list[str]) -> None:
    config = lab.LabConfig().with_({"knowhub.api_url": address})
    compared = lab.compare({"a": measured(SEED_CONFIG), "b": measured(config)})
    folder = export(config, tmp_path / "out", evidence=[measured(config), compared]).folder
    for name, content in everything(folder).items():
        text, mode = content.decode(), stat.S_IMODE((folder / name).stat().st_mode)
        if name in (PATCH, SEED, LAB):
            assert address in text
            assert mode == 0o600, name
        else:
            assert not [secret for secret in secrets if secret in text], name
    assert lab.LabConfig.from_json(folder / LAB) == config


def test_without_a_secret_files_are_as_the_umask_says(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        folder = export(lab.LabConfig(), tmp_path / "out").folder
    finally:
        os.umask(mask)
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in FILES} == {0o640}


@pytest.mark.parametrize(
    ("home", "name", "shown"),
    [
        ("/home/小明", "/home/小明/对话/a.jsonl", "~/对话/a.jsonl"),
        ("/home/ann", "/home/ann", "~"),
        ("/home/ann", "/home/annabel/a.jsonl", "/home/annabel/a.jsonl"),
        ("/home/ann", "/data/home/ann/a.jsonl", "/data/home/ann/a.jsonl"),
        ("/home/ann", "sessions/mini", "sessions/mini"),
        ("/home/ann", "~/a.jsonl", "~/a.jsonl"),
        ("/home/ann/", "/home/ann/a.jsonl", "~/a.jsonl"),
        ("/", "/data/a.jsonl", "/data/a.jsonl"),
    ],
)
def test_the_users_home_is_not_in_the_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, name: str, shown: str
) -> None:
    monkeypatch.setenv("HOME", home)
    sessions = from_sessions([sample.input for sample in SESSIONS], name)
    evidence = [lab.evaluate("reminders", sessions)]
    folder = export(lab.LabConfig(), tmp_path / "out", evidence=evidence).folder
    assert json.loads((folder / EVIDENCE).read_text("utf-8"))["results"][0]["data"]["name"] == shown
    assert f"`{shown}`" in (folder / REPORT).read_text("utf-8")


# --- the folder ---------------------------------------------------------------------------------------------------


def test_exporting_again_changes_no_byte(tmp_path: Path) -> None:
    results = measured()
    before = everything(export(lab.LabConfig(), tmp_path / "out", evidence=[results]).folder)
    assert everything(export(lab.LabConfig(), tmp_path / "out", evidence=[measured()]).folder) == before
    assert everything(export(lab.LabConfig(), tmp_path / "other", evidence=[results]).folder) == before
    after = everything(export(SEED_CONFIG, tmp_path / "out").folder)
    assert after == everything(export(SEED_CONFIG, tmp_path / "third").folder) != before
    assert sorted(os.listdir(tmp_path)) == ["other", "out", "third"]


def foreign_file(target: Path) -> None:
    export(SEED_CONFIG, target)
    (target / "笔记.md").write_text("mine")


def edited_file(target: Path) -> None:
    export(SEED_CONFIG, target)
    (target / PATCH).write_text("// mine\n{}")


def folder_for_a_file(target: Path) -> None:
    export(SEED_CONFIG, target)
    (target / PATCH).unlink()
    (target / PATCH).mkdir()


def somebody_elses_folder(target: Path) -> None:
    target.mkdir()
    (target / PATCH).write_text("{}")


def lost_record(target: Path) -> None:
    export(SEED_CONFIG, target)
    (target / RECORD).unlink()


def damaged_record(target: Path) -> None:
    export(SEED_CONFIG, target)
    (target / RECORD).write_text('{"sha256": [')


def record_of_another_shape(target: Path) -> None:
    export(SEED_CONFIG, target)
    (target / RECORD).write_text('{"sha256": ["REPORT.md"]}')


def plain_file(target: Path) -> None:
    target.write_text("mine")


def link_to_a_folder(target: Path) -> None:
    export(SEED_CONFIG, target.parent / "real")
    target.symlink_to(target.parent / "real")


def link_to_nothing(target: Path) -> None:
    target.symlink_to(target.parent / "nothing")


def file_for_a_parent(target: Path) -> None:
    target.parent.rmdir()
    target.parent.write_text("mine")


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (foreign_file, "笔记.md, which export did not write"),
        (edited_file, "openclaw.patch.json5: found changes made after the export"),
        (folder_for_a_file, "openclaw.patch.json5: found changes made after the export"),
        (somebody_elses_folder, "openclaw.patch.json5, which export did not write"),
        (lost_record, "which export did not write"),
        (damaged_record, "which export did not write"),
        (record_of_another_shape, "which export did not write"),
        (plain_file, "found a file; expected a new folder"),
        (link_to_a_folder, "found a link; expected a new folder"),
        (link_to_nothing, "found a link; expected a new folder"),
        (file_for_a_parent, "expected a place that can be written"),
    ],
)
def test_what_is_not_ours_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], prepare: Callable[[Path], None], reason: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    prepare(place / "out")
    before, names = everything(tmp_path), sorted(map(str, tmp_path.rglob("*")))
    with pytest.raises(ExportError) as caught:
        export(lab.LabConfig(), place / "out")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert main(["export", str(place / "out")]) == 2
    assert capsys.readouterr().err == f"openclaw-lab: {caught.value}\n"
    assert everything(tmp_path) == before
    assert sorted(map(str, tmp_path.rglob("*"))) == names


def test_a_folder_without_some_of_its_files_is_still_ours(tmp_path: Path) -> None:
    export(SEED_CONFIG, tmp_path / "out")
    (tmp_path / "out" / REPORT).unlink()
    assert set(everything(export(SEED_CONFIG, tmp_path / "out").folder)) == {*FILES, RECORD}
    (tmp_path / "empty").mkdir()
    assert set(everything(export(SEED_CONFIG, tmp_path / "empty").folder)) == {*FILES, RECORD}


@pytest.mark.parametrize("place", ["x" * 300, "a\0b", "~nobody-of-that-name/out", "x" * 300 + "/out"])
def test_names_that_no_folder_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExportError, match="expected a place that can be written"):
        export(lab.LabConfig(), place)
    assert os.listdir(tmp_path) == []


def test_the_current_folder_is_not_pulled_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "out" / "deeper"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    for place in (".", "", "..", "../..", str(inside)):
        with pytest.raises(ExportError):
            export(lab.LabConfig(), place)
    assert os.getcwd() == str(inside)
    assert list(inside.iterdir()) == []
    assert export(lab.LabConfig(), "../deeper/../new/").folder == tmp_path / "out" / "new"


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="needs permissions as POSIX has them")
def test_a_read_only_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    before = everything(export(SEED_CONFIG, place / "out").folder)
    if os.geteuid() == 0:  # root may write anywhere, so the system's answer is given for it

        def refused(**_: object) -> str:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("tempfile.mkdtemp", refused)
    else:
        place.chmod(0o555)
    try:
        with pytest.raises(ExportError, match="Permission denied; expected a place that can be written"):
            export(lab.LabConfig(), place / "out")
    finally:
        place.chmod(0o755)
    assert everything(place / "out") == before
    assert os.listdir(place) == ["out"]


@pytest.fixture
def broken_write(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, BaseException], None]:
    """Let the writing of one file fail."""
    module = importlib.import_module("openclaw_lab.exports.openclaw")

    def break_at(name: str, error: BaseException) -> None:
        def write(path: Path, text: str, *, private: bool = False) -> None:
            if path.name == name:
                path.write_text(text[: len(text) // 2])
                raise error
            write_text(path, text, private=private)

        monkeypatch.setattr(module, "write_text", write)

    return break_at


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("name", [*FILES, RECORD])
@pytest.mark.parametrize("old", [True, False])
def test_a_crash_in_the_middle_leaves_the_old_export(
    tmp_path: Path, broken_write: Callable[[str, BaseException], None], error: BaseException, name: str, old: bool
) -> None:
    before = everything(export(SEED_CONFIG, tmp_path / "out").folder) if old else {}
    broken_write(name, error)
    with pytest.raises(ExportError if isinstance(error, OSError) else type(error)) as caught:
        export(lab.LabConfig(), tmp_path / "out")
    if isinstance(error, OSError):
        assert "No space left on device" in str(caught.value)
    assert os.listdir(tmp_path) == (["out"] if old else [])
    assert not old or everything(tmp_path / "out") == before


@pytest.mark.parametrize("error", [OSError(39, "Directory not empty"), KeyboardInterrupt()])
def test_a_crash_while_it_is_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    before = everything(export(SEED_CONFIG, tmp_path / "out").folder)
    replace, target = os.replace, tmp_path / "out"

    def broken(source: Any, goal: Any) -> None:
        if Path(goal) == target and ".old-" not in str(source):
            raise error
        replace(source, goal)

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(ExportError if isinstance(error, OSError) else KeyboardInterrupt):
        export(lab.LabConfig(), target)
    assert os.listdir(tmp_path) == ["out"]
    assert everything(target) == before


# --- the command --------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["export", str(tmp_path / "out"), "--config", "seed", "--set", "reminders.interval=4"]
    assert main([*arguments, "--evidence", "reminders=sessions/mini"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{tmp_path / 'out'}: {PATCH}")
    assert "not carried by the plugin's six settings: reminders.interval (see REPORT.md)" in shown.out
    evidence = json.loads((tmp_path / "out" / EVIDENCE).read_text("utf-8"))
    assert [each["data"]["name"] for each in evidence["results"]] == ["sessions/mini"]
    assert evidence["results"][0]["of_this_config"] is True


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--set", "reminders.intervall=4"], "did you mean reminders.interval?"),
        (["--set", "reminders.interval"], "expected NAME=VALUE"),
        (["--set", "reminders.mode=often"], "one of off, minimal, normal, aggressive"),
        (["--evidence", "reminder=sessions/mini"], "did you mean reminders?"),
        (["--evidence", "reminders=sessions/mini2"], "did you mean sessions/mini?"),
        (["--evidence", "reminders=injection/mini"], "found injection rows; expected sessions rows"),
        (["--config", "nowhere.json"], "expected an existing file"),
        (["--set", "extraction.enabled=true", "--set", "knowhub.api_url=http://43.106.118.91:9999"], "use https"),
    ],
)
def test_the_command_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], error: str
) -> None:
    assert main(["export", str(tmp_path / "out"), *arguments]) == 2
    shown = capsys.readouterr().err
    assert error in shown
    assert shown.count("\n") == 1
    assert os.listdir(tmp_path) == []
