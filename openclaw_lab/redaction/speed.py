"""How fast redaction is, against the seed document's nine replacements run one after the other, in the same process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from openclaw_lab.redaction.redactor import Redactor, preset_rules


def redaction_costs(texts: Sequence[str], runs: int = 3) -> list[tuple[str, float]]:
    """CPU seconds, the least of a few runs: the seed's replacements, and the default."""
    rules = [(rule.compiled, _constant(rule.replacement)) for rule in preset_rules("seed")]

    def in_turn() -> None:
        for text in texts:
            for compiled, replacement in rules:
                text = compiled.sub(replacement, text)

    redactor = Redactor()
    return [
        ("the seed's nine", _cpu(in_turn, runs)),
        (f"default, {len(redactor.rules)} rules", _cpu(lambda: redactor.redact_many(texts), runs)),
    ]


def _constant(text: str) -> Callable[[object], str]:
    return lambda _: text


def _cpu(work: Callable[[], object], runs: int) -> float:
    taken = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return min(taken)
