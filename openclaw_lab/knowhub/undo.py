"""The last change of an entry taken back; the change itself stays in the history.

Versions say what was done; links between entries are kept in step on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from openclaw_lab.errors import DataError
from openclaw_lab.knowhub.batch import Batch, next_version
from openclaw_lab.knowhub.embed import Vectors
from openclaw_lab.knowhub.entry import Entry

# What an undo brings back. The rest is numbers, times, and links, which follow the other entries.
_OWN = ("task", "content", "types", "score", "scopes", "owner", "source", "helpful", "harmful", "flagged")


def undo(batch: Batch, entry: Entry, version: int | None, embed: Callable[[str, str], Vectors]) -> Entry:
    """Take back the last change that was not taken back yet, or go back to what a version said."""
    if version is not None:
        versions = {each.version: each for _, each in batch.history(entry.id)}
        if version not in versions:
            raise DataError(f"knowledge {entry.id}", f"version {version}", f"a version from 1 to {entry.version}")
        return _restore(batch, entry, versions[version], embed)
    steps = standing(batch.history(entry.id))
    if not steps:  # its creation was undone
        return batch.change(entry, "restored", status="live")
    if steps[-1][0] == "superseded":
        return _revive(batch, entry, "undo")
    if len(steps) == 1:
        return _retire(batch, entry)
    return _restore(batch, entry, steps[-2][1], embed)


def standing(history: Sequence[tuple[str, Entry]]) -> list[tuple[str, Entry]]:
    """The changes of an entry that no undo has taken back, oldest first, without mere links."""
    steps: list[tuple[str, Entry]] = []
    for action, entry in history:
        if action == "undo" and steps:
            steps.pop()
        elif action == "revived":
            steps = [step for step in steps if step[0] != "superseded"]
        elif action not in ("conflict", "revived", "linked"):
            steps.append((action, entry))
    return steps


def _restore(batch: Batch, entry: Entry, before: Entry, embed: Callable[[str, str], Vectors]) -> Entry:
    own = {name: getattr(before, name) for name in _OWN}
    if before.text == entry.text:
        return batch.change(entry, "undo", **own)
    new = next_version(entry, **own)
    batch.put(new, embed(new.task, new.text), "undo")
    return new


def _retire(batch: Batch, entry: Entry) -> Entry:
    """Undo a creation: what it had superseded is live again."""
    for other_id in entry.supersedes:
        other = batch.current(other_id)
        if other is not None and other.superseded_by == entry.id and other.status == "superseded":
            _live_again(batch, other, "revived")
    return batch.change(entry, "undo", status="retired", supersedes=(), conflicts_with=_joined(entry))


def _revive(batch: Batch, entry: Entry, action: str) -> Entry:
    """Undo that an entry was superseded: both are live, and linked."""
    newer = batch.current(entry.superseded_by)
    if newer is not None and entry.id in newer.supersedes:
        left = tuple(each for each in newer.supersedes if each != entry.id)
        links = tuple(dict.fromkeys((*newer.conflicts_with, entry.id)))
        batch.change(newer, "linked", supersedes=left, conflicts_with=links)
    return _live_again(batch, entry, action)


def _live_again(batch: Batch, entry: Entry, action: str) -> Entry:
    links = tuple(dict.fromkeys((*entry.conflicts_with, entry.superseded_by)))
    return batch.change(entry, action, status="live", superseded_by="", conflicts_with=links)


def _joined(entry: Entry) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*entry.conflicts_with, *entry.supersedes)))


def unequal_links(entries: dict[str, Entry]) -> list[str]:
    """Links that lead nowhere, or that only one side of a replacement knows."""
    found = []
    for entry in entries.values():
        named = (*entry.supersedes, *entry.conflicts_with, *filter(None, (entry.superseded_by,)))
        found += [f"{entry.id} is linked with {each}, which is not there" for each in named if each not in entries]
        if (entry.status == "superseded") != bool(entry.superseded_by):
            found.append(f"{entry.id} is {entry.status}, superseded by {entry.superseded_by or 'nothing'}")
        for each in entry.supersedes:
            if each in entries and entries[each].superseded_by != entry.id:
                found.append(f"{entry.id} supersedes {each}, which does not know")
    return found
