"""A folder in, JupyterLab running on a working copy of the notebooks in it until it is stopped.

It changes no file of the user's own Jupyter: what must differ is given to the one server that is started here.
"""

from __future__ import annotations

import errno
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from openclaw_lab import files
from openclaw_lab.errors import ConfigError, LabError
from openclaw_lab.notebook.signals import Stop, stoppable
from openclaw_lab.notebook.workspace import prepare

HOST = "127.0.0.1"
FIRST_PORT, PORTS = 8888, 100  # tried one after the other when none is asked for
START_SECONDS = 120.0  # a cold start on a slow disk; a warm one takes two
STOP_SECONDS = 20.0  # the server gives each kernel five to end by itself
FIRST_PAGE = "00_tour.ipynb"
_TAIL = 600  # characters of the server's last lines in an error


def start(
    folder: Path = Path("openclaw-lab"), *, port: int | None = None, browser: bool = True, out: TextIO | None = None
) -> int:
    """Prepare `folder`, run JupyterLab on it, return 0 when it was stopped (Ctrl-C, SIGTERM, or its own menu).

    Prints the address to `out` (default: standard output) once the server answers. Raises ConfigError for a port that
    cannot be used, DataError for a folder that cannot, LabError with the server's last lines when it dies.
    """
    out = out or sys.stdout
    workspace = prepare(folder)
    print(workspace.summary(), file=out, flush=True)
    ports = _ports(port)
    with stoppable() as stop, tempfile.TemporaryDirectory(prefix="openclaw-lab-") as own:
        server = _Server(workspace.folder, Path(own), stop)
        try:
            server.begin_on_one_of(ports)
            _announce(server, browser, out)
            return server.wait()
        except KeyboardInterrupt:
            print("Stopping JupyterLab and its kernels.", file=out, flush=True)
            return 0
        finally:
            server.stop()


def _announce(server: _Server, browser: bool, out: TextIO) -> None:
    print(f"JupyterLab: {server.url}\nTo stop it, press Ctrl-C here.", file=out, flush=True)
    if browser:  # in a thread: a browser in the terminal would hold the program
        threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()


def _ports(asked: int | None) -> Iterable[int]:
    """The ports to try, in order; the one that was asked for must be free."""
    if asked is None:
        return (port for port in range(FIRST_PORT, FIRST_PORT + PORTS) if not _taken(port))
    if not 1 <= asked <= 65535:
        raise ConfigError("port", asked, "a number from 1 to 65535")
    if why := _taken(asked):
        raise ConfigError(f"port {asked}", why, "a free port", "choose another one, or name none")
    return [asked]


def _taken(port: int) -> str:
    """Why a port of this computer cannot be listened on; "" when it can."""
    with socket.socket() as probe:
        if os.name == "posix":  # there, a port that was closed a moment ago counts as free, as for the server
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            busy = error.errno in (errno.EADDRINUSE, getattr(errno, "WSAEADDRINUSE", None))
            return "another program that listens on it" if busy else error.strerror or "no access"
    return ""


