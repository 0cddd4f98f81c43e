"""The truth of a knowledge base: one SQLite file (WAL, synchronous FULL). Nothing is ever deleted from it.

Every write is one transaction; when it returns, it is on the disk. `revision` counts writes, so that another process
sees what is new. Vectors lie beside their entries: an index can be built again without the embedder.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from openclaw_lab.errors import DataError
from openclaw_lab.knowhub.database import can_write, connect, reader
from openclaw_lab.knowhub.embed import Vectors
from openclaw_lab.knowhub.entry import Entry, fingerprint

FORMAT = "1"
_PAGE = 2_000


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as it is stored: its current version, its words, its vectors (one a piece, the first the whole).

    `checksum` (CRC 32) tells whether vectors are the stored ones without reading them.
    """

    entry: Entry
    revision: int
    terms: list[str]
    vectors: Vectors
    checksum: int


def checksum_of(vectors: Vectors) -> int:
    """The CRC 32 of vectors, as it is stored beside them."""
    return zlib.crc32(np.ascontiguousarray(vectors, dtype=np.float32).tobytes())


class Store:
    """One open database file, safe for several threads and several processes.

    Without an embedder's name and dimension, those that it was made with are taken.
    """

    def __init__(self, path: Path, embedder: str | None = None, dimension: int | None = None) -> None:
        self.path = path
        self._lock, self._reading, self._aside = threading.RLock(), threading.RLock(), contextlib.ExitStack()
        if embedder is None and not os.path.exists(path):
            raise DataError(str(path), expected="an existing KnowHub store", todo="check the folder")
        self.writable = can_write(path)
        if not self.writable and not os.path.exists(path):
            raise DataError(str(path.parent), "a folder that is read-only", "one that can be written")
        try:
            if self.writable:
                self._connection = connect(path)
                self._aside.callback(self._connection.close)
            self._reader = reader(path, self._aside)
            self._aside.callback(self._reader.close)
            self.embedder, self.dimension, self.identity = self._check_meta(embedder, dimension)
        except BaseException:
            self._aside.close()
            raise

    def close(self) -> None:
        """Close the file; everything acknowledged is in it already."""
        with self._lock, self._reading:
            self._aside.close()

    def alone(self) -> contextlib.AbstractContextManager[object]:
        """Held while nobody else in this process writes; to be taken before any lock of its user."""
        return self._lock

    # --- writing --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self) -> Iterator[Writing]:
        """One transaction: all of it or nothing. Waits for other writers."""
        if not self.writable:
            raise DataError(str(self.path), "a store that is read-only", "one that can be written", "nothing was saved")
        with self._lock, self._transaction():
            meta = dict(self._connection.execute("SELECT key, value FROM meta"))
            if (meta["embedder"], meta["dimension"]) != (self.embedder, str(self.dimension)):
                raise self._other_embedder(meta)
            yield Writing(self._connection, _revision(self._connection) + 1)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise self._fault(error, "a store that can be written", "nothing was saved") from None
            raise

    def _fault(self, error: sqlite3.Error, expected: str, todo: str = "") -> DataError:
        return DataError(str(self.path), str(error), expected, todo)

    # --- reading: what is committed, also while a transaction is open ---------------------------------------------

    def _read(self, query: str, values: tuple[object, ...] = ()) -> list[Any]:
        with self._reading:
            try:
                return self._reader.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise self._fault(error, "a store that is open and whole") from None

    def revision(self) -> int:
        """The number of the last write."""
        return int(self._read("SELECT coalesce(max(revision), 0) FROM entries")[0][0])

    def since(self, revision: int, *, vectors: bool = True) -> Iterator[Row]:
        """Entries written after a revision, oldest write first; without their vectors when they are not wanted."""
        column = "vectors" if vectors else "x''"
        query = (
            f"SELECT revision, number, body, terms, checksum, {column} FROM entries"
            f" WHERE (revision, number) > (?, ?) ORDER BY revision, number LIMIT {_PAGE}"
        )
        last = (revision, 1 << 62)
        while page := self._read(query, last):
            last = page[-1][:2]
            for number, _, body, terms, checksum, blob in page:
                yield Row(entry_of(body), number, terms.split(" ") if terms else [], self._vectors(blob), checksum)

    def _vectors(self, blob: bytes) -> Vectors:
        if len(blob) % (4 * self.dimension):
            raise self._other_embedder(dict(self._read("SELECT key, value FROM meta")))
        return np.frombuffer(blob, dtype=np.float32).reshape(-1, self.dimension)

    def checksums(self) -> dict[str, tuple[int, int]]:
        """For each id its revision and the checksum of its vectors."""
        return {
            key: (revision, check) for key, revision, check in self._read("SELECT id, revision, checksum FROM entries")
        }

    def get(self, entry_id: str) -> Entry | None:
        """The current version of an entry, or None."""
        found = self._read("SELECT body FROM entries WHERE id = ?", (entry_id,))
        return entry_of(found[0][0]) if found else None

    def history(self, entry_id: str) -> list[tuple[str, Entry]]:
        """Every version of an entry with the action that made it, oldest first."""
        return [(action, entry_of(body)) for action, body in self._read(_HISTORY, (entry_id,))]

    def count(self) -> int:
        """How many entries there are, whatever their status."""
        return int(self._read("SELECT count(*) FROM entries")[0][0])

    def damage(self) -> list[str]:
        """What SQLite's own check finds wrong, and entries that differ from their history; empty when nothing is."""
        found = [str(row[0]) for row in self._read("PRAGMA integrity_check") if row[0] != "ok"]
        found += [f"{each[0]} differs from the last version of its history" for each in self._read(_UNEQUAL)]
        found += [f"{each[0]} lacks a version in its history" for each in self._read(_GAPS)]
        return found

    # --- what it was made with ------------------------------------------------------------------------------------

    def _check_meta(self, embedder: str | None, dimension: int | None) -> tuple[str, int, str]:
        stored = self._meta()
        if not stored and self.writable and embedder is not None:
            with self._transaction():
                self._connection.execute(
                    "INSERT OR IGNORE INTO meta SELECT 'store', lower(hex(randomblob(16)))"
                    " UNION SELECT 'format', ? UNION SELECT 'embedder', ? UNION SELECT 'dimension', ?",
                    (FORMAT, embedder, str(dimension)),
                )
            stored = self._meta()
        if stored.get("format") != FORMAT:
            raise DataError(str(self.path), f"format {stored.get('format')}", f"a KnowHub store of format {FORMAT}")
        made_with = (stored["embedder"], int(stored["dimension"]))
        self.embedder, self.dimension = embedder or made_with[0], dimension or made_with[1]
        if made_with != (self.embedder, self.dimension):
            raise self._other_embedder(stored)
        return *made_with, stored["store"]

    def _meta(self) -> dict[str, str]:
        return dict(self._read("SELECT key, value FROM meta"))

    def _other_embedder(self, stored: dict[str, str]) -> DataError:
        return DataError(
            str(self.path),
            f"a store made with {stored.get('embedder')} ({stored.get('dimension')} numbers)",
            f"{self.embedder} ({self.dimension} numbers)",
            f"open it with that embedder, or re-index it: openclaw-lab verify {self.path.parent} --reindex EMBEDDER",
        )


