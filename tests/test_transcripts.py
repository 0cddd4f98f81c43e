"""The transcript loader: four formats, damage, copies of one session, live stores, memory."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import pickle
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import stores
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores import entry, header, jsonl, said, write_jsonl, write_store

import openclaw_lab as lab
from openclaw_lab.errors import ConfigError, DataError, DataWarning
from openclaw_lab.messages import ContextCut, Message, Opportunity, Session, ToolCall, Usage
from openclaw_lab.transcripts import SessionList, lines, load_sessions, read_session_rows, session_from_row, store

DATA = Path(os.environ.get("OPENCLAW_LAB_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
TALK = Session(
    "s-1",
    (
        Message("user", "Where is 北京?", timestamp=stores.START),
        Message(
            "assistant",
            ({"type": "thinking", "thinking": "a map"}, {"type": "text", "text": "Let me look."}),
            tool_calls=(ToolCall("call_1", "kb_search", {"query": "北京", "top_k": 3}),),
            timestamp=stores.START + 1.5,
            usage=Usage(100, 5, 7, 1),
            stop_reason="toolUse",
        ),
        Message("tool", "39.9 N", tool_call_id="call_1", name="kb_search", failed=False),
        Message("assistant", "在华北。", stop_reason="stop"),
    ),
    source="here",
)


@pytest.fixture
def place(tmp_path: Path) -> Callable[..., Path]:
    """Write bytes, text or records to a file."""

    def write(content: bytes | str | list[Any], name: str = "t.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data if isinstance(data, bytes) else jsonl(data))
        return path

    return write


def quiet(path: Path) -> SessionList:
    """Load a file that may be damaged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return load_sessions(path)


def quiet_or_nothing(path: Path) -> SessionList:
    """As `quiet`; the error of a file that cannot be read is allowed."""
    try:
        return quiet(path)
    except DataError:
        return SessionList()


def texts(session: Session) -> list[str]:
    return [message.text for message in session.messages]


def chain(*spoken: str) -> list[dict[str, Any]]:
    """A header and a straight chain of user messages."""
    return stores.events(Session("s-1", tuple(Message("user", text) for text in spoken)))


# --- OpenClaw records ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [3, 4])
def test_openclaw_jsonl(place: Callable[..., Path], version: int) -> None:
    path = place(stores.events(TALK, version))
    sessions = load_sessions(path)
    assert sessions == [replace(TALK, source=str(path))]
    assert sessions[0].fields == {"version": version, "timestamp": "2026-11-30T10:00:00.000Z", "cwd": "/w"}
    assert (sessions.report.sessions, sessions.report.messages, sessions.report.problems) == (1, 4, ())


MESSAGES: list[tuple[dict[str, Any], Message]] = [
    ({"role": "user", "content": "hi"}, Message("user", "hi")),
    ({"role": "user", "content": [{"type": "text", "text": "你好"}]}, Message("user", "你好")),
    ({"role": "user", "content": []}, Message("user", "")),
    ({"role": "user", "content": None}, Message("user", "")),
    ({"role": "user"}, Message("user", "")),
    ({"role": "user", "content": ["a", "b"]}, Message("user", tuple({"type": "text", "text": t} for t in "ab"))),
    ({"role": "user", "content": "nul \x00 stays"}, Message("user", "nul \x00 stays")),
    (
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "data": "Zm8="}]},
        Message("user", ({"type": "text", "text": "a"}, {"type": "image", "data": "Zm8="})),
    ),
    (
        {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "read", "arguments": {"p": 1}}]},
        Message("assistant", "", (ToolCall("c", "read", {"p": 1}),)),
    ),
    (
        {"role": "assistant", "content": [{"type": "toolCall", "id": 7, "name": "read", "arguments": "{bad"}]},
        Message("assistant", "", (ToolCall(None, "read", "{bad"),)),
    ),
    (
        {"role": "assistant", "content": [{"type": "toolCall", "name": "read", "arguments": [1, "二"]}]},
        Message("assistant", "", (ToolCall(None, "read", '[1, "二"]'),)),
    ),
    (
        {"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": "no", "isError": True},
        Message("tool", "no", tool_call_id="c", name="read", failed=True),
    ),
    (
        {"role": "assistant", "content": [], "stopReason": "aborted", "usage": {"input": 0, "output": 0}},
        Message("assistant", "", usage=Usage(), stop_reason="aborted"),
    ),
    ({"role": "user", "content": "x", "timestamp": 1_796_032_800_123}, Message("user", "x", timestamp=1796032800.123)),
    ({"role": "user", "content": "x", "timestamp": "2023-04-27"}, Message("user", "x", timestamp=1682553600.0)),
    (
        {"role": "user", "content": "x", "timestamp": "2023-04-27T08:00:00+08:00"},
        Message("user", "x", timestamp=1682553600.0),
    ),
    ({"role": "user", "content": "x", "timestamp": "soon", "usage": "much"}, Message("user", "x")),
    ({"role": "user", "content": "x", "timestamp": [1], "usage": {"input": "3"}}, Message("user", "x")),
    ({"role": "user", "content": "x", "timestamp": 1e300, "usage": []}, Message("user", "x", timestamp=1e297)),
    ({"role": "user", "content": "x", "timestamp": True, "toolCallId": 3, "isError": "yes"}, Message("user", "x")),
    ({"role": "user", "content": "x", "usage": {"input": -1, "output": 2.0}}, Message("user", "x", usage=Usage(0, 2))),
    ({"role": "user", "content": "x", "usage": {"input": True, "cacheRead": 10**40}}, Message("user", "x")),
]


@pytest.mark.parametrize(("recorded", "message"), MESSAGES)
def test_openclaw_message(place: Callable[..., Path], recorded: dict[str, Any], message: Message) -> None:
    path = place([header("s"), {"type": "message", "id": "a", "parentId": None, "message": recorded}])
    assert load_sessions(path)[0].messages == (message,)


def test_the_records_time_wins_over_the_messages(place: Callable[..., Path]) -> None:
    record = entry("message", "a", None, message={"role": "user", "content": "x", "timestamp": 5})
    assert load_sessions(place([header("s"), record]))[0].messages[0].timestamp == stores.START


