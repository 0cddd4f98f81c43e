"""A query file in, the corpus beside it out: `X_queries.jsonl` is asked of `X_corpus.jsonl`, gzipped or not.

A corpus row is `{"id", "text", "type"?}`, or an entry of knowledge `{"id", "task", "content", "score"?}`. Messages
`queries_X.jsonl` are matched to the skills `catalogue_X.jsonl` with the rows `{"name", "description"}`. Queries are not
read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.experiments.reading import Rows, read_rows
from openclaw_lab.growth.entry import MemoryType
from openclaw_lab.growth.retrieve import RETRIEVED

_QUERIES, _CORPUS = "_queries", "_corpus"
_MESSAGES, _CATALOGUE = "queries_", "catalogue_"
_SUFFIXES = (".jsonl", ".jsonl.gz")


@dataclass(frozen=True, slots=True)
class Document:
    """One text that can be found. `title` is a part of the text too; `score` is a person's mark, from 1 to 5.

    `type` is that of a memory, for budgets by type; a row's own `type` of another kind is not one.
    """

    id: str
    text: str
    title: str = ""
    score: int = 3
    type: MemoryType = "knowledge"


@dataclass(frozen=True, slots=True)
class Corpus:
    """The documents of one file, with the row number of each id."""

    documents: tuple[Document, ...]
    row_of: Mapping[str, int]


def corpus_beside(queries: Path) -> Corpus:
    """The corpus of a query file: beside it, or of the same name in the folder `knowledge` next to its folder."""
    stem = _stem(queries).removesuffix(_QUERIES)
    tried = [queries.with_name(f"{stem}{_CORPUS}{suffix}") for suffix in _SUFFIXES]
    tried += [queries.parent.parent / "knowledge" / f"{stem}{suffix}" for suffix in _SUFFIXES]
    path = next((each for each in tried if each.is_file()), None)
    if path is None:
        raise DataError(str(queries), "queries without a corpus", f"a file {tried[0].name} beside it")
    return read_corpus(path)


def catalogue_beside(messages: Path) -> Corpus:
    """The skills that messages are matched to: a document is a skill, its id the name, its text the description."""
    name = _stem(messages).removeprefix(_MESSAGES)
    tried = [messages.with_name(f"{_CATALOGUE}{name}{suffix}") for suffix in _SUFFIXES]
    path = next((each for each in tried if each.is_file()), None)
    if path is None:
        raise DataError(str(messages), "messages without skills", f"a file {tried[0].name} beside it")
    return read_corpus(path)


def read_corpus(path: Path) -> Corpus:
    """All documents of a file; the first bad row is an error, since a text that is not there cannot be found."""
    problems: list[DataError] = []
    return corpus_of(read_rows(path, problems), problems, str(path))


def corpus_of(rows: Rows, problems: list[DataError], name: str) -> Corpus:
    """All documents of rows; the first bad one, or what their reading put into `problems`, is an error."""
    documents: list[Document] = []
    row_of: dict[str, int] = {}
    for where, row in rows:
        document = _document(where, row)
        if document.id in row_of:
            raise DataError(where, f"the id {document.id!r} again", "one id a row")
        row_of[document.id] = len(documents)
        documents.append(document)
    if problems:
        raise problems[0]
    if not documents:
        raise DataError(name, "an empty file", "one document a line")
    return Corpus(tuple(documents), row_of)


def without_corpora(files: Iterable[Path]) -> list[Path]:
    """Files of a folder without those that are the corpus of another one."""
    found = list(files)
    asked = {_stem(path).removesuffix(_QUERIES) for path in found if _stem(path).endswith(_QUERIES)}
    asked |= {_stem(path).removeprefix(_MESSAGES) for path in found if _stem(path).startswith(_MESSAGES)}
    return [path for path in found if not _is_corpus(path) or _named(path) not in asked]


def _is_corpus(path: Path) -> bool:
    return _stem(path).endswith(_CORPUS) or is_catalogue(path)


def is_catalogue(path: Path) -> bool:
    """Whether a file holds the skills that messages beside it are matched to."""
    return _stem(path).startswith(_CATALOGUE)


def _named(path: Path) -> str:
    return _stem(path).removesuffix(_CORPUS).removeprefix(_CATALOGUE)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0]


def _document(where: str, row: Mapping[str, Any]) -> Document:
    if "description" in row:
        row = {"id": row.get("name"), "text": row["description"]}
    title, text = row.get("task", ""), row.get("text", row.get("content"))
    for name, value in (("id", row.get("id")), ("text", text), ("task", title)):
        if not isinstance(value, str):
            found = "no value" if value is None else value
            raise DataError(f"{where} {name}", found, "a string (fields: id and text, or id, task and content)")
    score = row.get("score", 3) if title else 3
    if type(score) is not int or not 1 <= score <= 5:
        raise DataError(f"{where} score", score, "a whole number from 1 to 5")
    kind: MemoryType = next((each for each in RETRIEVED if each == row.get("type")), "knowledge")
    return Document(row["id"], f"{title}\n{text}" if title else str(text), title, score, kind)
