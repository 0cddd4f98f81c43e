"""The index's file, a cache that is checked before it is believed: a line of JSON that says what it holds, vectors."""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from openclaw_lab.errors import DataWarning, excerpt
from openclaw_lab.files import write_bytes
from openclaw_lab.knowhub.embed import Vectors
from openclaw_lab.knowhub.index import Index
from openclaw_lab.knowhub.store import Row, Store

_MAGIC = "openclaw-lab index 1"


def save_index(index: Index, path: Path, store: Store) -> None:
    """Write the vectors with a header that says what they belong to. Earlier texts are left out.

    A file that cannot be written is a warning: nothing but time is lost.
    """
    kept = {entry_id: index.vectors_of(entry_id) for entry_id in index.facts.row_of}
    data = np.ascontiguousarray(np.concatenate(list(kept.values()))).tobytes() if kept else b""
    header = {
        "magic": _MAGIC, "store": store.identity, "embedder": store.embedder, "dimension": index.dimension,
        "revision": index.revision, "rows": len(kept), "crc32": zlib.crc32(data),
        "entries": [[entry_id, len(vectors), index.checksums[entry_id]] for entry_id, vectors in kept.items()],
    }  # fmt: skip
    try:
        write_bytes(path, json.dumps(header).encode() + b"\n" + data)
    except OSError as error:
        fault = f"could not be written ({error.strerror or error})"
        warnings.warn(f"{path} {fault}; it is built again at the next opening", DataWarning, stacklevel=4)


def load_index(path: Path, store: Store) -> Index:
    """The index of a store: from its file when that fits; else built from the store, with a warning."""
    index, fault = Index(store.dimension), ""
    try:
        revision, known = read_index(path, store)
        index.add(_with(known, store, revision))
        index.revision = revision
    except FileNotFoundError:
        fault = "is missing" if store.count() else ""
    except OSError as error:
        fault = f"cannot be read ({error.strerror or error})"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        fault = f"does not fit ({excerpt(error)})"
    if fault:
        warnings.warn(f"{path} {fault}; built again from the store", DataWarning, stacklevel=4)
        index = Index(store.dimension)
    index.add(store.since(index.revision))
    if store.writable and (fault or not path.exists()):
        save_index(index, path, store)
    return index


def read_index(path: Path, store: Store) -> tuple[int, dict[str, tuple[int, Vectors]]]:
    """The revision that a file holds, and for each entry the checksum of its vectors and the vectors."""
    line, _, body = path.read_bytes().partition(b"\n")
    header = json.loads(line)
    if header["magic"] != _MAGIC:
        raise ValueError("made by another program")
    if (header["store"], header["embedder"], header["dimension"]) != (store.identity, store.embedder, store.dimension):
        raise ValueError("made for another store or embedder")
    counts = [int(count) for _, count, _ in header["entries"]]
    if header["rows"] != len(counts) or len(body) != sum(counts) * store.dimension * 4:
        raise ValueError("truncated or changed")
    if zlib.crc32(body) != header["crc32"]:
        raise ValueError("changed: its checksum differs")
    if header["revision"] > store.revision():
        raise ValueError("newer than the store")
    parts = np.split(np.frombuffer(body, dtype=np.float32).reshape(-1, store.dimension), np.cumsum(counts)[:-1])
    named = ((entry_id, int(check)) for entry_id, _, check in header["entries"])
    known = {entry_id: (check, part) for (entry_id, check), part in zip(named, parts, strict=False)}
    return int(header["revision"]), known


def _with(known: dict[str, tuple[int, Vectors]], store: Store, revision: int) -> Iterator[Row]:
    """The store's rows up to a revision with the file's vectors; an entry that the file lacks is an error."""
    for row in store.since(0, vectors=False):
        if row.revision <= revision:
            checksum, vectors = known[row.entry.id]
            if checksum != row.checksum:
                raise ValueError(f"it has other vectors of {row.entry.id}")
            yield replace(row, vectors=vectors)


def file_revision(path: Path) -> int:
    """The revision that a file says it holds; -1 when it says none."""
    try:
        with path.open("rb") as file:
            return int(json.loads(file.readline())["revision"])
    except (OSError, ValueError, KeyError, TypeError):
        return -1