def test_records_without_a_message_are_counted(place: Callable[..., Path]) -> None:
    records = [
        header("s"),
        entry("model_change", "1", None, provider="p", modelId="m"),
        entry("custom", "2", "1", customType="x"),
        said("3", "2", "one"),
        entry("custom", "4", "3", customType="y"),
        entry("message", "5", "4", message={"role": "custom", "customType": "z", "content": "hidden"}),
        entry("compaction", "6", "5", summary="…", tokensBefore=105),
        entry("custom_message", "7", "6", content="text"),
        said("8", "7", "two"),
        entry("reset", "9", "8", reason="new"),
        entry("未知", "10", "9"),
        said("11", "10", "three"),
        entry("compaction", "12", "11", tokensBefore="many"),
    ]
    sessions = load_sessions(place(records))
    assert texts(sessions[0]) == ["one", "two", "three"]
    cuts = (ContextCut(1, "compaction", 105), ContextCut(2, "reset"), ContextCut(3, "compaction"))
    assert sessions[0].cuts == cuts
    counted = {"custom": 2, "model_change": 1, "message:custom": 1, "custom_message": 1, "未知": 1}
    assert sessions.report.skipped == counted
    assert "custom 2" in str(sessions.report)


AB = [said("a", None, "A"), said("b", "a", "B")]
LEAF_A = entry("leaf", "l", "b", targetId="a")
# records after the header -> texts of the active branch, messages left out
BRANCHES: list[tuple[str, list[dict[str, Any]], list[str], int]] = [
    ("chain", AB, ["A", "B"], 0),
    ("the last append wins", [said("a", None, "A"), said("b", "a", "B"), said("c", "a", "C")], ["A", "C"], 1),
    ("leaf at the end", [*AB, LEAF_A], ["A"], 1),
    ("append after a leaf", [*AB, LEAF_A, said("c", "a", "C")], ["A", "C"], 1),
    ("append to a leaf", [*AB, LEAF_A, said("c", "l", "C")], ["A", "C"], 1),
    ("leaf to nowhere", [said("a", None, "A"), entry("leaf", "l", "a", targetId="lost")], ["A"], 0),
    ("leaf with a wrong target", [said("a", None, "A"), entry("leaf", "l", "a", targetId=["a"])], ["A"], 0),
    ("leaf to the root", [said("a", None, "A"), entry("leaf", "l", "a", targetId=None)], [], 1),
    ("a second root", [said("a", None, "A"), said("b", None, "B")], ["B"], 1),
    ("a lost parent", [said("a", None, "A"), said("c", "lost", "C")], ["A", "C"], 0),
    (
        "a lost parent on a branch",
        [*AB, LEAF_A, said("d", "?", "D")],
        ["A", "D"],
        1,
    ),
    ("side entries do not count", [said("a", None, "A"), said("b", "a", "B", appendMode="side")], ["A"], 1),
    (
        "a lost parent after a side entry",
        [said("a", None, "A"), said("b", "a", "B", appendMode="side"), said("d", "lost", "D")],
        ["A", "D"],
        1,
    ),
    ("a plugin's record links", [said("a", None, "A"), entry("x", "b", "a"), said("c", "b", "C")], ["A", "C"], 0),
    ("a plugin's record is no head", [said("a", None, "A"), said("b", "a", "B"), entry("x", "c", "a")], ["A", "B"], 0),
    (
        "a record before its parent",
        [said("a", None, "A"), said("c", "b", "C"), said("b", "a", "B"), said("d", "c", "D")],
        ["A", "B", "C", "D"],
        0,
    ),
    ("its own parent, later", [*AB, said("c", "c", "C"), said("d", "c", "D")], ["A", "B", "C", "D"], 0),
    ("a circle", [said("a", "b", "A"), said("b", "a", "B")], ["A", "B"], 0),
    ("its own parent", [said("a", "a", "A"), said("b", "a", "B")], ["A", "B"], 0),
    ("no ids at all", [{"type": "message", "message": {"role": "user", "content": t}} for t in "AB"], ["A", "B"], 0),
    ("ids of a wrong type", [said("a", None, "A"), {**said("b", "a", "B"), "id": 5, "parentId": [1]}], ["A", "B"], 0),
]


@pytest.mark.parametrize(("records", "expected", "left_out"), [pytest.param(*row, id=name) for name, *row in BRANCHES])
def test_active_branch(
    place: Callable[..., Path], records: list[dict[str, Any]], expected: list[str], left_out: int
) -> None:
    sessions = load_sessions(place([header("s"), *records]))
    assert texts(sessions[0]) == expected
    assert sessions.report.off_branch == left_out


def test_cuts_of_an_abandoned_branch_do_not_count(place: Callable[..., Path]) -> None:
    records = [header("s"), said("a", None, "A"), entry("compaction", "c", "a", tokensBefore=1), said("b", "a", "B")]
    assert load_sessions(place(records))[0].cuts == ()


def test_joined_files_give_one_session_each(place: Callable[..., Path]) -> None:
    path = place(
        [header("s"), said("a", None, "A"), header("s"), said("b", "a", "B"), header("t"), said("a", None, "C")]
    )
    assert [(s.id, texts(s)) for s in load_sessions(path)] == [("s", ["A", "B"]), ("t", ["C"])]


HEADERS = [
    (None, "no session header before this"),
    ({"type": "session"}, "header id: found nothing"),
    ({"type": "session", "id": {"a": 1}}, "header id: found an object"),
    ({"type": "session", "id": "my-id", "version": 9}, "header version: found 9; expected at most 4"),
]


@pytest.mark.parametrize(("first", "why"), HEADERS)
def test_a_bad_header_is_reported(place: Callable[..., Path], first: dict[str, Any] | None, why: str) -> None:
    records = [*([first] if first else []), said("a", None, "A")]
    with pytest.warns(DataWarning, match=why):
        sessions = load_sessions(place(records, "my-id.jsonl.gz"))
    assert [(s.id, texts(s)) for s in sessions] == [("my-id", ["A"])]


