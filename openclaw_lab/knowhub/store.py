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
from openclaw_lab.knowhub.database import FORMAT, can_write, connect, reader
from openclaw_lab.knowhub.embed import Vectors
from openclaw_lab.knowhub.entry import Entry
from openclaw_lab.knowhub.past import FAULTS, HISTORY

_PAGE = 2_000


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as it is stored: its current version, its words, its vectors (one a piece, the first the whole).

    `checksum` (CRC 32) tells whether vectors are the stored ones without reading them; `form` is the fingerprint of the
    text.
    """

    entry: Entry
    revision: int
    terms: list[str]
    vectors: Vectors
    checksum: int
    form: int = 0


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
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                embedder, dimension, revision = self._connection.execute(_STATE).fetchone()
                if (embedder, dimension) != (self.embedder, str(self.dimension)):
                    raise self._other_embedder({"embedder": embedder, "dimension": dimension})
                yield Writing(self._connection, revision + 1)
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
        return int(self._read(f"SELECT {_REVISION}")[0][0])

    def since(self, revision: int, *, vectors: bool = True) -> Iterator[Row]:
        """Entries written after a revision, oldest write first; without their vectors when they are not wanted."""
        column = "vectors" if vectors else "x''"
        query = (
            f"SELECT revision, number, body, terms, checksum, fingerprint, {column} FROM entries"
            f" WHERE (revision, number) > (?, ?) ORDER BY revision, number LIMIT {_PAGE}"
        )
        last = (revision, 1 << 62)
        while page := self._read(query, last):
            last = page[-1][:2]
            for number, _, body, terms, checksum, form, blob in page:
                cut = terms.split(" ") if terms else []
                yield Row(entry_of(body), number, cut, self._vectors(blob), checksum, form)

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

    def get_many(self, ids: Iterable[str]) -> dict[str, Entry]:
        """The current versions of some entries, by id; those that there are."""
        query = "SELECT id, body FROM entries WHERE id IN (SELECT value FROM json_each(?))"
        return {key: entry_of(body) for key, body in self._read(query, (json.dumps(list(ids)),))}

    def history(self, entry_id: str) -> list[tuple[str, Entry]]:
        """Every version of an entry with the action that made it, oldest first."""
        return [(action, entry_of(body)) for action, body in self._read(HISTORY[self._old()], (entry_id, entry_id))]

    def count(self) -> int:
        """How many entries there are, whatever their status."""
        return int(self._read("SELECT count(*) FROM entries")[0][0])

    def damage(self) -> list[str]:
        """What SQLite's own check finds wrong, and entries that differ from their history; empty when nothing is."""
        found = [str(row[0]) for row in self._read("PRAGMA integrity_check") if row[0] != "ok"]
        for query, fault in FAULTS[self._old()]:
            found += [f"{each[0]} {fault}" for each in self._read(query)]
        return found

    def _old(self) -> bool:
        """Whether it is a store of format 1 that could not be brought to this one, since it is read-only."""
        return self._meta().get("format") == "1"

    # --- what it was made with ------------------------------------------------------------------------------------

    def _check_meta(self, embedder: str | None, dimension: int | None) -> tuple[str, int, str]:
        stored = self._meta()
        if not stored and self.writable and embedder is not None:
            try:
                self._connection.execute(
                    "INSERT OR IGNORE INTO meta SELECT 'store', lower(hex(randomblob(16)))"
                    " UNION SELECT 'format', ? UNION SELECT 'embedder', ? UNION SELECT 'dimension', ?",
                    (FORMAT, embedder, str(dimension)),
                )
            except sqlite3.Error as error:
                raise self._fault(error, "a store that can be written", "nothing was saved") from None
            stored = self._meta()
        if stored.get("format") not in ("1", FORMAT):
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

    def put(self, entry: Entry, terms: list[str], vectors: Vectors, action: str, form: int) -> int:
        """Store a version of an entry as its current one, and in its history; the checksum of its vectors."""
        body, data = _body(entry), np.ascontiguousarray(vectors, dtype=np.float32).tobytes()
        checksum = zlib.crc32(data)
        values = (action, *body, form, checksum, " ".join(terms), data)
        if entry.version == 1:
            self._connection.execute(_NEW, (self.revision, *values, entry.id))
        else:
            self._replace("fingerprint = ?, checksum = ?, terms = ?, vectors = ?", values, entry)
        return checksum

    def change(self, entry: Entry, action: str) -> None:
        """Store a new version whose text is the same: words and vectors stay."""
        self._replace("", (action, *_body(entry)), entry)

    def _replace(self, more: str, values: tuple[object, ...], entry: Entry) -> None:
        """Put a newer version in the place of the current one, which goes into the history (a trigger sees to it)."""
        columns = ", ".join(["revision = ?, action = ?, body = ?, body_checksum = ?", *filter(None, [more])])
        query = f"UPDATE entries SET {columns} WHERE id = ? AND json_extract(body, '$.version') < ?"
        values = (self.revision, *values, entry.id, entry.version)
        if self._connection.execute(query, values).rowcount != 1:
            raise DataError(f"knowledge {entry.id}", f"version {entry.version}", "one newer than what is stored")

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

    def history(self, entry_id: str) -> list[tuple[str, Entry]]:
        """Every version of an entry so far, as this transaction sees it."""
        found = self._connection.execute(HISTORY[False], (entry_id, entry_id))
        return [(action, entry_of(body)) for action, body in found]

    def answer(self, key: str) -> dict[str, Any] | None:
        """What an earlier request with this idempotency key was answered."""
        row = self._connection.execute("SELECT answer FROM requests WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def remember_answer(self, key: str, answer: dict[str, Any]) -> None:
        """Keep the answer to a request, so that a repetition gets the same one."""
        self._connection.execute("INSERT INTO requests VALUES (?, ?)", (key, json.dumps(answer)))


_REVISION = "(SELECT coalesce(max(revision), 0) FROM entries)"
_STATE = (
    "SELECT (SELECT value FROM meta WHERE key = 'embedder'), (SELECT value FROM meta WHERE key = 'dimension'),"
    f" {_REVISION}"
)
_NEW = (
    "INSERT INTO entries(revision, action, body, body_checksum, fingerprint, checksum, terms, vectors, id)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _body(entry: Entry) -> tuple[str, int]:
    """The stored form of an entry, and its checksum."""
    body = entry.to_json()
    try:
        return body, zlib.crc32(body.encode())
    except UnicodeEncodeError:
        raise DataError("knowledge", "half a surrogate pair", "Unicode text", "nothing was saved") from None


def entry_of(body: str) -> Entry:
    """The entry of its stored form."""
    return Entry.from_dict(json.loads(body))
