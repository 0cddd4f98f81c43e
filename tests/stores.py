"""Builds what the loader reads: OpenClaw JSONL (header versions 3 and 4), OpenClaw SQLite stores, rows of both kinds.

Written from the formats' descriptions, not with the loader's own code, so that a test of one is no test of itself.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import zstandard

from openclaw_lab.messages import Message, Session, ToolCall, Usage

Event = dict[str, Any]
START = 1_796_032_800.0

SCHEMA = """
CREATE TABLE transcript_events(session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER,
  event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT, PRIMARY KEY(session_id, seq));
CREATE TABLE session_transcript_archives(session_id TEXT, body BLOB);
CREATE TABLE session_transcript_cold_archives(session_id TEXT, body BLOB);
CREATE TABLE session_windows(session_id TEXT, session_key TEXT, reason TEXT);
"""


def key(session_id: str, number: int, version: int = 4) -> str:
    """A record's id: a UUID in version 4, eight hex digits in version 3. Unlike any other, whatever byte is changed."""
    digest = hashlib.md5(f"{session_id}/{number}".encode()).hexdigest()
    if version == 3:
        return digest[:8]
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def header(session_id: str, version: int = 4) -> Event:
    return {"type": "session", "version": version, "id": session_id, "timestamp": iso(START), "cwd": "/w"}


def iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def entry(kind: str, id: str, parent: str | None, **fields: Any) -> Event:
    """One record of a transcript's tree."""
    return {"type": kind, "id": id, "parentId": parent, "timestamp": iso(START), **fields}


def said(id: str, parent: str | None, text: str, role: str = "user", **fields: Any) -> Event:
    """A record that wraps a message of plain text."""
    return {"type": "message", "id": id, "parentId": parent, "message": {"role": role, "content": text}, **fields}


def openclaw_message(message: Message) -> Event:
    """A message as OpenClaw records it."""
    blocks = [dict(block) for block in message.content] if not isinstance(message.content, str) else []
    if isinstance(message.content, str) and message.content:
        blocks.append({"type": "text", "text": message.content})
    blocks += [{"type": "toolCall", "id": c.id, "name": c.name, "arguments": c.arguments} for c in message.tool_calls]
    plain = message.role == "user" and isinstance(message.content, str)
    record: Event = {
        "role": "toolResult" if message.role == "tool" else message.role,
        "content": message.content if plain and not message.tool_calls else blocks,
        "toolCallId": message.tool_call_id,
        "toolName": message.name,
        "isError": message.failed,
        "usage": message.usage and _usage(message.usage),
        "stopReason": message.stop_reason,
    }
    return {name: value for name, value in record.items() if value is not None}


def events(session: Session, version: int = 4) -> list[Event]:
    """A session as OpenClaw records: the header, then one chain."""
    records = [header(session.id, version)]
    parent = None
    for number, message in enumerate(session.messages):
        own = key(session.id, number, version)
        record = {"type": "message", "id": own, "parentId": parent, "message": openclaw_message(message)}
        if message.timestamp is not None:
            record["timestamp"] = iso(message.timestamp)
        records.append(record)
        parent = own
    return records


def jsonl(records: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jsonl(records))
    return path


def connect(path: Path, *, wal: bool = True) -> sqlite3.Connection:
    """An empty store, opened as its owner does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode={'WAL' if wal else 'DELETE'}")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.executescript(SCHEMA)
    return connection


def insert(connection: sqlite3.Connection, session_id: str, seq: int, event: Any, *, packed: bool = False) -> None:
    """One row, plain or compressed; an event that is bytes goes in as it is."""
    body = event if isinstance(event, bytes) else json.dumps(event, ensure_ascii=False).encode()
    plain = None if packed else body.decode() if not isinstance(event, bytes) else body
    blob = zstandard.ZstdCompressor().compress(body) if packed else None
    row = (session_id, seq, plain, 1, blob, len(body), None)
    connection.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def write_store(path: Path, sessions: Mapping[str, Sequence[Event]], *, packed: bool = False) -> Path:
    """A closed store; with `packed` every second row is compressed."""
    connection = connect(path)
    for session_id, records in sessions.items():
        for seq, record in enumerate(records):
            insert(connection, session_id, seq, record, packed=packed and seq % 2 == 0)
    connection.close()
    return path


def as_row(session: Session) -> Event:
    """A session in our own row format."""
    return {"id": session.id, "messages": [_row_message(m) for m in session.messages], "source": session.source}


def as_openai(session: Session) -> Event:
    """A session as OpenAI's chat format has it; usage, failure and time have no place there."""
    return {"id": session.id, "messages": [_openai_message(message) for message in session.messages]}


def _row_message(message: Message) -> Event:
    record: Event = {
        "role": message.role,
        "content": message.content,
        "tool_calls": [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.tool_calls] or None,
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "timestamp": message.timestamp,
        "usage": message.usage and _usage(message.usage),
        "is_error": message.failed,
        "stop_reason": message.stop_reason,
    }
    return {name: value for name, value in record.items() if value is not None}


def _openai_message(message: Message) -> Event:
    record: Event = {
        "role": message.role,
        "content": message.content or None,
        "tool_calls": [_openai_call(call) for call in message.tool_calls] or None,
        "tool_call_id": message.tool_call_id,
        "name": message.name,
    }
    return {name: value for name, value in record.items() if value is not None or name == "content"}


def _openai_call(call: ToolCall) -> Event:
    text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": text}}


def _usage(usage: Usage) -> Event:
    names = {"input": usage.input, "output": usage.output, "cacheRead": usage.cache_read}
    return {**names, "cacheWrite": usage.cache_write, "totalTokens": 0, "cost": {"total": 0.0}}
