"""A text in, the readings of it out that undo a disguise; each knows where in the source its characters come from.

It does not judge. The first reading is the text itself; all are in lower case, as the rules are. A reading is made only
where the text has a trait of its disguise, so that plain text costs next to nothing:

- `unicode`: compatibility forms (NFKC), and Latin letters without their accents; traditional Chinese as simplified;
- `invisible`: without zero-width, direction and control characters and variation selectors; tag characters as ASCII;
- `confusables`: look-alikes of other scripts as Latin letters;
- `leet`: digits and signs within words as letters;
- `spacing`: letters that are set apart joined to words, words that are joined by signs set apart;
- `encoded`: what an encoding hides (see `decoding`), read again by all views, at most `MAX_DEPTH` deep.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from openclaw_lab.injection.confusables import LOOKALIKES, has_lookalikes
from openclaw_lab.injection.decoding import MAY_ENCODE, escapes, is_encoded, may_encode, mirrored, payloads, rotated
from openclaw_lab.injection.letters import (
    ALONE,
    JOINED_WORDS,
    MAY_BE_APART,
    Noted,
    join_letters,
    join_lines,
    may_be_apart,
    part_words,
    words_of,
)
from openclaw_lab.injection.traditional import SIMPLIFIED
from openclaw_lab.rules.sieve import Patterns

# Encodings within encodings; readings of one text.
MAX_DEPTH, MAX_VIEWS = 3, 40

_HIDDEN = (
    "\x00-\x08\x0e-\x1f\x7f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[\ufe00-\ufe0f\U000e0100-\U000e01ef]{{4,}}|[{_HIDDEN}]")
# Characters that may have a plainer form; not full-width punctuation, of which Chinese text is full.
_COMPATIBLE = re.compile(
    "[\xa0-\xac\xae-\u024f\u02b0-\u036f\u0640\u064b-\u0652\u1d00-\u1eff\u2000-\u200a\u2018-\u201f\u2026\u202f\u205f"
    "\u2070-\u218f\u2460-\u24ff\u2c60-\u2c7f\u2f00-\u2fd5\u3000\u3300-\u33ff\ua720-\ua7ff\uf900-\ufaff\ufb00-\ufdff"
    "\ufe50-\ufe6b\ufe70-\ufefc\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff61-\uff9f\U0001d400-\U0001d7ff"
    "\U0001f130-\U0001f189]"
)
_PLAINER = {
    "ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ß": "ss", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ð": "d",
    "‘": "'", "’": "'", "“": '"', "”": '"', "„": '"',
}  # fmt: skip
# A digit or sign within a word, or before it, that has a letter beside it which no hexadecimal number has.
_LEET = re.compile(
    r"[0134578$@!|](?=[a-z])(?:(?<=[g-z][0134578$])|(?<=[a-z][0134578$])(?=[g-z])|(?<![a-z0-9].)(?<=[0134578$])"
    r"(?=[a-z]{0,3}[g-z])(?!st|nd|rd|th|am\b|pm\b|x|0x)|(?<=[a-z][@!|])(?![a-z0-9-]*\.[a-z]))"
)
_LEET_SIGN = re.compile(r"[!|](?<=[a-z].)(?=[a-z])")
_FULL = re.compile(f"[{''.join(map(chr, SIMPLIFIED))}]")
# Any character that hides a word or is part of a hidden one: of `_COMPATIBLE` not quotation marks, dots and signs.
_ODD = re.compile(
    f"[{_HIDDEN}{''.join(map(chr, (*LOOKALIKES, *SIMPLIFIED)))}"
    "\xaa\xb2\xb3\xb9\xba"
    "\xc0-\xd6\xd8-\xf6\xf8-\u024f\u02b0-\u036f\u0640\u064b-\u0652\u1d00-\u1eff\u2070-\u209f\u2100-\u218f"
    "\u2460-\u24ff\u2c60-\u2c7f\u2f00-\u2fd5\u3300-\u33ff\ua720-\ua7ff\uf900-\ufaff\ufb00-\ufdff\ufe70-\ufefc"
    "\uff21-\uff3a\uff41-\uff5a\uff61-\uff9f\U0001d400-\U0001d7ff\U0001f130-\U0001f189]"
)
# Nothing is left without these in a text that holds neither a control character nor what `_LEET` asks for.
_LEET_MARKS = b"0134578$@!|"
_NO_MARKS = bytes(code for code in range(9, 256) if not (14 <= code < 32 or code == 127 or code in _LEET_MARKS))
PLAIN, JOINED, PLAINER, DISGUISED = "plain", "joined", "plainer", "disguised"
# What `traits` looks for, told fast and a little too often.
_SUSPECT = Patterns(
    enumerate(
        [
            f"(?i){JOINED_WORDS}",
            _ODD.pattern,
            _COMPATIBLE.pattern,
            "(?i)(?:[g-z][0134578$]|[a-z][@!|])[a-z]|[a-z][0134578$][g-z]|(?:^|[^a-z0-9])[0134578$][a-z]{0,3}[g-z]",
            *(f"(?i){pattern}" for pattern in (*MAY_ENCODE, *MAY_BE_APART)),
        ]
    ),
    utf8=True,
)
_ONLY_JOINED = [0, *_SUSPECT.nothing]
# Words that may be part of a disguise.
_NOTED = Noted(lambda word: word in ALONE or is_encoded(word))
_LETTERS = str.maketrans("0134578@$", "oieastbas")
# A number by itself, and what it may say.
_NUMBER = re.compile(r"(?<![a-z0-9@$!|'’])[0-9]+(?![a-z0-9@$!|'’])")
_NUMBER_WORDS = frozenset(["a", "as", "at", "i", "is", "it", "its", "list", "see", "set", "so", "test", "to", "too"])


@dataclass(frozen=True, slots=True)
class View:
    """One reading: its character i comes from `offsets[i]` of the source; the last offset is where its source ends.

    `whole` marks what was decoded as a piece: a place in it stands for all of its source.
    """

    name: str
    text: str
    offsets: Sequence[int]
    whole: bool = False

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the source, in code points, that `text[start:end]` was read from."""
        if self.whole or start >= end:
            return self.offsets[0], self.offsets[-1]
        return self.offsets[start], max(self.offsets[end], self.offsets[end - 1] + 1)


