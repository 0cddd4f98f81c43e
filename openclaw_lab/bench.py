"""What the costly parts cost on this machine: CPU seconds, and ratios within one run, which a noisy machine spares."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from openclaw_lab.agent.replay import replay
from openclaw_lab.config import LabConfig, RedactionConfig
from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.dataset import load_dataset
from openclaw_lab.experiments.evaluate import evaluate
from openclaw_lab.experiments.sweep import sweep
from openclaw_lab.files import bundled, read_text
from openclaw_lab.injection.speed import injection_costs
from openclaw_lab.knobs import nearest
from openclaw_lab.messages import Session
from openclaw_lab.redaction.corpus import corpus
from openclaw_lab.redaction.redactor import Redactor, preset_rules
from openclaw_lab.redaction.speed import redaction_costs

_SETTINGS = 200


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of one thing, and how that compares with another measured in the same run."""

    what: str
    seconds: float
    ratio: float | None = None
    against: str = ""

    def __str__(self) -> str:
        compared = f"   {self.ratio:.2f} × {self.against}" if self.ratio is not None else ""
        small = self.seconds < 0.001
        taken = f"{self.seconds * 1e6:8.1f} µs" if small else f"{self.seconds:9.4f} s "
        return f"{taken} {self.what}{compared}"


def bench(names: Sequence[str] = (), data: str = "") -> list[Cost]:
    """Measure `import`, `reminders`, `injection`, `redaction`, `knowhub`, `growth`, `skills`, `agent`, or all of them.

    `data` replaces the sessions.
    """
    parts: dict[str, Callable[[str], list[Cost]]] = {
        "import": _import,
        "reminders": _reminders,
        "injection": _injection,
        "redaction": _redaction,
        "knowhub": _knowhub,
        "growth": _growth,
        "skills": _skills,
        "agent": _agent,
    }
    for name in names:
        if name not in parts:
            raise TaskError(f"bench {name}", expected="a known part", todo=nearest(name, parts))
    return [cost for name in names or parts for cost in parts[name](data)]


def _import(_: str) -> list[Cost]:
    """The package in a new process, against an interpreter that imports nothing of it."""
    own = "import time; a = time.process_time(); import openclaw_lab; print(time.process_time() - a)"
    seconds = min(_child(own) for _ in range(3))
    start = min(_child("import time; print(time.process_time())") for _ in range(3))
    return [Cost("import openclaw_lab", seconds, seconds / start, "starting Python")]


