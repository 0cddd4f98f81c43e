"""What a KnowHub keeps when things go wrong: kill -9, many processes, full disks, broken index files."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from openclaw_lab.errors import DataError, DataWarning
from openclaw_lab.knowhub.draft import draft
from openclaw_lab.knowhub.service import KnowHub

INDEX, STORE = "knowhub.index", "knowhub.sqlite"


def fill(folder: Path, count: int = 20) -> list[str]:
    """The ids of new entries in a closed knowledge base."""
    with KnowHub.open(folder, embedder="hash") as kb:
        return [
            kb.save(task=f"task {n}", content=f"knowledge number {n} of {n * 97}", types=["tool"]).id
            for n in range(count)
        ]


def answers(kb: KnowHub) -> list[tuple[str, float, float]]:
    found = [hit for query in ("knowledge number 3", "task 7", "of 970") for hit in kb.search(query)]
    return [(hit.entry.id, round(hit.similarity, 5), round(hit.score, 5)) for hit in found]


# --- kill -9 ------------------------------------------------------------------------------------------------------

# Saves, updates and evolves; says what was acknowledged, one line each, in one write.
WRITER = """
import os, sys
from openclaw_lab.knowhub.service import KnowHub
kb, name = KnowHub.open(sys.argv[1], embedder="hash"), sys.argv[2]
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())
say("ready")
number = 0
while True:
    entry = kb.save(task=f"{name} {number}", content=f"text {name} {number} {number * 7919}", types=["tool"]).id
    say("saved", entry)
    if number % 3 == 0:
        say("updated", entry, kb.update(entry, is_helpful=True, feedback=f"seen {number}").version)
    if number % 9 == 0:
        say("evolved", entry, kb.evolve(entry).version)
    if number % 5 == 0:
        about = f"{name} {number} b"
        kb.save_many([{"task": f"{about}{n}", "content": f"{about} {n}", "types": ["tool"]} for n in range(3)])
        say("batch", f"{name} {number} b")
    number += 1
"""


def kill_while_saving(folder: Path, name: str, delay: float) -> list[list[str]]:
    """What a process was told before it was killed."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(folder), name], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(delay)
    process.kill()
    said, _ = process.communicate(timeout=30)
    return [line.split() for line in said.decode().splitlines(keepends=True) if line.endswith("\n")]


def check_acknowledged(kb: KnowHub, said: list[list[str]]) -> None:
    tasks = [entry.task for entry in kb.entries()]
    for what, *rest in said:
        if what == "batch":
            assert sum(task.startswith(" ".join(rest)) for task in tasks) == 3
            continue
        entry = kb.get(rest[0])
        assert entry is not None
        assert entry.version >= (int(rest[1]) if len(rest) > 1 else 1)
    for what, entry_id in ((each[0], each[1]) for each in said[-5:] if each[0] != "batch"):
        entry = kb.get(entry_id)
        assert entry is not None, what
        assert kb.search(entry.text, top_k=1)[0].entry.id == entry_id


def kills(folder: Path, times: int) -> int:
    """Kill a writer so many times on one folder; how many acknowledgements were checked."""
    seed, checked = random.Random(0), 0
    for number in range(times):
        said = kill_while_saving(folder, f"w{number}", seed.uniform(0, 0.25))
        with KnowHub.open(folder, embedder="hash") as kb:
            check_acknowledged(kb, said)
            assert kb.verify() == []
        checked += len(said)
    return checked


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    assert kills(tmp_path, 5) > 5


@pytest.mark.slow
def test_200_kills(tmp_path: Path) -> None:
    checked = sum(kills(tmp_path / str(round_), 20) for round_ in range(10))
    print(f"{checked} acknowledgements after 200 kills")
    assert checked > 1_000


def test_kill_9_while_the_folder_is_made(tmp_path: Path) -> None:
    code = "import sys; from openclaw_lab.knowhub.service import KnowHub; KnowHub.open(sys.argv[1], embedder='hash')"
    for number in range(4):
        folder = tmp_path / str(number)
        process = subprocess.Popen([sys.executable, "-c", code, str(folder)])
        end = time.monotonic() + 20
        while not folder.exists() and time.monotonic() < end:
            time.sleep(0.0005)
        time.sleep(number * 0.002)
        process.kill()
        process.wait()
        with KnowHub.open(folder, embedder="hash") as kb:
            assert kb.save(task="a", content="b", types=["c"]).action == "created"
            assert kb.verify() == []


