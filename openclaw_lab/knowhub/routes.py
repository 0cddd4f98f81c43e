"""The HTTP API of an open KnowHub as a FastAPI app: the plugin's four endpoints, list, one entry, health, OpenAPI.

Who may ask is `guard`, what may be said `shapes`; here requests become calls of KnowHub, and errors one line of JSON.
"""

from __future__ import annotations

import dataclasses
import hashlib
import sqlite3
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, HTTPException, Path, Query, Request, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException as StarletteError

from openclaw_lab import __version__
from openclaw_lab.errors import LabError, OfflineError, excerpt
from openclaw_lab.knowhub import shapes, wire
from openclaw_lab.knowhub.entry import PRIVATE, Case, Entry
from openclaw_lab.knowhub.gate import BusyError, Gate
from openclaw_lab.knowhub.service import KnowHub, Saved

Agent = Annotated[str, Query(max_length=200, description="the agent that asks; it sees its private entries")]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        pattern=r"^[!-~]*$",
        description="a repetition of the same request with the same key changes nothing and has the same answer",
    ),
]
EntryId = Annotated[str, Path(max_length=200)]
Commas = Annotated[str, Query(max_length=2_000, description="names, separated by commas")]
_SAID = {
    400: "a body that cannot be read",
    401: "a token is missing or wrong",
    403: "a foreign Host or Origin",
    404: "no such entry, or not for this agent",
    405: "another method",
    413: "a body that is too long",
    422: "a value that is missing, of a wrong kind or out of range",
    503: "too busy, or the store cannot be used now; come again",
}
_RETRY = {"Retry-After": "1"}


def routes(kb: KnowHub, gate: Gate, *, token: bool, extractor: str = "rules") -> FastAPI:
    """The app for an open KnowHub; `token` says that a guard demands one (for the OpenAPI document)."""
    app = FastAPI(
        title="KnowHub",
        version=__version__,
        description="A knowledge base for agents: search, save, report how it went, extract.",
        docs_url=None,
        redoc_url=None,
        dependencies=[Security(HTTPBearer(auto_error=False))] if token else [],
    )
    app.include_router(_Routes(kb, gate, extractor).router())
    app.state.folder = kb.folder
    for kind in (StarletteError, RequestValidationError, BusyError, LabError, sqlite3.Error, Exception):
        app.add_exception_handler(kind, _answer)
    return app


