"""OpenViking's HTTP API in, the layers and memories of this package out, and the other way; for a server that is there.

OpenViking numbers layers from the short to the long: L0 abstract (about 100 tokens), L1 overview, L2 the whole text.
The seed document numbers them from the long to the short: L0 raw, L1 summary, L2 keywords. Here layers have names, so
that nobody asks for an abstract and gets a transcript:

    raw       whole text        OpenViking L2   GET /api/v1/content/read
    summary   overview          OpenViking L1   GET /api/v1/content/overview
    keywords  abstract          OpenViking L0   GET /api/v1/content/abstract

Written from the published API documentation (docs/en/api of volcengine/OpenViking); no code of it was used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self
from urllib.parse import quote, unquote, urlsplit

import httpx

from openclaw_lab.errors import DataError, LabError, OfflineError, RefusedError, excerpt
from openclaw_lab.growth.entry import FOLDERS, LAYERS, Layer, parts_of, uri_of

# The names of OpenViking's levels, by their number there.
LEVELS = ("abstract", "overview", "read")
_FILES = {"raw": "raw.md", "summary": "summary.md", "keywords": "keywords.md"}


def level_of(layer: Layer) -> int:
    """OpenViking's number of a layer: raw 2, summary 1, keywords 0 (the seed document's are 0, 1, 2)."""
    if layer not in LAYERS:
        raise DataError("layer", layer, f"one of {', '.join(LAYERS)}")
    return len(LAYERS) - 1 - LAYERS.index(layer)


def layer_of(level: int) -> Layer:
    """The layer that an OpenViking level is."""
    if level not in range(len(LAYERS)):
        raise DataError("OpenViking level", level, "0 (abstract), 1 (overview) or 2 (whole text)")
    return LAYERS[len(LAYERS) - 1 - level]


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that OpenViking found: its address there, its level as a layer's name, its abstract and its score."""

    uri: str
    layer: Layer
    abstract: str
    score: float


class MemoryServer(Protocol):
    """What a server of memories can do; `OpenViking` is one."""

    def read(self, uri: str, layer: Layer = "raw") -> str:
        """One layer of what is at an address."""

    def write(self, uri: str, text: str) -> None:
        """Put a text at an address, in place of what is there."""

    def names(self, uri: str) -> Sequence[str]:
        """The addresses right under a folder's."""

    def find(self, query: str, under: str = "", limit: int = 10, least: float | None = None) -> Sequence[Found]:
        """What is near to a query, best first."""