UPDATER = """
import os, sys
from openclaw_lab.knowhub.service import KnowHub
kb = KnowHub.open(sys.argv[1], embedder="hash")
os.write(1, b"ready\\n")
for round in range(1000):
    for entry_id in sys.argv[2:]:
        entry = kb.update(entry_id, is_helpful=True, feedback=f"round {round}")
        if round % 3 == 1:
            entry = kb.evolve(entry_id)
        os.write(1, f"{entry_id} {entry.version}\\n".encode())
"""


def test_kill_9_in_the_middle_of_updates_of_existing_entries(tmp_path: Path) -> None:
    ids = fill(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", UPDATER, str(tmp_path), *ids], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(150):
        process.stdout.readline()
    process.kill()
    told = {name: int(number) for name, number in (line.split() for line in _lines(process))}
    with KnowHub.open(tmp_path, embedder="hash") as kb:
        assert kb.verify() == []
        for entry_id in ids:
            entry = kb.get(entry_id)
            assert entry is not None
            assert entry.version >= told.get(entry_id, 7)
            assert [each.version for _, each in kb.history(entry_id)] == list(range(1, entry.version + 1))
            assert kb.search(entry.text, top_k=1)[0].entry.id == entry_id


def _lines(process: subprocess.Popen[bytes]) -> list[str]:
    said, _ = process.communicate(timeout=30)
    return [line for line in said.decode().splitlines(keepends=True) if line.endswith("\n")]


def test_killed_and_without_its_index_file_it_says_that_it_rebuilds(tmp_path: Path) -> None:
    kill_while_saving(tmp_path, "w", 0.3)
    (tmp_path / INDEX).unlink()
    with pytest.warns(DataWarning, match="is missing; built again"):
        kb = KnowHub.open(tmp_path, embedder="hash")
    assert kb.search("text w 0")
    assert kb.verify() == []
    kb.close()


def test_900_of_1000_retired_then_another_embedder(tmp_path: Path) -> None:
    with KnowHub.open(tmp_path, embedder="hash") as kb:
        texts = [f"knowledge number {n} of {n * 97}" for n in range(1_000)]
        items = [{"task": f"task {n}", "content": text, "types": ["tool"]} for n, text in enumerate(texts)]
        saved = kb.save_many(items)
        for each in saved[:900]:
            kb.undo(each.id)
        assert len(kb.search("knowledge number", top_k=1_000)) == 100
    (tmp_path / INDEX).write_bytes(b"an index that cannot be opened")
    with pytest.warns(DataWarning, match="does not fit"):
        kb = KnowHub.open(tmp_path, embedder="hash")
    kb.reindex(_lengths)
    assert kb.verify() == []
    assert int(kb._index.facts.mask().sum()) == 100
    kb.close()


def _lengths(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), float(sum(map(ord, text)) % 97), 1.0] for text in texts]


# --- several processes --------------------------------------------------------------------------------------------

SAVER = """
import sys
from openclaw_lab.knowhub.service import KnowHub
with KnowHub.open(sys.argv[1], embedder="hash") as kb:
    for number in range(int(sys.argv[3])):
        about = f"{sys.argv[2]} {number}"
        kb.save(task=about, content=f"process {about} of {number * 7919}", types=["tool"])
"""


def save_from_processes(folder: Path, processes: int, saves: int) -> None:
    commands = [[sys.executable, "-c", SAVER, str(folder), f"p{number}", str(saves)] for number in range(processes)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for command in commands]
    for process in running:
        _, errors = process.communicate(timeout=1_500)
        assert process.returncode == 0, errors.decode()[-2_000:]
    with KnowHub.open(folder, embedder="hash") as kb:
        entries = kb.entries(include_superseded=True)
        assert len(entries) == len(kb) == processes * saves
        assert len({each.id for each in entries}) == len({each.task for each in entries}) == processes * saves
        assert len(kb._index) == processes * saves
        assert kb.verify() == []