def _said(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Every status that an endpoint may answer besides 200."""
    return {
        status: {"model": shapes.Problem, "description": _SAID[status]} for status in (401, 403, 405, 413, *statuses)
    }


@dataclass(frozen=True, slots=True)
class _Listed:
    """What a page needs of an entry that is not on it; `agents` may see it (None: everybody)."""

    id: str
    agents: frozenset[str] | None
    live: bool


def _agents(entry: Entry) -> frozenset[str] | None:
    named = [scope.removeprefix("agent:") for scope in entry.scopes if scope.startswith("agent:")]
    return frozenset(name for name in named if name) if named else None


class _Routes:
    def __init__(self, kb: KnowHub, gate: Gate, extractor: str) -> None:
        self._kb, self._gate, self._extractor = kb, gate, extractor
        self._listed: tuple[int, list[_Listed]] = (-1, [])

    def router(self) -> APIRouter:
        router = APIRouter()
        add = router.add_api_route
        add(wire.HEALTH, self.health, methods=["GET"], response_model=shapes.HealthOut, responses=_said())
        add(wire.SEARCH, self.search, methods=["GET"], response_model=shapes.SearchOut, responses=_said(422, 503))
        add(wire.KNOWLEDGE, self.page, methods=["GET"], response_model=shapes.ListOut, responses=_said(422, 503))
        add(wire.KNOWLEDGE, self.save, methods=["POST"], response_model=shapes.SavedOut, responses=_said(400, 422, 503))
        one, found = f"{wire.KNOWLEDGE}/{{entry_id}}", shapes.EntryOut
        add(one, self.get, methods=["GET"], response_model=found, responses=_said(404, 422, 503))
        add(one, self.update, methods=["PUT"], response_model=found, responses=_said(400, 404, 422, 503))
        add(
            wire.EXTRACT, self.extract, methods=["POST"], response_model=shapes.ExtractOut,
            responses=_said(400, 422, 503),
        )  # fmt: skip
        return router

    async def health(self) -> dict[str, str]:
        """Whether the server answers; asks for no token."""
        return {"status": "ok", "version": __version__}

    async def search(
        self,
        q: Annotated[str, Query(min_length=1, max_length=10_000, pattern=r"\S", description="what is looked for")],
        top_k: Annotated[int, Query(ge=1, le=100)] = 5,
        min_score: Annotated[int, Query(ge=1, le=5)] = 3,
        types: Commas = "",
        scopes: Commas = "",
        agent_id: Agent = "",
        include_flagged: bool = False,
    ) -> dict[str, Any]:
        """The entries that answer a query best; those that look like a prompt injection only when asked for."""

        def find() -> list[dict[str, Any]]:
            hits = self._kb.search(
                q,
                top_k=top_k,
                min_score=min_score,
                types=_names(types),
                scopes=_scopes(scopes),
                agent=agent_id,
                include_flagged=include_flagged,
            )
            return [{**wire.hit_to_json(hit), **self._links(hit.entry, agent_id)} for hit in hits]

        found = await self._gate.run(find)
        return {"count": len(found), "results": found}

    async def page(
        self,
        offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        agent_id: Agent = "",
        include_superseded: bool = False,
    ) -> dict[str, Any]:
        """All entries, a page at a time, oldest first; what looks like a prompt injection is marked `flagged`."""
        return await self._gate.run(lambda: self._page(offset, limit, agent_id, include_superseded))

    async def save(self, knowledge: shapes.KnowledgeIn, idempotency_key: Key = "") -> dict[str, Any]:
        """Save a piece of knowledge, and say what happened to it."""
        key = _fingerprint(idempotency_key, "save", knowledge.model_dump_json())
        saved = await self._gate.run(lambda: self._kb.save(**knowledge.model_dump(), key=key))
        return dataclasses.asdict(saved)

    async def get(self, entry_id: EntryId, agent_id: Agent = "") -> dict[str, Any]:
        """One entry, whatever its status."""
        return await self._gate.run(lambda: self._json(self._visible(entry_id, agent_id), agent_id))

    async def update(
        self,
        entry_id: EntryId,
        report: shapes.HelpfulIn | shapes.HarmfulIn,
        agent_id: Agent = "",
        idempotency_key: Key = "",
    ) -> dict[str, Any]:
        """Report that an entry helped, or that it did not."""
        helpful = isinstance(report, shapes.HelpfulIn)
        given = report.add_helpful_case if isinstance(report, shapes.HelpfulIn) else report.add_harmful_case
        case = Case(**given.model_dump())
        if not case.outcome:
            case = dataclasses.replace(case, outcome="有效" if helpful else "无效")
        key = _fingerprint(idempotency_key, entry_id, report.model_dump_json())

        def change() -> dict[str, Any]:
            self._visible(entry_id, agent_id)
            return self._json(self._kb.update(entry_id, is_helpful=helpful, case=case, key=key), agent_id)

        return await self._gate.run(change)

    async def extract(self, conversation: shapes.ExtractIn) -> dict[str, Any]:
        """Find what is worth keeping in a conversation, and save it; the count is of what is new."""
        given = {**conversation.model_dump(), "extractor": self._extractor}
        saved: list[Saved] = await self._gate.run(lambda: self._kb.extract(**given))
        new = sum(each.action != "duplicate" for each in saved)
        return {"extracted_count": new, "results": [dataclasses.asdict(each) for each in saved]}

    # --- on a worker's thread -------------------------------------------------------------------------------------

    def _visible(self, entry_id: str, agent: str) -> Entry:
        entry = self._kb.get(entry_id)
        if entry is None or not entry.visible_to(agent):
            raise HTTPException(404, f"knowledge {excerpt(entry_id)}: no such entry; search for it first")
        return entry

    def _page(self, offset: int, limit: int, agent: str, include_superseded: bool) -> dict[str, Any]:
        revision = self._kb.revision
        if self._listed[0] != revision:
            everything = self._kb.entries(include_superseded=True)
            self._listed = (revision, [_Listed(e.id, _agents(e), e.status == "live") for e in everything])
        seen = [
            each.id
            for each in self._listed[1]
            if (each.agents is None or agent in each.agents) and (include_superseded or each.live)
        ]
        shown = [self._json(self._visible(each, agent), agent) for each in seen[offset : offset + limit]]
        return {"count": len(shown), "total": len(seen), "offset": offset, "results": shown}

    def _json(self, entry: Entry, agent: str) -> dict[str, Any]:
        return {**wire.entry_to_json(entry), **self._links(entry, agent)}

    def _links(self, entry: Entry, agent: str) -> dict[str, Any]:
        """The ids of other entries, without those that the agent may not see."""

        def seen(other_id: str) -> bool:
            other = self._kb.get(other_id)
            return other is not None and other.visible_to(agent)

        return {
            "supersedes": [each for each in entry.supersedes if seen(each)],
            "conflicts_with": [each for each in entry.conflicts_with if seen(each)],
            "superseded_by": entry.superseded_by if entry.superseded_by and seen(entry.superseded_by) else "",
        }


def _names(text: str) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] or None


def _scopes(text: str) -> list[str] | None:
    named = _names(text)
    if any(name.startswith(PRIVATE) for name in named or ()):
        raise HTTPException(422, "scopes: found a private scope; ask for it by agent_id")
    return named


def _fingerprint(key: str, *request: str) -> str:
    """The store's key: of the client's key and the request, so that a key used twice by mistake loses nothing."""
    if not key:
        return ""
    return f"{key} {hashlib.sha256(repr(request).encode()).hexdigest()[:32]}"


# --- errors: one line of JSON -------------------------------------------------------------------------------------


def _problem(status: int, line: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": excerpt(line, 400).encode("utf-8", "replace").decode()}, status, headers)


async def _answer(request: Request, error: Exception) -> JSONResponse:
    """The answer to whatever a route raised on purpose, or may raise when the disk is full."""
    if isinstance(error, StarletteError):
        return _problem(error.status_code, str(error.detail), error.headers)
    if isinstance(error, RequestValidationError):
        return _problem(422, "; ".join(dict.fromkeys(_fault(each) for each in error.errors())))
    if isinstance(error, BusyError):
        return _problem(503, "too many requests are waiting; come again in a second", _RETRY)
    folder = str(request.app.state.folder)
    if isinstance(error, OfflineError):  # a live extractor or embedder
        return _problem(503, str(error), _RETRY)
    if isinstance(error, LabError) and folder not in str(error):
        return _problem(404 if "the id of an entry" in error.expected else 422, str(error))
    if not isinstance(error, LabError | sqlite3.Error):  # our mistake: the traceback goes to the log by itself
        return _problem(500, "a fault in the server; its log says which")
    print(f"knowhub: {excerpt(error, 400)}", file=sys.stderr)
    return _problem(503, "the store cannot be used now; what was sent is not saved", _RETRY)


def _fault(error: dict[str, Any]) -> str:
    names = [str(part) for part in error["loc"] if not str(part).endswith("In")]
    where = ".".join(names[1:] or names)
    found = "" if error["type"] in ("missing", "json_invalid") else f"; found {excerpt(error.get('input'))}"
    return f"{where}: {error['msg']}{found}"
