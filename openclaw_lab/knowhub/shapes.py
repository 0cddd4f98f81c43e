"""What the HTTP API takes and gives, checked: pydantic models whose limits also stand in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from openclaw_lab.knowhub.entry import DEFAULT_SCOPES, MAX_CONTENT, MAX_TASK

_NAME = r"^[^\s,](?:[^,]*[^\s,])?$"  # no comma: lists of names are separated by it in an address


def _encodable(value: Any) -> Any:
    """Half a surrogate pair is no text: no file and no answer could hold it."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("text with half a surrogate pair") from None
    for each in value if isinstance(value, list) else value.items() if isinstance(value, dict) else ():
        _encodable(list(each) if isinstance(each, tuple) else each)
    return value


Name = Annotated[str, Field(min_length=1, max_length=200, pattern=_NAME)]
Names = Annotated[list[Name], Field(min_length=1, max_length=50)]
Short = Annotated[str, Field(max_length=2_000)]


class Strict(BaseModel):
    """Unknown fields are refused: a misspelt one would be lost in silence."""

    model_config = ConfigDict(extra="forbid")


class SourceIn(Strict):
    """Where a piece of knowledge comes from."""

    name: Short = ""
    category: Short = "exp"
    urls: Annotated[list[Short], Field(max_length=100)] = []
    agent_id: Short = ""
    submitted_by: Short = ""
    message_id: Short = ""
    timestamp: Short = ""


class KnowledgeIn(Strict):
    """A piece of knowledge to save. A scope `agent:<id>` keeps it for that agent."""

    task: Annotated[str, Field(min_length=1, max_length=MAX_TASK, pattern=r"\S")]
    content: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT, pattern=r"\S")]
    types: Names
    score: Annotated[int, Field(strict=True, ge=1, le=5)] = 3
    scopes: Names = list(DEFAULT_SCOPES)
    owner: Short = ""
    source: SourceIn = SourceIn()


class CaseIn(Strict):
    """One report of a use."""

    task: Annotated[str, Field(min_length=1, max_length=MAX_TASK)]
    outcome: Short = ""
    reason: Short = ""
    timestamp: Short = ""


class HelpfulIn(Strict):
    """It helped."""

    add_helpful_case: CaseIn


class HarmfulIn(Strict):
    """It did not help."""

    add_harmful_case: CaseIn


class ExtractIn(Strict):
    """A conversation to learn from. Messages have a role and content (text or blocks), and whatever else."""

    messages: Annotated[list[Annotated[dict[str, Any], AfterValidator(_encodable)]], Field(max_length=10_000)]
    agent_id: Short = ""
    submitted_by: Short = ""
    session_key: Short = ""


class SavedOut(BaseModel):
    """What a save did: `id` now holds the text; `other_id` is what it was compared with."""

    id: str
    action: Literal["created", "duplicate", "superseded", "conflict"]
    other_id: str
    similarity: float
    threshold: float
    reason: str
    characters_left_out: int


class ExtractOut(BaseModel):
    """How many entries are new, and what happened to each that was found."""

    extracted_count: int
    results: list[SavedOut]


class EvalOut(BaseModel):
    """The score it was saved with, and how many reports of use there are."""

    score: int
    helpful: int
    harmful: int


class CaseOut(BaseModel):
    """One report of a use."""

    task: str
    outcome: str
    reason: str
    timestamp: str


class SourceOut(BaseModel):
    """Where a piece of knowledge comes from."""

    name: str
    category: str
    urls: list[str]
    agent_id: str
    submitted_by: str
    message_id: str
    timestamp: str


class EntryOut(BaseModel):
    """One piece of knowledge. `flagged`: it looks like a prompt injection; never put it into a prompt."""

    id: str
    task: str
    content: str
    types: list[str]
    eval: EvalOut
    quality_score: float
    source: SourceOut
    scopes: list[str]
    owner: str
    version: int
    status: Literal["live", "superseded", "retired"]
    flagged: bool
    created_at: str
    updated_at: str
    supersedes: list[str]
    superseded_by: str
    conflicts_with: list[str]
    helpful_cases: list[CaseOut]
    harmful_cases: list[CaseOut]


class HitOut(EntryOut):
    """One search result: the cosine to the query, what it was ranked by, and why."""

    similarity: float
    rank_score: float
    why: str


class SearchOut(BaseModel):
    """Search results, best first."""

    count: int
    results: list[HitOut]


class ListOut(BaseModel):
    """One page of all entries, oldest first; `total` counts what the asker may see."""

    count: int
    total: int
    offset: int
    results: list[EntryOut]


class HealthOut(BaseModel):
    """The server answers."""

    status: Literal["ok"]
    version: str


class Problem(BaseModel):
    """Why a request was refused, in one line."""

    error: str