# --- rows, OpenAI -------------------------------------------------------------------------------------------------


def test_our_rows(place: Callable[..., Path]) -> None:
    row = {
        **stores.as_row(TALK),
        "opportunities": [
            {"index": 2, "kind": "new_resource", "note": "kb_search 第一次"},
            {"index": 3, "kind": "task_end"},
        ],
        "lang": "zh",
        "reward": float("nan"),
    }
    session = load_sessions(place([row]))[0]
    labels = (Opportunity(2, "new_resource", "kb_search 第一次"), Opportunity(3, "task_end"))
    assert session == replace(TALK, opportunities=labels)
    assert session.fields == {"lang": "zh", "reward": None}


def test_a_row_without_labels_is_not_a_row_with_none(place: Callable[..., Path]) -> None:
    rows = [{"messages": []}, {"messages": [], "opportunities": None}, {"messages": [], "opportunities": []}]
    assert [s.opportunities for s in load_sessions(place(rows))] == [None, None, ()]


BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"messages": "x"}, "messages: found 'x'; expected a list"),
    ({"messages": [5]}, r"messages\[0\]: found a number; expected an object"),
    ({"messages": [{"role": "bot"}]}, r"messages\[0\].role: found 'bot'; expected system"),
    ({"messages": [{"role": ["user"]}]}, r"messages\[0\].role: found a list"),
    ({"messages": [{"content": "x"}]}, r"messages\[0\].role: found nothing"),
    ({"messages": [{"role": "user"}, {"role": "user", "content": 5}]}, r"messages\[1\].content: found a number"),
    ({"messages": [{"role": "user", "content": {"a": 1}}]}, "content: found an object; expected text, or a list"),
    ({"messages": [{"role": "user", "content": [5]}]}, r"content\[0\]: found a number; expected a block"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, r"content\[0\].text: found nothing"),
    ({"messages": [{"role": "assistant", "tool_calls": "x"}]}, "tool_calls: found 'x'; expected a list"),
    ({"messages": [{"role": "assistant", "tool_calls": [None]}]}, r"tool_calls\[0\]: found nothing"),
    ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]}, r"tool_calls\[0\].name: found nothing"),
    ({"messages": [{"role": "assistant", "tool_calls": [{"function": "f"}]}]}, r"tool_calls\[0\].name: found nothing"),
    ({"messages": [], "opportunities": "x"}, "opportunities: found 'x'"),
    ({"messages": [], "opportunities": ["x"]}, r"opportunities\[0\]: found 'x'"),
    ({"messages": [{"role": "user"}], "opportunities": [{"index": 1, "kind": "feedback"}]}, "index: found 1.*0 to 0"),
    ({"messages": [{"role": "user"}], "opportunities": [{"index": -1, "kind": "feedback"}]}, "index: found -1"),
    ({"messages": [{"role": "user"}], "opportunities": [{"index": True, "kind": "feedback"}]}, "index: found true"),
    ({"messages": [{"role": "user"}], "opportunities": [{"index": 0, "kind": "反馈"}]}, "kind: found '反馈'.*recovery"),
    ({"messages": [{"role": "user"}], "opportunities": [{"index": 0}]}, "kind: found nothing"),
]


@pytest.mark.parametrize(("row", "why"), BAD_ROWS)
def test_a_bad_row_costs_that_row(place: Callable[..., Path], row: dict[str, Any], why: str) -> None:
    path = place([{"id": "before", "messages": []}, row, {"id": "after", "messages": []}])
    with pytest.warns(DataWarning, match=why):
        sessions = load_sessions(path)
    assert [s.id for s in sessions] == ["before", "after"]
    assert [(p.file, p.line) for p in sessions.report.problems] == [(str(path), 2)]
    with pytest.raises(DataError, match=f"t.jsonl:2: .*{why}"):
        load_sessions(path, on_error="raise")
    with pytest.raises(DataError, match=why):
        session_from_row(row, "id")


OPENAI: list[tuple[dict[str, Any], Message]] = [
    ({"role": "developer", "content": "be brief"}, Message("system", "be brief")),
    ({"role": "function", "name": "f", "content": "1"}, Message("tool", "1", name="f")),
    ({"role": "tool", "tool_call_id": "c", "content": "晴"}, Message("tool", "晴", tool_call_id="c")),
    ({"role": "user", "content": [{"type": "text", "text": "a"}]}, Message("user", "a")),
    (
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        Message("user", ({"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}})),
    ),
    (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"城市": "北京"}'}}],
        },
        Message("assistant", "", (ToolCall("c", "f", {"城市": "北京"}),)),
    ),
    (
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c", "function": {"name": "f", "arguments": "{cut"}},
                {"id": "d", "function": {"name": "g"}},
            ],
        },
        Message("assistant", "", (ToolCall("c", "f", "{cut"), ToolCall("d", "g", {}))),
    ),
    (
        {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": ""}},
        Message("assistant", "", (ToolCall(None, "f", {}),)),
    ),
    (
        {
            "role": "assistant",
            "content": "x",
            "usage": {"prompt_tokens": 90, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 50}},
        },
        Message("assistant", "x", usage=Usage(40, 9, 50)),
    ),
]


@pytest.mark.parametrize(("recorded", "message"), OPENAI)
def test_openai_message(place: Callable[..., Path], recorded: dict[str, Any], message: Message) -> None:
    row = {"messages": [recorded], "tools": []}
    assert [s.messages for s in load_sessions(place([row]))] == [(message,)]
    one_a_line = [recorded, {"role": "user", "content": "more"}]
    if "content" in recorded or "tool_calls" in recorded:
        assert load_sessions(place(one_a_line))[0].messages == (message, Message("user", "more"))


def test_ids_of_rows(place: Callable[..., Path]) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a"},
        {"conversation_id": "b"},
        {"id": 7},
        {"id": "", "conversation_id": None},
        {"id": [1]},
    ]
    path = place([{**row, "messages": []} for row in rows])
    assert [s.id for s in load_sessions(path)] == ["a", "b", "7", "t.jsonl:4", "t.jsonl:5"]


