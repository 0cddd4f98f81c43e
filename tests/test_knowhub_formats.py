"""Stores of format 1, in which the history has the current version too: read, brought to format 2, and gone on with."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from openclaw_lab.knowhub.care import INDEX, STORE
from openclaw_lab.knowhub.entry import Case, fingerprint
from openclaw_lab.knowhub.service import KnowHub

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE entries(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL,
  fingerprint INTEGER NOT NULL, checksum INTEGER NOT NULL, body TEXT NOT NULL, terms TEXT NOT NULL,
  vectors BLOB NOT NULL);
CREATE INDEX entries_by_revision ON entries(revision);
CREATE INDEX entries_by_fingerprint ON entries(fingerprint);
CREATE TABLE history(id TEXT NOT NULL, version INTEGER NOT NULL, action TEXT NOT NULL, at TEXT NOT NULL,
  body TEXT NOT NULL);
CREATE UNIQUE INDEX history_by_id ON history(id, version);
CREATE TABLE requests(key TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID;
"""
Versions = list[tuple[str, int]]


def made_before(folder: Path, count: int = 5) -> list[str]:
    """A store of format 1 whose first entry has two versions; the ids of its entries."""
    with KnowHub.open(folder / "now", embedder="hash") as kb:
        for number in range(count):
            kb.save(task=f"task {number}", content=f"text {number} of {number * 97}", types=["tool"])
        rows, meta = list(kb._store.since(0)), kb._store._meta()
    (folder / "kb").mkdir()
    shutil.copy(folder / "now" / INDEX, folder / "kb" / INDEX)
    connection = sqlite3.connect(folder / "kb" / STORE)
    connection.executescript(SCHEMA)
    connection.executemany("INSERT INTO meta VALUES (?, ?)", {**meta, "format": "1"}.items())
    for row in rows:
        versions = [("created", row.entry)]
        if row is rows[0]:
            helped = dataclasses.replace(row.entry, version=2, helpful=(Case("c", "有效"),))
            versions.append(("helpful", helped))
        for action, entry in versions:
            kept = (entry.id, entry.version, action, entry.updated_at, json.dumps(entry.to_dict(), ensure_ascii=False))
            connection.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", kept)
        form = fingerprint(row.entry)
        values = (row.entry.id, row.revision, form, row.checksum, kept[-1], " ".join(row.terms), row.vectors.tobytes())
        connection.execute("INSERT INTO entries VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", values)
    connection.commit()
    connection.close()
    return [row.entry.id for row in rows]


def versions(kb: KnowHub, entry_id: str) -> Versions:
    return [(action, entry.version) for action, entry in kb.history(entry_id)]


def test_a_store_of_format_1_goes_on_in_format_2(tmp_path: Path) -> None:
    ids = made_before(tmp_path)
    with KnowHub.open(tmp_path / "kb", embedder="hash") as kb:
        assert kb._store._meta()["format"] == "2"
        assert kb.verify() == []
        assert versions(kb, ids[0]) == [("created", 1), ("helpful", 2)]
        assert kb.get(ids[0]) == kb.history(ids[0])[-1][1]
        assert kb.search("text 3 of 291")[0].entry.id == ids[3]
        again = kb.save(task="task 4", content="text 4 of 388", types=["tool"])
        assert (again.action, again.id) == ("duplicate", ids[4])
        kb.update(ids[0], is_helpful=False, feedback="bad")
        kb.update(ids[1], is_helpful=True)
        kb.evolve(ids[0])
        kb.undo(ids[0])
        assert versions(kb, ids[0]) == [("created", 1), ("helpful", 2), ("harmful", 3), ("evolved", 4), ("undo", 5)]
        assert versions(kb, ids[1]) == [("created", 1), ("helpful", 2)]
        assert kb.verify() == []
    with KnowHub.open(tmp_path / "kb", embedder="hash") as kb:
        assert (len(kb), kb.verify(), len(kb.history(ids[0]))) == (5, [], 5)


def test_a_read_only_store_of_format_1_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = made_before(tmp_path)
    monkeypatch.setattr("openclaw_lab.knowhub.store.can_write", lambda path: False)
    with KnowHub.open(tmp_path / "kb", embedder="hash") as kb:
        assert kb._store._meta()["format"] == "1"
        assert versions(kb, ids[0]) == [("created", 1), ("helpful", 2)]
        assert versions(kb, ids[1]) == [("created", 1)]
        assert kb._store.damage() == []
        connection = sqlite3.connect(tmp_path / "kb" / STORE)
        connection.execute("DELETE FROM history WHERE id = ? AND version = 1", (ids[0],))
        connection.execute("DELETE FROM history WHERE id = ?", (ids[1],))
        connection.commit()
        connection.close()
        found = kb._store.damage()
        assert any(f"{ids[0]} lacks a version" in each for each in found)
        assert any(f"{ids[1]} differs from" in each for each in found)


def test_damage_of_format_1_is_still_seen_after_the_change(tmp_path: Path) -> None:
    ids = made_before(tmp_path)
    with KnowHub.open(tmp_path / "kb", embedder="hash") as kb:
        connection = sqlite3.connect(tmp_path / "kb" / STORE)
        connection.execute("DELETE FROM history WHERE id = ? AND version = 1", (ids[0],))
        connection.execute("DELETE FROM history WHERE id = ?", (ids[1],))
        connection.commit()
        connection.close()
        found = kb.verify()
        assert any(f"{ids[0]} lacks a version" in each for each in found)
        assert any(f"{ids[1]} differs from" in each for each in found)


def test_a_writer_of_format_1_loses_no_version(tmp_path: Path) -> None:
    """One that had the store open before: it writes each version to the history itself, and overwrites the body."""
    made_before(tmp_path)
    with KnowHub.open(tmp_path / "kb", embedder="hash") as kb:
        new = kb.save(task="new", content="saved in format 2", types=["tool"]).id
        connection = sqlite3.connect(tmp_path / "kb" / STORE)
        entry = kb.get(new)
        assert entry is not None
        later = dataclasses.replace(entry, version=2, harmful=(Case("c", "无效"),))
        body, revision = json.dumps(later.to_dict(), ensure_ascii=False), kb.revision + 1
        connection.execute("UPDATE entries SET revision = ?, body = ? WHERE id = ?", (revision, body, new))
        connection.execute("INSERT INTO history VALUES (?, 2, 'harmful', '', ?)", (new, body))
        connection.commit()
        connection.close()
        assert versions(kb, new) == [("created", 1), ("harmful", 2)]
        assert kb.verify() == []
        kb.update(new, is_helpful=True)
        assert versions(kb, new) == [("created", 1), ("harmful", 2), ("helpful", 3)]
        assert kb.verify() == []


OPENER = """
import sys
from openclaw_lab.knowhub.service import KnowHub
sys.stdin.readline()
with KnowHub.open(sys.argv[1], embedder="hash") as kb:
    kb.save(task=sys.argv[2], content=f"said by {sys.argv[2]}", types=["tool"])
"""


def test_several_processes_bring_a_store_to_format_2_at_once(tmp_path: Path) -> None:
    ids = made_before(tmp_path)
    command = [sys.executable, "-W", "ignore", "-c", OPENER, str(tmp_path / "kb")]
    openers = [subprocess.Popen([*command, f"p{n}"], stdin=subprocess.PIPE) for n in range(4)]
    for each in openers:
        assert each.stdin is not None
        each.stdin.close()
    assert [each.wait(timeout=60) for each in openers] == [0] * 4
    with KnowHub.open(tmp_path / "kb", embedder="hash") as kb:
        assert len(kb) == len(ids) + 4
        assert kb.verify() == []
