"""The pieces of a pattern in, short texts out of which the texts that could make it slow are made."""

from __future__ import annotations

from collections.abc import Iterator

from openclaw_lab.rules.tree import OTHER, Node, Nodes, walk

_MOST = 16  # texts
_TRIED = 'a1.-_ A/:=@"\n'
_LONG = 8  # a repeat that may go on so long is worth a trial


def pieces(nodes: Nodes) -> list[str]:
    """Characters of each long repeat, alone and in pairs; the shortest beginning up to it; the shortest match."""
    found: list[str] = []
    for node in walk(nodes):
        if node.kind == "repeat" and (node.high is None or node.high >= _LONG):
            signs = _signs(node.parts[0])
            found += [*signs, *("".join(signs[:2]),)]
    for end in range(len(nodes), 0, -1):
        begin = shortest(nodes[:end])
        found += [begin, *(begin + sign for sign in _long_signs(nodes[end - 1]))]
    return list(dict.fromkeys(each for each in found if each))[:_MOST]


def _long_signs(node: Node) -> Iterator[str]:
    for each in walk([node]):
        if each.kind == "repeat" and (each.high is None or each.high >= _LONG):
            yield from _signs(each.parts[0])[:1]


def shortest(nodes: Nodes) -> str:
    """The shortest text that pieces take, one for one; assertions are not minded."""
    parts = []
    for node in nodes:
        if node.kind == "chars":
            parts.append(_sign(node))
        elif node.kind in ("group", "repeat"):
            parts.append(shortest(node.parts[0]) * (node.low if node.kind == "repeat" else 1))
        elif node.kind == "branch":
            parts.append(min((shortest(each) for each in node.parts), key=len))
    return "".join(parts)


def _signs(nodes: Nodes) -> list[str]:
    """A few different characters of a repeat's inside: a letter, a digit, a sign."""
    found: list[str] = []
    for node in walk(nodes):
        if node.kind == "chars":
            found += node.spelt[:2] if node.spelt else [char for char in _TRIED if node.chars >> ord(char) & 1][:3]
    return list(dict.fromkeys(found))[:3]


def _sign(node: Node) -> str:
    if node.spelt:
        return node.spelt[0]
    known = [char for char in _TRIED if node.chars >> ord(char) & 1]
    if known or node.chars & OTHER:
        return known[0] if known else "中"
    return chr((node.chars & -node.chars).bit_length() - 1)
