"""Letters that are set apart in, words out: "i g n o r e", "i.g.n.o.r.e", 忽*略; and words joined by signs set apart.

It knows a few words of orders, to part letters that come without a word boundary ("i g n o r e a l l r u l e s").
"""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

_SIGNS = r"[ \t._*|/~^+\-·•]"
_GAP = rf"(?:\s{{0,2}}{_SIGNS}\s{{0,2}}|\n)"
# Five letters or more, each alone; in a text that has such a run, three are one too.
_APART, _APART_TOO = (
    re.compile(rf"[a-z0-9@$!](?<![a-z0-9].){_GAP}[a-z0-9@$!](?:{_GAP}[a-z0-9@$!](?![a-z0-9])){{{least},400}}")
    for least in (3, 1)
)
_BETWEEN = re.compile(r"(?<=[a-z0-9@$!])[^a-z0-9@$!]+(?=[a-z0-9@$!])")
_HAN = "\u3400-\u9fff"
# Seven lines or more that hold one word each.
_ONE_A_LINE = re.compile(r"(?<![^\n])[^\s]{1,40}(?:\r?\n[^\s]{1,40}(?![^\r\n])){6,2000}")
_LINE_BREAK = re.compile(r"\r?\n(?=[^\s])")
_IS_HAN = re.compile(f"[{_HAN}]")
# A sign between two characters; or blanks (after a full stop, too) beside one that stands alone, for Chinese has
# blanks between phrases.
_HAN_SIGN = r"[ \t\u3000]?(?:[_*|/~^+\-·•]|\.(?!\s))"
_HAN_BLANK = r"\.?[ \t\u3000]"
_HAN_APART = re.compile(
    rf"{_HAN_SIGN}(?:(?<=[{_HAN}].)|(?<=[{_HAN}][ \t\u3000].))[ ._*|/~^+\-·•]{{0,2}}(?=[{_HAN}])"
    rf"|{_HAN_BLANK}(?:(?<=(?<![{_HAN}])[{_HAN}].)|(?<=(?<![{_HAN}])[{_HAN}]\..))[ \t\u3000]{{0,2}}(?=[{_HAN}])"
    rf"|{_HAN_BLANK}(?:(?<=[{_HAN}].)|(?<=[{_HAN}]\..))[ \t\u3000]{{0,2}}(?=[{_HAN}](?![{_HAN}]))"
)
# Three words or more joined by one kind of sign.
_JOINED = re.compile(r"[a-z]{2,20}([-_.+*/|])[a-z]{1,20}(?:\1[a-z]{1,20})+")
_JOINED_THRICE = re.compile(r"[a-z]([-_.+*/|])[a-z]{1,20}\1[a-z]")  # what it finds holds this, found in half the time
_ORDERS = (
    "ignore", "disregard", "forget", "override", "bypass", "reveal", "show", "print", "repeat", "display", "output",
    "send", "email", "forward", "transfer", "delete", "disobey", "obey", "follow", "stop", "all", "any", "the",
    "previous", "prior", "above", "earlier", "your", "you", "are", "now", "new", "instructions", "instruction",
    "rules", "guidelines", "orders", "commands", "prompt", "system", "developer", "mode", "password", "secret",
    "user", "users", "owner", "do", "not", "tell", "me", "say", "that", "this", "and", "everything", "restrictions",
    "without", "to", "from", "of", "is", "in", "a", "pay", "call", "tool", "every", "message", "hate",
)  # fmt: skip
_WORDS = re.compile("|".join(sorted(_ORDERS, key=len, reverse=True)))
_LONG_ONES = frozenset(word for word in _ORDERS if len(word) > 2)

