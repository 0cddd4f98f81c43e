"""A long text in, the overlapping parts out that a model with a limit reads one by one; the highest score counts.

It does not read them.
"""

from __future__ import annotations

# Score from which the part that has it is shown as the place of the attack.
REASON = 0.25


def windows(length: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """Places `start, end` of parts of at most `size` characters; each begins `overlap` before the end of the last."""
    starts = range(0, max(length - overlap, 1), size - overlap)
    return [(start, min(start + size, length)) for start in starts]
