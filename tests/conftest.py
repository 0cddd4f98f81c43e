"""No test finds what another one, or the person who runs them, computed before."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

from openclaw_lab.experiments import cache


@pytest.fixture(scope="session", autouse=True)
def _no_figures_of_before() -> Iterator[None]:
    """Nothing is kept in this process; what a test starts has a cache folder that goes with the tests."""
    cache.use("off")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", folder)
        assert os.environ["XDG_CACHE_HOME"] == folder
        yield
