"""A pattern in JavaScript's regular-expression syntax in; a compiled one that means the same in Python out.

Rule files are read by the exported plugin too. In both languages `\\d \\w \\b` are ASCII, `\\s` is Unicode white space
as JavaScript has it, and ignoring case works on ASCII letters; a pattern that would need more is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from openclaw_lab.errors import RuleError

# ECMAScript WhiteSpace and LineTerminator; Python's own \s has five more characters and lacks U+FEFF.
JS_SPACE = "\\t\\n\\v\\f\\r \\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
_JS_SPACES = re.compile(f"[{JS_SPACE}]+")
JS_WORDS = re.compile(f"[^{JS_SPACE}]+")
_NOT_JS_SPACE = (
    "\\x00-\\x08\\x0e-\\x1f!-\\x9f\\xa1-\\u167f\\u1681-\\u1fff\\u200b-\\u2027\\u202a-\\u202e\\u2030-\\u205e"
    "\\u2060-\\u2fff\\u3001-\\ufefe\\uff00-\\U0010ffff"
)
_LINE_END = "\\n\\r\\u2028\\u2029"
_FLAGS = "gims"
_OUTSIDE = re.compile(
    r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.?)|\(\?(?:<[=!]|.?)|[*+?}]\+|\{,|\[\^?\]?|[\U00010000-\U0010ffff][*+?{]|.",
    re.DOTALL,
)
_IN_CLASS = re.compile(
    r"(?:(?<!\[)(?<!\[\^)-)?\\[sS](?:-(?!\]))?|\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.?)|.", re.DOTALL
)
_GROUPS = ("(?:", "(?=", "(?!", "(?<=", "(?<!")


def compile_js(pattern: str, flags: str = "", where: str = "pattern") -> re.Pattern[str]:
    """Compile a JavaScript pattern (without its `u` flag) so that it matches the same in Python.

    What the two languages read differently and no translation saves is refused. One difference is left: JavaScript
    counts a character beyond U+FFFF, such as an emoji, as two.
    """
    source, value = python_source(pattern, flags, where)
    try:
        return re.compile(source, value)
    except (re.error, OverflowError, RecursionError) as error:
        raise RuleError(where, pattern, f"a valid pattern ({error})") from None


def python_source(pattern: str, flags: str = "", where: str = "pattern") -> tuple[str, re.RegexFlag]:
    """What `compile_js` compiles: the pattern in Python's syntax, and its flags."""
    unknown = set(flags) - set(_FLAGS) if isinstance(flags, str) else {flags}
    if unknown:
        raise RuleError(where, f"the flag {min(map(str, unknown))!r}", f"flags among {', '.join(_FLAGS)}")
    value = re.ASCII | (re.IGNORECASE if "i" in flags else re.NOFLAG)
    return "".join(_translated(pattern, flags, where)), value


def _translated(pattern: str, flags: str, where: str) -> Iterator[str]:
    """The pattern piece by piece, in Python's syntax."""
    in_class, at = False, 0
    while at < len(pattern):
        token = (_IN_CLASS if in_class else _OUTSIDE).match(pattern, at)
        text = token.group() if token else ""
        if not _portable(text, in_class) or ("i" in flags and _folds(text)):
            raise RuleError(where, f"{text!r} in {pattern}", "what JavaScript and Python read alike")
        yield _in_class(text) if in_class else _outside(text, flags)
        in_class = text != "]" if in_class else text in ("[", "[^")
        at += len(text)


def _portable(token: str, in_class: bool) -> bool:
    """Whether both languages read a piece alike, once it is translated."""
    if token[0] == "\\":
        kind = token[1:2]
        if len(token) > 2:
            return token[1] in "ux"
        known = kind in "dDwWbtnvfrsS" or (not in_class and kind in "B123456789")
        return bool(kind) and (known or not (kind.isalnum() and kind.isascii()))
    if in_class:
        return token <= "\uffff" and len(token) == 1  # `a-\s` is no range in JavaScript
    if token.startswith("(?"):
        return token in _GROUPS
    return token in ("[", "[^") or len(token) == 1  # not `a++`, `{,3}`, `[]`, `[^]`, and no repeated half of an emoji


def _folds(token: str) -> bool:
    """Whether JavaScript ignores the case of this letter and Python's ASCII mode does not."""
    char = chr(int(token[2:], 16)) if len(token) > 2 and token[0] == "\\" else token[-1]
    return char > "\x7f" and (char.lower() != char or char.upper() != char)


def _in_class(token: str) -> str:
    """`\\s` and `\\S` written out; what Python would take for an operation on sets is a plain character."""
    return {"\\s": JS_SPACE, "\\S": _NOT_JS_SPACE}.get(token, f"\\{token}" if token in "[&~|" else token)


def _outside(token: str, flags: str) -> str:
    """White space, the dot and the anchors as JavaScript has them."""
    many = "m" in flags
    return {
        "\\s": f"[{JS_SPACE}]",
        "\\S": f"[^{JS_SPACE}]",
        ".": "(?s:.)" if "s" in flags else f"[^{_LINE_END}]",
        "^": f"(?:^|(?<=[{_LINE_END}]))" if many else "^",
        "$": f"(?=[{_LINE_END}]|\\Z)" if many else "\\Z",
    }.get(token, token)


def js_collapse(text: str) -> str:
    """What `text.replace(/\\s+/g, " ").trim()` gives in JavaScript."""
    return _JS_SPACES.sub(" ", text).strip(" ")
