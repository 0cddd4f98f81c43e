"""A rule in, nothing or an error out: refuses patterns that some text makes slow, and those that nothing narrows down.

First the parse tree: a repeat in a repeat that can share its characters out in many ways; two unbounded repeats that
meet and can take the same; an unbounded repeat with which a match begins, so that each place of a long run is a start.
Then a trial: texts of 40,000 characters made of the pattern's own pieces, the worst ones known. The rules of the seed
documents are not linted: they must stay as they are.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator
from functools import cache, partial

from openclaw_lab.errors import RuleError
from openclaw_lab.rules.rule import Rule
from openclaw_lab.rules.samples import pieces
from openclaw_lab.rules.tree import ALL, OTHER, WORD, Node, Nodes, first_set, parsed, takes_something, walk

LENGTH = 40_000  # characters of a trial text
LIMIT = 0.05  # CPU seconds that it may take
_ENDS = ("", "!", "\n", "0a中")
# From so few characters on: what grows without measure is stopped before it takes long.
_SIZES = (8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 256, 512, 1024, 4096, 10_000, LENGTH)
_UNSURE = 1024  # a pattern without a repeat in a repeat starts here


def lint(rule: Rule, file: str) -> None:
    """A RuleError says which part of a pattern is at fault, and what to do."""
    where = f"{file}: {rule.id}: pattern"
    nodes = parsed(rule.compiled)
    for fault, todo in (*_nested(nodes), *_adjacent(nodes), *_leading(nodes)):
        raise RuleError(where, fault, "a pattern that no text makes slow", todo)
    if rule.gate is None:
        raise RuleError(
            where, rule.pattern, "a literal or a number of digits that every match holds",
            "add an anchor: write out a word, a sign such as @, or digits such as [0-9]{3}",
        )  # fmt: skip
    slow = _slowest(rule.compiled, nodes)
    if slow:
        raise RuleError(where, *slow)


# --- by the parse tree --------------------------------------------------------------------------------------------


def _nested(nodes: Nodes) -> Iterator[tuple[str, str]]:
    """Repeats within repeats that can share the same characters out in many ways."""
    for outer in walk(nodes):
        if outer.kind != "repeat" or (outer.high is not None and outer.high < 8):
            continue
        body = outer.parts[0]
        for inner in walk(body):
            if inner.kind == "repeat" and inner.high is None and _takes(inner.parts[0]) & first_set(body):
                fault = f"an unbounded repeat of {shown(_takes(inner.parts[0]))} within a repeat"
                yield fault, "bound the inner repeat: {1,64}, or part its rounds by a character that it does not take"


def _adjacent(nodes: Nodes) -> Iterator[tuple[str, str]]:
    """Unbounded repeats that meet, or are parted only by what the first can take too."""
    for sequence in _sequences(nodes):
        open_repeat = 0
        for node in sequence:
            takes = _takes([node])
            if node.kind == "repeat" and node.high is None:
                if open_repeat & takes:
                    yield f"two unbounded repeats of {shown(open_repeat & takes)} that meet", "bound both: {1,64}"
                open_repeat |= takes
            elif takes_something(node) and not takes & open_repeat:
                open_repeat = 0


def _leading(nodes: Nodes) -> Iterator[tuple[str, str]]:
    """An unbounded repeat with which a match can begin."""
    refused = 0
    for index, node in enumerate(nodes):
        if node.kind == "refuse" and node.behind:
            refused |= _takes(node.parts[0])
        elif node.kind == "group" or node.kind == "branch":
            for each in node.parts:
                yield from _leading([*nodes[:index], *each, *nodes[index + 1 :]])
            return
        elif node.kind == "repeat" and node.high is None:
            takes = _takes(node.parts[0])
            if takes & ~refused and any(_may_fail(each) for each in nodes[index + 1 :]):
                advice = f"add a left boundary such as (?<!{shown(takes)}), or bound the repeat: {{1,64}}"
                yield f"a match that begins with an unbounded repeat of {shown(takes)}", advice
        if takes_something(node):
            return


def _may_fail(node: Node) -> bool:
    return node.kind in ("assert", "refuse", "anchor") or takes_something(node)


def _sequences(nodes: Nodes) -> Iterator[Nodes]:
    yield nodes
    for node in nodes:
        for each in node.parts:
            yield from _sequences(each)


def _takes(nodes: Nodes) -> int:
    """All characters that pieces can take."""
    return _union(node.chars if node.kind == "chars" else _inside(node) for node in nodes)


def _inside(node: Node) -> int:
    if node.kind == "reference":
        return ALL
    return 0 if node.kind in ("assert", "refuse", "anchor") else _union(_takes(each) for each in node.parts)


def _union(sets: Iterator[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found


def shown(chars: int) -> str:
    """A set of characters as a class."""
    if chars == ALL:
        return "any character"
    if chars == WORD:
        return r"[\w]"
    if chars.bit_count() > 64:
        return "[^" + "".join(_ranges(ALL & ~chars & ~OTHER)) + "]"
    return "[" + "".join(_ranges(chars & ~OTHER)) + ("…" if chars & OTHER else "") + "]"


def _ranges(chars: int) -> Iterator[str]:
    code = 0
    while code < 128:
        end = code
        while chars >> end & 1 and end < 128:
            end += 1
        if end - code > 2:
            yield f"{_sign(code)}-{_sign(end - 1)}"
        else:
            yield from (_sign(each) for each in range(code, end))
        code = max(end, code + 1)


def _sign(code: int) -> str:
    char = chr(code)
    return f"\\{char}" if char in "\\]^-" else ascii(char)[1:-1]


# --- by trial -----------------------------------------------------------------------------------------------------


def _slowest(compiled: re.Pattern[str], nodes: Nodes) -> tuple[str, str, str] | None:
    """What was found, expected and to do for a pattern that a text of its own pieces makes slow."""
    nested = any(
        node.kind == "repeat" and any(each.kind in ("repeat", "branch") for each in walk(node.parts[0]))
        for node in walk(nodes)
    )
    sizes = [size for size in _SIZES if nested or size >= _UNSURE]
    for piece in pieces(nodes):
        for end in _ENDS:
            for size in sizes:
                text = (piece * (size // len(piece) + 1))[:size] + end
                if _seconds(compiled, text) > LIMIT * _pace():
                    found = f"{size:,} characters of {piece[:20]!r} that take {_seconds(compiled, text):.2f} s"
                    todo = "bound its repeats more tightly: {1,64}, or add a left boundary such as (?<![\\w.])"
                    return found, f"less than {LIMIT} s for {LENGTH:,}", todo
    return None


def _seconds(compiled: re.Pattern[str], text: str) -> float:
    """CPU seconds of a search for all matches; a slow one is measured again, for the machine may have been busy."""
    first = _cpu(partial(compiled.finditer, text))
    if first < LIMIT or first > 20 * LIMIT:
        return first
    return min(first, *(_cpu(partial(compiled.finditer, text)) for _ in range(2)))


def _cpu(search: partial[Iterator[re.Match[str]]]) -> float:
    begin = time.process_time()
    deque(search(), maxlen=0)
    return time.process_time() - begin


@cache
def _pace() -> float:
    """How much slower than a common machine this one is, 1 at least: told by a pattern whose work is known."""
    known, text = re.compile("(?:[ab]{1,20}c)"), "ab" * 10_000
    return max(1.0, min(_cpu(partial(known.finditer, text)) for _ in range(5)) / 0.008)
