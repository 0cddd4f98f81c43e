"""A story of several sessions with one user in; which questions are answered with a memory, and without it, out.

The model is a reader: it repeats its instructions, and a question counts as answered when the word that an answer takes
stands in them. So the memory is measured, and no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from openclaw_lab.agent.agent import Agent
from openclaw_lab.agent.reply import Reply, Request
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.table import Table

if TYPE_CHECKING:
    from openclaw_lab.growth.memory import GrowthMemory

# A message, or a question with the word that an answer takes; in a session, in a story.
Said = str | Sequence[str]
Story = Sequence[Sequence[Said]]


def reader(request: Request) -> Reply:
    """A model that knows only what stands in its prompt, and says it."""
    return Reply(request.system)


def tell(story: Story, memory: GrowthMemory | None, config: LabConfig | None = None) -> Table:
    """Live through a story, a session at a time: a row a question, with its session and whether it was answered."""
    settings, rows = config or LabConfig(), []
    for number, session in enumerate(story, start=1):
        with Agent(reader, memory=memory, config=settings, id=f"session-{number:02}") as agent:
            for each in session:
                text, word = _parts(each)
                said = agent.run(text).text
                if word:
                    rows.append([number, text, word, word in said])
    name = "without a memory" if memory is None or not settings.growth.enabled else "with a memory"
    return Table.of_rows(rows, ["session", "question", "word", "answered"], f"The questions of the story, {name}")


def ask(
    story: Story, memory: GrowthMemory, settings: Iterable[Mapping[str, Any]], small_talk: Sequence[str] = ()
) -> Table:
    """The last answer to each word of a story, asked of a finished memory under other settings.

    `settings` change `growth.*`. Columns: what was set, answered, questions, tokens (a question), and the tokens that
    `small_talk`, which needs no memory, costs a message.
    """
    asked = {word: text for session in story for text, word in map(_parts, session) if word}
    rows = []
    for changes in settings:
        view = memory.under(memory.config.with_(changes))
        blocks = {word: view.inject(text) for word, text in asked.items()}
        idle = [view.inject(text).tokens for text in small_talk]
        kept = sum(word in block.text for word, block in blocks.items())
        spent = sum(block.tokens for block in blocks.values()) / max(1, len(blocks))
        rows.append([*changes.values(), kept, len(blocks), spent, sum(idle) / max(1, len(idle))])
        names = list(changes)
    if not rows:
        raise TaskError("ask", "no settings", "at least one, {'growth.max_tokens': 200}")
    columns = [*names, "answered", "questions", "tokens", "idle_tokens"]
    return Table.of_rows(rows, columns, "What a finished memory answers under other settings")


def _parts(each: Said) -> tuple[str, str]:
    """A message and the word that an answer takes; no word where it is no question."""
    if isinstance(each, str):
        return each, ""
    if len(each) != 2 or not all(isinstance(part, str) and part for part in each):
        raise TaskError("story", each, "a message, or a question and the word that an answer takes")
    return each[0], each[1]