def test_processes_save_on_one_folder(tmp_path: Path) -> None:
    save_from_processes(tmp_path / "new", 4, 25)


@pytest.mark.slow
def test_8_processes_save_1000_each(tmp_path: Path) -> None:
    save_from_processes(tmp_path / "new", 8, 1_000)


def test_another_opener_sees_what_is_written(tmp_path: Path) -> None:
    with KnowHub.open(tmp_path, embedder="hash") as one, KnowHub.open(tmp_path, embedder="hash") as other:
        entry_id = one.save(task="a", content="seen by both", types=["tool"], score=3).id
        assert other.search("seen by both")[0].entry.id == entry_id
        other.update(entry_id, is_helpful=True, feedback="on time")
        other.evolve(entry_id)
        assert one.search("on time")[0].entry.version == 3
        other.undo(entry_id)
        assert one.get(entry_id) == other.get(entry_id)
        assert one.verify() == other.verify() == []


def test_a_failed_write_leaves_no_gap_that_hides_rows(tmp_path: Path) -> None:
    with KnowHub.open(tmp_path, embedder="hash") as one, KnowHub.open(tmp_path, embedder="hash") as other:
        for number in range(4):
            with pytest.raises(ZeroDivisionError):
                _fail(one, f"lost {number}")
            entry_id = other.save(task="kept", content=f"kept {number} {number * 31}", types=["tool"]).id
            assert one.search(f"kept {number} {number * 31}", top_k=1)[0].entry.id == entry_id
            assert "lost" not in {hit.entry.task for hit in one.search("lost", top_k=50)}
            assert one.verify() == other.verify() == []


def _fail(kb: KnowHub, content: str) -> None:
    """A transaction that ends before its commit."""
    entry, _ = draft({"task": "lost", "content": content, "types": ["tool"]}, lambda _: False)
    with kb._writing() as batch:
        batch.put(entry, kb._vectors("t", "t"), "created")
        raise ZeroDivisionError


# --- the index's file ---------------------------------------------------------------------------------------------


def _header(path: Path, **changes: Any) -> None:
    line, _, body = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(line), **changes}).encode() + b"\n" + body)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)


BROKEN: dict[str, Any] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "100 bytes": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "one byte short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "garbage": lambda path: path.write_bytes(random.Random(1).randbytes(50_000)),
    "text": lambda path: path.write_text("not an index\n"),
    "a list": lambda path: path.write_text("[1]\n"),
    "foreign": lambda path: _header(path, magic="faiss"),
    "one bit": _flip,
    "another embedder": lambda path: _header(path, embedder="other 1"),
    "another dimension": lambda path: _header(path, dimension=128),
    "another store": lambda path: _header(path, store="0" * 32),
    "newer": lambda path: _header(path, revision=10_000),
    "no entries": lambda path: _header(path, entries=[], rows=0),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_index_file_is_rebuilt_with_a_warning(tmp_path: Path, how: str) -> None:
    fill(tmp_path)
    with KnowHub.open(tmp_path, embedder="hash") as kb:
        before = answers(kb)
    BROKEN[how](tmp_path / INDEX)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kb = KnowHub.open(tmp_path, embedder="hash")
        assert answers(kb) == before
    told = [each for each in seen if each.category is DataWarning]
    assert len(told) == (2 if how == "a folder" else 1)
    assert "built again from the store" in str(told[0].message)
    if how != "a folder":
        assert kb.verify() == []
        kb.close()
        with KnowHub.open(tmp_path, embedder="hash") as again:  # and once only
            assert answers(again) == before
    else:
        assert "does not fit" in kb.verify()[0]
        (tmp_path / INDEX).rmdir()
        kb.rebuild()
        assert kb.verify() == []
        kb.close()


