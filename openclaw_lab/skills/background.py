"""How common words are in descriptions and messages at large, because a handful of skills cannot tell."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path

from openclaw_lab.files import read_text

FILE = Path(__file__).parent / "background.json"


@functools.cache
def background() -> Mapping[str, float]:
    """The share of texts that have a word; words that are not in it are rare."""
    shares: dict[str, float] = json.loads(read_text(FILE))["share"]
    return shares
