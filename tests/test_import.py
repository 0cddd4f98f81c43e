"""Importing the package is cheap, and its public names are these."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import openclaw_lab as lab

PUBLIC = {
    "Agent": "openclaw_lab.agent.agent",
    "Dataset": "openclaw_lab.experiments.dataset",
    "Detection": "openclaw_lab.injection.verdict",
    "Detector": "openclaw_lab.injection.detectors",
    "GrowthMemory": "openclaw_lab.growth.memory",
    "KnowHub": "openclaw_lab.knowhub.service",
    "KnowHubClient": "openclaw_lab.knowhub.client",
    "LabConfig": "openclaw_lab.config",
    "LabError": "openclaw_lab.errors",
    "Metric": "openclaw_lab.experiments.metrics",
    "Range": "openclaw_lab.experiments.space",
    "Redaction": "openclaw_lab.redaction.spans",
    "Redactor": "openclaw_lab.redaction.redactor",
    "Sample": "openclaw_lab.experiments.dataset",
    "SkillRegistry": "openclaw_lab.skills.registry",
    "Table": "openclaw_lab.experiments.table",
    "Task": "openclaw_lab.experiments.task",
    "When": "openclaw_lab.experiments.space",
    "compare": "openclaw_lab.experiments.compare",
    "evaluate": "openclaw_lab.experiments.evaluate",
    "export": "openclaw_lab.exports.openclaw",
    "gate": "openclaw_lab.experiments.gate",
    "load_dataset": "openclaw_lab.experiments.dataset",
    "load_plugins": "openclaw_lab.plugins.loader",
    "load_sessions": "openclaw_lab.transcripts",
    "preview": "openclaw_lab.experiments.preview",
    "replay": "openclaw_lab.agent.replay",
    "stream": "openclaw_lab.experiments.stream",
    "sweep": "openclaw_lab.experiments.sweep",
    "to_label": "openclaw_lab.experiments.to_label",
    "tune": "openclaw_lab.experiments.tune",
    "with_labels": "openclaw_lab.experiments.labels",
}
HEAVY = (
    "litellm", "pandas", "faiss", "matplotlib", "ipywidgets", "scipy", "sklearn", "numpy", "tiktoken", "rjieba",
    "pyarrow", "fastapi", "uvicorn", "httpx", "pydantic", "IPython", "jupyterlab", "tqdm", "joblib", "zstandard",
    "huggingface_hub",
)  # fmt: skip


def child(code: str) -> str:
    """What a new interpreter prints that regards warnings as errors."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_import_takes_less_than_a_third_of_a_second_of_cpu() -> None:
    code = "import time; before = time.process_time(); import openclaw_lab; print(time.process_time() - before)"
    assert min(float(child(code)) for _ in range(3)) < 0.3


@pytest.mark.parametrize(
    "code",
    [
        "import openclaw_lab",
        "import openclaw_lab; dir(openclaw_lab); openclaw_lab.LabConfig()",
        "import openclaw_lab; openclaw_lab.Detector(openclaw_lab.LabConfig.preset('seed').injection).detect('hi')",
        "from openclaw_lab.cli import _parser; _parser()",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str) -> None:
    loaded = child(f"{code}\nimport sys; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_measuring_neither_draws_nor_calls_a_model() -> None:
    code = (
        "import openclaw_lab as lab, sys\n"
        "data = lab.load_dataset('injection/mini')[:20]\n"
        "str(lab.evaluate('injection', data)), lab.evaluate('injection', data).frame\n"
        "print(*sys.modules)"
    )
    assert not {"matplotlib", "litellm", "ipywidgets", "faiss"} & set(child(code).split())


def test_the_public_names() -> None:
    assert lab.__all__ == sorted([*PUBLIC, "__version__"])
    assert dir(lab) == sorted(lab.__all__)
    assert lab._HOME.keys() == PUBLIC.keys()


@pytest.mark.parametrize(("name", "home"), PUBLIC.items(), ids=list(PUBLIC))
def test_every_public_name_resolves(name: str, home: str) -> None:
    value = getattr(lab, name)
    assert value is getattr(importlib.import_module(home), name)
    assert value.__doc__
    assert getattr(lab, name) is value


def test_names_that_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'evaluat'"):
        _ = lab.evaluat
    assert not hasattr(lab, "_private")
    with pytest.raises(ImportError):
        exec("from openclaw_lab import nothing")


def test_star_import() -> None:
    assert set(child("from openclaw_lab import *; print(*globals())").split()) >= set(PUBLIC)
