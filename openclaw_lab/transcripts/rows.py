"""One conversation a line, ours or OpenAI's, or one message a line in; Sessions out.

Both kinds of row differ only in how a tool call is wrapped, so one reader serves both. A row is taken whole or not at
all: labels point at message indexes, and a message left out would move them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.messages import OPPORTUNITY_KINDS, Message, Opportunity, OpportunityKind, Session
from openclaw_lab.transcripts.fields import identifier, kind_of, message_from
from openclaw_lab.transcripts.lines import Record, parse
from openclaw_lab.transcripts.report import Sessions, Tally, located

_OWN_KEYS = frozenset({"id", "messages", "source", "opportunities"})


def is_session_row(record: Record) -> bool:
    """Whether a record holds a whole conversation."""
    return isinstance(record.get("messages"), list)


def is_message_row(record: Record) -> bool:
    """Whether a record is one bare message."""
    return isinstance(record.get("role"), str) and ("content" in record or "tool_calls" in record)


def read_session_rows(lines: Iterable[str | bytes], source: str) -> Iterator[Session]:
    """Sessions from the lines of a file in the row format; blank lines are passed over.

    Raises DataError with `source` and the line at the first row that is not one.
    """
    for number, line in enumerate(lines, 1):
        data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        if data.strip():
            try:
                yield session_from_row(parse(data), f"{source}:{number}", source)
            except DataError as error:
                raise located(error, source, number) from None


def session_from_row(row: Mapping[str, Any], default_id: str, default_source: str = "") -> Session:
    """One row as a Session; what is neither id, messages, source nor opportunities goes to its `fields`.

    Raises DataError whose `where` is the field.
    """
    listed = row.get("messages")
    if not isinstance(listed, list):
        raise DataError("messages", kind_of(listed), "a list of messages")
    source = row.get("source")
    return Session(
        id=identifier(row.get("id")) or identifier(row.get("conversation_id")) or default_id,
        messages=tuple(message_from(item, f"messages[{index}]") for index, item in enumerate(listed)),
        source=source if isinstance(source, str) else default_source,
        opportunities=_opportunities(row.get("opportunities"), len(listed)),
        fields={key: value for key, value in row.items() if key not in _OWN_KEYS},
    )


def read_rows(records: Iterable[tuple[int, Record]], file: str, label: str, tally: Tally) -> Sessions:
    """The sessions of a file with one conversation a line; a row without an id is called `label:line`."""
    for number, record in records:
        try:
            yield session_from_row(record, f"{label}:{number}", file)
        except DataError as error:
            tally.lost(file, number, error)


def read_messages(records: Iterable[tuple[int, Record]], file: str, stem: str, tally: Tally) -> Sessions:
    """The one session of a file with one message a line."""
    messages: list[Message] = []
    for number, record in records:
        try:
            messages.append(message_from(record, "message"))
        except DataError as error:
            tally.lost(file, number, error)
    yield Session(stem, tuple(messages), file)


def _opportunities(value: object, messages: int) -> tuple[Opportunity, ...] | None:
    """A person's labels; None when the row has none, which is not the same as an empty list."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise DataError("opportunities", kind_of(value), "a list of {index, kind, note}")
    return tuple(_opportunity(item, f"opportunities[{index}]", messages) for index, item in enumerate(value))


def _opportunity(item: object, where: str, messages: int) -> Opportunity:
    if not isinstance(item, Mapping):
        raise DataError(where, kind_of(item), "an object {index, kind, note}")
    index = item.get("index")
    if type(index) is not int or not 0 <= index < messages:
        found = index if type(index) is int else kind_of(index)
        raise DataError(f"{where}.index", found, f"a message index, 0 to {messages - 1}")
    note = item.get("note")
    return Opportunity(index, _kind(item.get("kind"), where), note if isinstance(note, str) else "")


def _kind(value: object, where: str) -> OpportunityKind:
    for kind in OPPORTUNITY_KINDS:
        if value == kind:
            return kind
    raise DataError(f"{where}.kind", kind_of(value), ", ".join(OPPORTUNITY_KINDS))
