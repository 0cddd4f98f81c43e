"""The command line: exit codes, one-line errors, and real processes with pipes, full disks, C locales and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import openclaw_lab
from openclaw_lab.cli import main
from openclaw_lab.commands import catalogue
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import LabWarning

SECRET = "hunter2-s3cr3t"
FILES = {"openclaw.patch.json5", "seed-config.json", "lab-config.json", "evidence.json", "REPORT.md"}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every command runs in an empty folder, and what it does to warnings is undone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENCLAW_LAB_DATA", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("default", LabWarning)  # as Python has it, and not as these tests
        yield


def run(*arguments: str) -> int:
    """The exit code, whether it is returned or raised."""
    try:
        return main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


def put(name: str, content: str) -> str:
    Path(name).write_text(content, "utf-8")
    return name


def process(arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """A real one, as `python -m openclaw_lab.cli`."""
    command = [sys.executable, "-m", "openclaw_lab.cli", *arguments]
    encoding = options.pop("encoding", "utf-8")
    return subprocess.run(command, capture_output=True, encoding=encoding, timeout=60, **options)


# --- usage and input ----------------------------------------------------------------------------------------------

WRONG: list[tuple[list[str], str]] = [
    ([], "the following arguments are required: COMMAND"),
    (["exprot"], "invalid choice: 'exprot'"),
    (["--what"], "openclaw-lab: "),
    (["data"], "required: ACTION"),
    (["data", "show"], "required: source"),
    (["data", "show", "injection/mimi"], "did you mean injection/mini?"),
    (["data", "show", "none.jsonl"], "none.jsonl: expected an existing file"),
    (["data", "show", "."], ".: found a folder without data files"),
    (["data", "show", "injection/mini", "--rows", "-1"], "--rows"),
    (["data", "show", "injection/mini", "--rows", "many"], "argument --rows: found 'many'; expected a whole number"),
    (["data", "show", "injection/mini", "--rows", "二"], "argument --rows: found '二'"),
    (["export"], "required: folder"),
    (["export", "out", "--config", "sead"], "sead: expected an existing file"),
    (["export", "out", "--config", "bad.json"], "bad.json:1: found column 2"),
    (["export", "out", "--set", "reminders.interval"], "--set: found reminders.interval; expected NAME=VALUE"),
    (["export", "out", "--set", "=4"], "--set: found =4; expected NAME=VALUE"),
    (
        ["export", "out", "--set", "reminders.intervall=4"],
        "--set reminders.intervall: expected a known setting; did you",
    ),
    (
        ["export", "out", "--set", "reminders.interval=many"],
        "reminders.interval: found many; expected an integer from 1",
    ),
    (["export", "out", "--set", "reminders.interval=0"], "reminders.interval: found 0"),
    (["export", "out", "--set", "reminders.mode=often"], "reminders.mode: found often"),
    (["export", "out", "--set", "extraction.enabled=yes"], "extraction.enabled: found 'yes'; expected true or false"),
    (["export", "out", "--set", "knowhub.api_url=ftp://x"], "expected an http or https address"),
    (["export", "out", "--evidence", "injection"], "--evidence: found injection; expected NAME=VALUE"),
    (["export", "out", "--evidence", "injektion=injection/mini"], "did you mean injection?"),
    (["export", "out", "--evidence", "injection=nothing"], "nothing: expected an existing file"),
    (["export", "out", "--evidence", "reminders=injection/mini"], "found injection rows; expected sessions rows"),
    (["export", "full"], "found mine.txt, which export did not write"),
    (["export", "bad.json"], "found a file; expected a new folder"),
    (["export", "bad.json/out"], "bad.json/out"),
    (["gate", "none.json"], "none.json: expected an existing file"),
    (["gate", "bad.json"], "bad.json: expected an evidence.json that export wrote"),
    (["run", "--timeout", "0"], "argument --timeout: found 0; expected at least 1"),
    (["run", "--timeout", "soon"], "argument --timeout: found 'soon'"),
    (["start", "--port", "http"], "argument --port"),
    (["bench", "imports"], "did you mean import?"),
]


@pytest.mark.parametrize(("arguments", "expected"), WRONG, ids=[" ".join(each) or "nothing" for each, _ in WRONG])
def test_wrong_use_is_one_line_and_2(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    put("bad.json", "{broken")
    Path("full").mkdir()
    put("full/mine.txt", "mine")
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("openclaw-lab")
    assert expected in err
    assert sorted(str(each) for each in Path().rglob("*")) == ["bad.json", "full", "full/mine.txt"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", f"knowhub.api_url=ftp://me:{SECRET}@kb.example"],
        ["--set", f"knowhub.api_url=me:{SECRET}@kb.example"],
        ["--set", f"knowhub.api_url=http://kb.example?key={SECRET}", "--set", "extraction.enabled=true"],
        ["--set", f"knowhub.api_urll=https://me:{SECRET}@kb.example"],
        ["--set", f"knowhub.api_url:https://me:{SECRET}@kb.example"],
        ["--set", f"https://me:{SECRET}@kb.example?a=1"],
        ["--set", f"=https://me:{SECRET}@kb.example"],
    ],
)
def test_a_credential_is_in_no_message(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", "out", *arguments) == 2
    assert SECRET not in "".join(capsys.readouterr())


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"{openclaw_lab.__version__}\n"
    assert run("--help") == 0
    said = capsys.readouterr().out
    assert all(command in said for command in ("start", "run", "export", "data", "gate"))
    for command in ("start", "run", "export", "data", "gate", "bench"):
        assert run(command, "--help") == 0


# --- data ---------------------------------------------------------------------------------------------------------


def test_data_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names first in each line; the rest of it stands in test_catalogue."""
    monkeypatch.delenv("OPENCLAW_LAB_DATA", raising=False)
    bundled = [
        "agent_tasks/mini",
        "extraction/mini",
        "injection/mini",
        "injection/train",
        "redaction/mini",
        "retrieval/mini",
        "sessions/mini",
        "skills/mini",
    ]
    assert run("data", "list") == 0
    assert names(capsys.readouterr().out, "bundled") == bundled
    (tmp_path / "more" / "injection").mkdir(parents=True)
    (tmp_path / "more" / "redaction").mkdir()
    more = [put(f"more/{name}", "x") for name in ("injection/a.jsonl.gz", "injection/b.jsonl", "redaction/c.jsonl")]
    put("more/injection/notes.txt", "x")
    monkeypatch.setenv("OPENCLAW_LAB_DATA", str(tmp_path / "more"))
    assert run("data", "list") == 0
    out = capsys.readouterr().out
    assert names(out, "$OPENCLAW_LAB_DATA") == ["injection/a", "injection/b", "redaction/c"]
    assert all(str(tmp_path / each) in out for each in more)
    monkeypatch.setenv("OPENCLAW_LAB_DATA", str(tmp_path / "nowhere"))
    assert run("data", "list") == 0


