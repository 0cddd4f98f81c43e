"""The SQLite file: versions, revisions, transactions, what it was made with; and `openclaw-lab verify` over it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openclaw_lab.cli import main
from openclaw_lab.errors import DataError
from openclaw_lab.knowhub.entry import Case, Entry, Source, fingerprint, quality_score
from openclaw_lab.knowhub.service import KnowHub
from openclaw_lab.knowhub.store import Store, checksum_of

ENTRY = Entry("kb_1", "task", "content 内容", ("tool",), helpful=(Case("a", "b"),), source=Source(urls=("u",)))
FORM = fingerprint(ENTRY)
VECTORS = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = Store(tmp_path / "deep" / "kb.sqlite", "e 1", 4)
    yield opened
    opened.close()


def test_an_entry_survives_json() -> None:
    assert Entry.from_dict(json.loads(json.dumps(ENTRY.to_dict()))) == ENTRY
    assert ENTRY.to_dict() == json.loads(json.dumps(dataclasses.asdict(ENTRY)))


ODD = 'a "quoted" \\ line\n\ttab \x00\x1f\x7f\u2028 内容 \U0001f600\''
ODD_CASE = Case(ODD, ODD, ODD, "t")
ODD_SOURCE = Source(ODD, ODD, (ODD, "u"), ODD, ODD, ODD, ODD)
JSON = [
    ENTRY,
    Entry("kb_2", ODD, ODD, (ODD, "b"), 5, (ODD, "s"), ODD, ODD_SOURCE, (ODD_CASE, ODD_CASE), (ODD_CASE,), 7),
    Entry("kb_3", "", "", (), source=Source(name=None), status="superseded", flagged=True),  # type: ignore[arg-type]
    dataclasses.replace(ENTRY, supersedes=("a", "b"), superseded_by=ODD, conflicts_with=(ODD,), created_at="c"),
]


@pytest.mark.parametrize("entry", JSON)
def test_json_is_what_the_standard_library_writes(entry: Entry) -> None:
    assert entry.to_json() == json.dumps(entry.to_dict(), ensure_ascii=False)


QUALITY = [(4, 0, 0, 4.0), (4, 4, 0, 6.0), (5, 4, 0, 7.0), (3, 2, 2, 3.0), (1, 0, 100, -1.94), (5, 1000, 0, 7.99)]


@pytest.mark.parametrize(("score", "good", "bad", "quality"), QUALITY)
def test_quality(score: int, good: int, bad: int, quality: float) -> None:
    case = Case("", "")
    entry = dataclasses.replace(ENTRY, score=score, helpful=(case,) * good, harmful=(case,) * bad)
    assert quality_score(entry) == pytest.approx(quality, abs=0.01)


def test_what_is_put_is_there_with_its_history(store: Store) -> None:
    with store.write() as writing:
        assert writing.revision == 1
        writing.put(ENTRY, ["content"], VECTORS, "created", FORM)
        assert store.get("kb_1") is None, "a reader sees only what is committed"
    second = dataclasses.replace(ENTRY, version=2, score=5)
    with store.write() as writing:
        assert writing.current("kb_1") == ENTRY
        writing.change(second, "helpful")
    assert store.get("kb_1") == second
    assert store.history("kb_1") == [("created", ENTRY), ("helpful", second)]
    (row,) = store.since(1)
    assert (row.entry, row.revision, row.terms, row.checksum) == (second, 2, ["content"], checksum_of(VECTORS))
    assert row.form == FORM
    assert np.array_equal(row.vectors, VECTORS)
    assert list(store.since(2)) == []
    assert (store.count(), store.revision(), store.damage()) == (1, 2, [])


def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    def half() -> None:
        with store.write() as writing:
            writing.put(ENTRY, [], VECTORS, "created", FORM)
            writing.put(ENTRY, [], VECTORS, "created", FORM)  # the same version twice

    with pytest.raises(DataError, match=r"UNIQUE.*nothing was saved"):
        half()
    assert (store.count(), store.history("kb_1"), store.revision()) == (0, [], 0)
    with store.write() as writing:
        writing.put(ENTRY, [], VECTORS, "created", FORM)
    assert store.count() == 1


def test_pages_hide_no_row(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openclaw_lab.knowhub.store._PAGE", 3)
    for block in range(4):
        with store.write() as writing:
            for number in range(5):
                writing.put(dataclasses.replace(ENTRY, id=f"{block} {number}"), [], VECTORS, "created", FORM)
    for revision in range(5):
        rows = [row.entry.id for row in store.since(revision)]
        assert rows == [f"{block} {number}" for block in range(revision, 4) for number in range(5)]


def test_answers_are_kept(store: Store) -> None:
    with store.write() as writing:
        assert writing.answer("k") is None
        writing.remember_answer("k", {"id": "a"})
    with store.write() as writing:
        assert writing.answer("k") == {"id": "a"}


def test_what_it_was_made_with(store: Store) -> None:
    for embedder, dimension in (("f 1", 4), ("e 2", 4), ("e 1", 5)):
        with pytest.raises(DataError, match=r"made with e 1 \(4 numbers\).*--reindex EMBEDDER"):
            Store(store.path, embedder, dimension)
    again = Store(store.path)
    assert (again.embedder, again.dimension, again.identity) == ("e 1", 4, store.identity)
    again.close()
    with pytest.raises(DataError, match="expected an existing KnowHub store"):
        Store(store.path.with_name("none"))


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "kb.sqlite", "e 1", 4)
    store.close()
    with pytest.raises(DataError, match="closed database"):
        store.get("kb_1")


# --- the command --------------------------------------------------------------------------------------------------


def made(folder: Path) -> str:
    with KnowHub.open(folder, embedder="hash") as kb:
        return kb.save(task="t", content="the words of it", types=["tool"]).id


def test_verify_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry_id = made(tmp_path / "kb")
    folder = str(tmp_path / "kb")
    assert main(["verify", folder]) == 0
    assert capsys.readouterr().out == f"{folder}: 1 entries, no problems\n"
    store = Store(tmp_path / "kb" / "knowhub.sqlite")
    store._connection.execute("UPDATE entries SET vectors = zeroblob(1024)")
    store.close()
    assert main(["verify", folder, "--rebuild"]) == 1
    out = capsys.readouterr().out
    assert f"the vectors of {entry_id} differ from their checksum" in out
    assert out.endswith("1 entries, 1 problem\n")
    assert main(["verify", folder, "--reindex", "hash"]) == 0
    assert main(["verify", folder]) == 0


def test_verify_reindexes_without_the_old_embedder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "kb"
    with KnowHub.open(folder, embedder=lambda texts: np.ones((len(texts), 7))) as kb:
        kb.save(task="t", content="the words of it", types=["tool"])
    assert main(["verify", str(folder), "--reindex", "hash"]) == 0
    with KnowHub.open(folder, embedder="hash") as kb:
        assert kb.search("the words of it")[0].similarity > 0.5
        assert kb.verify() == []
    assert main(["verify", str(folder), "--reindex", "hsah"]) == 2
    assert "one of" in capsys.readouterr().err


def test_verify_of_nothing_is_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path / "none")]) == 2
    assert "expected an existing KnowHub store" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