def views(text: str, names: Collection[str]) -> Iterator[View]:
    """The readings of a text, the text itself first; `names` are those of the module's docstring."""
    return itertools.islice(_views(View("plain", text, range(len(text) + 1)), frozenset(names), 0), MAX_VIEWS)


def is_plain(text: str, low: str) -> bool:
    """Whether no view shows words that the text does not hold; `low` is its lower case."""
    return traits(text, low) != DISGUISED


def traits(text: str, low: str) -> str:
    """What stands in a text beside plain words.

    PLAIN: nothing; JOINED: perhaps words joined by signs; PLAINER: a character that has a plainer form, be it only a
    quotation mark; DISGUISED: perhaps words that only a view shows.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return DISGUISED
    seen = _SUSPECT.match(data)
    if seen == _SUSPECT.nothing:
        return PLAIN
    if seen == _ONLY_JOINED:
        return JOINED
    if not low.isascii() and _ODD.search(text):
        return DISGUISED
    marks = data.translate(None, _NO_MARKS)
    if marks and (marks.translate(None, _LEET_MARKS) or _LEET.search(low)):
        return DISGUISED
    odd = _NOTED.of(words_of(low))
    if may_encode(low, odd) or may_be_apart(low, odd):
        return DISGUISED
    return PLAINER if not low.isascii() and _COMPATIBLE.search(text) else JOINED


def plain_views(low: str, names: Collection[str]) -> list[View]:
    """The readings of a text that is PLAIN or JOINED: itself, in lower case, and its joined words set apart."""
    places = range(len(low) + 1)
    parted = part_words(low) if "spacing" in names else low
    plain = View("plain", low, places)
    return [plain] if parted == low else [plain, View("spacing", parted, places)]


def _views(source: View, names: frozenset[str], depth: int) -> Iterator[View]:
    yield _lower(source)
    clean = _clean(source, names)
    if clean is not source:
        yield _lower(clean)
    if "confusables" in names and not clean.text.isascii() and has_lookalikes(clean.text):
        clean = View("confusables", clean.text.translate(LOOKALIKES), clean.offsets, clean.whole)
        yield _lower(clean)
    low = _lower(clean)
    if "unicode" in names and _FULL.search(low.text):
        yield View("unicode", low.text.translate(SIMPLIFIED), low.offsets, low.whole)
    odd = _NOTED.of(words_of(low.text))
    if "leet" in names:
        yield from _leet(low)
    if "spacing" in names:
        yield from _spacing(low, odd, "leet" in names)
    if "encoded" in names and depth < MAX_DEPTH and may_encode(low.text, odd):
        for inner in _decoded(clean):
            yield from _views(inner, names, depth + 1)


def lower(text: str) -> str:
    """In lower case, character by character: what would grow (U+0130 alone) is left."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(char if len(char.lower()) > 1 else char.lower() for char in text)


