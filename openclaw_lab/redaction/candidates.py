"""A text in, the rules out that could find something in it: told by their gates, without running a pattern."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterable, Mapping, Sequence

from openclaw_lab.rules.gate import CLASSES, Gate
from openclaw_lab.rules.relaxed import probe
from openclaw_lab.rules.rule import Rule

_TABLES: Mapping[str, bytes] = {
    name: bytes(120 if code in members else 32 for code in range(256)) for name, (members, _) in CLASSES.items()
}


class _Run:
    """One class of characters: its table, and from length to length the rules that need a run of it so long."""

    def __init__(self, name: str, wanted: Mapping[int, int]) -> None:
        self.table = _TABLES[name]
        self.steps: list[tuple[bytes, int]] = []
        longer = 0
        for size in sorted(wanted, reverse=True):
            longer |= wanted[size]
            self.steps.insert(0, (b"x" * size, longer))


class _Literals:
    """Many literals looked for at once: one pattern for the text in lower case that stops at each first character.

    Those of one character are looked for on their own, which is faster.
    """

    def __init__(self, wanted: Mapping[str, int]) -> None:
        self.short = {literal: bits for literal, bits in wanted.items() if len(literal) == 1}
        long = {literal: bits for literal, bits in wanted.items() if len(literal) > 1}
        # The longest literal at a place stands for those that it begins with.
        self.bits = {
            literal: functools.reduce(operator.or_, (bits for each, bits in long.items() if literal.startswith(each)))
            for literal in long
        }
        firsts = sorted({literal[0] for literal in long})
        branches = [f"{re.escape(first)}(?=({_branch(long, first)}))" for first in firsts]
        self.find = re.compile("|".join(branches)).finditer if branches else None

    def of(self, lowered: str) -> int:
        """The rules whose literals a text in lower case holds."""
        found = 0
        for literal, bits in self.short.items():
            if literal in lowered:
                found |= bits
        if self.find:
            seen = {match[0] + match[match.lastindex or 0] for match in self.find(lowered)}
            for literal in seen:
                found |= self.bits[literal]
        return found


def _branch(literals: Iterable[str], first: str) -> str:
    rests = sorted((each[1:] for each in literals if each[0] == first), key=lambda rest: (-len(rest), rest))
    return "|".join(map(re.escape, rests))


class Gates:
    """The gates of all rules together: each literal is looked for once, whatever the number of rules that need it.

    A set of rules is a number with one bit for each rule.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        runs: dict[str, dict[int, int]] = {}
        literals: dict[str, dict[str, int]] = {}
        groups: dict[str, int] = {}
        self._free = 0  # rules that need no literal
        for number, rule in enumerate(self.rules):
            bit, gate = 1 << number, rule.gate
            for name, size in gate.runs if gate else ():
                sizes = runs.setdefault(name, {})
                sizes[_step(size)] = sizes.get(_step(size), 0) | bit
            if gate is None or not gate.literals:
                self._free |= bit
            else:
                kind = _kind(gate)
                groups[kind] = groups.get(kind, 0) | bit
                wanted = literals.setdefault(kind, {})
                for literal in gate.literals:
                    wanted[literal.lower()] = wanted.get(literal.lower(), 0) | bit
        self._all = (1 << len(self.rules)) - 1
        self._runs = [_Run(name, sizes) for name, sizes in runs.items()]
        self._literals = [(rules, _Literals(literals[kind])) for kind, rules in groups.items()]
        self._sets: dict[int, tuple[Rule, ...]] = {0: ()}

    def of(self, text: str) -> tuple[Rule, ...]:
        """The rules that could find something in a text, in order."""
        data = text.encode("utf-8", "surrogatepass")
        rules = self._by_runs(data)
        lowered, found = text.lower(), self._free
        for group, literals in self._literals:
            if group & rules:
                found |= literals.of(lowered)
        return tuple(rule for rule in self.named(found & rules) if _probed(rule, data))

    def of_many(self, texts: Sequence[str]) -> list[tuple[Rule, ...]]:
        """The rules for each text."""
        return [self.of(text) for text in texts]

    def _by_runs(self, data: bytes) -> int:
        rules = self._all
        for run in self._runs:
            mapped = data.translate(run.table)
            for needle, longer in run.steps:
                if needle not in mapped:
                    rules &= ~longer
                    break
        return rules

    def named(self, bits: int) -> tuple[Rule, ...]:
        """The rules of a set."""
        rules = self._sets.get(bits)
        if rules is None:
            if len(self._sets) >= 4096:
                self._sets = {0: ()}
            rules = tuple(rule for number, rule in enumerate(self.rules) if bits >> number & 1)
            self._sets[bits] = rules
        return rules


def _kind(gate: Gate) -> str:
    """Rules whose literals are looked for together: those that no prose comes near are spared where there is none."""
    sizes = dict(gate.runs)
    if sizes.get("token", 0) >= 16:
        return "token"
    return "address" if sizes.get("address", 0) >= 16 else "number" if "number" in sizes else ""


def _probed(rule: Rule, data: bytes) -> bool:
    """Whether a text holds what stands at the end of a match, from the first sign on."""
    known = probe(rule.compiled)
    return known is None or known.search(data) is not None


def _step(size: int) -> int:
    """A length rounded down, so that few different ones are looked for."""
    return size if size < 8 else size // 4 * 4 if size < 32 else 32
