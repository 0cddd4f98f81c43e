"""A store and its index in, every difference between them out; and the same entries under another embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from openclaw_lab.knowhub.cache import load_index, read_index, save_index
from openclaw_lab.knowhub.embed import Embedder, Vectors, embedder_named, full_name
from openclaw_lab.knowhub.index import Index
from openclaw_lab.knowhub.ranking import embed_entries
from openclaw_lab.knowhub.store import Row, Store, checksum_of
from openclaw_lab.knowhub.undo import unequal_links

STORE, INDEX = "knowhub.sqlite", "knowhub.index"
# Entries that are embedded at once.
_BLOCK = 256


def problems(store: Store, index: Index, path: Path) -> list[str]:
    """What is wrong in the store, in the index in memory and in the index's file; each as one line."""
    found = [f"store: {each}" for each in store.damage()]
    fresh, entries = Index(store.dimension), {}
    for row in store.since(0):
        entries[row.entry.id] = row.entry
        found += _vector_faults(row)
        fresh.add([row])
    found += [f"store: {each}" for each in unequal_links(entries)]
    found += [f"index: {each}" for each in _differences(index, fresh)]
    return found + [f"index file: {each}" for each in _file_faults(store, path)]


def _vector_faults(row: Row) -> Iterator[str]:
    if not len(row.vectors) or not np.isfinite(row.vectors).all():
        yield f"store: {row.entry.id} has no proper vectors"
    elif checksum_of(row.vectors) != row.checksum:
        yield f"store: the vectors of {row.entry.id} differ from their checksum"


def _differences(index: Index, fresh: Index) -> Iterator[str]:
    known, wanted = index.facts.row_of, fresh.facts.row_of
    if index.revision != fresh.revision:
        yield f"revision {index.revision}, the store has {fresh.revision}"
    for entry_id in wanted:
        if entry_id not in known:
            yield f"{entry_id} is missing"
        elif not np.array_equal(fresh.vectors_of(entry_id), index.vectors_of(entry_id)):
            yield f"{entry_id} has other vectors than the store"
        elif index.facts.summary(entry_id) != fresh.facts.summary(entry_id):
            yield f"{entry_id} has another score or status than in the store"
    yield from (f"{entry_id} is not in the store" for entry_id in known.keys() - wanted.keys())


def _file_faults(store: Store, path: Path) -> list[str]:
    """An older file is no fault: what was written since is added when it is loaded."""
    if not path.exists():
        return [] if not store.count() else [f"{path.name} is missing"]
    try:
        _, known = read_index(path, store)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [f"{path.name} does not fit ({error})"]
    stored = store.checksums()
    return [f"{each} is not in the store" for each in known if each not in stored]


def reindex(store: Store, embedder: Embedder, name: str) -> None:
    """Give every entry the vectors of another embedder, in one transaction; what other processes save waits."""
    with store.write() as writing:
        rows = [(row.entry.id, row.entry.task, row.entry.text) for row in store.since(0, vectors=False)]
        writing.replace_vectors(_embedded(embedder, rows), name, embedder.dimension)
    store.embedder, store.dimension = name, embedder.dimension


def _embedded(embedder: Embedder, rows: list[tuple[str, str, str]]) -> Iterator[tuple[str, Vectors]]:
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        made = embed_entries(embedder, [(task, text) for _, task, text in block])
        yield from ((entry_id, vectors) for (entry_id, _, _), (vectors, _) in zip(block, made, strict=True))


def verify_folder(folder: Path, *, embedder: str = "", rebuild: bool = False) -> tuple[int, list[str]]:
    """The number of entries of a folder and its `problems`; no embedder is needed, but to re-index it first."""
    store = Store(folder / STORE)
    try:
        if embedder:
            chosen = embedder_named(embedder)
            reindex(store, chosen, full_name(chosen))
        if embedder or rebuild:
            index = Index(store.dimension)
            index.add(store.since(0))
            save_index(index, folder / INDEX, store)
        else:
            index = load_index(folder / INDEX, store)
        return store.count(), problems(store, index, folder / INDEX)
    finally:
        store.close()