class _Server:
    """One JupyterLab in a process group of its own, so that Ctrl-C reaches only this program, which then stops it."""

    def __init__(self, folder: Path, own: Path, stop: Stop) -> None:
        self.folder, self.own, self.held = folder, own, stop.held
        self.port, self.token, self.log = 0, secrets.token_hex(24), own / "jupyter.log"
        self.page = f"/lab/tree/{FIRST_PAGE}" if (folder / FIRST_PAGE).is_file() else "/lab"
        self.process: subprocess.Popen[bytes] | None = None
        _write_settings(own, self.token)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}{self.page}?token={self.token}"

    def begin_on_one_of(self, ports: Iterable[int]) -> None:
        """Return when it answers. A port that another program took meanwhile is passed over."""
        for self.port in ports:
            try:
                self.begin()
                return self.wait_until_it_answers()
            except LabError:
                self.stop()
                if not _taken(self.port):
                    raise
        raise ConfigError("port", "only ports that other programs use", "a free port", "name one that is free")

    def begin(self) -> None:
        command = [sys.executable, "-P", "-m", "jupyterlab", *_arguments(self.folder, self.port, self.page, self.own)]
        with self.held(), self.log.open("wb") as log:  # a stop in the middle would lose the process
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=_environment(self.own),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **_group(),
            )

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.process.poll() if self.process else 0

    def wait_until_it_answers(self) -> None:
        """Return when the server answers with our token; LabError when it dies or takes too long."""
        until = time.monotonic() + START_SECONDS
        while not self.answers("GET", "/api/status"):
            if (code := self.exit_code()) is not None:
                raise self.died(code)
            if time.monotonic() > until:
                raise LabError(f"JupyterLab gave no answer in {START_SECONDS:.0f} s: {self.last_lines()}")
            time.sleep(0.1)

    def wait(self) -> int:
        """Return 0 when the server was shut down from its own menu; LabError when it dies."""
        while (code := self.exit_code()) is None:
            time.sleep(0.3)
        if code:
            raise self.died(code)
        return 0

    def answers(self, method: str, path: str) -> bool:
        """Whether the server says yes to a request; goes round any proxy."""
        link = http.client.HTTPConnection(HOST, self.port, timeout=5)
        try:
            link.request(method, path, headers={"Authorization": f"token {self.token}"})
            return link.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            link.close()

    def stop(self) -> None:
        """End the server, which ends its kernels; a server that does not listen, or a second Ctrl-C, ends it hard."""
        if self.process is None:
            return
        try:
            if self.process.poll() is None:
                self.ask_to_end(self.process)
                self.process.wait(STOP_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            _kill(self.process)

    def ask_to_end(self, process: subprocess.Popen[bytes]) -> None:
        if sys.platform == "win32":
            self.answers("POST", "/api/shutdown")
        else:
            process.terminate()

    def died(self, code: int) -> LabError:
        where = f"JupyterLab ended with exit code {code}"
        return LabError(f"{where}: {self.last_lines()}", todo="to see all of it, run: python -m jupyterlab")

    def last_lines(self) -> str:
        """The end of what the server printed, as one line."""
        text = self.log.read_bytes().decode("utf-8", "replace")
        return " / ".join(line.strip() for line in text.splitlines() if line.strip())[-_TAIL:] or "it printed nothing"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The whole group at once; kernels see that their parent is gone and end by themselves."""
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _arguments(folder: Path, port: int, page: str, own: Path) -> list[str]:
    """Settings on the command line: they win over every configuration file of the user."""
    settings: dict[str, Any] = {
        "Application.log_level": "WARN",
        "ServerApp.ip": HOST,
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.sock": "",
        "ServerApp.certfile": "",
        "ServerApp.keyfile": "",
        "ServerApp.base_url": "/",
        "ServerApp.root_dir": folder,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "PasswordIdentityProvider.hashed_password": "",
        "LabApp.default_url": page,
        "LabApp.open_browser": False,
        "LabApp.news_url": None,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.app_settings_dir": own / "settings",
        "LabApp.workspaces_dir": folder / ".jupyter" / "workspaces",
    }
    return [f"--{name}={value}" for name, value in settings.items()]


def _write_settings(own: Path, token: str) -> None:
    """The token, in files that only the user can read (a command line is read by all); no question about news."""
    secret = json.dumps({"IdentityProvider": {"token": token}})
    for name in ("jupyter_server_config", "jupyter_lab_config"):
        files.write_text(own / "config" / f"{name}.json", secret, private=True)
    files.write_text(own / "token", token, private=True)
    quiet = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
    files.write_text(own / "settings" / "overrides.json", json.dumps(quiet))


def _environment(own: Path) -> dict[str, str]:
    """The server's environment: this Python's kernel before the user's, our configuration before the user's."""
    environment = {name: value for name, value in os.environ.items() if name != "JUPYTER_TOKEN"}
    configs = [str(own / "config"), *filter(None, [environment.get("JUPYTER_CONFIG_PATH")])]
    environment["JUPYTER_CONFIG_PATH"] = os.pathsep.join(configs)
    environment["JUPYTER_TOKEN_FILE"] = str(own / "token")
    environment["JUPYTER_PREFER_ENV_PATH"] = "1"
    return environment


def _group() -> dict[str, Any]:
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
