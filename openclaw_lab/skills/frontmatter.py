"""The text of a SKILL.md in, its frontmatter as a mapping and its body out; what is wrong is said by line.

Real files have a byte-order mark, CRLF, a description with an unquoted colon, tabs, metadata as one line of JSON or
JSON5, or no line after the closing `---`. All of these are read; what YAML itself refuses is read line by line where
that is safe, with a note of what was repaired.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_FENCE = re.compile(r"---[ \t]*")
_TOKEN = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|([A-Za-z_$][\w$]*)\s*:(?!\s)|//[^\n]*|/\*[\s\S]*?\*/")
_KEY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*)|[ \t]*)")
MOST = 64_000  # characters of frontmatter; more is a mistake


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, at a line of the file; `fatal` when the file cannot be used."""

    line: int
    text: str
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class Parts:
    """The frontmatter's values, the line of each of its keys, the body, and the faults."""

    values: Mapping[str, Any]
    lines: Mapping[str, int]
    body: str
    faults: tuple[Fault, ...] = ()


def parts_of(text: str) -> Parts:
    """Split a file at its fences and read what is between them."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), None)
    if start is None:
        return _broken(1, "found an empty file; expected frontmatter between two lines ---")
    if not _FENCE.fullmatch(lines[start]):
        return _broken(start + 1, f"found {lines[start][:40]!r}; expected --- (the frontmatter's first line)")
    end = next((number for number in range(start + 1, len(lines)) if _FENCE.fullmatch(lines[number])), None)
    if end is None:
        return _broken(start + 1, "the frontmatter is not closed; expected a second line ---")
    head = lines[start + 1 : end]
    if sum(map(len, head)) > MOST:
        return _broken(start + 1, f"frontmatter of more than {MOST:,} characters")
    values, faults = _values(head, start + 2)
    where = {match[1]: start + 2 + row for row, line in enumerate(head) if (match := _KEY.fullmatch(line))}
    return Parts(values, where, "\n".join(lines[end + 1 :]).strip("\n"), faults)


def _broken(line: int, text: str) -> Parts:
    return Parts({}, {}, "", (Fault(line, text),))


def _values(head: list[str], first: int) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """The mapping between the fences; `first` is the number of its first line."""
    repeated = _repeated(head, first)
    if repeated:
        return {}, (repeated,)
    read, fault = _yaml("\n".join(head), first)
    if fault is None:
        if not isinstance(read, dict):
            found = "nothing" if read is None else f"a {type(read).__name__}"
            return {}, (Fault(first, f"found {found} between the fences; expected names and values"),)
        return {str(name): value for name, value in read.items()} | _objects(head), ()
    repaired, notes = _line_by_line(head, first)
    if repaired is None:
        return {}, (fault,)
    return repaired, notes


def _repeated(head: list[str], first: int) -> Fault | None:
    """A key that stands twice: YAML would silently keep the last."""
    seen: dict[str, int] = {}
    for row, line in enumerate(head):
        match = _KEY.fullmatch(line)
        if match and match[1] in seen:
            return Fault(first + row, f"{match[1]!r} stands twice, first in line {seen[match[1]]}")
        if match:
            seen[match[1]] = first + row
    return None


def _yaml(text: str, first: int) -> tuple[Any, Fault | None]:
    import yaml

    try:
        return _joined(yaml.load(text, Loader=_loader())), None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first + (mark.line if mark else 0)
        return None, Fault(line, f"YAML: {error.problem or error.context}")
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return None, Fault(first, f"YAML: {' '.join(str(error).split())[:120]}")


def _joined(value: Any) -> Any:
    """The value with the halves of characters joined that JSON writes as two escapes (🐙 as \\ud83d\\udc19)."""
    if isinstance(value, str):
        split = any("\ud800" <= char <= "\udfff" for char in value)
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if split else value
    if isinstance(value, list):
        return [_joined(each) for each in value]
    if isinstance(value, dict):
        return {_joined(name): _joined(each) for name, each in value.items()}
    return value


def _loader() -> Any:
    """The safe loader, without aliases (a few lines of them grow to gigabytes)."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc,unused-ignore]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()
                raise yaml.composer.ComposerError(None, None, "aliases (*name) are not read", event.start_mark)
            return super().compose_node(parent, index)

    return Loader


def _line_by_line(head: list[str], first: int) -> tuple[dict[str, Any] | None, tuple[Fault, ...]]:
    """Top-level `name: value` lines read one by one; a block below a name goes to YAML or JSON5 as a whole.

    None when a line is neither, so that nothing is guessed.
    """
    blocks = _blocks(head)
    if blocks is None:
        return None, ()
    values: dict[str, Any] = {}
    notes: list[Fault] = []
    for row, name, inline, below in blocks:
        value, note = _one(inline, below, first + row)
        if note and note.fatal:
            return None, ()
        values[name] = value
        notes += [Fault(note.line, f"{name}: {note.text}", False)] if note else []
    return values, tuple(notes)


def _objects(head: list[str]) -> dict[str, Any]:
    """The values that are written as JSON or JSON5: YAML takes `{a:1}` for a name without a value."""
    found = ((name, json5_of("\n".join([inline, *below]).strip())) for _, name, inline, below in _blocks(head) or ()
             if "\n".join([inline, *below]).strip().startswith("{"))  # fmt: skip
    return {name: value for name, value in found if isinstance(value, dict)}


def _blocks(head: list[str]) -> list[tuple[int, str, str, list[str]]] | None:
    blocks: list[tuple[int, str, str, list[str]]] = []
    for row, line in enumerate(head):
        match = _KEY.fullmatch(line)
        if match:
            blocks.append((row, match[1], (match[2] or "").strip(), []))
        elif not line.strip() or line.lstrip().startswith("#") or line[0] in " \t-}])":
            if blocks:
                blocks[-1][3].append(line)
            elif line.strip() and not line.lstrip().startswith("#"):
                return None
        else:
            return None
    return blocks


def _one(inline: str, below: list[str], line: int) -> tuple[Any, Fault | None]:
    """One value: by YAML, else by JSON5, else as plain text."""
    whole = "\n".join([f"value: {inline}", *below])
    read, fault = _yaml(whole, line)
    if fault is None:
        return read["value"], None
    text = "\n".join([inline, *below]).strip()
    if text.startswith("{") or (text.startswith("[") and text.endswith("]")):
        found = json5_of(text)
        return (found, None) if found is not None else (None, fault)
    if inline and not inline.startswith(("|", ">", '"', "'", "&", "*", "!")):
        return " ".join(text.split()), Fault(line, "read as plain text; put it in quotes", False)
    return None, fault


def json5_of(text: str) -> Any:
    """JSON with comments, single quotes, bare names and trailing commas; None when it is not that either.

    YAML's flow style is all of that but for the comments, and for a bare name with its value right behind the colon.
    """
    plain = _TOKEN.sub(lambda match: match[1] or (f"{match[2]}: " if match[2] else " "), text)
    value, fault = _yaml(plain, 1)
    return value if fault is None and isinstance(value, dict | list) else None
