"""What a caller gives for a new entry in, a checked Entry out; or one DataError that names everything wrong with it."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.knowhub.entry import DEFAULT_SCOPES, MAX_CONTENT, MAX_TASK, Entry, Source

_FIELDS = frozenset({"task", "content", "types", "score", "scopes", "owner", "source", "key"})
_EXPECTED = "task, content, types and a score from 1 to 5"
_NOWHERE = Source()


def draft(item: Mapping[str, Any], flagged: Callable[[str], bool], where: str = "knowledge") -> tuple[Entry, str]:
    """A new entry that is stored nowhere yet, and its idempotency key."""
    faults = [*_text_faults(item), *_list_faults(item), *_other_faults(item)]
    if faults:
        raise DataError(where, "; ".join(faults), _EXPECTED)
    task, content, moment = item["task"].strip(), item["content"].strip(), now()
    entry = Entry(
        id=f"kb_{secrets.token_hex(16)}",
        task=task,
        content=content,
        types=_listed(item["types"]),
        score=item.get("score", 3),
        scopes=_listed(item["scopes"]) if item.get("scopes") else DEFAULT_SCOPES,
        owner=item.get("owner") or "",
        source=_source(item.get("source")),
        created_at=moment,
        updated_at=moment,
        flagged=flagged(f"{task}\n{content}"),
    )
    return entry, item.get("key") or ""


def revised(entry: Entry, changes: Mapping[str, Any]) -> Entry:
    """An entry with other values for some of its fields, checked as those of a new one are."""
    allowed = {name: changes[name] for name in ("task", "content", "types", "score", "source") if name in changes}
    item = {"task": entry.task, "content": entry.content, "types": entry.types, **allowed}
    faults = [*_text_faults(item), *_list_faults(item), *_other_faults(item)]
    faults += [f"unknown: {name}" for name in changes if name not in allowed]
    if faults:
        raise DataError(f"knowledge {entry.id}", "; ".join(faults), _EXPECTED)
    if "types" in allowed:
        allowed["types"] = _listed(allowed["types"])
    if "source" in allowed:
        allowed["source"] = _source(allowed["source"])
    return dataclasses.replace(entry, **allowed)


def now() -> str:
    """This moment, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def text_fault(name: str, value: object, limit: int) -> str:
    """What is wrong with a text; empty when nothing is."""
    if not isinstance(value, str) or not value.strip():
        return f"{name} is missing"
    if len(value) > limit:
        return f"{name} has {len(value):,} characters (at most {limit:,})"
    return "" if _is_unicode(value) else f"{name} has half a surrogate pair"


def _text_faults(item: Mapping[str, Any]) -> list[str]:
    limits = (("task", MAX_TASK), ("content", MAX_CONTENT))
    faults = [text_fault(name, item.get(name), limit) for name, limit in limits]
    for name in ("owner", "key"):
        value = item.get(name)
        if value and (not isinstance(value, str) or not _is_unicode(value)):
            faults.append(f"{name} is not a text")
    return [fault for fault in faults if fault]


def _list_faults(item: Mapping[str, Any]) -> list[str]:
    faults = [] if _is_listed(item.get("types")) else ["types is missing"]
    if item.get("scopes") and not _is_listed(item["scopes"]):
        faults.append("scopes is not a list of texts")
    return faults


def _other_faults(item: Mapping[str, Any]) -> list[str]:
    faults, score = [], item.get("score", 3)
    if isinstance(score, bool) or not isinstance(score, int) or not 1 <= score <= 5:
        faults.append(f"score is {score!r}, not a whole number from 1 to 5")
    source = item.get("source")
    if source and not isinstance(source, Source):
        faults += _source_faults(source)
    if not item.keys() <= _FIELDS:
        faults.append(f"unknown: {', '.join(sorted(str(name) for name in item if name not in _FIELDS))}")
    return faults


def _source_faults(source: object) -> list[str]:
    if not isinstance(source, Mapping):
        return ["source is not a mapping"]
    names = {each.name for each in dataclasses.fields(Source)}
    if unknown := sorted(str(name) for name in source if name not in names):
        return [f"unknown in source: {', '.join(unknown)}"]
    faults = [f"source {n} is not a text" for n, v in source.items() if n != "urls" and not isinstance(v, str)]
    if source.get("urls") and not _is_listed(source["urls"]):
        faults.append("source urls is not a list of texts")
    return faults


def _source(given: Source | Mapping[str, Any] | None) -> Source:
    if isinstance(given, Source):
        return given
    return Source(**{**given, "urls": _listed(given.get("urls") or ())}) if given else _NOWHERE


def _is_listed(value: object) -> bool:
    """One text, or a list of at least one; none of them blank."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple | set | frozenset) or not listed:
        return False
    return all(isinstance(each, str) and each.strip() and _is_unicode(each) for each in listed)


def _listed(value: Any) -> tuple[str, ...]:
    """The texts once each, in order."""
    listed = [value] if isinstance(value, str) else value
    return tuple(dict.fromkeys(map(str.strip, listed)))


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