def test_one_message_a_line(place: Callable[..., Path]) -> None:
    path = place(
        [{"role": "user", "content": "你好"}, {"role": "nobody", "content": ""}, {"role": "assistant", "content": "hi"}]
    )
    with pytest.warns(DataWarning, match="message.role: found 'nobody'"):
        sessions = load_sessions(path)
    assert [(s.id, texts(s), s.source) for s in sessions] == [("t", ["你好", "hi"], str(path))]


def test_rows_from_lines() -> None:
    given_lines: list[str | bytes] = [
        '{"id": "一", "messages": [], "source": "repo"}',
        b"",
        "  \n",
        b'{"messages": []}\n',
    ]
    assert [(s.id, s.source) for s in read_session_rows(given_lines, "set")] == [("一", "repo"), ("set:4", "set")]
    with pytest.raises(DataError, match="set:2: not JSON"):
        list(read_session_rows(['{"messages": []}', "{"], "set"))


# --- every format gives the same ----------------------------------------------------------------------------------

_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_calls = st.builds(
    ToolCall,
    st.none() | st.text(max_size=8),
    st.text(max_size=8),
    st.dictionaries(st.text(max_size=8), _json, max_size=3),
)
_block = st.fixed_dictionaries({"type": st.just("text"), "text": st.text()}) | st.fixed_dictionaries(
    {"type": st.just("thinking"), "thinking": st.text()}
)
_content = st.text() | st.lists(_block, min_size=2, max_size=3).map(tuple)
_count = st.integers(0, 2**40)
_message = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=_content,
    tool_calls=st.lists(_calls, max_size=2).map(tuple),
    tool_call_id=st.none() | st.text(max_size=8),
    name=st.none() | st.text(max_size=8),
    failed=st.none() | st.booleans(),
    timestamp=st.none() | st.integers(1_000_000_000_000, 2_000_000_000_000).map(lambda ms: ms / 1000),
    usage=st.none() | st.builds(Usage, _count, _count, _count, _count),
    stop_reason=st.none() | st.sampled_from(["stop", "toolUse", "aborted"]),
)
_session = st.builds(
    Session,
    id=st.text("abc北-", min_size=1),
    messages=st.lists(_message, max_size=5).map(tuple),
    source=st.just("here"),
)
SLOW_DISK = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SLOW_DISK
@given(_session, st.sampled_from([3, 4]), st.booleans())
def test_round_trip(tmp_path: Path, session: Session, version: int, packed: bool) -> None:
    records = stores.events(session, version)
    paths = [
        write_jsonl(tmp_path / "a.jsonl", records),
        tmp_path / "b.jsonl.gz",
        tmp_path / "c.sqlite",
        write_jsonl(tmp_path / "d.jsonl", [stores.as_row(session)]),
    ]
    paths[1].write_bytes(gzip.compress(jsonl(records)))
    paths[2].unlink(missing_ok=True)
    write_store(paths[2], {session.id: records}, packed=packed)
    for path in paths:
        assert [replace(s, source="here") for s in load_sessions(path)] == [session], path.name
    spoken = [replace(m, timestamp=None, failed=None, usage=None, stop_reason=None) for m in session.messages]
    path = write_jsonl(tmp_path / "e.jsonl", [stores.as_openai(session)])
    assert [(s.id, list(s.messages)) for s in load_sessions(path)] == [(session.id, spoken)]


# --- damage -------------------------------------------------------------------------------------------------------

GOOD = chain("one", "two", "三")
DAMAGE: list[tuple[bytes, str]] = [
    (b"{oops", "not JSON .Expecting property name.* at character 1.: found {oops; expected one JSON object a line"),
    (b'"text"', 'not a JSON object: found "text"'),
    (b"[1, 2]", "not a JSON object"),
    (b"null", "not a JSON object"),
    (b"12", "not a JSON object"),
    (b'{"type": "message", "id": "\xff\xfe"}', "bytes that are not UTF-8 at byte 27"),
    (b'{"a": "\x00"}', "not JSON .Invalid control character"),
    (b"\x00" * 40, "not JSON .* found ····"),
    (b"\x1b[31mred", "not JSON .* found ·.31mred"),
    (b"x" * 10_000_000, "not JSON .* found x{59,60}…"),
    (b"[" * 100_000, "nested deeper than 100 levels"),
    (b'{"type": "custom", "a": ' + b"[" * 101 + b"]" * 101 + b"}", "nested deeper than 100 levels"),
    (b'{"type": ' + b"9" * 5000 + b"}", "not JSON .Exceeds the limit"),
    (b'{"id": "x"}', "type: found nothing; expected a record type"),
    (b'{"type": ["message"], "id": "x"}', "type: found a list"),
    (b'{"type": "message", "id": "x", "message": "hi"}', "message: found 'hi'; expected an object"),
    (b'{"type": "message", "id": "x", "message": {"role": "user", "content": 7}}', "message.content: found a number"),
    (b'{"type": "message", "id": "x", "message": {"role": 7}}', "message.role: found a number"),
]


@pytest.mark.parametrize(("bad", "why"), DAMAGE)
@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_damaged_line_costs_that_line(place: Callable[..., Path], bad: bytes, why: str, at: int) -> None:
    good = jsonl(GOOD).splitlines(keepends=True)
    path = place(b"".join([*good[:at], bad + b"\n", *good[at:]]))
    with pytest.warns(DataWarning, match=f"1 problem, the first: .*t.jsonl:{at + 1}: "):
        sessions = load_sessions(path)
    assert texts(sessions[0]) == ["one", "two", "三"]
    (problem,) = sessions.report.problems
    assert (problem.file, problem.line) == (str(path), at + 1)
    with pytest.raises(DataError, match=why):
        load_sessions(path, on_error="raise")
    assert len(str(problem)) < 400 + len(str(path))
    assert "\n" not in str(problem) + str(sessions.report)


