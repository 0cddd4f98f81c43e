"""A server on loopback with OpenAI's protocol: text and tool calls, whole or streamed, with tokens and faults."""

from __future__ import annotations

import json
import threading
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
    """`answer` makes the answer to a request's body; `faults` are statuses given first, 0 cuts the connection."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.asked, self.keys = answer, [], []  # type: ignore[var-annotated]
        self.faults: list[int] = []
        self.cut_after, self.cut_hard = 0, True
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                outer.keys.append(self.headers.get("Authorization", ""))
                if outer.faults:
                    self._fault(outer.faults.pop(0))
                elif body.get("stream"):
                    self._stream(outer.answer(body))
                else:
                    self._whole(200, outer.whole(outer.answer(body)))

            def _fault(self, status: int) -> None:
                if status:
                    self._whole(status, {"error": {"message": f"no: {KEY}", "type": "x", "code": "y"}})
                else:
                    self.close_connection = True
                    self.connection.close()

            def _whole(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
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

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.options = {"api_base": f"http://127.0.0.1:{self.http.server_port}/v1", "api_key": KEY}

    @staticmethod
    def whole(choice: dict[str, Any]) -> dict[str, Any]:
        usage = {"prompt_tokens": 70, "completion_tokens": 5, "total_tokens": 75,
                 "prompt_tokens_details": {"cached_tokens": 20}}  # fmt: skip
        choices = [{"index": 0, **choice}]
        return {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini", "choices": choices,
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
