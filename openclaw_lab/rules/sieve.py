"""Many patterns and a text in, the few out that could match in it: told by RE2, which reads all patterns at once.

A pattern is known by what a text must hold for a match (its `needs`) and by its relaxed form (see `relaxed`). All needs
of all patterns are looked for in one pass; the relaxed forms of those patterns whose needs are there are looked for in
a few more, and those of patterns without needs in every text. So most texts cost two passes of a few nanoseconds a
byte, however many patterns there are. Nothing is decided here: what is named is then searched by the pattern itself.

RE2 makes the states of its automaton as texts ask for them and forgets them when their memory is full. Needs are short,
and relaxed forms stand in groups of few, because the automaton of all of them together would never fit. If RE2 cannot
take a pattern, or runs out of memory in a text, the pattern is named, which costs time and hides nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import re2

# Relaxed forms that are looked for together; megabytes for the states of one automaton; answers that are remembered.
GROUP, MEMORY, _REMEMBERED = 32, 32, 20_000

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
        needs: dict[str, int] = {}
        self._wanted = [
            (number, frozenset(needs.setdefault(need, len(needs)) for need in each.needs))
            for number, each in enumerate(sought)
        ]
        self._needs = Patterns((number, need) for need, number in needs.items())
        self._groups = [_Group(sought, numbers) for numbers in _grouped(sought, group)]
        # For the answer about the needs: the groups to look for, and the patterns of them that count.
        self._known: dict[tuple[int, ...], tuple[Sequence[Patterns], frozenset[int]]] = {}

    def __reduce__(self) -> tuple[type[Sieve], tuple[Sequence[Sought], int]]:
        return Sieve, self._made_of

    def of(self, data: bytes) -> list[int]:
        """The numbers of the patterns that could match in a text of UTF-8, in order."""
        seen = tuple(self._needs.match(data))
        groups, counting = self._known.get(seen) or self._noted(seen)
        found: list[int] = []
        for group in groups:
            hits = group.match(data)
            if hits != group.nothing:
                found += [number for number in group.of(hits) if number in counting]
        if len(found) > 1:
            found.sort()
        return found

    def _noted(self, seen: tuple[int, ...]) -> tuple[Sequence[Patterns], frozenset[int]]:
        """What an answer about the needs leads to; it is remembered."""
        held = self._needs.of(seen)
        counting = frozenset(number for number, wanted in self._wanted if wanted.issubset(held))
        known = [group.patterns for group in self._groups if not counting.isdisjoint(group.numbers)], counting
        if len(self._known) >= _REMEMBERED:
            self._known = {}
        self._known[seen] = known
        return known


class _Group:
    """Some patterns by their numbers; their relaxed forms, together."""

    def __init__(self, sought: Sequence[Sought], numbers: Sequence[int]) -> None:
        self.numbers = frozenset(numbers)
        self._sought = [(number, sought[number]) for number in numbers]

    @functools.cached_property
    def patterns(self) -> Patterns:
        """The relaxed forms."""
        return Patterns((number, each.relaxed()) for number, each in self._sought)


def _grouped(sought: Sequence[Sought], group: int) -> Iterator[list[int]]:
    """Patterns of one kind together, so many at most; those without needs come up always, and so apart."""
    kinds: dict[Hashable, list[int]] = {}
    for number, each in enumerate(sought):
        kinds.setdefault((not each.needs, each.kind), []).append(number)
    for numbers in kinds.values():
        yield from (numbers[start : start + group] for start in range(0, len(numbers), group))
