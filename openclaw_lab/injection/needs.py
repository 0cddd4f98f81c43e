"""A pattern in, what a text must hold for a hit out: one of some keys, the rarest that the parse tree proves.

A key of ASCII letters and digits is a whole word of the text, or the end or the beginning of one where `PART` stands
before or after it; any other key is a part of the text. What a pattern needs is read off its parse tree, so that it
cannot change what is found, and kept in `rules/needs.json` with a digest of the pattern; that of a pattern which is not
there is derived again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from openclaw_lab.files import read_text
from openclaw_lab.rules.pattern import compile_js
from openclaw_lab.rules.relaxed import escaped
from openclaw_lab.rules.sieve import Patterns
from openclaw_lab.rules.tree import DIGITS, WORD, Node, Nodes, parsed

# One of these keys is in a text with a hit; none where nothing is known.
Need = tuple[str, ...]

PART = "…"
CACHE = Path(__file__).with_name("rules") / "needs.json"
WORD_CHARS = frozenset(string.ascii_lowercase + string.digits)

# Strings that are kept of a piece, and of neighbours taken together; alternatives of a pattern.
_STRINGS, _JOINED, _ALTERNATIVES = 3000, 400, 5
# Members of a class that are told apart.
_FEW = 6
_ALNUM = DIGITS | sum(1 << ord(char) for char in string.ascii_letters)
# What stands for an unknown text, for unknown letters, digits and underscores, and for a sign or an edge of a word.
_ANY, _LETTER, _EDGE = "\x01", "\x02", " "
# The fewest letters of a part of a word.
_STEM = 2
_RARE = 0.0003  # how many messages hold a key that is not known as a common one

# What a part of a word costs more than a word: it is looked for on its own.
_MORE = 0.005

_WORD = re.compile("[a-z0-9]+")
_PART = re.compile(f"[^{_ANY}{_LETTER}{_EDGE}a-z0-9]+")

# Keys that so many messages hold are worth a phrase, if so many times fewer messages hold that.
_OFTEN, _FEWER = 0.004, 2

_Strings = frozenset[str] | None  # all that a piece can be; None: too many


def need_of(pattern: str, flags: str = "") -> Need:
    """The keys of which each text with a hit holds one."""
    stored = _cache()["rules"].get(_digest(pattern, flags))
    return tuple(stored) if stored is not None else derive(pattern, flags)


def phrase_of(pattern: str, flags: str = "") -> str:
    """The RE2 pattern over bytes of words that stand together in each hit; empty where the keys are rare enough."""
    return str(_cache()["phrases"].get(_digest(pattern, flags), ""))


def derive(pattern: str, flags: str = "") -> Need:
    """`need_of`, read off the pattern itself."""
    if "\\B" in pattern:  # an edge that is none
        return ()
    found = [_needs(each, _ANY, _ANY) for each in alternatives(flat(parsed(compile_js(pattern, flags))))]
    if not all(found):
        return ()
    return tuple(sorted({key for each in found for key in each[0][1]}))


def commonest(need: Need) -> str:
    """The key that most messages hold; empty where there is none."""
    return max(need, key=share, default="")


def finder(need: Need) -> str:
    """The RE2 pattern over bytes that finds the keys of a need in a text in lower case, a line break before and after.

    Not with `\\b`, for which `_` is a letter, and not with `\\A`, which makes the automaton of many patterns explode.
    """
    return "|".join(map(_found, need))


def _found(key: str) -> str:
    word = key.strip(PART)
    if not WORD_CHARS.issuperset(word):
        return escaped(key)
    edge = "[^0-9a-z]"
    return f"{'' if key.startswith(PART) else edge}{word}{'' if key.endswith(PART) else edge}"


def alternatives(nodes: Nodes) -> list[Nodes]:
    """What a pattern that ends with a branch comes to."""
    last = nodes[-1] if nodes else None
    if last is None or last.kind != "branch" or len(last.parts) > _ALTERNATIVES:
        return [nodes]
    return [(*nodes[:-1], *each) for each in last.parts]


def update(rows: Sequence[Mapping[str, Any]], messages: Sequence[str]) -> None:
    """Write what all rules need, as the rows of a rule file, to the cache.

    `messages`: what people and agents write, a few thousand; they say which keys are frequent.
    """
    from openclaw_lab.injection.phrases import rarest  # it reads patterns as this module does

    texts = [f"\n{text.lower()}\n".encode("utf-8", "surrogatepass") for text in messages]

    @functools.cache
    def held(pattern: str) -> float:
        found = Patterns([(0, pattern)])
        return sum(0 in found.of(found.match(text)) for text in texts) / len(texts)

    needs, phrases = {}, {}
    for row in rows:
        given = row["pattern"], row.get("flags", "")
        needs[_digest(*given)] = derive(*given)
        keys = held(finder(derive(*given)))
        if keys > _OFTEN and (phrase := rarest(*given, held)) and held(phrase) * _FEWER <= keys:
            phrases[_digest(*given)] = phrase
    common = json.dumps(_cache()["common"], ensure_ascii=False, sort_keys=True)
    sections = f' "rules": {_lines(needs)},\n "phrases": {_lines(phrases)}'
    CACHE.write_text(f'{{\n "common": {common},\n{sections}\n}}\n', "utf-8")


def _lines(rows: Mapping[str, Any]) -> str:
    return (
        "{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(row, ensure_ascii=False)}" for key, row in rows.items())
        + "\n }"
    )


@functools.cache
def _cache() -> Any:
    """`common`: of a thousand messages of chat, code and logs, how many hold a key; `rules` and `phrases` by digest."""
    return json.loads(read_text(CACHE))


def _digest(pattern: str, flags: str) -> str:
    return hashlib.sha256(f"{flags}/{pattern}".encode()).hexdigest()[:16]


# --- what a piece of a pattern can be -------------------------------------------------------------------------------


def flat(nodes: Nodes) -> tuple[Node, ...]:
    """Pieces without the groups around those that cannot be spelt out."""
    found: list[Node] = []
    for node in nodes:
        if node.kind == "group" and (len(node.parts[0]) == 1 or not _is_known(_strings(node))):
            found += flat(node.parts[0])
        else:
            found.append(node)
    return tuple(found)


def _is_known(strings: _Strings) -> bool:
    return strings is not None and not any(_ANY in each for each in strings)


def _strings(node: Node) -> _Strings:
    """All that a piece can be."""
    if node.kind == "chars":
        return _characters(node)
    if node.kind in ("assert", "refuse"):
        return frozenset({""})
    if node.kind == "anchor":
        return frozenset({_EDGE})
    if node.kind == "reference":
        return frozenset({_ANY})
    if node.kind == "repeat":
        return _repeated(node, _sequence(node.parts[0]))
    found = [_sequence(each) for each in node.parts]
    every: frozenset[str] = frozenset().union(*(each for each in found if each is not None))
    return None if None in found or len(every) > _STRINGS else every


def _sequence(nodes: Nodes) -> _Strings:
    found: _Strings = frozenset({""})
    for node in nodes:
        found = _product(found, _strings(node), _STRINGS)
    return found


def _product(first: _Strings, second: _Strings, most: int) -> _Strings:
    if first is None or second is None or len(first) * len(second) > most:
        return None
    return frozenset(a + b for a in first for b in second)


def _characters(node: Node) -> frozenset[str]:
    if node.spelt and len(node.spelt) <= _FEW:
        return frozenset(_EDGE if char.isspace() else char.lower() for char in node.spelt)
    if not node.chars & _ALNUM:
        return frozenset({_EDGE})
    return frozenset({_LETTER if node.chars | WORD == WORD else _ANY})


def _repeated(node: Node, inner: _Strings) -> _Strings:
    """A repeat: so much of it as is sure at its edges."""
    none = frozenset({""}) if node.low == 0 else frozenset()
    if (node.low, node.high) in ((0, 1), (1, 1)):
        return None if inner is None else inner | none
    if inner is None or not inner or "" in inner:
        return none | {_ANY}
    if inner <= {_EDGE} or inner <= {_LETTER}:
        return inner | none
    before = _EDGE if all(_parts(each[0]) for each in inner) else ""
    after = _EDGE if all(_parts(each[-1]) for each in inner) else ""
    return none | {before + _ANY + after}


def _parts(char: str) -> bool:
    """Whether a character stands between words."""
    return char not in WORD_CHARS and char not in (_ANY, _LETTER)


# --- what a sequence needs ------------------------------------------------------------------------------------------


def _needs(nodes: Nodes, before: str, after: str) -> list[tuple[float, Need]]:
    """The needs of a sequence with their costs, the rarest first; it has `before` and `after` beside it."""
    flattened = flat(nodes)
    found = [_strings(node) for node in flattened]
    needs: set[tuple[float, Need]] = set()
    for start, end, strings in _windows(found):
        left, right = _beside(found[:start][::-1], -1, before), _beside(found[end:], 0, after)
        keys = [_keys(left, each, right) for each in strings]
        if all(keys):
            needs |= {_priced(each[0] for each in keys), _priced(each[min(1, len(each) - 1)] for each in keys)}
    for index, node in enumerate(flattened):
        if node.kind == "branch" and not _is_known(found[index]):
            start = index
            while start and flattened[start - 1].kind == "chars":  # what the parser took out of all of them
                start -= 1
            left, right = _beside(found[:start][::-1], -1, before), _beside(found[index + 1 :], 0, after)
            inner = [_needs((*flattened[start:index], *each), left, right) for each in node.parts]
            if all(inner):
                needs.add(_priced(key for each in inner for key in each[0][1]))
    return sorted(needs)


def _windows(found: Sequence[_Strings]) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Pieces that are known, and the neighbours from each of them on: from, to, and what they can be."""
    for start, strings in enumerate(found):
        if start and _is_letter(strings) and _is_letter(found[start - 1]):
            continue  # within a word
        end = start + 1
        while strings is not None and _is_known(strings) and strings != {""}:
            if end == start + 1:
                yield start, end, strings
            longer = _product(strings, found[end], _JOINED) if end < len(found) and _is_known(found[end]) else None
            if longer is None:
                if end > start + 1:
                    yield start, end, strings
                break
            strings, end = longer, end + 1


