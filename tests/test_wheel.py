"""The wheel that users install: it holds the package, the notebooks, the datasets and the rules, and nothing beside."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def tracked(folder: str, pattern: str) -> set[str]:
    """Files of the clone below a folder, relative to it, without what tools leave behind."""
    found = (path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob(pattern) if path.is_file())
    return {path.as_posix() for path in found if not any(part.startswith((".", "__")) for part in path.parts[:-1])}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: pip install hatchling")
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
        return set(wheel.namelist())


def below(names: set[str], folder: str) -> set[str]:
    return {name.removeprefix(folder) for name in names if name.startswith(folder)}


@pytest.mark.slow
def test_only_the_package_is_at_the_top(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"openclaw_lab"}
    assert len(tops) == 2


@pytest.mark.slow
def test_everything_that_the_package_reads_is_inside(names: set[str]) -> None:
    assert "openclaw_lab/py.typed" in names
    assert tracked("notebooks", "*.ipynb") <= below(names, "openclaw_lab/_notebooks/")
    assert tracked("datasets", "*.*") <= below(names, "openclaw_lab/_datasets/")
    rules = {name for name in tracked("openclaw_lab", "*.json") if "/rules/" in name}
    assert rules
    assert rules <= below(names, "openclaw_lab/")


@pytest.mark.slow
def test_nothing_that_tools_leave_behind_is_inside(names: set[str]) -> None:
    parts = {part for name in names for part in name.split("/")}
    assert not {part for part in parts if part.startswith(".") or part in ("__pycache__", "tests")}