def test_a_stale_file_is_caught_up_without_a_word(tmp_path: Path) -> None:
    ids = fill(tmp_path)
    stale = (tmp_path / INDEX).read_bytes()
    with KnowHub.open(tmp_path, embedder="hash") as kb:
        kb.update(ids[3], is_helpful=True, feedback="works well")
        kb.evolve(ids[3])
        kb.save(task="later", content="written after the file", types=["tool"])
        before = answers(kb)
    (tmp_path / INDEX).write_bytes(stale)
    with KnowHub.open(tmp_path, embedder="hash") as kb:
        assert answers(kb) == before
        assert kb.search("written after the file")[0].entry.task == "later"
        assert kb.verify() == []


def test_an_index_of_an_older_copy_of_the_store_is_noticed(tmp_path: Path) -> None:
    ids = fill(tmp_path)
    copy = (tmp_path / STORE).read_bytes()
    with KnowHub.open(tmp_path, embedder="hash") as kb:
        kb.update(ids[0], is_helpful=True, feedback="one way")
        kb.evolve(ids[0])
    index = (tmp_path / INDEX).read_bytes()
    (tmp_path / STORE).write_bytes(copy)
    (tmp_path / INDEX).unlink()
    with pytest.warns(DataWarning):
        kb = KnowHub.open(tmp_path, embedder="hash")
    kb.update(ids[0], is_helpful=True, feedback="another way")
    kb.evolve(ids[0])
    kb.close()
    (tmp_path / INDEX).write_bytes(index)
    with pytest.warns(DataWarning, match="other vectors"):
        kb = KnowHub.open(tmp_path, embedder="hash")
    assert kb.verify() == []
    kb.close()


def test_a_store_that_is_no_store_is_one_error(tmp_path: Path) -> None:
    (tmp_path / STORE).write_bytes(b"not a database at all, but long enough to look at" * 40)
    with pytest.raises(DataError, match="not a database"):
        KnowHub.open(tmp_path, embedder="hash")
    other = tmp_path / "other"
    other.mkdir()
    connection = sqlite3.connect(other / STORE)
    connection.execute("CREATE TABLE meta(key TEXT, value TEXT)")
    connection.execute("INSERT INTO meta VALUES ('format', '99')")
    connection.commit()
    connection.close()
    with pytest.raises(DataError, match="format 99"):
        KnowHub.open(other, embedder="hash")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError):
        KnowHub.open(tmp_path / "file" / "kb", embedder="hash")


def test_verify_names_what_was_changed_behind_its_back(tmp_path: Path) -> None:
    ids = fill(tmp_path)
    kb = KnowHub.open(tmp_path, embedder="hash")
    kb.update(ids[2], is_helpful=True)
    connection = sqlite3.connect(tmp_path / STORE)
    connection.execute("UPDATE entries SET vectors = zeroblob(1024) WHERE id = ?", (ids[0],))
    connection.execute(
        "UPDATE entries SET body = replace(body, '\"score\": 3', '\"score\": 5') WHERE id = ?", (ids[1],)
    )
    connection.execute("DELETE FROM history WHERE id = ?", (ids[2],))
    connection.execute("DELETE FROM entries WHERE id = ?", (ids[3],))
    connection.execute("DROP TRIGGER entries_to_history")
    connection.execute("UPDATE entries SET body = replace(body, 'number', 'n') WHERE id = ?", (ids[4],))
    connection.commit()
    connection.close()
    found = "\n".join(kb.verify())
    for part in (
        f"the vectors of {ids[0]} differ", f"{ids[1]} differs from the last version", f"{ids[2]} lacks a version",
        f"{ids[4]} differs from its checksum",
        f"index: {ids[3]} is not in the store", f"index file: {ids[3]} is not in the store",
        f"index: {ids[1]} has another score",
    ):  # fmt: skip
        assert part in found
    kb.close()


# --- no room, no right --------------------------------------------------------------------------------------------


