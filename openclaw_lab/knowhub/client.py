"""A KnowHub over HTTP, with the verbs and values of an open one. Offline, it answers from its cache and keeps saves.

With a cache folder a save is on the disk before it is sent; what the server could not take yet is sent later, in order,
each exactly once (by its idempotency key). Nothing is uploaded in the clear beyond this machine.
"""

from __future__ import annotations

import dataclasses
import json
import random
import threading
import time
import uuid
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote, urlencode, urlsplit

import httpx

from openclaw_lab.config import KnowHubConfig
from openclaw_lab.errors import ConfigError, DataError, DataWarning, OfflineError, RefusedError, excerpt
from openclaw_lab.knowhub.draft import draft
from openclaw_lab.knowhub.entry import Case, Entry
from openclaw_lab.knowhub.guard import LOOPBACK
from openclaw_lab.knowhub.outbox import Outbox, Waiting
from openclaw_lab.knowhub.service import Hit, Saved
from openclaw_lab.knowhub.wire import (
    EXTRACT,
    KNOWLEDGE,
    SEARCH,
    case_to_json,
    entry_from_json,
    hit_from_json,
    saved_from_json,
)

# Seconds before the second try; doubled each time, half of it at random; the most that a server's Retry-After may ask.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_AGAIN = frozenset({408, 425, 429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Queued:
    """A save or a report that is on the disk and will be sent later."""

    key: str
    reason: str
    action: Literal["queued"] = "queued"


class Hits(list[Hit]):
    """Search results; `stale` is the time of the answer (ISO 8601) when it comes from the cache, else empty."""

    def __init__(self, hits: Iterable[Hit] = (), stale: str = "") -> None:
        super().__init__(hits)
        self.stale = stale


