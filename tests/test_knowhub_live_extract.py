"""`openclaw-lab serve --extractor litellm:MODEL`: the server asks a model, and says so when it cannot."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from servers import Server
from test_models import KEY, serving

import openclaw_lab.cli
from openclaw_lab.errors import TaskError
from openclaw_lab.knowhub.http import build_app
from openclaw_lab.knowhub.service import KnowHub

TALK = {
    "messages": [{"role": "user", "content": "以后周报都用中位数"}, {"role": "assistant", "content": "好的"}],
    "agent_id": "a1",
    "session_key": "s1",
}


def served(folder: Path, model_url: str) -> Server:
    env = {"OPENAI_API_BASE": model_url, "OPENAI_BASE_URL": model_url, "OPENAI_API_KEY": KEY}
    return Server(folder, "--extractor", "litellm:openai/tiny", env=env)


def extract(server: Server) -> httpx.Response:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        return client.post("/api/extract", json=TALK)


def test_a_model_is_asked(tmp_path: Path) -> None:
    with serving() as model:
        model.answers = [
            {"knowledge": [
                {"task": "周报", "content": "用中位数", "types": ["user_profile"], "score": 4, "evidence": [0]}
            ]}
        ]  # fmt: skip
        with served(tmp_path / "kb", model.options["api_base"]) as server:
            answer = extract(server)
            assert answer.status_code == 200, answer.text
            assert answer.json()["extracted_count"] == 1
        assert len(model.asked) == 1
    with KnowHub.open(tmp_path / "kb", embedder="hash") as kb:
        assert [entry.content for entry in kb.entries()] == ["用中位数"]


def test_a_model_that_is_away_is_503_and_nothing_is_saved(tmp_path: Path) -> None:
    with serving() as model:
        gone = model.options["api_base"]
    with served(tmp_path / "kb", gone) as server:
        answer = extract(server)
        assert answer.status_code == 503, answer.text
        assert "openai/tiny" in answer.text
        assert KEY not in answer.text
    with KnowHub.open(tmp_path / "kb", embedder="hash") as kb:
        assert len(kb) == 0


def test_an_unknown_extractor_is_refused_at_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with KnowHub.open(tmp_path / "kb", embedder="hash") as kb, pytest.raises(TaskError, match="extractor"):
        build_app(kb, extractor="magic")
    command = ["serve", str(tmp_path / "kb"), "--port", "0", "--embedder", "hash", "--extractor", "magic"]
    assert openclaw_lab.cli.main(command) == 2
    assert capsys.readouterr().err.count("\n") == 1
