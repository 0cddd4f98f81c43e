"""A server on loopback with OpenAI's protocol: text and tool calls, whole or streamed, with tokens and faults."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "fake-key-0f9e8d7c6b5a"
Answer = Callable[[dict[str, Any]], dict[str, Any]]


def text(said: str, finish: str = "stop") -> dict[str, Any]:
    """An answer in words."""
    return {"message": {"role": "assistant", "content": said}, "finish_reason": finish}


def call(name: str, arguments: str, id: str = "call_1") -> dict[str, Any]:
    """An answer that calls a tool; `arguments` is JSON text, or what a model makes of it."""
    made = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"message": {"role": "assistant", "content": None, "tool_calls": [made]}, "finish_reason": "tool_calls"}


class Server:
    """`answer` makes the answer to a request's body; `faults` are statuses given first, 0 cuts the connection.

    `delay`: seconds that an answer takes. `a_minute`: more requests than so many in a `minute` (seconds) get a 429 that
    says when to come back. `seen`: called with the number of requests so far, before each answer. `times`: when each
    came.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer, self.asked, self.keys = answer, [], []  # type: ignore[var-annotated]
        self.faults: list[int] = []
        self.delay, self.a_minute, self.minute, self.refused = 0.0, 0, 60.0, 0
        self.seen: Callable[[int], object] = lambda number: None
        self.times: list[float] = []
        self.retry_after = ""
        self._lock, self._let_in, self.at_once, self.most_at_once = threading.Lock(), list[float](), 0, 0
        self.cut_after, self.cut_hard = 0, True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.entered(body, self.headers.get("Authorization", "")):
                    self._answer(body)

            def _answer(self, body: dict[str, Any]) -> None:
                wait = outer.too_soon()
                if wait:
                    self._whole(429, {"error": {"message": "slow down", "type": "x"}}, f"{wait:.3f}")
                elif outer.faults:
                    self._fault(outer.faults.pop(0))
                elif "input" in body:
                    self._whole(200, outer.vectors(body["input"]))
                elif body.get("stream"):
                    self._stream(outer.answer(body))
                else:
                    self._whole(200, outer.whole(outer.answer(body)))

            def _fault(self, status: int) -> None:
                if status:
                    error = {"message": f"no: {KEY}", "type": "x", "code": "y"}
                    self._whole(status, {"error": error}, outer.retry_after)
                else:
                    self.close_connection = True
                    self.connection.close()

            def _whole(self, status: int, body: dict[str, Any], retry_after: str = "") -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                if retry_after:
                    self.send_header("Retry-After", retry_after)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _stream(self, choice: dict[str, Any]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for number, chunk in enumerate(outer.chunks(choice), 1):
                    self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                    self.wfile.flush()
                    if number == outer.cut_after:
                        outer.cut_after = 0
                        self.close_connection = True
                        if outer.cut_hard:
                            self.connection.close()
                        return
                self.wfile.write(b"data: [DONE]\n\n")

        class Http(ThreadingHTTPServer):
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                """Whoever asked was killed: nothing to be told."""

        self.http = Http(("127.0.0.1", 0), Handler)
        self.options = {"api_base": f"http://127.0.0.1:{self.http.server_port}/v1", "api_key": KEY}

    @contextmanager
    def entered(self, body: dict[str, Any], key: str) -> Iterator[None]:
        """A request is here until the end of the block."""
        with self._lock:
            self.asked.append(body)
            self.keys.append(key)
            self.times.append(time.monotonic())
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            number = len(self.asked)
        try:
            self.seen(number)
            time.sleep(self.delay)
            yield
        finally:
            with self._lock:
                self.at_once -= 1

    def too_soon(self) -> float:
        """Seconds until there is room for one more; 0 lets it in."""
        if not self.a_minute:
            return 0.0
        with self._lock:
            now = time.monotonic()
            self._let_in = [each for each in self._let_in if each > now - self.minute]
            if len(self._let_in) < self.a_minute:
                self._let_in.append(now)
                return 0.0
            self.refused += 1
            return self._let_in[0] + self.minute - now + 0.01

    @staticmethod
    def vectors(texts: list[str]) -> dict[str, Any]:
        """Two numbers a text; a token for every character."""
        rows = [
            {"object": "embedding", "index": n, "embedding": [float(len(each)), 1.0]} for n, each in enumerate(texts)
        ]
        tokens = sum(map(len, texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": "tiny", "data": rows, "usage": usage}

    @staticmethod
    def whole(choice: dict[str, Any]) -> dict[str, Any]:
        choice = dict(choice)
        model = choice.pop("model", "gpt-4o-mini")
        usage = choice.pop("usage", None) or {
            "prompt_tokens": 70, "completion_tokens": 5, "total_tokens": 75,
            "prompt_tokens_details": {"cached_tokens": 20}}  # fmt: skip
        choices = [{"index": 0, **choice}]
        return {"id": "1", "object": "chat.completion", "created": 1, "model": model, "choices": choices,
                "usage": usage}  # fmt: skip

    @staticmethod
    def chunks(choice: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Words and arguments a piece at a time, then why it ended, then the tokens."""
        base = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini"}
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in choice["message"].get("content") or ""]
        for made in choice["message"].get("tool_calls", ()):
            head = {"index": 0, "id": made["id"], "type": "function",
                    "function": {"name": made["function"]["name"], "arguments": ""}}  # fmt: skip
            deltas.append({"tool_calls": [head]})
            for piece in made["function"]["arguments"]:
                deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        for delta in deltas:
            yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
        yield {**base, "choices": [], "usage": Server.whole(choice)["usage"]}


@contextmanager
def serving(answer: Answer) -> Iterator[Server]:
    """A server in a thread, until the end of the block."""
    made = Server(answer)
    thread = threading.Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.http.shutdown()
        made.http.server_close()
        thread.join()
