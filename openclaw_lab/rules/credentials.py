"""A found text in, whether it is a secret out: tokens, passwords, headers, cookies, apart from placeholders and code.

What a generator made is told by kinds of characters and by Shannon's entropy, in bits a character; detect-secrets has
limits of 3 for hex and 4.5 for base64 without a name before it, here a name or a prefix stands before most values.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from openclaw_lab.rules.pattern import compile_js


def small(text: str) -> str:
    """The text with its ASCII capitals small, as JavaScript and Python agree on them."""
    return re.sub("[A-Z]+", lambda match: match.group().lower(), text)


def digits(text: str) -> str:
    """The ASCII digits of a text, in order."""
    return "".join(char for char in text if "0" <= char <= "9")


def entropy(text: str) -> float:
    """Shannon entropy of a text's characters, in bits a character: random hex about 3.5, random base64 about 4.5."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in sorted(Counter(text).values()))


def mixed_token(text: str) -> bool:
    """Letters and digits as a generator mixes them: a run of twelve with both, or all kinds at 3.5 bits and more."""
    if len(text) < 16 or _stand_in(text):
        return False
    if any(_kinds(run)[2] >= 2 and len(digits(run)) < len(run) for run in re.findall("[A-Za-z0-9]{12,}", text)):
        return len(set(text)) > 7
    lower, upper, number, _ = _kinds(text)
    return lower > 2 and upper > 2 and number > 1 and entropy(text) >= 3.5


def secret(text: str) -> bool:
    """A value behind the name of a key: a mixed token, or twelve characters of three kinds; no code, id or slug."""
    if len(text) < 12 or _stand_in(text) or _code(text) or _NO_SECRET.fullmatch(text):
        return False
    lower, upper, number, other = _kinds(text)
    return mixed_token(text) or (number > 0 and lower + upper > 0 and entropy(text) >= 3 and (
        min(lower, upper) > 0 or other > 0 or number > 2
    ))  # fmt: skip


def password(text: str) -> bool:
    """A quoted value behind the name of a password: letters and also digits or signs, or only digits, or four words.

    With blanks in it, words of which half are no words (`p@ss w0rd`), or four to eight that make no sentence.
    """
    if len(text) < 4 or _stand_in(text) or _BREAK_OR_URL.search(text):
        return False
    if _BLANK.search(text):
        return _passphrase([word for word in _BLANK.split(text) if word])
    lower, upper, number, other = _kinds(text)
    if not text.isascii():
        return lower + upper > 1 and number > 0 and lower + upper + number + other > 5
    if lower + upper == 0:
        return (number >= 4 and re.fullmatch("[0-9]+", text) is not None) or (number > 1 and other > 1)
    return (number + other > 0 and len(text) > 4) or re.fullmatch("[a-z]{3,}(?:-[a-z]{3,}){3,}", text) is not None


def _passphrase(words: list[str]) -> bool:
    if len(words) < 2:
        return len(words) == 1 and password(words[0])
    if all(re.fullmatch("[a-z]{3,12}", word) for word in words):
        return 4 <= len(words) <= 8 and not any(word in _SENTENCE for word in words)
    mixed = sum(_MIXED.search(word) is not None and small(word) not in _NAMES for word in words)
    return len(words) <= 8 and 2 * mixed >= len(words)


def password_plain(text: str) -> bool:
    """An unquoted value behind the name of a password: as `password`, and nothing that reads as code or as a path."""
    if not password(text) or _code(text):
        return False
    lower, upper, number, other = _kinds(text)
    if lower + upper == 0:
        return number > 5 or other > 0
    return (number > 0 and len(text) > 5) or (other > 0 and lower > 0 and upper > 0 and len(text) > 7)


def strong_password(text: str) -> bool:
    """A word of a sentence that can only be a password: letters and digits, or letters and signs, of three kinds."""
    if not password_plain(text) or small(text) in _NAMES or _NO_PASSWORD.search(text):
        return False
    lower, upper, number, other = _kinds(text)
    return lower + upper > 2 and number > 0 and (other > 0 or min(lower, upper) > 0 or len(text) < 17)


