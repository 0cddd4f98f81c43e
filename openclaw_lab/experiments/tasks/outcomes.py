"""A labelled text and what a redactor made of it in, an Outcome out: what was removed, what leaked, what was wrong."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from types import MappingProxyType

from openclaw_lab.experiments.secrets import Placed, Secrets
from openclaw_lab.redaction.json_text import is_json
from openclaw_lab.redaction.spans import Found, Redaction, replaced

Redact = Callable[[str], Redaction | str]
LEAKED, PARTLY, REMOVED = range(3)
# Fewer equal characters than this, between two changes, are taken for chance and not for something that was kept.
_SHORTEST = 5
_ESCAPED = 16  # characters at most that one takes in JSON within JSON
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one redaction did to one labelled text.

    `states` has LEAKED, PARTLY or REMOVED for each labelled span; `wrong` says of each removed interval whether it
    touches none; `excess` counts the characters that were removed and not labelled. `json` says whether a JSON text
    still is one (None: it was none), `stable` whether redacting again changes nothing.
    """

    spans: tuple[Found, ...]
    states: tuple[int, ...]
    wrong: tuple[bool, ...]
    excess: int
    json: bool | None = None
    stable: bool = True


def outcome(redact: Redact, text: str, secrets: Secrets, frames: Mapping[str, str] = _NONE) -> Outcome | str:
    """The whole Outcome of a text, or why there is none: one bad text must not end the experiment."""
    try:
        made = _checked(text, redact(text))
        again = _text(redact(made.text)) if made.text != text else text
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    json = is_json(made.text) if is_json(text) else None
    return replace(judged(text, secrets, made.spans, frames), json=json, stable=again == made.text)


def judged(text: str, secrets: Secrets, spans: Sequence[Found], frames: Mapping[str, str] = _NONE) -> Outcome:
    """What removed intervals are worth against the labelled ones; nothing is said of JSON and of a second pass.

    A redactor may report `/Users/ada` written as `/Users/[REDACTED]`, or `ada` written as `[REDACTED]`: the text is the
    same. So a removed interval is taken with the words of its rule's replacement around it (`frames`, by rule) where
    secrets are looked at, and without them where characters are counted.
    """
    wide = [_framed(text, each, frames.get(each.rule, "")) for each in spans]
    states = []
    for secret in secrets.spans:
        removed = set[int]()
        for start, end in wide:
            removed.update(range(max(secret.start, start), min(secret.end, end)))
        states.append(REMOVED if len(removed) == secret.end - secret.start else PARTLY if removed else LEAKED)
    marks = {place for secret in secrets.spans for place in range(secret.start, secret.end)} if spans else set()
    lost = {place for each in spans for place in range(*_bare(text, each))}
    wrong = tuple(not any(start < secret.end and secret.start < end for secret in secrets.spans) for start, end in wide)
    return Outcome(tuple(spans), tuple(states), wrong, len(lost - marks))


def _framed(text: str, found: Found, frame: str) -> tuple[int, int]:
    """An interval with the words of a replacement around it, where they stand in the text, escaped or not."""
    start, end = found.start, found.end
    head, _, rest = frame.partition("[")
    tail = rest.partition("]")[2]
    if head and not found.replacement.startswith(head):
        low = max(0, start - _ESCAPED * len(head))
        match = _written(head, "", r"\Z").search(text[low:start])
        start = low + match.start() if match else start
    if tail and not found.replacement.endswith(tail):
        match = _written(tail, r"\A", "").search(text[end : end + _ESCAPED * len(tail)])
        end += match.end() if match else 0
    return start, end


@functools.cache
def _written(words: str, before: str, after: str) -> re.Pattern[str]:
    """Words as they may stand in JSON, however deep: `\\` as several of them, `/` with some before it."""
    signs = {"\\": r"\\+", "/": r"\\*/", '"': r'\\*"'}
    return re.compile(before + "".join(signs.get(sign, re.escape(sign)) for sign in words) + after)


def _bare(text: str, found: Found) -> tuple[int, int]:
    """An interval without the words of its replacement that stand in the text, for they stay there."""
    head, _, rest = found.replacement.partition("[")
    tail = rest.partition("]")[2]
    start, end = found.start, found.end
    start += len(head) if head and text.startswith(head, start, end) else 0
    end -= len(tail) if tail and text.endswith(tail, start, end) else 0
    return start, end


def touches(one: Placed, other: Placed) -> bool:
    """Whether two intervals share a character."""
    return one.start < other.end and other.start < one.end


def _checked(text: str, made: object) -> Redaction:
    """What a redactor gave, as a Redaction whose spans are in order and account for its text."""
    if isinstance(made, str):
        return Redaction(made, aligned(text, made))
    if not isinstance(made, Redaction):
        raise TypeError(f"the redactor gave {type(made).__name__}, not a Redaction or a str")
    if replaced(text, made.spans) != made.text:
        raise ValueError("the text does not follow from the spans")
    return made


def _text(made: Redaction | str) -> str:
    return made if isinstance(made, str) else made.text


def aligned(before: str, after: str) -> tuple[Found, ...]:
    """The intervals of a text that another one has in other words, where a redactor gives no spans.

    A guess by difflib: a redactor that is to be measured exactly gives a Redaction.
    """
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    kept = [block for block in blocks if block.size >= _SHORTEST or _at_an_edge(block, before, after)]
    spans: list[Found] = []
    at, there = 0, 0
    for block in kept:
        if at < block.a:
            spans.append(Found(at, block.a, "", "custom", after[there : block.b]))
        at, there = block.a + block.size, block.b + block.size
    return tuple(spans)


def _at_an_edge(block: tuple[int, int, int], before: str, after: str) -> bool:
    a, b, size = block
    return (a == b == 0) or (a + size == len(before) and b + size == len(after))
