"""Rules and a text in, spans out, so that what is left holds nothing more to find.

Placeholders that stand in the text are walls: they are never touched, and each piece between two of them is searched as
a text of its own. What is found in a piece is taken out, and what is left of it, again piece by piece, is searched in
turn, until nothing is found. A piece that reads otherwise than it stands is searched in both readings (see `reading`).
The placeholders written are walls like any other, and the pieces of the result are those that were searched last:
redacting the result finds nothing, whatever the rules are.

A chain, in which each find makes way for the next, could take as many turns as the text has words. After the last turn
each find takes all that rules could have reached around it (its block): too much rather than a leak, and no slow text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from openclaw_lab.redaction.reading import reading
from openclaw_lab.redaction.spans import Found, find, resolve
from openclaw_lab.rules.gate import CLASSES, Gate
from openclaw_lab.rules.rule import Rule

TURNS = 8
Finder = Callable[[str], Iterable[Found]]


def settle(text: str, rules: Sequence[Rule], walls: re.Pattern[str], more: Sequence[Finder] = ()) -> tuple[Found, ...]:
    """All that rules and other finders take out of a text, in order and without overlaps."""
    found: list[Found] = []
    for start, end in _between(text, walls.finditer(text) if "[" in text else ()):
        _search(text[start:end], start, rules, more, TURNS, found)
    found.sort(key=lambda each: each.start)
    return tuple(found)


def _between(text: str, walls: Iterable[re.Match[str]]) -> Iterator[tuple[int, int]]:
    at = 0
    for wall in walls:
        if at < wall.start():
            yield at, wall.start()
        at = wall.end()
    if at < len(text):
        yield at, len(text)


def _search(
    piece: str, offset: int, rules: Sequence[Rule], more: Sequence[Finder], turns: int, found: list[Found]
) -> None:
    """Add what is found in a piece that begins at `offset`, and in what is left of it."""
    second = reading(piece)
    taken = resolve([*_finds(piece, rules, more), *(second.placed(_finds(second.text, rules, ())) if second else ())])
    if not taken:
        return
    if turns == 1:
        taken = resolve(_grown(taken, [(0, len(piece))] if more else blocks(piece, rules)))
    elif turns < 1:
        taken = resolve(_grown(taken, [(0, len(piece))]))
    at = 0
    for each in taken:
        found.append(each.shifted(offset))
        if at < each.start:
            _search(piece[at : each.start], offset + at, rules, more, turns - 1, found)
        at = each.end
    if at < len(piece):
        _search(piece[at:], offset + at, rules, more, turns - 1, found)


def _finds(piece: str, rules: Sequence[Rule], more: Sequence[Finder]) -> Iterator[Found]:
    for rule in rules:
        yield from filter(None, (narrowed(each, piece) for each in find(rule, piece)))
    for finder in more:
        yield from finder(piece)


def narrowed(found: Found, text: str) -> Found | None:
    """A find whose replacement is the placeholder alone: words around it that the text has too are left in the text.

    So `/Users/ada` that becomes `/Users/[REDACTED]` is a find of `ada`; words that the text lacks are not written.
    """
    head, _, rest = found.replacement.partition("[")
    name, _, tail = rest.partition("]")
    start, end = found.start, found.end
    if head and text.startswith(head, start, end):
        start += len(head)
    if tail and text.endswith(tail, start, end):
        end -= len(tail)
    return Found(start, end, found.type, found.rule, f"[{name}]") if start < end else None


def _grown(taken: Iterable[Found], around: Sequence[tuple[int, int]]) -> Iterator[Found]:
    """Finds grown to the block in which they lie."""
    places = iter([*around])
    start, end = 0, 0
    for each in taken:
        while end <= each.start:
            start, end = next(places, (each.start, each.end))
        yield Found(min(start, each.start), max(end, each.end), each.type, each.rule, each.replacement)


# --- how far rules can see ----------------------------------------------------------------------------------------


def blocks(text: str, rules: Iterable[Rule]) -> list[tuple[int, int]]:
    """The parts of a text in which rules could match, with all that they look at; they are in order, none overlap.

    No match, whatever replaces its neighbours, reaches over the end of a block: what blocks do not share does not
    matter to them. A rule whose reach has no bound makes one block of all behind its literal, or of everything.
    """
    merged: list[tuple[int, int]] = []
    second, rules = reading(text), tuple(rules)
    spaces = [place for rule in rules for place in places(rule, text)]
    if second:
        spaces += second.spaces(place for rule in rules for place in places(rule, second.text))
    for start, end in sorted(spaces):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], min(end, len(text)))
        else:
            merged.append((max(0, start), min(end, len(text))))
    return merged


def places(rule: Rule, text: str, more_to_come: bool = False) -> Iterator[tuple[int, int]]:
    """Where one rule could match: around a literal of its gate, where the runs that it needs stand near enough.

    A place may begin before the text, and end behind it; `more_to_come`: what is behind its end is not known yet.
    """
    gate = rule.gate
    if gate is None:
        yield 0, len(text) + 1
        return
    searches = [_run_of(name, size) for name, size in gate.runs]
    for first, last in _occurrences(gate, text):
        low = 0 if gate.before is None else first - gate.before
        high = len(text) + 1 if gate.after is None else last + gate.after
        unknown = more_to_come and high > len(text)
        if unknown or all(search(text, max(0, low), high) for search in searches):
            yield low, high


@functools.cache
def _run_of(name: str, size: int) -> Callable[[str, int, int], object]:
    return re.compile(f"[{re.escape(CLASSES[name][0].decode())}]{{{size}}}").search


def _occurrences(gate: Gate, text: str) -> Iterator[tuple[int, int]]:
    """The first and the last place at which a literal of a gate (a run of digits long enough) begins."""
    if not gate.literals:
        for run in re.finditer(f"[0-9]{{{gate.digits},}}", text):
            yield run.start(), run.end() - gate.digits
        return
    for match in _any_of(gate.literals, gate.ignore_case)(text):
        yield match.start(), match.start()


@functools.cache
def _any_of(literals: tuple[str, ...], ignore_case: bool) -> Callable[[str], Iterator[re.Match[str]]]:
    flags = re.ASCII | (re.IGNORECASE if ignore_case else re.NOFLAG)
    return re.compile(f"(?={'|'.join(map(re.escape, literals))})", flags).finditer
