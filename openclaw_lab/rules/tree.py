"""A compiled pattern in, its parse tree out, and what can be read off it: widths, and which characters stand where.

The tree is that of Python's own parser (`re._parser`), so that it cannot differ from what is run. A set of characters
is a number of 129 bits: one for each ASCII character, and one for all others together.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_PARSER = importlib.import_module("re._parser")  # no type stubs; of Python 3.11 and later

OTHER = 1 << 128  # any character that is not ASCII
ALL = (1 << 129) - 1
DIGITS = sum(1 << ord(char) for char in "0123456789")
WORD = DIGITS | sum(1 << ord(char) for char in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
FEW = 40  # characters of a class that are spelt out
_SPACE = sum(1 << ord(char) for char in " \t\n\r\f\v")
_CATEGORIES = {"DIGIT": DIGITS, "WORD": WORD, "SPACE": _SPACE}
UNBOUNDED = int(_PARSER.MAXREPEAT)
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


@dataclass(frozen=True, slots=True)
class Node:
    """One piece of a pattern: a set of characters, a repeat, a branch, an assertion, an anchor or a reference.

    `low` and `high` are the least and most repeats (high: None = no bound); `parts` are the sequences inside.
    """

    kind: str  # chars repeat branch group assert refuse anchor reference
    chars: int = 0
    spelt: str = ""  # the characters, where they are few
    low: int = 1
    high: int | None = 1
    behind: bool = False
    parts: tuple[tuple[Node, ...], ...] = ()


Nodes = Sequence[Node]


@functools.lru_cache(maxsize=512)
def parsed(compiled: re.Pattern[str]) -> tuple[Node, ...]:
    """The pieces of a pattern, in order."""
    return parse(compiled.pattern, compiled.flags)


def parse(source: str, flags: int) -> tuple[Node, ...]:
    """The pieces of a valid pattern that need not be compiled for it, which takes twice as long."""
    return _nodes(_PARSER.parse(source, flags), bool(flags & re.IGNORECASE))


def _nodes(tree: Any, ignore: bool) -> tuple[Node, ...]:
    return tuple(_node(op.name, value, ignore) for op, value in tree)


def _node(op: str, value: Any, ignore: bool) -> Node:
    if op == "LITERAL":
        return Node("chars", _cased(_bit(value), ignore), chr(value))
    if op in ("NOT_LITERAL", "ANY", "IN"):
        return Node("chars", _set(op, value, ignore), _spelt(value) if op == "IN" else "")
    if op in _REPEATS:
        low, high, inner = value
        return Node("repeat", low=low, high=None if high == UNBOUNDED else high, parts=(_nodes(inner, ignore),))
    if op == "BRANCH":
        return Node("branch", parts=tuple(_nodes(each, ignore) for each in value[1]))
    if op in ("SUBPATTERN", "ATOMIC_GROUP"):
        return Node("group", parts=(_nodes(value[-1] if op == "SUBPATTERN" else value, ignore),))
    if op in ("ASSERT", "ASSERT_NOT"):
        kind = "assert" if op == "ASSERT" else "refuse"
        return Node(kind, behind=value[0] < 0, parts=(_nodes(value[1], ignore),))
    return Node("anchor" if op == "AT" else "reference")


def _spelt(items: Any) -> str:
    """The members of a class that has only a few."""
    found: list[int] = []
    for kind, item in items:
        if kind.name == "LITERAL":
            found.append(item)
        elif kind.name == "RANGE":
            found += range(item[0], min(item[1], item[0] + FEW) + 1)
        elif kind.name == "CATEGORY" and item.name == "CATEGORY_DIGIT":
            found += range(48, 58)
        else:
            return ""
    return "".join(map(chr, dict.fromkeys(found))) if len(found) <= FEW else ""


def _bit(code: int) -> int:
    return 1 << code if code < 128 else OTHER


def _cased(chars: int, ignore: bool) -> int:
    if not ignore:
        return chars
    both = chars
    for upper in range(65, 91):
        if chars & (1 << upper | 1 << (upper + 32)):
            both |= 1 << upper | 1 << (upper + 32)
    return both


def _set(op: str, value: Any, ignore: bool) -> int:
    if op == "ANY":
        return ALL
    if op == "NOT_LITERAL":
        return ALL & ~(_cased(_bit(value), ignore) & ~OTHER)
    chars, negated = 0, False
    for kind, item in value:
        if kind.name == "NEGATE":
            negated = True
        elif kind.name == "CATEGORY":
            chars |= _category(item.name)
        elif kind.name == "RANGE":
            low, high = item
            chars |= sum(1 << code for code in range(low, min(high, 127) + 1)) | (OTHER if high > 127 else 0)
        else:
            chars |= _bit(item)
    chars = _cased(chars, ignore)
    return ALL & ~(chars & ~OTHER) if negated else chars


def _category(name: str) -> int:
    kind = _CATEGORIES[name.rpartition("_")[2]]
    return ALL & ~kind if "_NOT_" in name else kind


def width(nodes: Nodes) -> tuple[int, int | None]:
    """The least and the most characters that a sequence takes (None: no bound)."""
    low, high = 0, 0
    bounded = True
    for node in nodes:
        least, most = node_width(node)
        low += least
        if most is None:
            bounded = False
        else:
            high += most
    return low, high if bounded else None


def node_width(node: Node) -> tuple[int, int | None]:
    """The least and the most characters that one piece takes."""
    if node.kind == "chars":
        return 1, 1
    if node.kind in ("anchor", "assert", "refuse"):
        return 0, 0
    if node.kind == "reference":
        return 0, None
    inner = [width(each) for each in node.parts]
    low = min(each[0] for each in inner)
    high = None if any(each[1] is None for each in inner) else max(each[1] or 0 for each in inner)
    if node.kind == "repeat":
        low *= node.low
        high = 0 if high == 0 else None if high is None or node.high is None else high * node.high
    return low, high


def takes_something(node: Node) -> bool:
    """Whether a piece takes a character in any case."""
    return node_width(node)[0] > 0


def first_set(nodes: Nodes) -> int:
    """The characters that a sequence can begin with."""
    found = 0
    for node in nodes:
        if node.kind in ("assert", "refuse", "anchor"):
            continue
        found |= ALL if node.kind == "reference" else node.chars
        for each in node.parts:
            found |= first_set(each)
        if takes_something(node):
            break
    return found


def prefix(nodes: Nodes) -> str:
    """The literal that each match begins with; empty where there is none, or where its letters have two cases."""
    found = ""
    for node in nodes:
        if node_width(node)[1] == 0:
            continue
        if node.kind == "group":
            return found + prefix(node.parts[0])
        if len(node.spelt) != 1 or node.chars != _bit(ord(node.spelt)):
            break
        found += node.spelt
    return found


def walk(nodes: Nodes) -> Iterator[Node]:
    """Every piece, those within others too."""
    for node in nodes:
        yield node
        for each in node.parts:
            yield from walk(each)


def reach(nodes: Nodes) -> tuple[int, int | None]:
    """How many characters a pattern may look at before the start of what it takes, and after its end."""
    behind, ahead = 0, 0
    endless = False
    for node in nodes:
        if node.kind == "anchor":
            behind, ahead = max(behind, 1), max(ahead, 1)
            continue
        for each in node.parts:
            before, after = reach(each)
            if node.kind in ("assert", "refuse"):
                most = width(each)[1]
                before += (most or 0) if node.behind else 0
                after = after if node.behind else None if after is None or most is None else after + most
            behind, ahead = max(behind, before), max(ahead, after or 0)
            endless |= after is None
    return behind, None if endless else ahead