def url_password(text: str) -> bool:
    """The password in `scheme://user:password@host` or `-u user:password`: anything but a placeholder or a variable."""
    return small(text) in _WEAK or (not _stand_in(text) and text[:1] not in tuple("${%<[*"))


def url_secret(text: str) -> bool:
    """A value of a URL's query behind a name such as `token`: letters and digits; no placeholder, path or UUID."""
    lower, upper, number, _ = _kinds(text)
    return lower + upper > 0 and number > 0 and not (_stand_in(text) or text[:1] == "/" or _UUID.fullmatch(text))


def bearer(text: str) -> bool:
    """A token behind `Bearer`: twenty characters, or fewer with letters and digits; not a word such as `token`."""
    lower, upper, number, _ = _kinds(text)
    if _stand_in(text) or (number == 0 and (upper == 0 or lower == 0 or len(text) < 20)):
        return False
    return lower + upper > 0 and (number > 0 or entropy(text) > 3.5)


def basic_auth(text: str) -> bool:
    """Base64 of `name:password` in printable ASCII (RFC 7617)."""
    plain = base64_text(text)
    return re.fullmatch("[ -~]{0,200}:[ -~]{1,500}", plain) is not None


def jwt(text: str) -> bool:
    """A JSON web token whose first part is base64url of an object that names its algorithm or type (RFC 7515)."""
    header = base64_text(text.split(".")[0])
    names = ('"alg"', '"typ"', '"enc"', '"kid"')
    return header[:1] == "{" and header[-1:] == "}" and any(name in header for name in names)


def cookie(text: str) -> bool:
    """A value of a cookie that can name a session: twelve characters at 3 bits, letters and digits."""
    lower, upper, number, _ = _kinds(text)
    if len(text) < 12 or _stand_in(text) or "://" in text or text[:1] == "/":
        return False
    return (lower + upper > 0 and number > 1 and entropy(text) >= 3) or (min(lower, upper) > 4 and entropy(text) >= 4)


def artifactory(text: str) -> bool:
    """An Artifactory key or password: not a word in capitals that begins with the same letters."""
    body = text.lstrip("=")
    if body[:3] == "AKC":
        return re.search("[a-z0-9]", body[3:]) is not None
    return "0" <= body[2:3] <= "9" or len(digits(body[3:])) > 1


def base64_text(text: str) -> str:
    """What base64 or base64url stands for, one character a byte; empty for what is neither."""
    values = [_BASE64.get(char) for char in text.rstrip("=")]
    if None in values or len(values) % 4 == 1:
        return ""
    bits = "".join(f"{value:06b}" for value in values if value is not None)
    return "".join(chr(int(bits[at : at + 8], 2)) for at in range(0, len(bits) - 7, 8))


def _kinds(text: str) -> tuple[int, int, int, int]:
    """How many small letters, capitals, digits and signs a text has; `-`, `_`, `.` and what is not ASCII are none."""
    counts = (len(re.findall(kind, text)) for kind in ("[a-z]", "[A-Z]", "[0-9]", r"[!-,/:-@\[-^`{-~]"))
    lower, upper, number, other = counts
    return lower, upper, number, other


def _stand_in(text: str) -> bool:
    """Whether a value only holds the place of a secret: a placeholder, a variable, a look-up, a mask."""
    plain = small(text)
    return plain in _WORDS or _STAND_IN.search(plain) is not None


def _code(text: str) -> bool:
    """Whether an unquoted value reads as code: a name, an attribute, an index, a path, a number with points."""
    file = _FILE_END.search(text) is not None and re.search("[A-Za-z]/[A-Za-z]", text) is not None
    return file or _CODE.search(text) is not None