@pytest.mark.parametrize("line", [0, 1, 2, 3])
def test_a_line_that_is_destroyed_costs_that_line(place: Callable[..., Path], line: int) -> None:
    kept = jsonl(GOOD).splitlines(keepends=True)
    kept[line] = kept[line][: len(kept[line]) // 2] + b"\n"
    sessions = quiet(place(b"".join(kept), "s-1.jsonl"))
    expected = ["one", "two", "三"]
    assert [(s.id, texts(s)) for s in sessions] == [("s-1", expected[: max(line - 1, 0)] + expected[line:])]
    assert len(sessions.report.problems) == (2 if line == 0 else 1)


def test_a_truncated_last_line_says_so(place: Callable[..., Path]) -> None:
    with pytest.warns(DataWarning, match="t.jsonl:4: truncated last line"):
        sessions = load_sessions(place(jsonl(GOOD)[:-20]))
    assert texts(sessions[0]) == ["one", "two"]


def test_a_last_line_without_a_line_break_counts(place: Callable[..., Path]) -> None:
    assert texts(load_sessions(place(jsonl(GOOD)[:-1]))[0]) == ["one", "two", "三"]


def test_what_is_tolerated(place: Callable[..., Path]) -> None:
    good = jsonl(GOOD).replace(b"\n", b"\r\n\n \t\r\n")
    odd = b'{"type": "custom", "cost": NaN, "x": -Infinity, "y": 1e999, "z": "\\ud800"}\n'
    path = place(b"\xef\xbb\xbf" + good + odd)
    assert texts(load_sessions(path, on_error="raise")[0]) == ["one", "two", "三"]


def test_what_is_read_can_be_written_again(place: Callable[..., Path]) -> None:
    content = r'"a \ud83d\ude00 b \udc00\ud83d c \\ud800"'
    call = r'{"name": "f\ud800", "arguments": "{\"\\ud800\": [NaN, 1e999, 1.5]}"}'
    path = place(f'{{"messages": [{{"role": "assistant", "content": {content}, "tool_calls": [{call}]}}]}}')
    (message,) = load_sessions(path)[0].messages
    assert message.content == "a 😀 b �� c \\ud800"
    assert message.tool_calls == (ToolCall(None, "f�", {"�": [None, None, 1.5]}),)
    json.dumps(message.tool_calls[0].arguments, allow_nan=False, ensure_ascii=False).encode()


def test_arguments_nested_too_deep_stay_text(place: Callable[..., Path]) -> None:
    deep = '{"a": ' + "[" * 5000 + "]" * 5000 + "}"
    row = {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": deep}}]}]}
    assert load_sessions(place([row]))[0].messages[0].tool_calls[0].arguments == deep


def test_a_line_longer_than_memory_allows(place: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 2**20)
    good = jsonl(GOOD).splitlines(keepends=True)
    sessions = quiet(place(b"".join([*good[:2], b"x" * 3 * 2**20 + b"\n", *good[2:]])))
    assert texts(sessions[0]) == ["one", "two", "三"]
    assert "a line of more than 1 MB" in sessions.report.problems[0].why


@pytest.mark.parametrize("cut", [30, 60, 90])
def test_a_truncated_gz_keeps_what_was_read(place: Callable[..., Path], cut: int) -> None:
    noise = random.Random(1)
    spoken = [bytes(noise.randrange(97, 123) for _ in range(500)).decode() for _ in range(200)]
    packed = gzip.compress(jsonl(chain(*spoken)))
    sessions = quiet(place(packed[: len(packed) * cut // 100], "t.jsonl.gz"))
    kept = texts(sessions[0])
    assert kept == spoken[: len(kept)]
    assert len(kept) >= 200 * cut // 100 - 30
    assert "ends early" in sessions.report.problems[-1].why


def test_a_damaged_gz_keeps_what_was_read(place: Callable[..., Path]) -> None:
    packed = bytearray(gzip.compress(jsonl(chain("one", "two"))))
    packed[-6] ^= 0xFF
    sessions = quiet(place(bytes(packed), "t.jsonl.gz"))
    assert texts(sessions[0]) == ["one", "two"]
    assert "damaged compressed data" in sessions.report.problems[0].why


def test_gz_is_told_by_content(place: Callable[..., Path]) -> None:
    assert len(load_sessions(place(jsonl(GOOD), "plain.jsonl.gz"))) == 1
    assert len(load_sessions(place(gzip.compress(jsonl(GOOD)), "packed.jsonl"))) == 1


def test_problems_are_kept_up_to_a_number(place: Callable[..., Path]) -> None:
    sessions = quiet(place(jsonl(GOOD) + b"x\n" * 3000))
    assert (len(sessions.report.problems), sessions.report.more_problems) == (1000, 2000)
    assert "3,000 problems" in str(sessions.report)


@settings(parent=SLOW_DISK, max_examples=300)
@given(st.data())
def test_any_mangling_costs_only_what_it_touches(tmp_path: Path, data: st.DataObject) -> None:
    spoken = ["first", "第二", 'third \\ " {', "第四", "fifth"]
    whole = jsonl(chain(*spoken))
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 400, len(whole))) | st.just(len(whole)))
    path = tmp_path / "s-1.jsonl"
    path.write_bytes(whole[:start] + data.draw(st.binary(max_size=60)) + whole[end:])
    before = whole[:start].count(b"\n")
    sessions = quiet_or_nothing(path)
    if not sessions:
        assert before == 0
        return
    assert texts(sessions[0])[: max(before - 1, 0)] == spoken[: max(before - 1, 0)]
    after = whole[end:].count(b"\n") - 1
    if after > 0:
        assert texts(sessions[-1])[-after:] == spoken[-after:]


@settings(parent=SLOW_DISK, max_examples=150)
@given(data=st.data())
@pytest.mark.parametrize("name", ["t.jsonl.gz", "t.sqlite"])
def test_any_mangling_of_a_packed_file_is_a_dataerror_at_most(tmp_path: Path, name: str, data: st.DataObject) -> None:
    whole = _packed(name, tmp_path)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 50, len(whole))) | st.just(len(whole)))
    path = tmp_path / name
    path.write_bytes(whole[:start] + data.draw(st.binary(max_size=60)) + whole[end:])
    quiet_or_nothing(path)


def _packed(name: str, folder: Path) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(jsonl(chain("one", "two", "三")))
    made = folder / "whole.sqlite"
    if not made.exists():
        write_store(made, {"s-1": stores.events(TALK), "s-2": GOOD}, packed=True)
    return made.read_bytes()


