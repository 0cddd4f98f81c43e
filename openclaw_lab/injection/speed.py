"""What the detectors cost on messages of chat, logs and code: CPU seconds, against the seed document's six patterns."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from openclaw_lab.config import InjectionConfig
from openclaw_lab.injection.detectors import Detector

# Most messages that a detector is measured on: the slow ones take long enough on few.
_MESSAGES = {"seed": 5000, "rules": 5000, "classifier": 1500, "ensemble": 1500}

# The seed document's six patterns run one after the other: what the detector is compared with.
_PLAIN = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"ignore (all|any|previous|above|prior) instructions",
        r"do not follow (the )?(system|developer)",
        r"system prompt",
        r"<\s*(system|assistant|developer|tool)\b",
        r"forget (all|everything|previous)",
        r"new instructions:",
    )
]


def injection_costs(texts: Sequence[str]) -> list[tuple[str, float, float]]:
    """Of each detector: what it did, its CPU seconds, and those of the six patterns on the same messages beside it."""
    costs = []
    for name, most in _MESSAGES.items():
        some = texts[:most]
        detect = Detector(InjectionConfig(detector=name)).detect
        spent, plain = _cpu(detect, some), _cpu(_bare, some)
        costs.append((f"detect in {len(some):,} messages, {name}: {len(some) / spent:,.0f} a second", spent, plain))
    return costs


def _bare(text: str) -> bool:
    normal = re.sub(r"\s+", " ", text).strip()
    return any(pattern.search(normal) for pattern in _PLAIN)


def _cpu(work: Callable[[str], object], texts: Sequence[str], runs: int = 3) -> float:
    """The least CPU time of a few runs."""
    taken = []
    for _ in range(runs):
        begin = time.process_time()
        for text in texts:
            work(text)
        taken.append(time.process_time() - begin)
    return min(taken)