def _lower(view: View) -> View:
    return View(view.name, lower(view.text), view.offsets, view.whole)


def _rewritten(name: str, view: View, edits: Iterable[tuple[int, int, str]]) -> View:
    """The view with parts `(start, end, instead)` replaced, in order; what takes their place comes from their start."""
    pieces: list[str] = []
    offsets: list[int] = []
    at = 0
    for start, end, instead in edits:
        pieces += (view.text[at:start], instead)
        offsets += view.offsets[at:start]
        offsets += [view.offsets[start]] * len(instead)
        at = end
    if not pieces:
        return view
    pieces.append(view.text[at:])
    offsets += view.offsets[at:]
    return View(name, "".join(pieces), offsets, view.whole)


def _clean(view: View, names: frozenset[str]) -> View:
    """Without what cannot be seen, and in the plainest form of what can; the view itself where nothing changes."""
    if "invisible" in names:
        found = ((*match.span(), _shown(match.group())) for match in _INVISIBLE.finditer(view.text))
        view = _rewritten("invisible", view, found)
    if "unicode" in names and not view.text.isascii():
        changed = ((*match.span(), _plain(match.group())) for match in _COMPATIBLE.finditer(view.text))
        view = _rewritten("unicode", view, changed)
    return view


def _shown(hidden: str) -> str:
    """What invisible characters spell: tags are ASCII moved up; a run of variation selectors is bytes, one each."""
    if len(hidden) > 1:
        spelled = bytes(ord(char) - (0xFE00 if char < "\uff00" else 0xE00F0) & 0xFF for char in hidden)
        return spelled.decode("utf-8", "ignore")
    return chr(ord(hidden) - 0xE0000) if "\U000e0020" <= hidden <= "\U000e007e" else ""


@functools.cache
def _plain(char: str) -> str:
    """The compatibility form of a character, Latin letters without accents; nothing for a mark alone."""
    if "\u0300" <= char <= "\u036f" or char == "\u0640" or "\u064b" <= char <= "\u0652":
        return ""
    return "".join(_bare(each) for each in unicodedata.normalize("NFKC", _PLAINER.get(char, char)))


def _bare(char: str) -> str:
    parts = unicodedata.normalize("NFD", char)
    return parts[0] if parts[0].isascii() else _PLAINER.get(char.lower(), char)


def _leet(view: View) -> Iterator[View]:
    """Digits as the letters they resemble: 1 as i, and where that differs as l; signs only between letters.

    A number stays one, unless it is a word that is as common: 47 as at, 70 as to.
    """
    if not _LEET.search(view.text):
        return
    text = _LEET_SIGN.sub("i", view.text)
    for read in dict.fromkeys((text, text.replace("1", "l"))):
        letters = read.translate(_LETTERS)
        parts: list[str] = []
        at = 0
        for match in _NUMBER.finditer(text):
            start, end = match.span()
            if letters[start:end] not in _NUMBER_WORDS:
                parts += (letters[at:start], match.group())
                at = end
        yield View("leet", "".join([*parts, letters[at:]]), view.offsets, view.whole)


def _spacing(view: View, odd: Sequence[bytes], leet: bool) -> Iterator[View]:
    """Letters set apart joined to words, lines of one word joined; words that are joined by signs set apart."""
    joined = view
    if may_be_apart(view.text, odd):
        lines = _rewritten("spacing", view, join_lines(view.text))
        joined = _rewritten("spacing", lines, join_letters(lines.text))
    if joined is not view:
        yield joined
        if leet:
            yield from _leet(joined)
    parted = part_words(view.text)
    if parted != view.text:
        yield View("spacing", parted, view.offsets, view.whole)


def _decoded(view: View) -> Iterator[View]:
    """What escapes, payloads, rotation by 13 and mirror writing hide."""
    unescaped = _rewritten("encoded", view, escapes(view.text))
    if unescaped is not view:
        yield unescaped
    for start, end, hidden in payloads(view.text):
        first, last = view.span(start, end)
        yield View("encoded", hidden, [first] * len(hidden) + [last], True)
    turned = rotated(view.text)
    if turned:
        yield View("encoded", turned, view.offsets, view.whole)
    back = mirrored(view.text)
    if back:
        yield View("encoded", back, [view.offsets[0]] * len(back) + [view.offsets[-1]], True)
