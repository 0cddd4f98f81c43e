"""What it costs to look into a large memory, against bare FAISS and the embedder on the same questions."""

from __future__ import annotations

import dataclasses
import random
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial

import numpy as np

from openclaw_lab.config import LabConfig
from openclaw_lab.growth.entry import name_of, owner_of, uri_of
from openclaw_lab.growth.memory import GrowthMemory
from openclaw_lab.growth.retrieve import RETRIEVED
from openclaw_lab.knowhub.draft import draft
from openclaw_lab.knowhub.embed import Vectors, embedder_named
from openclaw_lab.knowhub.entry import PRIVATE, Source
from openclaw_lab.knowhub.speed import bare_search, cpu, item, random_rows

_AGENT = "bench"
# Characters of a memory: the bundled dialogues' memories have 35 in the middle, and 91 at most.
_LENGTH = 45


def retrieval_cost(words: Sequence[str], memories: int = 50_000, questions: int = 30) -> tuple[float, float]:
    """CPU seconds of `retrieve` with default settings; of embedding the question and bare IndexFlatIP. Medians."""
    rng, chance, embedder = np.random.default_rng(0), random.Random(0), embedder_named(LabConfig().knowhub.embedder)
    vectors = random_rows(rng, memories)
    with tempfile.TemporaryDirectory() as folder, bare_search(vectors) as bare:
        memory = GrowthMemory.open(folder, _AGENT, embedder=embedder)
        _fill(memory, vectors, words, chance)
        ours, plain = [], []
        for _ in range(questions):
            question = " ".join(chance.sample(words, 6))
            ours.append(cpu(partial(memory.retrieve, question)))
            plain.append(cpu(lambda asked=question: bare(embedder.embed([asked]))))  # type: ignore[misc]
        memory.close()
    return statistics.median(ours[1:]), statistics.median(plain[1:])


def _fill(memory: GrowthMemory, vectors: Vectors, words: Sequence[str], chance: random.Random) -> None:
    """Store memories without comparing them with one another."""
    for start in range(0, len(vectors), 10_000):
        with memory._hub._writing() as batch:
            for number in range(start, min(start + 10_000, len(vectors))):
                made, _ = draft(item(words, chance, number, _LENGTH), lambda _: False)
                kind = RETRIEVED[number % len(RETRIEVED)]
                source = Source(urls=(uri_of(_AGENT, kind, "bench", name_of(made.content)),), agent_id=_AGENT)
                entry = dataclasses.replace(
                    made, types=(kind,), source=source, scopes=(f"{PRIVATE}{_AGENT}",), owner=owner_of(_AGENT, kind)
                )
                batch.put(entry, vectors[number : number + 1], "created")