_BASE64 = {
    char: n % 64
    for n, char in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
} | {"-": 62, "_": 63}  # fmt: skip
_UUID = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# a UUID, 64 bits in hex, words and numbers with signs between them
_NO_SECRET = re.compile(
    f"{_UUID.pattern}|[0-9a-f]{{12,16}}|(?:[A-Za-z]+[0-9]{{0,2}}|[0-9]+)(?:[-_./:](?:[A-Za-z]+[0-9]{{0,2}}|[0-9]+))+"
)
_BREAK_OR_URL = compile_js("[\\t-\\r]|://")
_BLANK = re.compile("[ \u3000]+")
_MIXED = re.compile("[A-Za-z0-9][!@#$%^&*+=~?][A-Za-z0-9]|[A-Za-z][0-9]|[0-9][A-Za-z]|[!@#$%^&*+=~?][0-9]")
_SENTENCE_TEXT = (
    "the and are but can for from has have here how its least must new not now old one only our should that then this "
    "was what when will with you your add change characters choose confirm contains current default empty enter "
    "field forgot forgotten incorrect input invalid length letters login match missing numbers password passwords "
    "please required reset retype set sign type use used user using value wrong"
)
_SENTENCE = frozenset(_SENTENCE_TEXT.split())
_WEAK = frozenset(("pass", "pw", "pwd", "secret", "token"))
_NO_PASSWORD = compile_js("[/=|]|--|[0-9]%|^[a-z_-]+-[0-9]{1,2}$|^[a-z0-9]+(?:_[a-z0-9]+)+$")
_WORDS_TEXT = (
    "none null nil true false undefined password passwd passphrase pass pwd pw secret token string str text "
    "required optional default empty blank enabled disabled hidden field input user username"
)
_WORDS = frozenset(_WORDS_TEXT.split())
_NAMES_TEXT = (
    "sha1 sha256 sha512 sha-1 sha-256 md5 base64 oauth2 oauth2.0 argon2 argon2i argon2id pbkdf2 utf8 utf-8 http2 "
    "ntlmv2 ipv4 ipv6 win32 log4j aes256 aes-256 keepass2 1password wpa2 wpa3 pop3 imap4"
)
_NAMES = frozenset(_NAMES_TEXT.split())
_STAND_IN = compile_js(
    "changeme|change_me|change-me|placeholder|dummy|redacted|<your|your_|your(?:api|password|secret|token|key)"
    "|(?:^|[^a-z])(?:example|your|fake|sample|insert|replace)(?:[^a-z]|$)"
    r"|x{4}|\*{3}|\.{3}|•{3}|…|-{4}|_{4}|\$\{|\$\(|\{\{|\}\}|<[a-z]|process\.env|os\.environ|getenv|secrets\."
    r"|^\$[a-z_][a-z0-9_]*$|^%[a-z_][a-z0-9_]*%$|^%[a-z(]|^\{.*\}$|^\[.*\]$|^<.*>$|^@[a-z.]+$"
)
_FILE_END = compile_js(r"\.[a-z]{1,5}$")
_CODE = compile_js(
    r"^[!&*~+@-]*[A-Za-z_$][A-Za-z_$]*[?:*]*$"
    r"|^[!&*~+@-]*[A-Za-z_$][A-Za-z0-9_$]{0,30}(?:(?:\.|\?\.|::|->)[A-Za-z_$][A-Za-z0-9_$]{0,30})+[?!:*]*$"
    r"|^[A-Za-z_$][A-Za-z0-9_$.]*\[|^[A-Za-z_]+(?:password|passwd|pwd|secret|token|key)[0-9]?$|^(?:password|pwd)[0-9]$"
    r"|^[/~]|^\.{1,2}/|^[A-Za-z]:\\|://|^v?[0-9]+(?:\.[0-9]+)+$|^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|\|\||&&|=>|^[a-z]+(?:_[a-z0-9]+)+$|^[a-z]+(?:-[a-z]+)*-[0-9]{1,2}$"
    r"|^[a-z0-9_-]+\.(?:json|ya?ml|txt|pem|key|env|py|js|ts|md|conf|cfg|ini|crt|toml)$"
)
