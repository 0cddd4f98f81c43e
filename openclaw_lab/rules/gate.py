"""A pattern in, the cheap thing out that every text holds in which it can match: its gate.

A gate is a set of literals of which each match holds one, and a number of digits that stand together in each match. It
is derived from the parse tree; anchors that a rule file declares are used when the tree proves them, and are an error
otherwise. So a gate can make a search faster, but never change what it finds. It also knows how far from its literal a
match can reach, by which a stream knows what is settled.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from openclaw_lab.rules.tree import DIGITS, Node, node_width, parsed, reach, width

_MOST = 100  # literals of a gate
_STRINGS = 40  # strings that are kept of a piece

# Classes of which long runs are rare in prose, and from which length on. A pattern that needs one is not tried where
# there is none.
_ALNUM = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
CLASSES: Mapping[str, tuple[bytes, int]] = MappingProxyType({
    "digits": (b"0123456789", 1),
    "number": (b"0123456789 .()+-/", 7),
    "upper": (_ALNUM, 4),
    "capitals": (_ALNUM + b" ", 12),
    "hex": (b"0123456789abcdefABCDEF:.-", 5),
    "token": (_ALNUM + b"abcdefghijklmnopqrstuvwxyz_-", 16),
    "address": (_ALNUM + b"abcdefghijklmnopqrstuvwxyz_-.~+/=:%", 12),
})  # fmt: skip
_SETS = tuple(sum(1 << code for code in members) for members, _ in CLASSES.values())


@dataclass(frozen=True, slots=True)
class Gate:
    """What each match holds: one of `literals` (in lower case where case is ignored), and `runs`.

    A run is the name of a class (see CLASSES) and how many of its characters stand in a row. `before` and `after` say
    how far a match, with all that it looks at, can begin before the start of that literal (of the digits, where there
    are no literals), and end after it; None: without a bound.
    """

    literals: tuple[str, ...] = ()
    ignore_case: bool = False
    runs: tuple[tuple[str, int], ...] = ()
    before: int | None = None
    after: int | None = None

    @property
    def digits(self) -> int:
        """How many digits stand in a row."""
        return dict(self.runs).get("digits", 0)


@dataclass(frozen=True, slots=True)
class _Need:
    """One thing that a sequence needs, and its distance from the sequence's start and end."""

    literals: tuple[str, ...]
    digits: int
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class _Part:
    """What is known of a piece: all strings that it takes (None: too many), digits only or not, what it needs."""

    strings: tuple[str, ...] | None
    digits: int | None
    needs: tuple[_Need, ...]
    high: int | None
    whole: tuple[int | None, ...] = (0,) * len(_SETS)  # by class: the least length, where nothing else is taken
    runs: tuple[int, ...] = (0,) * len(_SETS)  # by class: the longest run that is sure


def gate_of(compiled: re.Pattern[str], anchors: Sequence[str] = ()) -> Gate | None:
    """The best gate of a pattern, or None; None too where declared `anchors` do not hold."""
    nodes = parsed(compiled)
    ignore = bool(compiled.flags & re.IGNORECASE)
    part = _sequence(nodes, ())
    digits = max((each for each in part.needs if not each.literals), key=lambda each: each.digits, default=None)
    literal = [each for each in part.needs if each.literals]
    if anchors:
        wanted = _lowered(anchors, ignore)
        needs = [each for each in _sequence(nodes, (*anchors, *wanted)).needs if each.literals]
        declared = [_declared(each, wanted) for each in _folded(needs, ignore) if _holds(each, wanted)]
        if not declared:
            return None
        literal += declared
    literal = _folded(literal, ignore)
    if digits:  # a digit says nothing beside a run of them
        literal = [each for each in literal if not all(text.isdigit() for text in each.literals)]
    base = max((_shortest(each) for each in literal), key=_rank, default=digits)
    if base is None:
        return None
    behind, ahead = reach(nodes)
    runs = tuple(
        (name, size) for (name, (_, least)), size in zip(CLASSES.items(), part.runs, strict=True) if size >= least
    )
    return Gate(base.literals, ignore, runs, _sum(base.before, behind), _sum(base.after, ahead))


