"""A handful of skills in, the same among others out: of two skills one is always the nearest, whatever is said.

The hybrid matcher weighs how far a skill is from the best one. That says something only where several compete, so a
small catalogue is filled up with what people say besides, for which nobody writes a skill; it competes and is never
picked.
"""

from __future__ import annotations

from openclaw_lab.skills.catalogue import Catalogue

# As many skills stand by themselves.
ENOUGH = 8
OTHERS: tuple[tuple[str, str], ...] = (
    ("knowledge", "Answer questions about history, science, people and places, and explain what a word means."),
    ("常识", "回答历史、科学、人物、地理等常识问题，解释概念和词语。"),
    ("thanks", "Thanks. 谢谢。"),
)


def among(catalogue: Catalogue) -> Catalogue:
    """The catalogue itself where it is large enough; else with others behind its own."""
    if not 0 < len(catalogue) < ENOUGH:
        return catalogue
    names, texts = zip(*OTHERS, strict=True)
    return Catalogue((*catalogue.names, *names), (*catalogue.descriptions, *texts))