# --- files that are nothing of the kind ---------------------------------------------------------------------------

NOT_TRANSCRIPTS: list[tuple[str, bytes, str]] = [
    ("a.jsonl", b"", "found an empty file"),
    ("a.sqlite", b"", "found an empty file"),
    ("a.jsonl", b"\n \n", "no line that can be read"),
    ("a.jsonl.gz", gzip.compress(b""), "no line that can be read"),
    ("a.jsonl.gz", b"\x1f\x8bnonsense", "no line that can be read.*damaged compressed data"),
    ("a.jsonl", jsonl(GOOD).decode().encode("utf-16"), "found UTF-16 text.*save the file as UTF-8"),
    ("a.jsonl", jsonl(GOOD).decode().encode("utf-16-le"), "found UTF-16 text.*save the file as UTF-8"),
    ("a.jsonl", jsonl(GOOD).decode().encode("utf-16-be"), "found UTF-16 text.*save the file as UTF-8"),
    ("a.jsonl", jsonl(chain("你好，世界", "今天天气很好")).decode().encode("gbk"), "found text that reads as GBK"),
    ("a.jsonl", '{"messages": [{"role": "user", "content": "你好"}]}'.encode("gbk"), "GBK"),
    ("a.jsonl", b"\x89PNG\r\n\x1a\n\x00\x00", "no line that can be read"),
    (
        "a.jsonl",
        b'{\n  "messages": []\n}',
        "no line that can be read; expected.*the first problem: .*a.jsonl:1: not JSON",
    ),
    ("a.jsonl", b'{"level": "warn", "text": "x"}\n', "found records with level, text; expected OpenClaw JSONL"),
    ("a.jsonl", b'{"messages": [1]}\n', r"found no session; .* the first problem: .*a.jsonl:1: messages.0."),
    ("a.sqlite", b"\x13\x37" * 4096, "found no SQLite database.*encrypted or damaged"),
    ("a.sqlite", store.MAGIC + b"\x13\x37" * 4096, "intact SQLite store"),
]


@pytest.mark.parametrize(("name", "content", "why"), NOT_TRANSCRIPTS)
def test_not_a_transcript(place: Callable[..., Path], name: str, content: bytes, why: str) -> None:
    path = place(content, name)
    with pytest.raises(DataError, match=why) as error:
        quiet(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nowhere.jsonl", "existing file"),
        ("", "empty text"),
        ("a\0b", "null"),
        ("~no-such-user/x", "path"),
        ("/dev/null", "neither"),
    ],
)
def test_paths_that_name_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, why: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=why):
        load_sessions(path)


def test_on_error_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="on_error: found ignore; expected 'skip' or 'raise'"):
        load_sessions(tmp_path, on_error="ignore")  # type: ignore[arg-type]


def test_a_few_gbk_bytes_do_not_make_a_gbk_file(place: Callable[..., Path]) -> None:
    bad = '{"type": "custom", "x": "你好"}\n'.encode("gbk")
    sessions = quiet(place(jsonl(chain("one", "two", "three", "four", "five")) + bad))
    assert len(sessions[0].messages) == 5
    assert "the line reads as GBK" in sessions.report.problems[0].why


# --- folders ------------------------------------------------------------------------------------------------------


def test_a_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / ".openclaw"
    agent = home / "agents" / "main"
    longer = chain("one", "two", "three")
    write_store(agent / "agent" / "openclaw-agent.sqlite", {"s-1": GOOD[:3], "s-2": chain("only here")})
    write_jsonl(agent / "sessions" / "s-1.jsonl", longer)
    write_jsonl(agent / "sessions" / "s-2.jsonl", [header("s-2"), *chain("only here")[1:]])
    write_jsonl(agent / "sessions" / "s-3.jsonl", [header("s-3"), said("a", None, "third")])
    (agent / "sessions" / "sessions.json").write_text("{}")
    (agent / "sessions" / "s-1.jsonl.lock").write_text("pid")
    write_jsonl(home / "logs" / "audit.jsonl", [{"level": "info", "text": "started"}])
    (home / "logs" / "old.log.gz").write_bytes(gzip.compress(b"plain text\n"))
    sqlite3.connect(home / "memory.sqlite").executescript("CREATE TABLE chunks(x)").connection.close()
    (home / "openclaw.json").write_text("{gateway: {}}")
    (home / "dead.jsonl").symlink_to("nowhere")
    monkeypatch.setenv("HOME", str(tmp_path))

    sessions = load_sessions("~/.openclaw")

    assert {s.id: texts(s) for s in sessions} == {
        "s-1": ["one", "two", "three"],
        "s-2": ["only here"],
        "s-3": ["third"],
    }
    report = sessions.report
    assert (report.sessions, report.messages, len(report.files), report.other_files) == (3, 5, 4, 3)
    kept = {d.id: (Path(d.kept).name, Path(d.dropped).name) for d in report.duplicates}
    assert kept == {"s-1": ("s-1.jsonl", "openclaw-agent.sqlite"), "s-2": ("openclaw-agent.sqlite", "s-2.jsonl")}
    assert "2 duplicate sessions dropped" in str(report)
    assert load_sessions(home) == load_sessions(str(home)) == sessions


def test_rows_of_one_name_in_two_folders_are_not_copies(tmp_path: Path) -> None:
    for folder in "ab":
        write_jsonl(tmp_path / folder / "x.jsonl", [{"messages": []}])
        write_jsonl(tmp_path / folder / "chat.jsonl", [{"role": "user", "content": folder}])
    assert [s.id for s in load_sessions(tmp_path)] == ["a/chat", "a/x.jsonl:1", "b/chat", "b/x.jsonl:1"]


def test_rows_of_one_id_in_one_file_are_kept(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "x.jsonl", [{"id": "a", "messages": []}, {"id": "a", "messages": []}])
    assert len(load_sessions(tmp_path)) == 2