def test_a_full_disk_is_one_error_and_the_store_stays_readable(tmp_path: Path) -> None:
    ids = fill(tmp_path)
    with KnowHub.open(tmp_path, embedder="hash") as kb:
        pages = kb._store._connection.execute("PRAGMA page_count").fetchone()[0]
        kb._store._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        before = answers(kb)
        big = [{"task": f"big {n}", "content": f"word{n} " * 3_000, "types": ["tool"]} for n in range(5)]
        with pytest.raises(DataError, match=r"full.*nothing was saved"):
            kb.save_many(big)
        assert answers(kb) == before
        assert len(kb) == len(ids)
        assert kb.verify() == []
        kb._store._connection.execute("PRAGMA max_page_count = 1000000")
        assert kb.save_many(big)[0].action == "created"
        assert kb.verify() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("mount") is None:
        pytest.skip("no mount command")
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("cannot mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    kb = KnowHub.open(small_disk / "kb", embedder="hash")
    saved: list[str] = []
    with pytest.raises(DataError, match="nothing was saved"):
        _save_on(kb, saved)
    assert len(kb) == len(saved) > 10
    assert kb.search("text 5")
    assert kb.verify() == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # there may be no room for the index's file
        kb.close()
        kb = KnowHub.open(small_disk / "kb", embedder="hash")
        assert {entry.id for entry in kb.entries()} == set(saved)
        assert kb.search("text 5")
        kb.close()


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _save_on(kb: KnowHub, saved: list[str]) -> None:
    for number in range(5_000):
        saved += [kb.save(task=f"t {number}", content=f"text {number} " * 200, types=["tool"]).id]


# Runs as a user who may only read; what the package reads of its own is read before.
READER = """
import os, sys, tempfile, warnings
from openclaw_lab.errors import DataError
from openclaw_lab.knowhub.service import KnowHub
with tempfile.TemporaryDirectory() as warm, KnowHub.open(warm, embedder="hash") as kb:
    kb.save(task="中文", content="b", types=["c"])
    assert kb.search("中文") and not kb.verify()
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
warnings.simplefilter("error")
with KnowHub.open(sys.argv[1], embedder="hash") as kb:
    print(len(kb), kb.search("knowledge number 3", top_k=1)[0].entry.task, kb.verify())
    save = lambda: kb.save(task="a", content="b", types=["c"])
    for change in (save, lambda: kb.update(sys.argv[2], is_helpful=True)):
        try:
            change()
        except DataError as error:
            print(error)
    print(len(kb), kb.search("knowledge number 4", top_k=1)[0].entry.task)
"""


def _closed(folder: Path) -> None:
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)


@pytest.mark.parametrize("state", ["closed", "killed", "open"])
def test_a_read_only_folder_is_read_and_every_write_is_one_error(public: Path, state: str) -> None:
    folder = public / "kb"
    ids = fill(folder)
    writer = None
    if state != "closed":  # the last writes are in the log only
        writer = KnowHub.open(folder, embedder="hash")
        ids.append(writer.save(task="late", content="in the log only", types=["tool"]).id)
    if state == "killed":
        shutil.copytree(folder, public / "copy", ignore=shutil.ignore_patterns("*-shm"))
        folder = public / "copy"
    _closed(folder)
    try:
        command = [sys.executable, "-c", READER, str(folder), ids[0]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
    finally:
        folder.chmod(0o755)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0] == f"{len(ids)} task 3 []"
    assert len(lines) == 4
    assert all("read-only" in line and "nothing was saved" in line for line in lines[1:3])
    assert lines[3] == f"{len(ids)} task 4"
    if writer is not None:
        writer.close()


def test_a_place_where_nothing_can_be_made(tmp_path: Path) -> None:
    code = (
        "import os, sys, openclaw_lab.knowhub.service as s, faiss\n"
        "os.geteuid() or os.setuid(65534)\n"
        "try: s.KnowHub.open(sys.argv[1], embedder='hash')\n"
        "except s.DataError as error: print(error)"
    )
    tmp_path.chmod(0o555)
    command = [sys.executable, "-c", code, str(tmp_path / "kb")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
    tmp_path.chmod(0o755)
    assert "read-only" in done.stdout, done.stderr


def test_closing_twice_and_closing_when_killed_by_an_error(tmp_path: Path) -> None:
    kb = KnowHub.open(tmp_path, embedder="hash")
    kb.close()
    kb.close()
    with pytest.raises(DataError):
        kb.search("anything")