def _shortest(need: _Need) -> _Need:
    """A need without the literals that hold another of them."""
    kept = tuple(each for each in need.literals if not any(one in each for one in need.literals if one != each))
    if len(kept) == len(need.literals):
        return need
    return replace(need, literals=kept, before=_sum(need.before, max(map(len, need.literals))))


def _folded(needs: Sequence[_Need], ignore: bool) -> list[_Need]:
    return [replace(each, literals=_lowered(each.literals, ignore)) for each in needs]


def _lowered(literals: Sequence[str], ignore: bool) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.lower() if ignore else each for each in literals))


def _holds(need: _Need, anchors: tuple[str, ...]) -> bool:
    return all(any(anchor in literal for anchor in anchors) for literal in need.literals)


def _declared(need: _Need, anchors: tuple[str, ...]) -> _Need:
    """A need with the anchors in place of its literals; an anchor may begin anywhere in one of them."""
    used = tuple(anchor for anchor in anchors if any(anchor in literal for literal in need.literals))
    longest = max(map(len, need.literals)) - min(map(len, used))
    return _Need(used, 0, _sum(need.before, longest), need.after)


def _rank(need: _Need) -> float:
    """How rare a need's commonest literal is, how few and how near the start: a sign counts for two letters."""
    rare = min(sum(2 if not (char.isalnum() or char in " .,:/-_") else 1 for char in each) for each in need.literals)
    return min(rare, 6) - len(need.literals) / 16 - (1e9 if need.before is None else need.before / 64)


def _sum(*sizes: int | None) -> int | None:
    return None if None in sizes else sum(each for each in sizes if each is not None)


