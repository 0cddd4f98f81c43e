"""Encoded text in, what it says out: escapes in place; base64, base32, hex, binary, Morse and Ascii85 as payloads.

Only what is printable language comes out, of limited size; what is no text (an image, a key, a digest) is left alone.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote

# Payloads that are looked at in one text; the most and the fewest characters of each.
MAX_PAYLOADS, MAX_SIZE, LEAST_SIZE = 20, 20_000, 16

_ESCAPE = re.compile(
    r"(?:%[0-9a-fA-F]{2})+|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});|\\u\{[0-9a-fA-F]{1,6}\}"
    r"|(?:\\u[0-9a-fA-F]{4})+|(?:\\x[0-9a-fA-F]{2})+|(?:\\[0-7]{3})+"
)
_DIGITS = re.compile(r"\\u\{?([0-9a-fA-F]{1,6})\}?|\\x([0-9a-fA-F]{2})|\\([0-7]{3})")
_PAYLOAD = re.compile(
    r"(?P<binary>[01]{8}(?:[ ,]{0,2}[01]{8}){4,})"
    r"|(?P<hex>(?:0x)?[0-9a-fA-F]{2}(?:(?:[ :,]|\\x|0x|, 0x)?[0-9a-fA-F]{2}){11,})"
    r"|(?P<base32>[A-Z2-7]{24,}={0,6})(?![A-Za-z0-9])"
    r"|(?P<base64>[A-Za-z0-9+/_\-]{16,}(?:[\r\n]{1,2}[A-Za-z0-9+/_\-]{16,})*={0,2})"
    r"|(?P<morse>[.\-]{1,6}(?:[ /]{1,3}[.\-]{1,6}){7,})"
    r"|(?P<ascii85><~[!-u\sz]{8,}~>)"
)
_MORSE = dict(
    zip(
        [
            ".-",
            "-...",
            "-.-.",
            "-..",
            ".",
            "..-.",
            "--.",
            "....",
            "..",
            ".---",
            "-.-",
            ".-..",
            "--",
            "-.",
            "---",
            ".--.",
            "--.-",
            ".-.",
            "...",
            "-",
            "..-",
            "...-",
            ".--",
            "-..-",
            "-.--",
            "--..",
            "-----",
            ".----",
            "..---",
            "...--",
            "....-",
            ".....",
            "-....",
            "--...",
            "---..",
            "----.",
            ".-.-.-",
            "--..--",
            "..--..",
            "-..-.",
            "-....-",
            ".--.-.",
            "---...",
        ],
        "abcdefghijklmnopqrstuvwxyz0123456789.,?/-@:",
        strict=True,
    )
)
# Words of orders; turned by 13 letters or written backwards, no language has them.
_ORDERS = [
    "ignore",
    "disregard",
    "forget",
    "instruction",
    "instructions",
    "previous",
    "system",
    "prompt",
    "reveal",
    "password",
    "override",
    "rules",
]
_ROT13 = frozenset(codecs.encode(word, "rot13") for word in _ORDERS)
_MIRRORED = frozenset(word[::-1] for word in _ORDERS)
_TURNED = frozenset(word.encode() for word in _ROT13 | _MIRRORED)
_MIRRORED_HAN = ("令指", "略忽", "视无", "词示提")
_WORD = re.compile("[a-z]+")
# What is left without these is short, and signs that stand together still do.
_NO_CODE = bytes(code for code in range(256) if chr(code) not in "012.-<~")
_BLOB = re.compile(rb"(?![0-9a-f]+$)[a-z0-9]{16}|(?:[2-7][0-9a-f]){12}")

# Each text that `may_encode` holds one of these (RE2, whatever the case).
MAY_ENCODE = (
    r"%[0-9a-f]{2}|&[#a-z]|\\[ux0-7]",
    r"011[01]| 20 |<~| \.- | -\. ",
    "[a-z0-9]{16}",
    "|".join(sorted(word.decode() for word in _TURNED)),
    "|".join(_MIRRORED_HAN),
)


def may_encode(text: str, odd: Sequence[bytes]) -> bool:
    """Whether anything may be encoded in a text in lower case; `odd` holds its words that `is_encoded` notes."""
    if ("%" in text or "&" in text or "\\" in text) and _ESCAPE.search(text):
        return True
    # What binary, hexadecimal, Morse and Ascii85 writing of a sentence can hardly do without.
    signs = text.encode("utf-8", "surrogatepass").translate(None, _NO_CODE)
    if b"011" in signs and ("0110" in text or "0111" in text):
        return True
    if (b"20" in signs and " 20 " in text) or (b"<~" in signs and "<~" in text):
        return True
    if (b".-" in signs and " .- " in text) or (b"-." in signs and " -. " in text):
        return True
    return any(map(is_encoded, odd)) or (not text.isascii() and any(part in text for part in _MIRRORED_HAN))


def is_encoded(word: bytes) -> bool:
    """Whether a word may be one of an order that is written backwards or turned, or a piece of an encoding."""
    return word in _TURNED or (len(word) >= LEAST_SIZE and _BLOB.match(word) is not None)


def escapes(text: str) -> Iterator[tuple[int, int, str]]:
    """The edits that undo URL, HTML and backslash escapes where they stand."""
    if "%" in text or "&" in text or "\\" in text:
        for match in _ESCAPE.finditer(text):
            plain = _unescaped(match.group())
            if plain != match.group():
                yield *match.span(), plain


def _unescaped(escape: str) -> str:
    if escape[0] == "%":
        return unquote(escape, errors="replace")
    if escape[0] == "&":
        return html.unescape(escape)
    numbers = (int(u or x or "0", 16) if u or x else int(o, 8) for u, x, o in _DIGITS.findall(escape))
    return "".join(chr(number) if number < 0x110000 else "\ufffd" for number in numbers)


def payloads(text: str) -> Iterator[tuple[int, int, str]]:
    """`(start, end, what it says)` of each encoded part that holds language."""
    left = MAX_PAYLOADS
    for match in _PAYLOAD.finditer(text):
        said = _said(match.lastgroup or "", match.group()[:MAX_SIZE])
        if said and left:
            left -= 1
            yield *match.span(), said


def _said(kind: str, payload: str) -> str:
    try:
        said = _DECODERS[kind](payload)
    except (binascii.Error, ValueError):
        return ""
    return said if _is_language(said) else ""


def _text(raw: bytes) -> str:
    """Bytes as UTF-8 or, where every other byte is zero, as UTF-16."""
    return raw.decode("utf-16-le" if raw[1:20:2].count(0) > 3 else "utf-8")


def _base64(payload: str) -> str:
    plain = re.sub(r"[\s=]", "", payload).translate({0x2D: "+", 0x5F: "/"})
    whole = plain[: len(plain) // 4 * 4] if len(plain) % 4 == 1 else plain
    return _text(base64.b64decode(whole + "=" * (-len(whole) % 4)))


def _base32(payload: str) -> str:
    plain = payload.rstrip("=")
    return _text(base64.b32decode(plain + "=" * (-len(plain) % 8)))


def _hex(payload: str) -> str:
    return _text(bytes.fromhex(re.sub(r"0x|\\x|[ :,]", "", payload)))


def _binary(payload: str) -> str:
    bits = re.sub(r"[ ,]", "", payload)
    return _text(bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)))


def _morse(payload: str) -> str:
    words = re.split(r" ?/ ?|  +", payload)
    return " ".join("".join(_MORSE.get(letter, "") for letter in word.split()) for word in words)


def _ascii85(payload: str) -> str:
    return _text(base64.a85decode(payload, adobe=True))


_DECODERS: dict[str, Callable[[str], str]] = {
    "base64": _base64, "base32": _base32, "hex": _hex, "binary": _binary, "morse": _morse, "ascii85": _ascii85,
}  # fmt: skip


def _is_language(text: str) -> bool:
    """Eight characters or more, all of them printable, most of them letters or spaces."""
    if len(text) < 8 or "\ufffd" in text:
        return False
    letters = sum(char.isalpha() or char.isspace() for char in text)
    return letters >= 0.7 * len(text) and all(char.isprintable() or char in "\n\r\t" for char in text)


def rotated(text: str) -> str:
    """The text turned by 13 letters, where it holds a word of an order so turned; else nothing."""
    return "" if _ROT13.isdisjoint(_WORD.findall(text.lower())) else codecs.encode(text, "rot13")


def mirrored(text: str) -> str:
    """The text from its end to its start, where it holds a word of an order so written; else nothing."""
    backwards = not _MIRRORED.isdisjoint(_WORD.findall(text.lower())) or any(part in text for part in _MIRRORED_HAN)
    return text[::-1] if backwards else ""
