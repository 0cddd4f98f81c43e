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
# Five letters or more, each alone.
_GAP = rf"(?:\s{{0,2}}{_SIGNS}\s{{0,2}}|\n)"
_APART = re.compile(rf"[a-z0-9@$!](?<![a-z0-9].){_GAP}[a-z0-9@$!](?:{_GAP}[a-z0-9@$!](?![a-z0-9])){{3,400}}")
_BETWEEN = re.compile(r"(?<=[a-z0-9@$!])[^a-z0-9@$!]+(?=[a-z0-9@$!])")
_HAN = "\u3400-\u9fff"
_HAN_APART = re.compile(rf"[ \t._*|/~^+\-·•\u3000](?<=[{_HAN}].)[ ._*|/~^+\-·•]{{0,2}}(?=[{_HAN}])")
# Three words or more joined by one kind of sign.
_JOINED = re.compile(r"[a-z]{2,20}([-_.+*/|])[a-z]{1,20}(?:\1[a-z]{1,20})+")
_WORDS = re.compile(
    "|".join(
        sorted(
            [
                "ignore",
                "disregard",
                "forget",
                "override",
                "bypass",
                "reveal",
                "show",
                "print",
                "repeat",
                "display",
                "output",
                "send",
                "email",
                "forward",
                "transfer",
                "delete",
                "disobey",
                "obey",
                "follow",
                "stop",
                "all",
                "any",
                "the",
                "previous",
                "prior",
                "above",
                "earlier",
                "your",
                "you",
                "are",
                "now",
                "new",
                "instructions",
                "instruction",
                "rules",
                "guidelines",
                "orders",
                "commands",
                "prompt",
                "system",
                "developer",
                "mode",
                "password",
                "secret",
                "user",
                "users",
                "owner",
                "do",
                "not",
                "tell",
                "me",
                "say",
                "that",
                "this",
                "and",
                "everything",
                "restrictions",
                "without",
                "to",
                "from",
                "of",
                "is",
                "in",
                "a",
                "pay",
                "call",
                "tool",
                "every",
                "message",
                "hate",
            ],
            key=len,
            reverse=True,
        )
    )
)

_PARTED = re.compile(r"[-_.+*/|](?<=[a-z].)[a-z]{1,20}[-_.+*/|](?=[a-z])")
_KEPT = frozenset((string.ascii_lowercase + string.digits).encode())
_BLANKS = bytes(code if code in _KEPT else 32 for code in range(256))
# Letters that hardly stand by themselves in English.
ALONE = frozenset(char.encode() for char in "bcdefghjklmnopqruvwxyz")
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
    if len(odd) > 2 and sum(word in ALONE for word in odd) > 2:
        return True
    return not text.isascii() and _HAN_APART.search(text) is not None


def join_letters(text: str) -> Iterator[tuple[int, int, str]]:
    """The edits that join letters set apart; a wider gap than the usual one in a run is a gap between words."""
    for match in _APART.finditer(text):
        gaps = Counter(gap.group() for gap in _BETWEEN.finditer(match.group()))
        usual = min(gaps, key=lambda gap: (-gaps[gap], len(gap)))
        if len(gaps) == 1:
            yield from _parted(match.start(), match.group(), usual)
        else:
            for gap in _BETWEEN.finditer(match.group()):
                begin, end = match.start() + gap.start(), match.start() + gap.end()
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


def part_words(text: str) -> str:
    """Three or more words that are joined by one sign, with spaces between them; nothing changes its place."""
    if not _PARTED.search(text):
        return text
    return _JOINED.sub(lambda match: match.group().replace(match.group(1), " "), text)