class Writing:
    """What can be done inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, revision: int) -> None:
        self._connection, self.revision = connection, revision

    def put(self, entry: Entry, terms: list[str], vectors: Vectors, action: str, form: int | None = None) -> int:
        """Store a version of an entry as its current one, and in its history; the checksum of its vectors."""
        body, data = _body(entry), np.ascontiguousarray(vectors, dtype=np.float32).tobytes()
        checksum, form = zlib.crc32(data), fingerprint(entry) if form is None else form
        self._connection.execute(
            "INSERT INTO entries(id, revision, fingerprint, checksum, body, terms, vectors)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT(id) DO UPDATE SET revision = excluded.revision, fingerprint = excluded.fingerprint,"
            " checksum = excluded.checksum, body = excluded.body, terms = excluded.terms, vectors = excluded.vectors",
            (entry.id, self.revision, form, checksum, body, " ".join(terms), data),
        )
        self._remember(entry, body, action)
        return checksum

    def change(self, entry: Entry, action: str) -> None:
        """Store a new version whose text is the same: words and vectors stay."""
        body = _body(entry)
        self._connection.execute(
            "UPDATE entries SET revision = ?, body = ? WHERE id = ?", (self.revision, body, entry.id)
        )
        self._remember(entry, body, action)

    def replace_vectors(self, rows: Iterable[tuple[str, Vectors]], embedder: str, dimension: int) -> None:
        """Other vectors for entries whose text stays, made by another embedder."""
        values = (
            (self.revision, checksum_of(v), np.ascontiguousarray(v, dtype=np.float32).tobytes(), entry_id)
            for entry_id, v in rows
        )
        self._connection.executemany("UPDATE entries SET revision = ?, checksum = ?, vectors = ? WHERE id = ?", values)
        made_with = [(embedder, "embedder"), (str(dimension), "dimension")]
        self._connection.executemany("UPDATE meta SET value = ? WHERE key = ?", made_with)

    def current(self, entry_id: str) -> Entry | None:
        """The current version, as this transaction sees it."""
        row = self._connection.execute("SELECT body FROM entries WHERE id = ?", (entry_id,)).fetchone()
        return entry_of(row[0]) if row else None

    def alike(self, entry: Entry, form: int) -> list[Entry]:
        """Live entries of the same form (`fingerprint`) that all readers of the entry may see."""
        query = "SELECT body FROM entries WHERE fingerprint = ? ORDER BY number"
        found = [entry_of(body) for (body,) in self._connection.execute(query, (form,))]
        return [each for each in found if each.status == "live" and each.visible_beside(entry)]

    def history(self, entry_id: str) -> list[tuple[str, Entry]]:
        """Every version of an entry so far, as this transaction sees it."""
        return [(action, entry_of(body)) for action, body in self._connection.execute(_HISTORY, (entry_id,))]

    def answer(self, key: str) -> dict[str, Any] | None:
        """What an earlier request with this idempotency key was answered."""
        row = self._connection.execute("SELECT answer FROM requests WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def remember_answer(self, key: str, answer: dict[str, Any]) -> None:
        """Keep the answer to a request, so that a repetition gets the same one."""
        self._connection.execute("INSERT INTO requests VALUES (?, ?)", (key, json.dumps(answer)))

    def _remember(self, entry: Entry, body: str, action: str) -> None:
        values = (entry.id, entry.version, action, entry.updated_at, body)
        self._connection.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?)", values)


_HISTORY = "SELECT action, body FROM history WHERE id = ? ORDER BY version"
_UNEQUAL = (
    "SELECT e.id FROM entries e LEFT JOIN history h ON h.id = e.id AND h.version = json_extract(e.body, '$.version')"
    " WHERE h.body IS NULL OR h.body != e.body"
)
_GAPS = "SELECT id FROM history GROUP BY id HAVING count(*) != max(version) OR min(version) != 1"


def _revision(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(revision), 0) FROM entries").fetchone()[0])


def _body(entry: Entry) -> str:
    body = json.dumps(entry.to_dict(), ensure_ascii=False)
    try:
        body.encode()
    except UnicodeEncodeError:
        raise DataError("knowledge", "half a surrogate pair", "Unicode text", "nothing was saved") from None
    return body


def entry_of(body: str) -> Entry:
    """The entry of its stored form."""
    return Entry.from_dict(json.loads(body))
