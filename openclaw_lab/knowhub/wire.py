"""Entries as the plugin's HTTP API writes them, and back. Plain values only; checking what comes in is `shapes`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.knowhub.entry import DEFAULT_SCOPES, Case, Entry, Source, quality_score
from openclaw_lab.knowhub.service import Hit, Saved

KNOWLEDGE, SEARCH, EXTRACT, HEALTH = "/api/knowledge", "/api/knowledge/search", "/api/extract", "/health"


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """The API's shape: `eval.score`, `quality_score`, `source.name` … and what this store knows besides."""
    plain = entry.to_dict()
    helpful, harmful, score = plain.pop("helpful"), plain.pop("harmful"), plain.pop("score")
    return {
        **plain,
        "eval": {"score": score, "helpful": len(helpful), "harmful": len(harmful)},
        "quality_score": quality_score(entry),
        "helpful_cases": helpful,
        "harmful_cases": harmful,
    }


def hit_to_json(hit: Hit) -> dict[str, Any]:
    """An entry with how near it is to the query, what it was ranked by, and why."""
    found = entry_to_json(hit.entry)
    return {
        **found,
        "quality_score": hit.quality,
        "similarity": hit.similarity,
        "rank_score": hit.score,
        "why": hit.why,
    }


def entry_from_json(values: Any) -> Entry:
    """Back from `entry_to_json`; what another KnowHub server leaves out has its default."""
    try:
        return Entry(
            id=str(values["id"]),
            task=str(values["task"]),
            content=str(values["content"]),
            types=_strings(values["types"]),
            score=int(values["eval"]["score"]),
            scopes=_strings(values.get("scopes") or DEFAULT_SCOPES),
            owner=str(values.get("owner") or ""),
            source=_source(values.get("source") or {}),
            helpful=_cases(values.get("helpful_cases") or ()),
            harmful=_cases(values.get("harmful_cases") or ()),
            version=int(values.get("version") or 1),
            status=values.get("status") or "live",
            created_at=str(values.get("created_at") or ""),
            updated_at=str(values.get("updated_at") or ""),
            flagged=bool(values.get("flagged")),
            supersedes=_strings(values.get("supersedes") or ()),
            superseded_by=str(values.get("superseded_by") or ""),
            conflicts_with=_strings(values.get("conflicts_with") or ()),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _foreign("an entry", error) from None


def hit_from_json(values: Any) -> Hit:
    """Back from `hit_to_json`."""
    entry = entry_from_json(values)
    try:
        similarity = float(values.get("similarity") or 0.0)
        quality = float(values["quality_score"])
        rank = float(values.get("rank_score") or similarity)
        return Hit(entry, similarity, quality, rank, str(values.get("why") or ""))
    except (KeyError, TypeError, ValueError) as error:
        raise _foreign("a search result", error) from None


def saved_from_json(values: Any) -> Saved:
    """What a save did, as the server says it."""
    try:
        return Saved(
            action=values.get("action") or "created",
            id=str(values["id"]),
            other_id=str(values.get("other_id") or ""),
            similarity=float(values.get("similarity") or 0.0),
            threshold=float(values.get("threshold") or 0.0),
            reason=str(values.get("reason") or ""),
            characters_left_out=int(values.get("characters_left_out") or 0),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _foreign("the answer to a save", error) from None


def case_to_json(case: Case) -> dict[str, str]:
    """A report of a use, without its empty fields."""
    return {name: value for name, value in dataclasses.asdict(case).items() if value}


def _foreign(what: str, error: Exception) -> DataError:
    return DataError(
        "knowhub server",
        f"{what} that lacks or garbles {error}",
        "the answer of a KnowHub server",
        "check the address",
    )


def _strings(values: Sequence[Any]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError("a text where a list belongs")
    return tuple(str(each) for each in values)


def _cases(values: Sequence[Mapping[str, Any]]) -> tuple[Case, ...]:
    names = [field.name for field in dataclasses.fields(Case)]
    return tuple(Case(**{name: str(each.get(name) or "") for name in names}) for each in values)


def _source(values: Mapping[str, Any]) -> Source:
    texts = [field.name for field in dataclasses.fields(Source) if field.name != "urls"]
    kept = {name: str(values[name]) for name in texts if values.get(name)}
    return Source(urls=_strings(values.get("urls") or ()), **kept)