def _is_letter(strings: _Strings) -> bool:
    return strings is not None and len(strings) == 1 and strings <= WORD_CHARS


def _beside(neighbours: Sequence[_Strings], at: int, outer: str) -> str:
    """What surely stands beside a piece: an edge, or something unknown; what may be empty is looked through."""
    for strings in neighbours:
        if strings is None or not all(_parts(each[at]) for each in strings if each):
            return _ANY
        if "" not in strings:
            return _EDGE
    return outer


def _keys(left: str, between: str, right: str) -> list[str]:
    """The words and parts that a string surely shows, the rarest first; `left` and `right` stand beside it."""
    framed, keys = left + between + right, set()
    for match in _WORD.finditer(framed):
        begin, end = match.span()
        starts, ends = _parts(framed[begin - 1]), _parts(framed[end])
        if (starts and ends) or end - begin >= _STEM:
            keys.add(("" if starts else PART) + match.group() + ("" if ends else PART))
    for match in _PART.finditer(between):
        keys.update(_pairs(match.group()))
    return sorted(keys, key=lambda key: (share(key), key))


def _pairs(part: str) -> Iterator[str]:
    """Two characters each, of which fewer different ones are looked for than of long parts."""
    yield from (part[at : at + 2] for at in range(len(part) - 1)) if len(part) > 1 else (part,)


def _priced(keys: Iterator[str]) -> tuple[float, Need]:
    need = tuple(sorted(set(keys)))
    return round(sum(map(share, need)), 6), need


def share(key: str) -> float:
    """How many messages hold a key."""
    return _MORE * (PART in key) + (float(_cache()["common"].get(key, 0)) / 1000 or _RARE)
