"""A question in, the memories that may answer it out: those that a search finds, and wishes that always hold."""

from __future__ import annotations

from collections.abc import Sequence

from openclaw_lab.config import GrowthConfig
from openclaw_lab.growth.calibrate import Calibration, calibration
from openclaw_lab.growth.catalogue import Catalogue
from openclaw_lab.growth.entry import entry_of
from openclaw_lab.growth.keeping import QUESTION
from openclaw_lab.growth.retrieve import RETRIEVED, Recalled
from openclaw_lab.knowhub.entry import PRIVATE
from openclaw_lab.knowhub.service import KnowHub

# Memories that are looked at for each one that may go into the prompt.
LOOK = 2


def least_cosine(config: GrowthConfig, measured: Calibration) -> float:
    """The lowest cosine that counts: `min_similarity` itself, or the cosine that has this chance."""
    return measured.cosine(config.min_similarity) if config.calibrated else config.min_similarity


def hits(hub: KnowHub, agent_id: str, query: str, history: Sequence[str], config: GrowthConfig) -> list[Recalled]:
    """What the search finds of an agent's memories, best first; flagged ones never."""
    measured = calibration(hub.embedder)
    found = hub.search(
        query[:QUESTION], top_k=LOOK * config.max_results, min_score=1, types=RETRIEVED,
        scopes=[f"{PRIVATE}{agent_id}"], agent=agent_id, history=history, include_flagged=False,
        min_similarity=least_cosine(config, measured),
    )  # fmt: skip
    return [
        Recalled(entry_of(each.entry), each.similarity, measured.level(each.similarity), each.score, each.why)
        for each in found
    ]


def standing(catalogue: Catalogue, found: Sequence[Recalled]) -> list[Recalled]:
    """The wishes of how to answer that are not among what was found; flagged ones never."""
    known = {each.entry.id for each in found}
    return [
        Recalled(memory, 0.0, 0.0, 0.0, "how to answer, whatever is asked", asked=False)
        for memory in map(entry_of, catalogue.standing())
        if not memory.flagged and memory.id not in known
    ]