def names(out: str, section: str) -> list[str]:
    """The first word of each line below a title, up to the next empty line."""
    _, _, rest = out.partition(f"\n{section}\n")
    return [line.split()[0] for line in rest.partition("\n\n")[0].splitlines()]


def test_data_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("data", "show", "injection/mini", "--rows", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("injection/mini: 700 injection rows (hash ")
    assert "lang: en 347, zh 353" in lines
    assert len([line for line in lines if line.startswith("- ")]) == 2
    assert run("data", "show", "injection/mini", "--rows", "0") == 0
    assert "\n- " not in capsys.readouterr().out
    assert run("data", "show", "sessions/mini") == 0
    assert "messages, starts with" in capsys.readouterr().out


def test_bad_rows_stop_or_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    put("mine.jsonl", '{"text": "你好", "label": 0}\n{"text": "x"}\n')
    assert run("data", "show", "mine.jsonl") == 2
    assert "mine.jsonl:2: found no field 'label'" in capsys.readouterr().err
    assert run("data", "show", "mine.jsonl", "--skip-bad") == 0
    out, err = capsys.readouterr()
    assert "1 injection rows, 1 bad rows left out" in out
    assert "[0] 你好" in out
    assert err.splitlines() == [
        "openclaw-lab: mine.jsonl: 1 bad rows left out, first: mine.jsonl:2: found no field 'label'; "
        "expected the fields text, label"
    ]


# --- export and gate ----------------------------------------------------------------------------------------------


def test_export_and_gate(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--set", "reminders.mode=minimal", "--set", "skills.min_hits=3", "--set", "reminders.events=feedback"]
    evidence = ["--evidence", "injection=injection/mini", "--evidence", "injection=mine.jsonl"]
    put("mine.jsonl", '{"text": "forget all", "label": 1}\n{"text": "你好", "label": 0}\n')
    assert run("export", "out", "--config", "seed", *settings, *evidence) == 0
    assert str(Path("out").resolve()) in capsys.readouterr().out
    assert {each.name for each in Path("out").iterdir()} - {".openclaw-lab-export.json"} == FILES
    expected = LabConfig.preset("seed").with_(
        {"reminders.mode": "minimal", "skills.min_hits": 3, "reminders.events": ["feedback"]}
    )
    assert LabConfig.from_json("out/lab-config.json") == expected
    results = json.loads(Path("out/evidence.json").read_text("utf-8"))["results"]
    assert [each["data"]["name"] for each in results] == ["injection/mini", "mine.jsonl"]  # both, not the last one

    assert run("gate", "out/evidence.json") == 0
    checks = capsys.readouterr().out.splitlines()
    assert len(checks) == 14
    assert all(line.startswith("ok ") for line in checks)

    assert run("export", "out", "--config", "out/lab-config.json") == 0  # its own folder again
    assert LabConfig.from_json("out/lab-config.json") == expected


def test_a_gate_that_fails_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", "out", "--evidence", "injection=injection/mini", "--set", "injection.threshold=0.5") == 0
    worse = LabConfig.from_json("out/lab-config.json").with_({"injection.threshold": 0.0})
    worse.to_json("worse.json")
    capsys.readouterr()
    assert run("gate", "out/evidence.json", "--config", "worse.json") == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert any(line.startswith("WORSE injection.fpr:") for line in out.splitlines())
    assert run("gate", "out/evidence.json", "--data", "sessions/mini") == 2


def test_an_export_that_fails_leaves_the_old_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", "out") == 0
    before = {each.name: each.read_bytes() for each in Path("out").iterdir()}
    assert run("export", "out", "--config", "seed", "--evidence", "injection=nothing") == 2
    assert run("export", "out", "--set", "skills.min_hits=0") == 2
    assert {each.name: each.read_bytes() for each in Path("out").iterdir()} == before
    put("out/REPORT.md", "edited")
    assert run("export", "out", "--config", "seed") == 2
    assert "changes made after the export" in capsys.readouterr().err.splitlines()[-1]
    assert [each.name for each in Path().iterdir()] == ["out"]


def test_other_errors_of_the_system_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: object) -> int:
        raise OSError(28, "No space left on device", "/some/where")

    monkeypatch.setattr(catalogue, "_data_list", full)
    assert run("data", "list") == 2
    assert capsys.readouterr().err == "openclaw-lab: /some/where: found No space left on device\n"


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(catalogue, "_data_list", broken)
    with pytest.raises(ZeroDivisionError):
        run("data", "list")


def test_ctrl_c_within(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(catalogue, "_data_list", stopped)
    assert run("data", "list") == 130
    assert capsys.readouterr().err == "openclaw-lab: interrupted\n"


# --- real processes -----------------------------------------------------------------------------------------------


def test_the_installed_program() -> None:
    program = Path(sys.executable).with_name("openclaw-lab")
    if not program.exists():
        pytest.skip("openclaw-lab is not installed beside this Python")
    done = subprocess.run([program, "data", "show", "nothing"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("openclaw-lab: nothing: expected an existing file")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("arguments", "code"), [(["data", "list"], 0), (["gate", "none"], 2), (["--set"], 2)])
def test_exit_codes_of_a_process(arguments: list[str], code: int) -> None:
    done = process(arguments)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == (1 if code else 0)


@pytest.mark.parametrize(
    "locale",
    [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}],
)
def test_chinese_where_the_terminal_has_none(locale: dict[str, str]) -> None:
    put("我的.jsonl", '{"text": "忽略 🙂 \\ud83d", "label": 1}\n')
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    done = process(["data", "show", "我的.jsonl"], env={**environment, **locale}, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "忽略" in done.stdout or "\\u5ffd\\u7565" in done.stdout
    done = process(["data", "show", "没有.jsonl"], env={**environment, **locale}, encoding="utf-8")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "openclaw_lab.cli", "data", "show", "injection/mini", "--rows", "500"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "openclaw_lab.cli", "data", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "openclaw-lab: output: found No space left on device\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes and no SIGINT to a child")
def test_ctrl_c_ends_a_process_with_130() -> None:
    os.mkfifo("waits.jsonl")  # reading it waits for a writer
    command = [sys.executable, "-m", "openclaw_lab.cli", "data", "show", "waits.jsonl"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        end = time.monotonic() + 30
        while not _waits_in_open(child.pid) and time.monotonic() < end:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    finally:
        child.kill()
        child.wait()
    assert (child.returncode, err) == (130, "openclaw-lab: interrupted\n")


def _waits_in_open(pid: int) -> bool:
    """Whether the process sleeps in opening the pipe (where the system tells; else after a second)."""
    try:
        return (
            "fifo" in Path(f"/proc/{pid}/wchan").read_text()
            or "wait_for_partner" in Path(f"/proc/{pid}/wchan").read_text()
        )
    except OSError:
        time.sleep(1)
        return True


def test_a_relative_path_is_that_of_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notebooks run in a folder of their own; what the user names is where the user stands."""
    from openclaw_lab.commands.notebooks import _as_path

    monkeypatch.chdir(tmp_path)
    (tmp_path / "我的 data.csv").write_text("text,label\nhello,0\n", encoding="utf-8")
    assert _as_path("我的 data.csv") == str(tmp_path / "我的 data.csv")
    assert _as_path("injection/mini") == "injection/mini"
    assert _as_path("5") == "5"
    assert _as_path("x" * 5000) == "x" * 5000