class OpenViking:
    """A client; addresses are those of this package (`agent://…`) and are kept under `root` on the server.

    Over http only to this machine: memories do not travel unencrypted.
    """

    def __init__(
        self, url: str, *, api_key: str = "", root: str = "viking://user/memories", timeout: float = 30.0
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DataError("OpenViking url", "what is no address (not shown)", "an http or https address")
        if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise DataError("OpenViking url", "http to another machine", "https", "memories do not travel unencrypted")
        headers = {"X-API-Key": api_key} if api_key else {}
        self._root = root.rstrip("/")
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # --- addresses ------------------------------------------------------------------------------------------------

    def address(self, uri: str) -> str:
        """The address on the server: `agent://a1/knowledge/x` is `{root}/a1/knowledge/x`."""
        agent, kind, rest = parts_of(uri)
        return "/".join([self._root, quote(agent, safe=""), FOLDERS[kind], rest])

    def uri(self, address: str) -> str:
        """Back again; the address itself where it is none of ours."""
        if not address.startswith(f"{self._root}/"):
            return address
        agent, _, rest = address.removeprefix(f"{self._root}/").strip("/").partition("/")
        folder, _, name = rest.partition("/")
        kind = next((each for each, own in FOLDERS.items() if own == folder), None)
        if kind is None or not name:
            return address
        category, _, last = name.partition("/")
        return uri_of(unquote(agent), kind, unquote(category), unquote(last))

    # --- verbs ----------------------------------------------------------------------------------------------------

    def read(self, uri: str, layer: Layer = "raw") -> str:
        """One layer: raw reads the file of that name in a session's folder, or the memory itself."""
        verb = LEVELS[level_of(layer)]
        address = self.address(uri)
        if layer == "raw":
            address += f"/{_FILES['raw']}" if parts_of(uri)[1] == "session" else ".md"
        return str(self._get(f"/api/v1/content/{verb}", {"uri": address}, uri))

    def layers(self, uri: str) -> dict[Layer, str]:
        """All three layers of a session by their names, whatever number the server gives them."""
        return {layer: self.read(uri, layer) for layer in LAYERS}

    def write(self, uri: str, text: str) -> None:
        """Write the whole text; OpenViking makes abstract and overview of it by itself."""
        suffix = f"/{_FILES['raw']}" if parts_of(uri)[1] == "session" else ".md"
        body = {"uri": self.address(uri) + suffix, "content": text, "mode": "replace", "wait": False}
        try:
            self._post("/api/v1/content/write", body, uri)
        except RefusedError as error:
            if error.status != 404:  # servers that do not make files by `replace`
                raise
            self._post("/api/v1/content/write", {**body, "mode": "create"}, uri)

    def names(self, uri: str) -> list[str]:
        """The addresses right under a folder's, as ours where they are."""
        found = self._get("/api/v1/fs/ls", {"uri": self.address(uri), "output": "original"}, uri)
        if not isinstance(found, list):
            raise self._unusable(uri, "no list")
        return [self.uri(str(each["uri"]).removesuffix(".md")) for each in found if isinstance(each, dict)]

    def find(self, query: str, under: str = "", limit: int = 10, least: float | None = None) -> list[Found]:
        """What is near to a query, best first; `under`: only below this address of ours."""
        body: dict[str, Any] = {
            "query": query,
            "limit": limit,
            "target_uri": self.address(under) if under else self._root,
        }
        if least is not None:
            body["score_threshold"] = least
        result = self._post("/api/v1/search/find", body, query)
        if not isinstance(result, dict):
            raise self._unusable("find", "no object")
        listed = [each for name in ("memories", "resources", "skills") for each in result.get(name) or ()]
        try:
            found = [self._found(each) for each in listed]
        except (KeyError, TypeError, ValueError):
            raise self._unusable("find", "a match without uri, level and score") from None
        return sorted(found, key=lambda each: -each.score)[:limit]

    def _found(self, each: Mapping[str, Any]) -> Found:
        layer = layer_of(int(each.get("level", 2)))
        return Found(self.uri(str(each["uri"]).removesuffix(".md")), layer, str(each["abstract"]), float(each["score"]))

    # --- the wire -------------------------------------------------------------------------------------------------

    def _get(self, path: str, params: Mapping[str, str], what: str) -> Any:
        return self._result(lambda: self._http.get(path, params=dict(params)), what)

    def _post(self, path: str, body: Mapping[str, Any], what: str) -> Any:
        return self._result(lambda: self._http.post(path, json=dict(body)), what)

    def _result(self, ask: Any, what: str) -> Any:
        """The result of an answer `{"status": "ok", "result": …}`; anything else is one clear line."""
        where = f"OpenViking {self._http.base_url.host}: {excerpt(what)}"
        try:
            answer = ask()
            body = answer.json() if "json" in answer.headers.get("content-type", "") else {}
        except httpx.HTTPError as error:
            raise OfflineError(where, type(error).__name__, "an answer", "check that the server runs") from None
        except ValueError:
            raise self._unusable(what, "broken JSON") from None
        told = body.get("error") if isinstance(body, dict) else None
        said = told.get("message", "") if isinstance(told, dict) else str(told or "")
        if answer.status_code == 429 or answer.status_code >= 500:
            raise OfflineError(where, f"{answer.status_code}: {excerpt(said)}", todo="try again later")
        if answer.status_code >= 400 or (isinstance(body, dict) and body.get("status") == "error"):
            status = answer.status_code if answer.status_code >= 400 else 400
            raise RefusedError(status, where, f"{status}: {excerpt(said)}", "check the address and the API key")
        if not isinstance(body, dict) or body.get("status") != "ok" or "result" not in body:
            raise self._unusable(what, "an answer without status ok and a result")
        return body["result"]

    def _unusable(self, what: str, found: str) -> LabError:
        return DataError(f"OpenViking: {excerpt(what)}", found, "what its API documentation says", "check the url")
