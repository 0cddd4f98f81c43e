"""One bar for what takes long; the items pass whether it shows or not."""

from __future__ import annotations

import io
import sys

import pytest

from openclaw_lab.experiments import progress as module
from openclaw_lab.experiments.progress import progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_quiet_under_pytest(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress([3, 1, 2], "sweep", "setting")) == [3, 1, 2]
    assert list(progress([], "sweep", "setting")) == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("modules", "stream", "quiet"),
    [
        (["pytest"], Terminal(), True),
        ([], Terminal(), False),
        ([], io.StringIO(), True),
        (["ipykernel"], io.StringIO(), False),
    ],
)
def test_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, modules: list[str], stream: io.StringIO, quiet: bool
) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.delitem(sys.modules, "pytest")
    for name in modules:
        monkeypatch.setitem(sys.modules, name, sys)
    monkeypatch.setattr(sys, "stderr", stream)
    assert module._quiet() is quiet


@pytest.mark.parametrize(("patience", "shows"), [(0.0, True), (60.0, False)])
def test_a_bar_shows_after_a_while_and_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, patience: float, shows: bool
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "_quiet", lambda: False)
    monkeypatch.setattr(module, "_PATIENCE", patience)
    assert list(progress([1, 2, 3], "replay", "session")) == [1, 2, 3]
    assert ("replay" in stream.getvalue()) is shows
    assert not stream.getvalue().endswith("\n")


def test_a_bar_goes_when_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "_quiet", lambda: False)
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    items = progress([1, 2, 3], "replay", "session")
    assert next(items) == 1
    items.close()  # type: ignore[attr-defined]
    assert stream.getvalue().rstrip(" ").endswith("\r")
