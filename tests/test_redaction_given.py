"""What is given in the wrong way is one error of the project, which says where, what, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import openclaw_lab as lab
from openclaw_lab.config import LabConfig, RedactionConfig
from openclaw_lab.errors import ConfigError, DataError, LabError, RuleError
from openclaw_lab.redaction.redactor import Redactor

STRICT = Redactor()


def closed_feed() -> str:
    stream = STRICT.stream()
    stream.feed("ada@x.org")
    stream.close()
    return stream.feed("more")


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: STRICT.redact(None), DataError, "redact: found None; expected a text (str); give"),
        (lambda: STRICT.redact(b"x"), DataError, 'redact: found a bytes; expected a text (str); decode it'),
        (lambda: STRICT.redact(["x"]), DataError, "redact: found a list; expected a text (str); use redact_value"),
        (lambda: STRICT.redact(5), DataError, "redact: found a int"),
        (lambda: STRICT.conversation().redact(None), DataError, "redact: found None"),
        (lambda: STRICT.redact_many("x"), DataError, "redact_many: found a str; expected a list of texts; write [t"),
        (lambda: STRICT.redact_many(None), DataError, "redact_many: found None"),
        (lambda: STRICT.redact_many(b"x"), DataError, "redact_many: found a bytes"),
        (lambda: STRICT.redact_many(["a", None]), DataError, "redact_many: text 1: found None; expected a text (str)"),
        (lambda: STRICT.conversation().redact_many([b"a"]), DataError, "redact_many: text 0: found a bytes"),
        (lambda: STRICT.stream().feed(None), DataError, "stream.feed: found None; expected a text (str)"),
        (lambda: STRICT.stream().feed(b"x"), DataError, "stream.feed: found a bytes"),
        (closed_feed, DataError, "stream.feed: found a piece after close; expected no more pieces; begin another"),
        (lambda: lab.Redactor("strict"), ConfigError, "expected a RedactionConfig; write Redactor(RedactionConfig("),
        (lambda: lab.Redactor(LabConfig()), ConfigError, "found a LabConfig; expected a RedactionConfig; write"),
        (lambda: lab.Redactor({"preset": "seed"}), ConfigError, "found a dict"),
        (lambda: lab.Redactor(False), ConfigError, "found a bool"),
        (lambda: Redactor(recognisers=str.upper), RuleError, "recognisers: found a method_descriptor; expected a list"),
        (lambda: Redactor(recognisers="presidio"), RuleError, "recognisers: found a str"),
        (lambda: Redactor(recognisers=[None]), RuleError, "recognisers: found a list with None"),
        (lambda: Redactor(recognisers=None), RuleError, "recognisers: found None"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Callable[[], Any], kind: type[LabError], words: str) -> None:
    with pytest.raises(kind) as error:
        call()
    assert words in str(error.value)


def test_what_is_taken() -> None:
    class Text(str):
        pass

    assert STRICT.redact(Text("ada@x.org")).text == "[EMAIL]"
    assert [each.text for each in STRICT.redact_many(each for each in ("ada@x.org", ""))] == ["[EMAIL]", ""]
    assert STRICT.redact_many([]) == STRICT.redact_many(()) == []
    assert Redactor(None, recognisers=()).redact("").text == Redactor(RedactionConfig()).redact("").text == ""
    stream = STRICT.stream()
    assert stream.feed("ada@x.org") + stream.close() == "[EMAIL]"
    assert stream.close() == ""