class KnowHubClient:
    """A KnowHub server's client; `with KnowHubClient(address) as kb:` closes it.

    `timeout` in seconds a try; `tries` of what may be repeated; `agent_id` is who asks.
    """

    def __init__(
        self,
        api_url: str = "http://127.0.0.1:9999",
        token: str = "",
        cache: str | Path | None = None,
        timeout: float = 10.0,
        tries: int = 3,
        agent_id: str = "",
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._private = KnowHubConfig(api_url=api_url).private
        parts = urlsplit(api_url)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ConfigError("api_url", "an address with a credential or a query", "an address; give a token apart")
        if not token.isascii() or not token.isprintable():
            raise ConfigError("token", "signs that do not fit into a header", "letters, digits and signs")
        self.api_url, self.agent_id, self._tries = api_url.rstrip("/"), agent_id, max(1, tries)
        self._token, self._sending = token, threading.Lock()
        self._warned = self._down = False
        self._http = httpx.Client(
            timeout=timeout,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            transport=transport,
            verify=parts.scheme.lower() == "https",  # without TLS there is nothing to verify, and much to load
            trust_env=(parts.hostname or "") not in LOOPBACK,  # a proxy is no way to this machine
        )
        self._outbox = Outbox(Path(cache).expanduser(), self.api_url) if cache is not None else None

    def __repr__(self) -> str:
        return f"KnowHubClient({self.api_url!r}{', token=***' if self._token else ''})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and the cache; what waits to be sent stays in it."""
        self._http.close()
        if self._outbox:
            self._outbox.close()

    # --- reading --------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        top_k: int = 5,
        min_score: int = 3,
        types: Sequence[str] = (),
        scopes: Sequence[str] = (),
        include_flagged: bool = False,
    ) -> Hits:
        """The entries that answer a query best; without a connection, the last answer to the same search."""
        self._check_reading()
        asked: dict[str, Any] = {"q": query, "top_k": top_k, "min_score": min_score, "agent_id": self.agent_id}
        asked |= {"types": ",".join(types), "scopes": ",".join(scopes), "include_flagged": include_flagged}
        asked = {name: value for name, value in asked.items() if value not in ("", False)}
        key = json.dumps(asked, sort_keys=True)
        try:
            answer = self._ask("GET", SEARCH, asked=asked)
        except OfflineError:
            kept = self._outbox.remembered(key) if self._outbox else None
            if kept is None:
                raise
            return Hits(_hits(kept[1]), stale=kept[0])
        hits = Hits(_hits(answer))
        if self._outbox:
            self._outbox.remember(key, answer)
        return hits

    def get(self, entry_id: str) -> Entry | None:
        """The current version of an entry; None when there is none, or none for this agent."""
        self._check_reading()
        try:
            return entry_from_json(self._ask("GET", self._of(entry_id)))
        except RefusedError as error:
            if error.status == 404:
                return None
            raise

    # --- uploads --------------------------------------------------------------------------------------------------

    def save(
        self, *, task: str, content: str, types: Sequence[str], score: int = 3, key: str = "", **more: Any
    ) -> Saved | Queued:
        """Save one piece of knowledge; `more`: scopes, owner, source. Says what happened to it, or that it waits."""
        item = {"task": task, "content": content, "types": types, "score": score, "key": key, **more}
        entry, key = draft(item, lambda text: False)
        owner = entry.owner or (f"agent:{self.agent_id}" if self.agent_id else "")
        plain = dataclasses.replace(entry, owner=owner).to_dict()
        body = {name: plain[name] for name in ("task", "content", "types", "score", "scopes", "owner", "source")}
        answer = self._upload("POST", KNOWLEDGE, body, key)
        return answer if isinstance(answer, Queued) else saved_from_json(answer)

    def update(
        self, entry_id: str, *, is_helpful: bool, feedback: str = "", case: Case | None = None, key: str = ""
    ) -> Entry | Queued:
        """Report that an entry helped or did not; gives the entry, or says that the report waits."""
        if case is None and is_helpful:
            case = Case(feedback or "使用成功", "有效")
        elif case is None:
            case = Case(feedback or "使用失败", "无效", feedback or "未说明")
        body = {"add_helpful_case" if is_helpful else "add_harmful_case": case_to_json(case)}
        answer = self._upload("PUT", self._of(entry_id), body, key)
        return answer if isinstance(answer, Queued) else entry_from_json(answer)

    def extract(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        agent_id: str = "",
        session_key: str = "",
        submitted_by: str = "",
    ) -> list[Saved]:
        """Send a conversation to be learned from; it is never kept in the cache. Says what was saved."""
        self._check_upload()
        body = {
            "messages": [dict(each) for each in messages],
            "agent_id": agent_id or self.agent_id,
            "session_key": session_key,
            "submitted_by": submitted_by,
        }
        answer = self._ask("POST", EXTRACT, body=body)
        return [saved_from_json(each) for each in _list(answer)]

    @property
    def waiting(self) -> int:
        """How many saves and reports wait to be sent."""
        return self._outbox.count() if self._outbox else 0

    def refused(self) -> list[Waiting]:
        """What was kept and later refused by the server, with its reason."""
        return self._outbox.refused() if self._outbox else []

    def send(self) -> int:
        """Send what waits, in order; how many were sent. An OfflineError says that the rest still waits."""
        self._check_upload()
        return len(self._send(self._outbox)) if self._outbox else 0

    def _upload(self, method: str, path: str, body: Any, key: str) -> Any:
        """The server's answer, or Queued. With a cache: first to the disk, then all that waits in its order."""
        self._check_upload()
        key = key or uuid.uuid4().hex
        if len(key) > 200 or not key.isascii() or not key.isprintable() or " " in key:
            raise DataError("key", key, "up to 200 ASCII letters, digits and signs")
        if self._outbox is None:
            return self._ask(method, path, body=body, key=key)
        number = self._outbox.put(key, method, path, body)
        try:
            answers = self._send(self._outbox, number)
            # Another thread may have sent it: the same key gets the same answer.
            return answers[number] if number in answers else self._ask(method, path, body=body, key=key)
        except OfflineError as error:
            return Queued(key, str(error))

    def _send(self, outbox: Outbox, own: int = 0) -> dict[int, Any]:
        """Answers by number. What the server refuses is put aside; a refusal of `own` is the caller's error."""
        answers: dict[int, Any] = {}
        with self._sending:
            while (each := outbox.first()) is not None:
                try:
                    answers[each.number] = self._ask(each.method, each.path, body=each.body, key=each.key)
                except RefusedError as error:
                    self._put_aside(outbox, each, error, own)
                else:
                    outbox.done(each.number)
        return answers

    def _put_aside(self, outbox: Outbox, refused: Waiting, error: RefusedError, own: int) -> None:
        if error.status in (401, 403) or refused.number == own:  # the former says nothing of what waits: it stays
            outbox.done(own)
            raise error
        outbox.refuse(refused.number, str(error))
        warnings.warn(f"a kept upload was refused: {error}; see refused()", DataWarning, stacklevel=5)

    # --- requests -------------------------------------------------------------------------------------------------

    def _of(self, entry_id: str) -> str:
        asker = f"?{urlencode({'agent_id': self.agent_id})}" if self.agent_id else ""
        return f"{KNOWLEDGE}/{quote(entry_id, safe='')}{asker}"

    def _check_upload(self) -> None:
        if not self._private:
            raise ConfigError("api_url", self.api_url, "https for an upload to another machine", "nothing was sent")

    def _check_reading(self) -> None:
        if self._private:
            return
        if self._token:
            raise ConfigError("api_url", self.api_url, "https, for a token must not travel in the clear")
        if not self._warned:
            self._warned = True
            text = f"{self.api_url} is not encrypted: others on the way can read the searches and change the answers"
            warnings.warn(text, DataWarning, stacklevel=3)

    def _ask(self, method: str, path: str, *, asked: Any = None, body: Any = None, key: str = "") -> Any:
        """The JSON of a good answer. Tries again what does no harm twice: reading, and uploads with a key."""
        tries = 1 if self._down else self._tries
        for number in range(tries):
            try:
                answer = self._once(method, path, asked, body, key)
            except httpx.TransportError as error:
                sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                fault, pause = f"no answer ({type(error).__name__})", 0.0
                repeatable = method == "GET" or bool(key) or not sent
            else:
                if answer.status_code not in _AGAIN:
                    self._down = False
                    return self._read(answer)
                fault, pause = f"status {answer.status_code}: {_line(answer)}", _retry_after(answer)
                repeatable = method == "GET" or bool(key) or answer.status_code in (429, 503)
            if not repeatable or number == tries - 1:
                break
            time.sleep(max(pause, _FIRST_PAUSE * 2**number * random.uniform(0.5, 1.0)))
        self._down = True  # until it answers, one try is enough
        raise OfflineError(self.api_url, fault, "a KnowHub server that answers", "start it, or check the address")

    def _once(self, method: str, path: str, asked: Any, body: Any, key: str) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        content = None
        if body is not None:
            try:
                content = json.dumps(body, ensure_ascii=False).encode()
            except (TypeError, ValueError) as error:  # an object of another kind, half a surrogate pair
                raise DataError("upload", str(error), "plain values and valid Unicode") from None
            headers["Content-Type"] = "application/json"
        return self._http.request(method, f"{self.api_url}{path}", params=asked, content=content, headers=headers)

    def _read(self, answer: httpx.Response) -> Any:
        if answer.is_success:
            try:
                return answer.json()
            except ValueError:
                raise DataError(self.api_url, "an answer that is no JSON", "a KnowHub server") from None
        todo = "check the token" if answer.status_code == 401 else ""
        raise RefusedError(answer.status_code, self.api_url, f"status {answer.status_code}: {_line(answer)}", todo)


def _line(answer: httpx.Response) -> str:
    """What the server says is wrong."""
    try:
        return excerpt(str(answer.json()["error"]), 200)
    except (ValueError, KeyError, TypeError):
        return excerpt(answer.reason_phrase)


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    return min(float(text), _LONGEST_PAUSE) if text.isascii() and text.isdigit() else 0.0


def _list(answer: Any) -> list[Any]:
    if not isinstance(answer, dict) or not isinstance(answer.get("results", []), list):
        raise DataError("knowhub server", "an answer without results", "a KnowHub server")
    return list(answer.get("results", []))


def _hits(answer: Any) -> list[Hit]:
    return [hit_from_json(each) for each in _list(answer)]
