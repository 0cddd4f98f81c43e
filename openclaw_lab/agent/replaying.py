"""A session's log in, the same session done again out: the same messages, answers from a cassette, byte for byte.

It repeats what the user did: messages, rollbacks, compactions. Two kinds of sessions cannot be repeated, and end in an
error that says what is missing: one in whose log something was redacted, since it does not hold what was said, and one
with a turn that failed, since no answer was recorded for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from openclaw_lab.agent.agent import Agent
from openclaw_lab.agent.models import model_of
from openclaw_lab.errors import DataError
from openclaw_lab.transcripts.lines import read_records
from openclaw_lab.transcripts.report import Tally


def replay_log(
    log: str | Path, to: str | Path, *, cassette: str | Path, model: object = "echo", **options: Any
) -> Agent:
    """Do a logged session again, into the new log `to`; the agent as it then is.

    `options` are those of the Agent that was logged: the same tools, plugins, host and settings give the same log.
    `model` only names what was recorded: it is never asked.
    """
    records = [record for _, record in read_records(Path(log), Tally("skip"))]
    if not records or records[0].get("type") != "session":
        raise DataError(str(log), "no session header", "the log of an agent")
    if Path(to).exists():
        raise DataError(str(to), "a file that is there", "a new one", "name another")
    model_of(model, cassette=cassette, cassette_only=True)  # a wrong name is told before anything is written
    times = _times(records)
    agent = Agent(
        model,
        session=to,
        id=str(records[0]["id"]),
        cassette=cassette,
        cassette_only=True,
        clock=lambda: next(times),
        **options,
    )
    for at, record in enumerate(records):
        _again(agent, records, at, record)
    agent.close()
    return agent


def _times(records: list[dict[str, Any]]) -> Iterator[float]:
    """The moments of the records, one for each that is written; the last one again when more are."""
    last = 0.0
    for record in records:
        last = datetime.fromisoformat(str(record["timestamp"])).timestamp()
        yield last
    while True:
        yield last


def _again(agent: Agent, records: list[dict[str, Any]], at: int, record: dict[str, Any]) -> None:
    kind = record.get("type")
    message = record.get("message") or {}
    if kind == "message" and message.get("role") == "user":
        agent.run(str(message["content"]))
    elif kind == "leaf":
        agent.rollback(_turns_after(records[:at], record.get("targetId")))
    elif kind == "compaction" and not any(each.start >= record["start"] for each in agent.compactions):
        agent.compact(agent.turns_from(int(record["start"])))


def _turns_after(records: list[dict[str, Any]], target: object) -> int:
    """How many user turns hang on a record."""
    children = {record.get("id"): record for record in records}
    head, turns = _head(records), 0
    while head is not None and head != target:
        record = children[head]
        turns += (record.get("message") or {}).get("role") == "user"
        head = record.get("parentId")
    return turns


def _head(records: list[dict[str, Any]]) -> Any:
    last = records[-1]
    return last.get("targetId") if last.get("type") == "leaf" else last.get("id")
