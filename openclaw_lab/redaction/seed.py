"""The seed document's way: one replacement after the other, so that a later rule reads what an earlier one left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from openclaw_lab.redaction.spans import Found, Redaction, find, replaced
from openclaw_lab.rules.rule import Rule


def redact_in_sequence(text: str, rules: Sequence[Rule]) -> Redaction:
    """What the rules make of a text, each in turn; the spans are those of the text as it came in."""
    now = text
    spans: tuple[Found, ...] = ()
    for rule in rules:
        if found := tuple(find(rule, now)):
            spans = tuple(_joined(now, spans, found))
            now = replaced(now, found)
    return Redaction(now, spans)


@dataclass(frozen=True, slots=True)
class _Item:
    """A place in the text as it is now: what an earlier rule wrote (`old`), or what the next one finds (`new`)."""

    start: int
    end: int
    old: Found | None = None
    new: Found | None = None


def _joined(now: str, spans: Sequence[Found], found: Sequence[Found]) -> Iterator[Found]:
    """Spans of the source with more finds taken in, which were made in `now`, the source with the spans replaced.

    A find that takes a part of what was written is joined with it: what replaces both is what stands there after it.
    So the source with all spans replaced is always the text as it is.
    """
    items = sorted([*_written(spans), *(_Item(each.start, each.end, new=each) for each in found)], key=_place)
    shift, at = 0, 0  # `shift`: from a place in `now` to the same in the source
    while at < len(items):
        first, end = at, items[at].end
        while at < len(items) and (at == first or items[at].start < end):
            end = max(end, items[at].end)
            at += 1
        span, shift = _cluster(now, items[first:at], end, shift)
        yield span


def _place(item: _Item) -> tuple[int, int]:
    return item.start, item.end


def _written(spans: Sequence[Found]) -> Iterator[_Item]:
    """Where the replacements of spans stand in the text."""
    shift = 0
    for each in spans:
        start = each.start + shift
        yield _Item(start, start + len(each.replacement), old=each)
        shift += len(each.replacement) - (each.end - each.start)


def _cluster(now: str, items: Sequence[_Item], end: int, shift: int) -> tuple[Found, int]:
    """Items that overlap as one span of the source, and the shift behind it."""
    start, source = items[0].start, items[0].start + shift
    for item in items:
        if item.old:
            shift = item.old.end - item.end
    news = [item.new for item in items if item.new]
    if not news and items[0].old:
        return items[0].old, shift
    text, at = [], start
    for each in news:
        text += [now[at : each.start], each.replacement]
        at = each.end
    made = "".join([*text, now[at:end]])
    return replace(news[-1], start=source, end=end + shift, replacement=made), shift
