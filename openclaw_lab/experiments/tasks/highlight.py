"""A text and the hits of a detector in, one line out with the words that were hit between `»` and `«`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from openclaw_lab.errors import excerpt
from openclaw_lab.injection.verdict import Hit
from openclaw_lab.rules.pattern import js_collapse

# Characters on either side of a hit, so that a column of a frame shows it; characters of a text without a hit.
AROUND, PLAIN = 20, 120
_GAP = " … "


def highlighted(text: str, hits: Iterable[Hit], around: int = AROUND) -> str:
    """What was hit, with `around` characters on either side; the text's beginning where nothing was hit.

    What a detector read through a disguise is shown as it stands in the text.
    """
    found = [hit for hit in hits if 0 <= hit.start < hit.end]
    text = _read(text, found)
    places = _merged(sorted((hit.start, min(hit.end, len(text))) for hit in found if hit.start < len(text)))
    if not places:
        return excerpt(text, PLAIN)
    return " ".join("".join(_pieces(text, places, around)).split())


def _read(text: str, hits: list[Hit]) -> str:
    """The text that the offsets speak of: that with its white space collapsed, where only that has the words there."""
    if all(text[hit.start : hit.end].lower() == hit.matched.lower() for hit in hits):
        return text
    collapsed = js_collapse(text)
    return collapsed if all(collapsed[hit.start : hit.end] == hit.matched for hit in hits) else text


def _merged(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in places:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _pieces(text: str, places: list[tuple[int, int]], around: int) -> Iterator[str]:
    """The marked places and what stands between them, shortened where it is long."""
    last = 0
    for number, (start, end) in enumerate(places):
        before, room = text[last:start], around * (2 if number else 1)
        if len(before) > room:
            before = (before[:around] if number else "") + _GAP + before[len(before) - around :]
        yield f"{before}»{text[start:end]}«"
        last = end
    rest = text[last:]
    yield rest if len(rest) <= around else rest[:around] + _GAP
