"""The detector `hf:<model>`: a text in, what a text-classification model of transformers makes of it out.

`<model>` is a name on the Hugging Face hub, whose files transformers fetches once, or a local folder. The text stays on
this machine, and no code of a model's repository is run. The score is the probability of the labels that mean attack,
by their names (`ATTACKS`). A text that the model cannot read at once is read in parts that overlap; the highest score
counts. `views` of the config plays no part. Needs the extra `hf`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from openclaw_lab.config import InjectionConfig
from openclaw_lab.errors import ConfigError, MissingExtra, TaskError, excerpt
from openclaw_lab.injection.verdict import Hit
from openclaw_lab.injection.windows import REASON, windows

PREFIX = "hf:"
# Names of labels that mean attack, in capitals, anything but letters and digits as a blank.
ATTACKS = frozenset(
    ("INJECTION", "PROMPT INJECTION", "INDIRECT INJECTION", "JAILBREAK", "MALICIOUS", "UNSAFE", "ATTACK", "ADVERSARIAL")
)
# These where a model has just two labels, and the other is `LABEL_0` or `0`.
_SECOND = {frozenset(("LABEL 0", "LABEL 1")): "LABEL 1", frozenset("01"): "1"}
# Characters and tokens of a part at most; characters that two parts share, and below which none is parted further.
_SEEN, _TOKENS, _SHARED, _SHORT = 2_000, 512, 100, 200


class HuggingFaceScorer:
    """Scores a text by the model of an InjectionConfig's `hf:<model>`; options are those of `transformers.pipeline`."""

    def __init__(self, config: InjectionConfig, **options: Any) -> None:
        self._name = config.detector
        self._classify = _pipeline(self._name, **options) if options else _loaded(self._name)
        self._attacks = attack_labels(self._name, self._classify.model.config.id2label.values())
        self._tokens = min(_TOKENS, self._classify.tokenizer.model_max_length)

    def __call__(self, text: str) -> tuple[float, tuple[Hit, ...]]:
        """The highest score of any part of the text, and that part, with its heaviest label."""
        if not text.strip():
            return 0.0, ()
        text = text.encode("utf-8", "replace").decode()
        try:
            places = [each for start, end in windows(len(text), _SEEN, _SHARED) for each in self._fit(text, start, end)]
            answers = self._classify([text[start:end] for start, end in places], top_k=None, truncation=True)
            scores = [_attack_scores(each, self._attacks) for each in answers]
        except Exception as error:
            raise TaskError(f"detector {self._name}", f"{type(error).__name__}: {error}") from None
        best = max(range(len(places)), key=lambda index: sum(scores[index].values()))
        score, (start, end) = min(1.0, sum(scores[best].values())), places[best]
        if score < REASON:
            return score, ()
        label = max(scores[best], key=scores[best].__getitem__)
        return score, (Hit(self._name, label, start, end, excerpt(text[start:end])),)

    def _fit(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The place itself where the model can read it at once, else its halves."""
        ids = self._classify.tokenizer(text[start:end], truncation=False)["input_ids"]
        if len(ids) <= self._tokens or end - start <= _SHORT:
            yield start, end
            return
        middle = (start + end) // 2
        yield from self._fit(text, start, middle + _SHARED // 2)
        yield from self._fit(text, middle - _SHARED // 2, end)


def attack_labels(name: str, labels: Iterable[str]) -> frozenset[str]:
    """Those of a model's labels that mean attack; a ConfigError that names them where none or all do."""
    plain = {label: " ".join(re.findall(r"[A-Z0-9]+", str(label).upper())) for label in labels}
    second = _SECOND.get(frozenset(plain.values()))
    found = frozenset(label for label, read in plain.items() if read in ATTACKS or read == second)
    if not found or len(found) == len(plain):
        todo = "give a scorer of your own: Detector(config, scorer=…)"
        raise ConfigError(f"detector {name}: labels", ", ".join(plain), "one that means attack, beside another", todo)
    return found


def _attack_scores(answer: Iterable[Mapping[str, Any]], attacks: frozenset[str]) -> dict[str, float]:
    scores = {each["label"]: float(each["score"]) for each in answer if each["label"] in attacks}
    if scores.keys() != attacks or not all(0 <= each <= 1 for each in scores.values()):
        raise ValueError("an answer without a probability of each label")
    return scores


@functools.lru_cache(maxsize=2)
def _loaded(name: str) -> Any:
    """A model without options, loaded once a process."""
    return _pipeline(name)


def _pipeline(name: str, **options: Any) -> Any:
    model = name.removeprefix(PREFIX)
    if not model or model != model.strip():
        raise ConfigError("injection.detector", name, "hf: and a name on the hub or a folder")
    try:
        from transformers import pipeline
    except ImportError:
        raise MissingExtra(f"detector {name}", "transformers", "hf") from None
    where = str(Path(model).expanduser()) if model.startswith("~") else model
    try:
        return pipeline("text-classification", model=where, **options)
    except ImportError:
        raise MissingExtra(f"detector {name}", "torch", "hf") from None
    except Exception as error:
        said = str(error)
        for value in options.values():
            said = said.replace(value, "[SECRET]") if isinstance(value, str) and value else said
        found = f"{type(error).__name__}: {said}"
        todo = "check the name, or name a local folder"
        raise ConfigError(f"detector {name}", found, "a model for text classification", todo) from None