def _most(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else max((each for each in sizes if each is not None), default=0)


# --- what a tree needs --------------------------------------------------------------------------------------------


def _sequence(nodes: Sequence[Node], wanted: tuple[str, ...]) -> _Part:
    """What pieces one after the other need: literals that meet are joined, and so are digits."""
    parts = [_part(node, wanted) for node in nodes]
    highs = [part.high for part in parts]
    needs: list[_Need] = []
    for index, part in enumerate(parts):
        before, after = _sum(*highs[:index]), _sum(*highs[index + 1 :])
        needs += [replace(each, before=_sum(before, each.before), after=_sum(each.after, after)) for each in part.needs]
    runs = list(_runs(parts))
    for first, _, strings in runs:
        if "" not in strings:
            needs.append(_Need(strings, 0, _sum(*highs[:first]), _sum(*highs[first:])))
    needs += _digit_runs(parts, highs)
    whole = ("",) if not parts else runs[0][2] if [each[:2] for each in runs] == [(0, len(parts))] else None
    digits = None if any(part.digits is None for part in parts) else sum(part.digits or 0 for part in parts)
    return _Part(whole, digits, tuple(needs), _sum(*highs), *_joined_runs(parts))


def _runs(parts: Sequence[_Part]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Neighbours that together take only a few strings: from, to, and these strings."""
    first = 0
    strings: tuple[str, ...] = ("",)
    for index, part in enumerate(parts):
        joined = None
        if part.strings is not None and len(part.strings) * len(strings) <= _STRINGS:
            joined = tuple(dict.fromkeys(one + other for one, other in itertools.product(strings, part.strings)))
        if joined is not None:
            strings = joined
            continue
        if index > first:
            yield first, index, strings
        first, strings = (index, part.strings) if part.strings is not None else (index + 1, ("",))
    if len(parts) > first:
        yield first, len(parts), strings


def _digit_runs(parts: Sequence[_Part], highs: Sequence[int | None]) -> Iterator[_Need]:
    """Neighbours that take digits only: so many at least stand together."""
    for alike, group in itertools.groupby(range(len(parts)), key=lambda index: parts[index].digits is not None):
        indexes = list(group)
        count = sum(parts[index].digits or 0 for index in indexes)
        if alike and count:
            slack = _sum(*highs[: indexes[-1] + 1])  # the digits may stand anywhere in the run
            yield _Need((), count, None if slack is None else slack - count, _sum(*highs[indexes[0] :]))


def _joined_runs(parts: Sequence[_Part]) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    """By class: the least length of a sequence that takes nothing else, and the longest run that is sure."""
    whole: list[int | None] = []
    runs = []
    for number in range(len(_SETS)):
        sizes = [part.whole[number] for part in parts]
        longest = here = 0
        for part, size in zip(parts, sizes, strict=True):
            here = 0 if size is None else here + size
            longest = max(longest, here, part.runs[number])
        whole.append(_sum(*sizes))
        runs.append(longest)
    return tuple(whole), tuple(runs)


def _part(node: Node, wanted: tuple[str, ...]) -> _Part:
    high = node_width(node)[1]
    if node.kind == "chars":
        digits = 1 if node.chars & ~DIGITS == 0 else None
        inside = tuple(1 if node.chars & ~members == 0 else None for members in _SETS)
        strings = tuple(node.spelt) if 0 < len(node.spelt) <= _STRINGS else None
        return _Part(strings, digits, (), high, inside, tuple(size or 0 for size in inside))
    if node.kind in ("anchor", "refuse"):
        return _Part(("",), 0, (), 0)
    if node.kind == "assert":
        return _asserted(node, wanted)
    if node.kind == "reference":
        return _Part(None, None, (), None, (None,) * len(_SETS))
    inner = [_sequence(each, wanted) for each in node.parts]
    return _branch(inner, high, wanted) if node.kind != "repeat" else _repeat(node, inner[0], high)


def _asserted(node: Node, wanted: tuple[str, ...]) -> _Part:
    """What must stand before or after is needed too, though nothing of it is taken."""
    inner = _sequence(node.parts[0], wanted)
    shift = width(node.parts[0])[1] if node.behind else 0
    literals = [each for each in inner.needs if each.literals]
    needs = tuple(replace(each, before=_sum(each.before, shift)) for each in literals)
    return _Part(("",), 0, needs, 0)


def _branch(inner: Sequence[_Part], high: int | None, wanted: tuple[str, ...]) -> _Part:
    """What all alternatives need: the best literals of each together, and the fewest digits."""
    if len(inner) == 1:
        return replace(inner[0], high=high)
    needs = []

    def key(need: _Need) -> tuple[bool, float]:
        return _holds(need, wanted), _rank(need)

    best = [max((each for each in part.needs if each.literals), key=key, default=None) for part in inner]
    known = [each for each in best if each is not None]
    literals = tuple(dict.fromkeys(text for each in known for text in each.literals))
    if len(known) == len(inner) and len(literals) <= _MOST:
        needs.append(_Need(literals, 0, _most([each.before for each in known]), _most([each.after for each in known])))
    counts = [max((each.digits for each in part.needs), default=0) for part in inner]
    if min(counts) > 0:
        needs.append(_Need((), min(counts), high, high))
    strings = None
    if all(part.strings is not None for part in inner):
        strings = tuple(dict.fromkeys(text for part in inner for text in part.strings or ()))
        strings = strings if len(strings) <= _STRINGS else None
    digits = None if any(part.digits is None for part in inner) else min(part.digits or 0 for part in inner)
    whole = tuple(_least([part.whole[number] for part in inner]) for number in range(len(_SETS)))
    runs = tuple(min(part.runs[number] for part in inner) for number in range(len(_SETS)))
    return _Part(strings, digits, tuple(needs), high, whole, runs)


def _least(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else min(each for each in sizes if each is not None)


def _repeat(node: Node, inner: _Part, high: int | None) -> _Part:
    strings: tuple[str, ...] | None = None
    if inner.strings is not None and node.high is not None and node.high <= 4:
        powers = [itertools.product(inner.strings, repeat=count) for count in range(node.low, node.high + 1)]
        found = dict.fromkeys("".join(each) for each in itertools.islice(itertools.chain(*powers), 2 * _STRINGS))
        strings = tuple(found) if len(found) <= _STRINGS else None
    digits = None if inner.digits is None else inner.digits * node.low
    rest = None if high is None else high - (inner.high or 0)
    needs = tuple(replace(each, after=_sum(each.after, rest)) for each in inner.needs) if node.low else ()
    whole = tuple(None if size is None else size * node.low for size in inner.whole)
    runs = tuple(max(size or 0, run if node.low else 0) for size, run in zip(whole, inner.runs, strict=True))
    return _Part(strings, digits, needs, high, whole, runs)
