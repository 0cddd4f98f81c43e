"""A pattern in, a simpler one over bytes of UTF-8 out that finds at least every text in which the first can match.

What a fast engine does not know, and what is not needed to say that nothing can match, is left out: assertions, back
references, upper bounds. Every match of the pattern holds a match of the relaxed one; the reverse need not be so.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from openclaw_lab.rules.tree import ALL, OTHER, Node, Nodes, node_width, parsed

_WIDE = 32  # a repeat with a higher bound has none
_NUMBER = sum(1 << ord(char) for char in "0123456789 .()-/")
_FOREIGN = r"[\x80-\xff]"
# All kinds of space that `\s` stands for; a class of fewer is spelt out.
_SPACE = (
    r"(?:[\x09-\x0d\x20]|\xc2\xa0|\xe1\x9a\x80|\xe2(?:\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|\xe3\x80\x80|\xef\xbb\xbf)"
)
_FEW = 9


def relaxed(nodes: Nodes) -> str:
    """The relaxed pattern; empty where it would match nothing, which every text holds."""
    kept = [node for node in nodes if not _silent(node)]
    while kept and node_width(kept[-1])[0] == 0:
        del kept[-1]
    while kept and node_width(kept[0])[0] == 0:
        del kept[0]
    return "".join(_written(node, index in (0, len(kept) - 1)) for index, node in enumerate(kept))


def relaxed_form(compiled: re.Pattern[str]) -> str:
    """The relaxed form of a compiled pattern."""
    return relaxed(parsed(compiled))


def escaped(literal: str, ignore_case: bool = False) -> str:
    """A pattern that finds a literal, if asked whatever the case of its ASCII letters."""
    return "".join(
        f"[{char.lower()}{char.upper()}]" if ignore_case and char.isascii() and char.isalpha() else _hex(char)
        for char in literal
    )


def _silent(node: Node) -> bool:
    """Whether a piece takes nothing in any case."""
    return node_width(node)[1] == 0


def _written(node: Node, at_edge: bool = False) -> str:
    if node.kind == "chars":
        return _class(node)
    if node.kind in ("anchor", "assert", "refuse"):
        return ""
    if node.kind == "reference":
        return r"[\x00-\xff]{0,}"
    if node.kind == "repeat":
        return _repeat(node, at_edge)
    if _numeric(node):
        chars, (low, _) = _taken(node), node_width(node)
        return f"{_bytes(chars)}{{{low}{'' if at_edge else ','}}}" if low else f"{_bytes(chars)}{{0,}}"
    return f"(?:{'|'.join(_all(each) for each in node.parts)})"


def _numeric(node: Node) -> bool:
    """Whether alternatives take digits and what stands between them only: how many there are says enough."""
    return node.kind == "branch" and _taken(node) & ~_NUMBER == 0


def _taken(node: Node) -> int:
    if node.kind in ("anchor", "assert", "refuse", "reference"):
        return ALL if node.kind == "reference" else 0
    found = node.chars
    for each in node.parts:
        for inner in each:
            found |= _taken(inner)
    return found


def _all(nodes: Nodes) -> str:
    return "".join(_written(node) for node in nodes)


def _repeat(node: Node, at_edge: bool) -> str:
    """At the edge of a pattern the fewest rounds are enough: what comes beyond them does not matter."""
    inside = node.parts[0]
    single = len(inside) == 1 and inside[0].kind == "chars"
    high = node.low if at_edge else node.high
    if single and inside[0].chars & OTHER and not inside[0].spelt:
        # A character beyond ASCII takes two to four bytes: more rounds, not fewer.
        return (
            f"{_bytes(inside[0].chars)}{{{node.low},}}" if not at_edge else f"{_bytes(inside[0].chars)}{{{node.low}}}"
        )
    body = _class(inside[0]) if single else f"(?:{_all(inside)})"
    if high is None or (high > _WIDE and high != node.low):
        return f"{body}{{{node.low},}}"
    return f"{body}{{{node.low},{high}}}"


def _class(node: Node) -> str:
    """One character."""
    if _is_space(node):
        return _SPACE
    if node.spelt and node.chars & OTHER:
        words = [_hex(char) for char in node.spelt]
        return f"(?:{'|'.join(words)})"
    if node.chars & OTHER:
        plain = node.chars & ~OTHER
        return f"(?:{_bytes(plain)}|{_FOREIGN}{{1,4}})" if plain else f"{_FOREIGN}{{1,4}}"
    return _bytes(node.chars)


def _is_space(node: Node) -> bool:
    """Whether a class is `\\s`, whose two dozen characters would be most of a pattern."""
    return len(node.spelt) > _FEW and all(char.isspace() or char == "\ufeff" for char in node.spelt)


@functools.lru_cache(maxsize=4096)
def _bytes(chars: int) -> str:
    """A class of bytes; one that holds other characters holds all bytes that these are made of."""
    if chars == ALL:
        return r"[\x00-\xff]"
    if not chars:  # `[]` would be the beginning of a longer class
        return "(?:)"
    codes = [code for code in range(128) if chars >> code & 1]
    if len(codes) == 1 and not chars & OTHER:
        return _byte(codes[0])
    inside = "".join(_span(first, last) for first, last in _spans(codes))
    return f"[{inside}{_FOREIGN[1:-1] if chars & OTHER else ''}]"


def _spans(codes: Sequence[int]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for code in codes:
        if spans and spans[-1][1] == code - 1:
            spans[-1] = spans[-1][0], code
        else:
            spans.append((code, code))
    return spans


def _span(first: int, last: int) -> str:
    return f"\\x{first:02x}" if first == last else f"\\x{first:02x}-\\x{last:02x}"


def _hex(char: str) -> str:
    return "".join(map(_byte, char.encode("utf-8", "surrogatepass")))


def _byte(code: int) -> str:
    return chr(code) if code < 128 and chr(code).isalnum() else f"\\x{code:02x}"