def _child(code: str) -> float:
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _reminders(data: str) -> list[Cost]:
    """One policy over one long session; one setting over all sessions; 200 settings over all sessions."""
    sessions = load_dataset(data or "sessions/mini", on_error="skip")
    config = LabConfig()
    joined = Session("joined", tuple(message for sample in sessions for message in sample.input.messages))
    longest = joined if data == "" else max((each.input for each in sessions), key=lambda each: len(each.messages))
    evaluate("reminders", sessions, config)  # fills caches, so that all three below start alike
    single = _cpu(lambda: replay(longest, config))
    one = _cpu(lambda: evaluate("reminders", sessions, config).metrics)
    space = {"reminders.interval": range(1, _SETTINGS // 4 + 1), "reminders.unit": ["llm_call", "user_turn"]}
    wide = {**space, "reminders.scope": ["run", "session"], "reminders.policy": ["interval"]}
    many = _cpu(lambda: sweep("reminders", sessions, config, wide))
    return [
        Cost(f"replay one session of {len(longest.messages):,} messages", single),
        Cost(f"one setting on {len(sessions)} sessions", one),
        Cost(f"{_SETTINGS} settings on {len(sessions)} sessions", many, many / one, "one setting"),
    ]


def _injection(_: str) -> list[Cost]:
    """The detectors with their reasons on 5 MB of messages, against the seed's bare patterns."""
    return [Cost(what, spent, spent / plain, "the six patterns") for what, spent, plain in injection_costs(corpus())]


def _redaction(_: str) -> list[Cost]:
    """Both presets with their spans, against the seed document's nine replacements one after the other."""
    texts = [sample.input for sample in load_dataset("redaction/mini")]
    bare = [(rule.compiled, rule.replacement) for rule in preset_rules("seed")]
    plain = _cpu(lambda: [_replaced(text, bare) for text in texts])
    costs = []
    for preset in ("seed", "strict"):
        redactor = Redactor(RedactionConfig(preset=preset))
        spent = _cpu(functools.partial(redactor.redact_many, texts))
        costs.append(Cost(f"redact {len(texts):,} texts, {preset}", spent, spent / plain, "the bare replacements"))
    seed, *ours = redaction_costs(corpus())
    return [*costs, *(Cost(f"redact 5 MB, {what}", spent, spent / seed[1], seed[0]) for what, spent in ours)]


def _replaced(text: str, rules: Sequence[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(lambda _, written=replacement: written, text)  # type: ignore[misc]
    return text


def _skills(data: str) -> list[Cost]:
    """A message's matches; one threshold over a set, scored anew, and a thousand thresholds, scored anew."""
    from openclaw_lab.skills.registry import EXAMPLES, SkillRegistry
    from openclaw_lab.skills.vectors import memory

    messages, config = load_dataset(data or "skills/mini"), LabConfig()
    registry = SkillRegistry.load(EXAMPLES)
    registry.match("is the disk full?", config.skills)
    one_match = _cpu(lambda: registry.match("is the disk full?", config.skills))

    def swept(count: int) -> None:
        memory.cache_clear()
        sweep("skills", messages, config, {"skills.threshold": [each / count for each in range(count)]})

    one, many = _cpu(lambda: swept(1), 1), _cpu(lambda: swept(1000), 1)
    return [
        Cost("match one message, again", one_match),
        Cost(f"one threshold on {len(messages):,} messages, with scoring", one),
        Cost(f"1,000 thresholds on {len(messages):,} messages, with scoring", many, many / one, "one threshold"),
    ]


# The words of the knowledge base's own texts: common ones are as common as they are.
_ENTRIES, _SAVES, _BATCH, _MEMORIES = 100_000, 1_000, 10_000, 50_000


def _knowhub(_: str) -> list[Cost]:
    """Search, durable save and batch insert, each against the bare part below it, in the same run."""
    from openclaw_lab.knowhub.speed import batch_cost, save_cost, search_cost

    words = _words()
    search, bare = search_cost(words, _ENTRIES)
    save, insert = save_cost(words, _SAVES)
    unseen, insert_again = save_cost(words, _SAVES, detecting=False)
    batch, embedding = batch_cost(words, _BATCH)
    return [
        Cost(f"search {_ENTRIES:,} entries", search, search / bare, "bare faiss IndexFlatIP"),
        Cost("one durable save without embedding (wall)", save, save / insert, "a bare durable SQLite insert"),
        Cost("the same, not looked at for injections", unseen, unseen / insert_again, "a bare durable SQLite insert"),
        Cost(f"save_many of {_BATCH:,} entries", batch, batch / embedding, "the embedder's own time"),
    ]


def _words() -> list[str]:
    """The words of the bundled knowledge, as often as they stand there."""
    text = read_text(bundled("datasets") / "knowledge" / "mini.jsonl")
    return [word for line in text.splitlines() for word in json.loads(line)["content"].split()]


def _growth(_: str) -> list[Cost]:
    """A look into a large memory."""
    from openclaw_lab.growth.speed import retrieval_cost

    ours, bare = retrieval_cost(_words(), _MEMORIES)
    what = "embedding and bare faiss IndexFlatIP"
    return [Cost(f"retrieve from {_MEMORIES:,} memories", ours, ours / bare, what)]


def _agent(_: str) -> list[Cost]:
    """What a turn of the agent costs beside the model."""
    from openclaw_lab.agent.speed import turn_costs

    (what, bare), *others = turn_costs()
    return [Cost(what, bare), *(Cost(name, spent, spent / bare, "the first") for name, spent in others)]


def _cpu(work: Callable[[], object], runs: int = 3) -> float:
    """The least CPU time of a few runs."""
    taken = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        taken.append(time.process_time() - begin)
    return min(taken)
