"""Many patterns and a text in, the few out that could match in it: told by RE2, which reads all patterns at once.

A pattern is known by what a text must hold for a match (its `needs`) and by its relaxed form (see `relaxed`). One pass
looks for all needs of all patterns and for the relaxed forms of patterns without needs; the relaxed forms of patterns
whose needs are there are looked for in a few passes more. So most texts cost one pass of a few nanoseconds a byte,
however many patterns there are. Nothing is decided here: what is named is then searched by the pattern itself.

RE2 makes the states of its automaton as texts ask for them and forgets them when their memory is full. Needs are short,
and relaxed forms stand in groups of few, because the automaton of all of them together would never fit. If RE2 cannot
take a pattern, or runs out of memory in a text, the pattern is named, which costs time and hides nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import re2

# Relaxed forms that are looked for together, and those beside the needs at most; megabytes for the states of one
# automaton; answers that are remembered.
GROUP, _AT_ONCE, MEMORY, _REMEMBERED = 32, 48, 32, 20_000

Match = Callable[[bytes], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Sought:
    """A pattern: what each text with a match holds (RE2 patterns over bytes), its relaxed form, and its kind.

    Relaxed forms of one kind are looked for together, as they come up together; an empty one matches every text. They
    are asked for when a text needs one first.
    """

    needs: tuple[str, ...]
    relaxed: Callable[[], str]
    kind: Hashable = ""


class Patterns:
    """RE2 patterns looked for at once; `numbers[i]` is what the i-th stands for.

    They read bytes, or with `utf8` characters; then the data must be valid UTF-8.
    """

    def __init__(self, patterns: Iterable[tuple[int, str]], utf8: bool = False) -> None:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.UTF8 if utf8 else re2.Options.Encoding.LATIN1
        options.max_mem = MEMORY << 20
        options.log_errors = False
        found = re2.Set.SearchSet(options)
        self.numbers: list[int] = []
        self.unknown: list[int] = []  # what could not be taken
        for number, pattern in patterns:
            try:
                found.Add(f"(?ms){pattern}")
                self.numbers.append(number)
            except re2.error:
                self.unknown.append(number)
        # What every text holds: where it is not found, the search has failed.
        self._end: int = found.Add(r"\z")
        self.nothing = [] if self.unknown else [self._end]
        try:
            found.Compile()
            self.match: Match = found._set.Match  # without the wrapper, which adds a fifth
        except re2.error:  # too large
            self.match = _failed

    @property
    def all(self) -> list[int]:
        """The numbers of all of them."""
        return [*self.numbers, *self.unknown]

    def of(self, seen: Sequence[int]) -> list[int]:
        """The numbers behind an answer of `match` that is not `nothing`; what could not be looked for is among them."""
        if self._end not in seen:
            return self.all
        return [*(self.numbers[each] for each in seen if each != self._end), *self.unknown]


def _failed(_: bytes) -> list[int]:
    return []


class Sieve:
    """Patterns by their numbers: `of` gives those that could match in a text. `group`: see `GROUP`."""

    def __init__(self, sought: Sequence[Sought], group: int = GROUP) -> None:
        self._made_of = tuple(sought), group
        at_once = [number for number, each in enumerate(sought) if not each.needs][:_AT_ONCE]
        self._first = _First(sought, at_once)
        if self._first.failed:  # all together are too large
            at_once = []
            self._first = _First(sought, at_once)
        apart = [number for number in range(len(sought)) if number not in set(at_once)]
        self._groups = [_Group(sought, numbers) for numbers in _grouped(sought, apart, group)]
        # For the answer of the first pass: see `_Next`.
        self._known: dict[tuple[int, ...], _Next] = {}

    def __reduce__(self) -> tuple[type[Sieve], tuple[Sequence[Sought], int]]:
        return Sieve, self._made_of

    def of(self, data: bytes) -> Sequence[int]:
        """The numbers of the patterns that could match in a text of UTF-8, in order."""
        seen = tuple(self._first.match(data))
        sure, groups, counting = self._known.get(seen) or self._noted(seen)
        if not groups:
            return sure
        found: list[int] = []
        for group in groups:
            hits = group.match(data)
            if hits != group.nothing:
                found += [number for number in group.of(hits) if number in counting]
        return sorted([*sure, *found]) if found else sure

    def _noted(self, seen: tuple[int, ...]) -> _Next:
        """What an answer of the first pass leads to; it is remembered."""
        sure, counting = self._first.of(seen)
        groups = [group.patterns for group in self._groups if not counting.isdisjoint(group.numbers)]
        if len(self._known) >= _REMEMBERED:
            self._known = {}
        self._known[seen] = known = sure, groups, counting
        return known


# What an answer of the first pass leads to: the patterns that it names, the groups to look for, the patterns of these
# that count.
_Next = tuple[Sequence[int], Sequence[Patterns], frozenset[int]]


class _First:
    """All needs, and the relaxed forms of some patterns without needs."""

    def __init__(self, sought: Sequence[Sought], at_once: Sequence[int]) -> None:
        self._at_once = frozenset(at_once)
        needs: dict[str, int] = {}
        self._wanted = [
            (number, frozenset(needs.setdefault(need, len(sought) + len(needs)) for need in each.needs))
            for number, each in enumerate(sought)
            if number not in self._at_once
        ]
        forms = [(number, sought[number].relaxed()) for number in at_once]
        self._patterns = Patterns([*((number, need) for need, number in needs.items()), *forms])
        self.match = self._patterns.match
        self.failed = self.match is _failed

    def of(self, seen: Sequence[int]) -> tuple[Sequence[int], frozenset[int]]:
        """The patterns that an answer of `match` names, in order, and those whose relaxed forms are to be looked for.

        The first pass names what has no needs.
        """
        held = frozenset(self._patterns.of(seen))
        return sorted(held & self._at_once), frozenset(number for number, needs in self._wanted if needs <= held)


class _Group:
    """Some patterns by their numbers; their relaxed forms, together."""

    def __init__(self, sought: Sequence[Sought], numbers: Sequence[int]) -> None:
        self.numbers = frozenset(numbers)
        self._sought = [(number, sought[number]) for number in numbers]

    @functools.cached_property
    def patterns(self) -> Patterns:
        """The relaxed forms."""
        return Patterns((number, each.relaxed()) for number, each in self._sought)


def _grouped(sought: Sequence[Sought], numbers: Sequence[int], group: int) -> Iterator[list[int]]:
    """Some patterns, those of one kind together, so many at most; those without needs come up always, and so apart."""
    kinds: dict[Hashable, list[int]] = {}
    for number in numbers:
        kinds.setdefault((not sought[number].needs, sought[number].kind), []).append(number)
    for alike in kinds.values():
        yield from (alike[start : start + group] for start in range(0, len(alike), group))