_KEPT = frozenset((string.ascii_lowercase + string.digits).encode())
_BLANKS = bytes(code if code in _KEPT else 32 for code in range(256))
# Each text that `part_words` changes holds this (RE2, whatever the case).
_KNOWN = f"(?:{'|'.join(sorted(_LONG_ONES))})"
_SIGN = "[-_.+*/|]"
JOINED_WORDS = (
    f"{_KNOWN}{_SIGN}(?:(?:[a-z]{{1,20}}{_SIGN}){{1,}}{_KNOWN}|{_KNOWN}{_SIGN}[a-z])|"
    f"[a-z]{_SIGN}{_KNOWN}{_SIGN}{_KNOWN}"
)
# Letters that hardly stand by themselves in English.
ALONE = frozenset(char.encode() for char in "bcdefghjklmnopqruvwxyz")
# Each text that `may_be_apart` holds one of these (RE2, whatever the case).
_LONE = "[bcdefghjklmnopqruvwxyz]"
MAY_BE_APART = (
    r"(?:\n[^\s]{1,80}\r?){6}",
    rf"(?:^|[^a-z0-9]){_LONE}(?:[^a-z0-9](?:.*[^a-z0-9])?{_LONE}){{2}}(?:[^a-z0-9]|$)",
    rf"[{_HAN}][ \t\x{{3000}}]?(?:[_*|/~^+\-·•][ ._*|/~^+\-·•]{{0,2}}|\.[._*|/~^+\-·•]{{0,2}})[{_HAN}]",
    rf"(?:\A|[^{_HAN}])[{_HAN}]\.?[ \t\x{{3000}}]{{1,3}}[{_HAN}]",
    rf"[{_HAN}]\.?[ \t\x{{3000}}]{{1,3}}[{_HAN}](?:[^{_HAN}]|\z)",
)
# Words that are remembered, and shorter than which they are: longer ones do not come again.
_REMEMBERED, _LONG = 50_000, 40


def words_of(text: str) -> list[bytes]:
    """The words of ASCII letters and digits of a text in lower case."""
    return text.encode("utf-8", "surrogatepass").translate(_BLANKS).split()


class Noted:
    """Words of which a test says that they matter; those that do not are remembered, for words repeat themselves."""

    def __init__(self, matters: Callable[[bytes], object]) -> None:
        self._matters = matters
        self._dull: set[bytes] = set()

    def of(self, words: Iterable[bytes]) -> list[bytes]:
        """The words that matter, in their order."""
        new = list(itertools.filterfalse(self._dull.__contains__, words))
        found = [word for word in new if self._matters(word)]
        if len(found) < len(new):
            if len(self._dull) > _REMEMBERED:
                self._dull = set()
            self._dull.update(word for word in new if len(word) < _LONG and not self._matters(word))
        return found


def may_be_apart(text: str, odd: Sequence[bytes]) -> bool:
    """Whether `join_letters` may find anything in a text in lower case; `odd` holds its letters that stand alone."""
    if (len(odd) > 2 and sum(word in ALONE for word in odd) > 2) or _ONE_A_LINE.search(text):
        return True
    return not text.isascii() and _HAN_APART.search(text) is not None


def join_letters(text: str) -> Iterator[tuple[int, int, str]]:
    """The edits that join letters set apart; a wider gap than the usual one is one between words, a sign stays."""
    for match in _APART_TOO.finditer(text) if _APART.search(text) else ():
        gaps = Counter(gap.group() for gap in _BETWEEN.finditer(match.group()))
        usual = min(gaps, key=lambda gap: (-gaps[gap], len(gap)))
        if len(gaps) == 1:
            yield from _parted(match.start(), match.group(), usual)
        else:
            for gap in _BETWEEN.finditer(match.group()):
                begin, end = match.start() + gap.start(), match.start() + gap.end()
                if gap.group() == usual or usual.strip() or not gap.group().strip():
                    yield begin, end, "" if gap.group() == usual else " "
    if not text.isascii():
        yield from ((*match.span(), "") for match in _HAN_APART.finditer(text))


def _parted(start: int, run: str, gap: str) -> Iterator[tuple[int, int, str]]:
    """A run without gaps between words: the words that are known stand by themselves, what is between them is kept."""
    step = len(gap) + 1
    ends = {edge for word in _WORDS.finditer(run[::step]) for edge in word.span()}
    for index in range(1, len(run[::step])):
        begin = start + index * step
        yield begin - len(gap), begin, " " if index in ends else ""


def join_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """The edits that join lines of a single word each: with a blank, characters of Chinese without."""
    for run in _ONE_A_LINE.finditer(text):
        for match in _LINE_BREAK.finditer(text, run.start(), run.end() + 1):
            start, end = match.span()
            yield start, end, "" if _IS_HAN.match(text, start - 1) and _IS_HAN.match(text, end) else " "


def part_words(text: str) -> str:
    """Words of an order that are joined by one sign, with spaces between them; nothing changes its place."""
    return _JOINED.sub(_parted_run, text) if _JOINED_THRICE.search(text) else text


def _parted_run(match: re.Match[str]) -> str:
    """Three words or more, with spaces between them if two are known: names in code have as many."""
    run, sign = match.group(), match.group(1)
    return run.replace(sign, " ") if sum(word in _LONG_ONES for word in run.split(sign)) > 1 else run
