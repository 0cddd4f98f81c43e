"""A pattern in, what stands together in each hit out: the words of its rarest stretch without a gap, for RE2.

A key that many texts hold (`not`, `the`) says little of them; the words beside it say more. A stretch without a gap
keeps the automaton of many patterns small, which relaxed forms of whole patterns, with their gaps, do not. Which
stretch is rare is measured on messages, once, when the cache of the needs is written (`needs.update`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from openclaw_lab.injection.needs import alternatives, flat
from openclaw_lab.rules.pattern import compile_js
from openclaw_lab.rules.relaxed import relaxed
from openclaw_lab.rules.tree import Node, Nodes, parsed

# A repeat of a class of more members than this, and of more rounds, is a gap.
_MEMBERS, _ROUNDS = 30, 3
# Longer stretches would be most of the cache.
_LONGEST = 8000

Share = Callable[[str], float]


def rarest(pattern: str, flags: str, share: Share) -> str:
    """The pattern over bytes of the stretch that is the rarest by `share`; empty where every stretch has a gap."""
    found = [_rarest(each, share) for each in alternatives(flat(parsed(compile_js(pattern, flags))))]
    return _either(found) if all(found) else ""


def _rarest(nodes: Nodes, share: Share) -> str:
    stretches = [each for each in _stretches(flat(nodes), share) if 0 < len(each) <= _LONGEST]
    return min(stretches, key=lambda each: (share(each), len(each)), default="")


def _stretches(nodes: Nodes, share: Share) -> Iterator[str]:
    """The stretches of a sequence; of alternatives with gaps the rarest of each, together."""
    start = 0
    for end, node in enumerate(nodes):
        if not _has_gap(node):
            continue
        yield relaxed(nodes[start:end])
        start = end + 1
        if node.kind == "branch" and all(inner := [_rarest(each, share) for each in node.parts]):
            yield _either(inner)
    yield relaxed(nodes[start:])


def _either(patterns: list[str]) -> str:
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"


def _has_gap(node: Node) -> bool:
    return _is_gap(node) or any(_has_gap(each) for part in node.parts for each in part)


def _is_gap(node: Node) -> bool:
    if node.kind != "repeat":
        return node.kind == "reference"
    wide = any(each.kind == "chars" and each.chars.bit_count() > _MEMBERS for each in node.parts[0])
    return wide and (node.high is None or node.high > _ROUNDS)