def test_a_bad_file_in_a_folder_is_one_problem(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", GOOD)
    (tmp_path / "b.jsonl").write_bytes(b"junk\n" * 50)
    (tmp_path / "c.jsonl").write_bytes(b"")
    (tmp_path / "d.sqlite").write_bytes(b"\x13\x37" * 999)
    (tmp_path / "e.jsonl").write_text("{}", "utf-16")
    with pytest.warns(DataWarning, match="4 problems, the first: .*b.jsonl: not read: found no line"):
        sessions = load_sessions(tmp_path)
    assert [s.id for s in sessions] == ["s-1"]
    assert [(Path(p.file).name, p.line) for p in sessions.report.problems] == [
        ("b.jsonl", None),
        ("c.jsonl", None),
        ("d.sqlite", None),
        ("e.jsonl", None),
    ]
    with pytest.raises(DataError, match=r"b.jsonl:1: not JSON"):
        load_sessions(tmp_path, on_error="raise")


def test_folders_without_a_session(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataError, match="a folder without transcripts"):
        load_sessions(tmp_path)
    write_jsonl(tmp_path / "log.jsonl", [{"a": 1}])
    with pytest.raises(DataError, match="a folder without transcripts"):
        load_sessions(tmp_path)
    (tmp_path / "bad.jsonl").write_bytes(b"junk\n")
    with pytest.raises(DataError, match=r"first problem: .*bad.jsonl: not read"):
        load_sessions(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", GOOD)
    path.chmod(0)
    with pytest.raises(DataError, match="Permission denied"):
        load_sessions(path)


# --- the SQLite store ---------------------------------------------------------------------------------------------


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of temporary files; empty at the end, or the test fails."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def fingerprints(path: Path) -> dict[str, str]:
    """What lies beside a store, byte for byte."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in path.parent.glob(path.name + "*")}


def test_store(tmp_path: Path, scratch: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    connection = stores.connect(path)
    for seq, event in reversed(list(enumerate(stores.events(TALK)))):
        stores.insert(connection, "s-1", seq, event, packed=seq % 2 == 1)
    stores.insert(connection, "会话", 0, said("a", None, "没有头"))
    connection.executemany("INSERT INTO session_transcript_archives VALUES (?, ?)", [("x", b""), ("y", b"")])
    connection.execute("INSERT INTO session_transcript_cold_archives VALUES ('z', NULL)")
    connection.close()
    before = fingerprints(path)
    sessions = load_sessions(path, on_error="raise")
    assert sessions[0] == replace(TALK, source=str(path))
    assert [(s.id, texts(s)) for s in sessions[1:]] == [("会话", ["没有头"])]
    assert sessions.report.archived == 3
    assert "3 archived rows not read" in str(sessions.report)
    assert sessions[0].fields["cwd"] == "/w"
    assert fingerprints(path) == before


BAD_ROWS_IN_STORE: list[tuple[tuple[Any, Any], str]] = [
    ((None, None), "session s-1: no event in the row"),
    ((b"{oops", None), "session s-1: not JSON"),
    ((b"\xff\xff{}", None), "session s-1: bytes that are not UTF-8"),
    ((None, b"not zstd"), "session s-1: event_zstd is damaged"),
    ((5, "text"), "session s-1: not JSON|session s-1: not a JSON object"),
    (('{"type": "message", "message": {"role": "user", "content": 5}}', None), "message.content: found a number"),
]


@pytest.mark.parametrize(("columns", "why"), BAD_ROWS_IN_STORE)
def test_a_damaged_row_costs_that_row(tmp_path: Path, scratch: Path, columns: tuple[Any, Any], why: str) -> None:
    path = write_store(tmp_path / "s.sqlite", {"s-1": GOOD, "s-2": chain("other")})
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE transcript_events SET seq = seq + 100 WHERE seq > 1")
        row = ("s-1", 50, columns[0], columns[1])
        connection.execute(
            "INSERT INTO transcript_events(session_id, seq, event_json, event_zstd) VALUES (?,?,?,?)", row
        )
    with pytest.warns(DataWarning, match=why):
        sessions = load_sessions(path)
    assert [texts(s) for s in sessions] == [["one", "two", "三"], ["other"]]
    assert [p.line for p in sessions.report.problems] == [50]
    with pytest.raises(DataError, match=why):
        load_sessions(path, on_error="raise")


def test_a_writers_open_store_is_read_and_left_alone(tmp_path: Path, scratch: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    writer = stores.connect(path)
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for seq, event in enumerate(GOOD[:3]):
        stores.insert(writer, "s-1", seq, event)
    assert path.with_name(path.name + "-wal").stat().st_size > 0
    writer.execute("BEGIN IMMEDIATE")
    stores.insert(writer, "s-1", 3, GOOD[3])
    before = fingerprints(path)

    assert texts(load_sessions(path)[0]) == ["one", "two"]

    assert fingerprints(path) == before
    writer.execute("COMMIT")
    assert texts(load_sessions(path)[0]) == ["one", "two", "三"]
    assert writer.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    writer.close()


WRITER = """
import sys, time, stores
from pathlib import Path
connection = stores.connect(Path(sys.argv[1]))
connection.execute("PRAGMA wal_autocheckpoint=100")
stores.insert(connection, "s", 0, stores.header("s"))
number, parent = 0, None
print("ready", flush=True)
while True:
    connection.execute("BEGIN")
    for _ in range(3):
        number += 1
        own = stores.key("s", number)
        stores.insert(connection, "s", number, stores.said(own, parent, str(number) * 50), packed=number % 2 == 0)
        parent = own
    connection.execute("COMMIT")
    time.sleep(0.002)
"""


def test_a_store_that_another_process_keeps_writing(tmp_path: Path, scratch: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    roots = [str(Path(stores.__file__).parent), str(Path(lab.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            found = [len(load_sessions(path, on_error="raise")[0].messages) for _ in range(10)]
            assert writer.poll() is None
        finally:
            writer.terminate()
    assert found == sorted(found)
    assert all(number % 3 == 0 for number in found)
    assert found[-1] > found[0]


def test_a_crashed_writer_without_wal_mode(tmp_path: Path, scratch: Path) -> None:
    """The rollback journal is copied too: half a transaction is undone in the copy, and stays in the original."""
    path = tmp_path / "live.sqlite"
    writer = stores.connect(path, wal=False)
    for seq, event in enumerate(GOOD):
        stores.insert(writer, "s-1", seq, event)
    writer.execute("PRAGMA cache_size = 2")
    writer.execute("PRAGMA cache_spill = 1")
    writer.execute("BEGIN")
    for seq in range(400):
        stores.insert(writer, "s-9", seq, said(str(seq), None, "x" * 500))
    assert path.with_name(path.name + "-journal").exists()
    assert [s.id for s in load_sessions(path)] == ["s-1"]
    writer.execute("ROLLBACK")
    writer.close()


def test_a_store_that_changes_during_the_copy_is_copied_again(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_store(tmp_path / "s.sqlite", {"s-1": GOOD})
    copies = 0
    changes = 2

    def copy(source: Path, target: Path) -> None:
        nonlocal copies
        target.write_bytes(source.read_bytes())
        copies += source == path
        if copies <= changes:
            os.utime(path, ns=(copies, copies))

    monkeypatch.setattr(shutil, "copyfile", copy)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    assert len(load_sessions(path)) == 1
    assert copies == 3
    copies, changes = 0, 99
    with pytest.raises(DataError, match="changed during every copy"):
        load_sessions(path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_copy_is_deleted_whatever_happens(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    path = write_store(tmp_path / "s.sqlite", {"s-1": GOOD})

    def stop(*_: object, **__: object) -> None:
        assert list(scratch.iterdir())
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(store, "parse", stop)
        for source in (path, tmp_path):
            with pytest.raises(error):
                load_sessions(source)
            assert list(scratch.iterdir()) == []
    monkeypatch.setattr("openclaw_lab.transcripts._Once.add", stop)
    with pytest.raises(error) as kept:
        load_sessions(tmp_path)
    assert list(scratch.iterdir()) == [], "while the traceback still lives"
    assert kept is not None


def test_the_copy_is_private(tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_store(tmp_path / "s.sqlite", {"s-1": GOOD})
    modes: list[int] = []
    original = lines.parse

    def look(event: bytes) -> dict[str, Any]:
        modes.extend(found.stat().st_mode & 0o77 for found in scratch.iterdir())
        return original(event)

    monkeypatch.setattr(store, "parse", look)
    load_sessions(path)
    assert modes == [0] * len(GOOD)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_truncated_store(tmp_path: Path, scratch: Path, share: float) -> None:
    path = write_store(tmp_path / "s.sqlite", {"s-1": chain(*("x" * 900 for _ in range(300)))})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(DataError, match=r"s.sqlite: found .*malformed; expected an intact SQLite store"):
        load_sessions(path)


def test_another_programs_database(tmp_path: Path, scratch: Path) -> None:
    path = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE chunks(x); CREATE TABLE files(y)")
    with pytest.raises(DataError, match="found tables chunks, files; expected an OpenClaw store"):
        load_sessions(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE transcript_events(a, b)")
    with pytest.raises(DataError, match="expected an OpenClaw store: a table transcript_events with session_id, seq"):
        load_sessions(path)


def test_a_store_of_an_earlier_shape_and_a_link_to_it(tmp_path: Path, scratch: Path) -> None:
    path = tmp_path / "real" / "s.db"
    path.parent.mkdir()
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("CREATE TABLE transcript_events(session_id, seq, event_json)")
    writer.execute("INSERT INTO transcript_events VALUES ('s', 0, ?)", (json.dumps(said("a", None, "hi")),))
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    assert texts(load_sessions(link)[0]) == ["hi"]
    writer.close()


# --- the list and its report --------------------------------------------------------------------------------------


def test_the_list_is_a_list_with_a_report(place: Callable[..., Path]) -> None:
    sessions = load_sessions(place(GOOD))
    assert isinstance(sessions, list)
    assert repr(sessions) == "SessionList(1 session)"
    assert str(sessions.report) == "1 session with 3 messages from 1 file."
    assert "<p>1 session" in sessions._repr_html_()
    again = pickle.loads(pickle.dumps(sessions))
    assert (again, again.report) == (sessions, sessions.report)


def test_a_report_is_safe_html(place: Callable[..., Path]) -> None:
    sessions = quiet(place(jsonl(GOOD) + b"<script>alert(1)</script>\n"))
    assert "<script>" not in sessions._repr_html_()
    assert "\n" not in str(sessions.report)


# --- public data, memory ------------------------------------------------------------------------------------------


@pytest.mark.skipif(not (DATA / "sessions").is_dir(), reason="the public sessions are not here: set OPENCLAW_LAB_DATA")
def test_public_sessions() -> None:
    sessions = load_sessions(DATA / "sessions", on_error="raise")
    report = sessions.report
    assert (len(sessions), report.messages, len(report.files), report.problems) == (903, 19336, 8, ())
    assert (report.duplicates, report.skipped, report.other_files) == ((), {}, 0)
    coding = max(sessions, key=lambda session: len(session.messages))
    assert (coding.id, len(coding.messages), sum(len(m.tool_calls) for m in coding.messages)) == (
        "large-session.jsonl",
        914,
        391,
    )
    assert sum(m.usage is not None and m.usage.cache_read > 0 for m in coding.messages) > 400
    assert all(message.timestamp for message in coding.messages)


@pytest.mark.slow
def test_the_text_is_held_once(tmp_path: Path) -> None:
    """20 MB, mostly text, mostly ASCII: the peak stays near the size of the file."""
    path = tmp_path / "big.jsonl"
    text = ["The quick brown fox. " * n for n in (20, 60, 150)]
    with path.open("wb") as file:
        file.write(jsonl([header("big")]))
        number, parent = 0, None
        while file.tell() < 20 * 2**20:
            own = stores.key("big", number)
            record = said(own, parent, f"{number} {text[number % 3]}", timestamp=stores.iso(stores.START + number))
            file.write(jsonl([record]))
            number, parent = number + 1, own
    tracemalloc.start()
    try:
        sessions = load_sessions(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(sessions[0].messages) == number
    assert peak < 1.5 * path.stat().st_size
