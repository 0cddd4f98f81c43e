"""JupyterLab, started for real: it answers, keeps to its own settings, and leaves nothing running."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from nbformat import v4

from openclaw_lab import files
from openclaw_lab.errors import ConfigError, DataError, LabError
from openclaw_lab.notebook import server
from openclaw_lab.notebook.signals import Stop, stoppable

PROGRAM = """
import sys
from pathlib import Path
from openclaw_lab import files
from openclaw_lab.notebook import server
files.bundled = lambda name: Path(sys.argv[1])
sys.exit(server.start(Path(sys.argv[2]), browser=sys.argv[3] == "browser"))
"""
CONFIG = """
c.IdentityProvider.token = ""
c.PasswordIdentityProvider.hashed_password = "argon2:nobody-knows"
c.ServerApp.ip = "0.0.0.0"
c.ServerApp.base_url = "/elsewhere/"
c.ServerApp.root_dir = "/"
"""
posix = pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")


class Lab:
    """A program that runs `start`, with a home folder of its own."""

    def __init__(self, place: Path, shipped: Path, browser: str = "no") -> None:
        self.home = place / "home"
        (self.home / ".jupyter").mkdir(parents=True)
        for name in ("jupyter_server_config.py", "jupyter_lab_config.py"):
            (self.home / ".jupyter" / name).write_text(CONFIG)
        seen = place / "browser.sh"
        seen.write_text(f'#!/bin/sh\necho "$1" > {place}/opened\n')
        seen.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
        environment = {**kept, "HOME": str(self.home), "BROWSER": str(seen), "JUPYTER_TOKEN": "stale"}
        self.printed = place / "printed"
        command = [sys.executable, "-c", PROGRAM, str(shipped), str(place / "lab"), browser]
        with self.printed.open("w") as out:
            self.process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)

    def wait(self) -> Lab:
        """Until the address is printed."""
        until = time.monotonic() + 90
        while "To stop it" not in self.text():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < until, self.text()
            time.sleep(0.05)
        found = re.search(r"http://127\.0\.0\.1:(\d+)(\S+)\?token=(\w+)", self.text())
        assert found
        self.port, self.page, self.token = int(found[1]), found[2], found[3]
        return self

    def text(self) -> str:
        return self.printed.read_text()

    def ask(self, path: str, token: str | None = None, method: str = "GET") -> tuple[int, bytes]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        link.request(method, path, headers={"Authorization": f"token {self.token if token is None else token}"})
        answer = link.getresponse()
        status, body = answer.status, answer.read()
        link.close()
        return status, body

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        if self.process.poll() is None:
            for child in self.children():
                child.kill()
            self.process.kill()
        self.process.wait()


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    home = tmp_path / "shipped"
    home.mkdir()
    (home / "00_tour.ipynb").write_text(nbformat.writes(v4.new_notebook(cells=[v4.new_code_cell("1 + 1")])))
    return home


@pytest.fixture
def labs(tmp_path: Path, shipped: Path) -> Iterator[Any]:
    started: list[Lab] = []

    def begin(browser: str = "no") -> Lab:
        started.append(Lab(tmp_path / f"user{len(started)}", shipped, browser))
        return started[-1]

    yield begin
    for lab in started:
        lab.kill()


def closed(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@posix
@pytest.mark.slow
def test_two_labs_answer_on_two_ports_and_stop_with_all_their_kernels(labs: Any, tmp_path: Path) -> None:
    first, second = labs(), labs("browser")
    for lab in (first.wait(), second.wait()):
        check_answers(lab)
    assert first.port != second.port
    assert first.token != second.token
    assert (tmp_path / "user1" / "opened").read_text().strip() in second.text()
    assert not (tmp_path / "user0" / "opened").exists()

    for lab, number in ((first, signal.SIGINT), (second, signal.SIGTERM)):
        running = lab.children()
        assert len(running) >= 2, "the server and a kernel"
        lab.process.send_signal(number)
        assert lab.process.wait(30) == 0, lab.text()
        assert psutil.wait_procs(running, timeout=5)[1] == []
        assert closed(lab.port)
        assert "Traceback" not in lab.text()


def check_answers(lab: Lab) -> None:
    assert lab.page == "/lab/tree/00_tour.ipynb"
    status, page = lab.ask(lab.page)
    assert (status, b"jupyter-config-data" in page) == (200, True)
    assert re.search(rb'"news":\s*{"disabled":\s*true}', page)
    status, contents = lab.ask("/api/contents")
    assert status == 200
    assert [entry["path"] for entry in json.loads(contents)["content"]] == ["00_tour.ipynb"]
    for wrong in ("", "stale", "0" * 48):
        assert lab.ask("/api/contents", wrong)[0] == 403
    status, kernel = lab.ask("/api/kernels", method="POST")
    assert (status, json.loads(kernel)["name"]) == (201, "python3")
    commands = [process.cmdline() for process in lab.children()]
    assert all(lab.token not in word for words in commands for word in words)
    assert any(words[0] == sys.executable and "ipykernel_launcher" in words for words in commands)
    for name in ("jupyter_server_config.py", "jupyter_lab_config.py"):
        assert (lab.home / ".jupyter" / name).read_text() == CONFIG


@posix
def test_a_lab_that_is_shut_down_from_its_menu_ends_well(labs: Any) -> None:
    lab = labs().wait()
    assert lab.ask("/api/shutdown", method="POST")[0] == 200
    assert lab.process.wait(30) == 0, lab.text()


@posix
@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.5])
def test_stopped_before_it_answers(labs: Any, tmp_path: Path, seconds: float) -> None:
    lab = labs()
    until = time.monotonic() + 30
    while not (running := lab.children()) and time.monotonic() < until:
        pass
    time.sleep(seconds)
    lab.process.send_signal(signal.SIGTERM)
    assert lab.process.wait(30) == 0, lab.text()
    assert running
    assert psutil.wait_procs(running, timeout=5)[1] == []


def test_a_stop_waits_for_the_end_of_a_held_step() -> None:
    done = []
    with stoppable() as stop:
        with pytest.raises(KeyboardInterrupt), stop.held():
            done.append(signal.raise_signal(signal.SIGINT))
        with stop.held():
            done.append("again")
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert done == [None, "again"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.fixture
def here(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "bundled", lambda name: shipped)


def test_a_server_that_dies_is_one_line_with_its_last_words(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server, "_arguments", lambda *rest: ["--ServerApp.port=many"])
    with pytest.raises(LabError, match=r"JupyterLab ended with exit code 1: .*'many'") as caught:
        server.start(tmp_path / "lab", browser=False)
    assert "\n" not in str(caught.value)
    assert "http://" not in capsys.readouterr().out


def test_a_port_that_is_asked_for_must_be_free(here: None, tmp_path: Path) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}: found another program that listens on it"):
            server.start(tmp_path / "lab", port=port, browser=False)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_port_out_of_range(here: None, tmp_path: Path, port: int) -> None:
    with pytest.raises(ConfigError, match="expected a number from 1 to 65535"):
        server.start(tmp_path / "lab", port=port, browser=False)


def test_a_port_that_is_taken_in_between_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = server._Server(tmp_path, tmp_path, Stop())
    tried = []

    def answer() -> None:
        tried.append(lab.port)
        if lab.port < 3:
            raise LabError("ended")

    monkeypatch.setattr(lab, "begin", lambda: None)
    monkeypatch.setattr(lab, "wait_until_it_answers", answer)
    monkeypatch.setattr(server, "_taken", lambda port: "busy")
    lab.begin_on_one_of([1, 2, 3, 4])
    assert tried == [1, 2, 3]
    with pytest.raises(ConfigError, match="expected a free port"):
        lab.begin_on_one_of([1, 2])


def test_a_folder_that_is_a_file(here: None, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="expected a folder"):
        server.start(tmp_path / "file", browser=False)


@posix
def test_a_server_that_does_not_listen_is_ended_hard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", deaf]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        lab = server._Server(tmp_path, tmp_path, Stop())
        lab.process = process
        monkeypatch.setattr(server, "STOP_SECONDS", 0.2)
        lab.stop()
        assert process.poll() == -signal.SIGKILL
