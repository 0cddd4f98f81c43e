"""What a redactor removes, and what holds for every text: twice is once, spans, valid JSON, chunks, numbers."""

from __future__ import annotations

import itertools
import json
import pickle
import random
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import openclaw_lab as lab
from openclaw_lab.config import RedactionConfig
from openclaw_lab.errors import DataError, LabError, RuleError
from openclaw_lab.messages import Message, ToolCall
from openclaw_lab.redaction import recognisers
from openclaw_lab.redaction.candidates import Candidates
from openclaw_lab.redaction.corpus import corpus
from openclaw_lab.redaction.keys import number_name
from openclaw_lab.redaction.numbering import KeyMap, restore
from openclaw_lab.redaction.redactor import Redactor, preset_rules, redact
from openclaw_lab.redaction.settle import TURNS, blocks, settle
from openclaw_lab.redaction.spans import Found, find, replaced, resolve
from openclaw_lab.redaction.speed import redaction_costs
from openclaw_lab.rules.rule import Rule

NODE = shutil.which("node")
# Rules of the engine's own tests: each kind of gate, a group, a look around, words around a placeholder.
ROWS: list[dict[str, Any]] = [
    {
        "id": "mail",
        "type": "email",
        "pattern": r"(?<![\w.])[\w.]{1,20}@[\w]{1,20}\.[a-z]{2,5}",
        "replacement": "[EMAIL]",
    },
    {"id": "mobile", "type": "phone", "pattern": r"(?<!\d)1[3-9]\d{9}(?!\d)", "replacement": "[PHONE]"},
    {"id": "card", "type": "card", "pattern": r"(?<!\d)\d{16}(?!\d)", "validator": "luhn", "replacement": "[CARD]"},
    {"id": "key", "type": "key", "pattern": r"sk-[a-z0-9]{8,20}", "flags": "i", "replacement": "[API_KEY]"},
    {
        "id": "word",
        "type": "password",
        "pattern": r"(?:password|密码)\s{0,2}[:=：]\s{0,2}([^\s\"]{2,20})",
        "flags": "i",
        "replacement": "[PASSWORD]",
    },
    {"id": "home", "type": "path", "pattern": r"\/home\/[a-z]{1,20}", "replacement": "/home/[REDACTED]"},
    {"id": "pair", "type": "pair", "pattern": r"#[0-9]{1,3}(?=[,;]|$)", "replacement": "[NUMBER]"},
    {"id": "chain", "type": "chain", "pattern": r"(?:^|[^q])(q)(?![q])", "replacement": "[Q]"},
]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "own.json"
    path.write_text(json.dumps(ROWS), "utf-8")
    return path


@pytest.fixture(scope="module")
def small(own: Path) -> Redactor:
    return Redactor(RedactionConfig(preset="relaxed", rules=str(own)))


@pytest.fixture(scope="module")
def numbered(own: Path) -> Redactor:
    return Redactor(RedactionConfig(preset="relaxed", rules=str(own), placeholders="numbered"))


STRICT = Redactor()
WORDS = [
    "a.b@c.de",
    "ada@x.org",
    "@",
    "13800138000",
    "4111111111111111",
    "1",
    "sk-abcd1234efgh",
    "SK-ABCDEFGH99",
    "password: hunter2",
    "密码：abc123",
    "/home/ada/x",
    "/home/",
    "#12",
    ",",
    ";",
    "q",
    "qq",
    "[EMAIL]",
    "[EMAIL_1]",
    "[PHONE_2]",
    "[",
    "]",
    "[Q]",
    "/home/[REDACTED]",
    "中文",
    "🙂",
    "\n",
    " ",
    '"',
    "\\",
    "{",
    "}",
    ":",
    "\ud800",
    "é",
    "sk-proj-abcdefghijklmnop1234",
    "Bearer abcdefgh12345678",
    "10.1.2.3",
    "/Users/ada/x",
    "110101199003078515",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map("".join) | st.text(max_size=60)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "password", "api_key", "note", "ada@x.org"]), inner, max_size=4)
    ),
    max_leaves=12,
)


# --- examples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("", ""),
        ("nothing here, 什么都没有", "nothing here, 什么都没有"),
        ("ada@x.org and bob@x.org, ada@x.org", "[EMAIL] and [EMAIL], [EMAIL]"),
        ("Hi 😀🚀 mail dani@example.com now", "Hi 😀🚀 mail [EMAIL] now"),
        ("联系13800138000谢谢", "联系[PHONE]谢谢"),
        ("4111111111111111 4111111111111112", "[CARD] 4111111111111112"),
        ("/home/ada/x", "/home/[REDACTED]/x"),
        ("[EMAIL] [EMAIL_7] /home/[REDACTED]/x", "[EMAIL] [EMAIL_7] /home/[REDACTED]/x"),
        # what overlaps is one span, named after the longest
        ("password: ada@x.org!", "password: [PASSWORD]"),
        ("password: x/home/adalovelace", "password: [PASSWORD]"),
        ("password: " + "x" * 19 + "/home/adalovelace", "password: [PASSWORD]home/[REDACTED]"),
        ("password: " + "x" * 18 + "ab@longlonglong.abcde", "password: [EMAIL]"),
        # each makes way for the next
        ("#1#2#3,", "[NUMBER][NUMBER][NUMBER],"),
        ("no #1x", "no #1x"),
    ],
)
def test_texts(small: Redactor, text: str, clean: str) -> None:
    assert small.redact(text).text == clean


def test_spans_say_what_was_removed(small: Redactor) -> None:
    text = "😀 /home/ada a@b.cd"
    spans = small.redact(text).spans
    assert [(text[each.start : each.end], each.type, each.rule, each.replacement) for each in spans] == [
        ("ada", "path", "home", "[REDACTED]"),
        ("a@b.cd", "email", "mail", "[EMAIL]"),
    ]


def test_finds_that_overlap_are_one() -> None:
    def found(start: int, end: int, rule: str) -> Found:
        return Found(start, end, "t", rule, f"[{rule}]")

    table = [
        ([(0, 3, "A"), (3, 5, "B")], [(0, 3, "A"), (3, 5, "B")]),  # adjacent
        ([(0, 3, "A"), (2, 9, "B")], [(0, 9, "B")]),  # the longer names
        ([(0, 5, "A"), (2, 7, "B")], [(0, 7, "A")]),  # equally long: the first to begin
        ([(0, 5, "B"), (0, 5, "A")], [(0, 5, "B")]),  # the same: the first rule
        ([(0, 9, "A"), (2, 4, "B")], [(0, 9, "A")]),  # contained
        ([(4, 6, "A"), (0, 5, "B"), (5, 12, "C")], [(0, 12, "C")]),  # a chain is covered as a whole
    ]
    for given_, wanted in table:
        assert list(resolve([found(*each) for each in given_])) == [found(*each) for each in wanted]


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        (
            {"password": "x", "n": 5, "list": ["ada@x.org", None, True]},
            {"password": "[PASSWORD]", "n": 5, "list": ["[EMAIL]", None, True]},
        ),
        (
            {"apiKey": "abc", "max_tokens": 100, "Authorization": "Bearer zz"},
            {"apiKey": "[API_KEY]", "max_tokens": 100, "Authorization": "[TOKEN]"},
        ),
        (
            {"Authorization": "Bearer [TOKEN]", "token": "", "next_token": "p2"},
            {"Authorization": "Bearer [TOKEN]", "token": "", "next_token": "p2"},
        ),
        (
            {"passwords": ["a", "b"], "secret": {"note": "fine"}, "密码": "甲"},
            {"passwords": ["a", "b"], "secret": {"note": "fine"}, "密码": "[PASSWORD]"},
        ),
        ({"password": ["a", {"b": "c"}]}, {"password": ["[PASSWORD]", {"b": "c"}]}),
        ({"ada@x.org": "ada@x.org", 3: "ada@x.org"}, {"ada@x.org": "[EMAIL]", 3: "[EMAIL]"}),
        ('{"a": "ada@x.org",  "n": 13800138000}', '{"a": "[EMAIL]",  "n": 13800138000}'),
        ({"args": '{"password": "x\\"y", "q": 1}'}, {"args": '{"password": "[PASSWORD]", "q": 1}'}),
        (("ada@x.org", 2.5), ("[EMAIL]", 2.5)),
        (b"ada@x.org", b"ada@x.org"),
    ],
)
def test_values(small: Redactor, value: Any, clean: Any) -> None:
    assert small.redact_value(value) == clean
    assert small.redact_value(clean) == clean


def test_values_that_never_end(small: Redactor) -> None:
    circle: dict[str, Any] = {"a": "ada@x.org"}
    circle["self"] = [circle]
    assert small.redact_value(circle) == {"a": "[EMAIL]", "self": ["[REDACTED]"]}
    deep: Any = "ada@x.org"
    for _ in range(5_000):
        deep = [deep]
    assert "ada" not in str(small.redact_value(deep))
    assert "ada" not in small.redact("[" * 5_000 + '"ada@x.org"' + "]" * 5_000).text


@pytest.mark.parametrize(
    ("message", "clean"),
    [
        (
            {"role": "user", "content": "ada@x.org", "id": "ada@x.org"},
            {"role": "user", "content": "[EMAIL]", "id": "ada@x.org"},
        ),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "ada@x.org"},
                    {"type": "thinking", "thinking": "ada@x.org", "signature": "ada@x.org"},
                    {
                        "type": "tool_use",
                        "id": "t1",
                        "name": "f",
                        "input": {"name": "ada@x.org", "n": 1, "password": "p"},
                    },
                    {"type": "image", "data": "ada@x.org", "mimeType": "image/png"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "[EMAIL]"},
                    {"type": "thinking", "thinking": "[EMAIL]", "signature": "ada@x.org"},
                    {
                        "type": "tool_use",
                        "id": "t1",
                        "name": "f",
                        "input": {"name": "[EMAIL]", "n": 1, "password": "[PASSWORD]"},
                    },
                    {"type": "image", "data": "ada@x.org", "mimeType": "image/png"},
                ],
            },
        ),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"to": "ada@x.org", "n": 1}'},
                    }
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"to": "[EMAIL]", "n": 1}'},
                    }
                ],
            },
        ),
        (
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "ada@x.org"}]}
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "[EMAIL]"}]}
                ],
            },
        ),
        (
            Message(
                "assistant",
                ({"type": "text", "text": "ada@x.org"},),
                (ToolCall("1", "f", {"a": "ada@x.org"}), ToolCall("2", "g", "ada@x.org")),
            ),
            Message(
                "assistant",
                ({"type": "text", "text": "[EMAIL]"},),
                (ToolCall("1", "f", {"a": "[EMAIL]"}), ToolCall("2", "g", "[EMAIL]")),
            ),
        ),
        (Message("tool", "ada@x.org", tool_call_id="ada@x.org"), Message("tool", "[EMAIL]", tool_call_id="ada@x.org")),
    ],
)
def test_messages(small: Redactor, message: Any, clean: Any) -> None:
    assert small.redact_message(message) == clean


# --- configuration ------------------------------------------------------------------------------------------------


def test_presets() -> None:
    text = "ada@x.org 10.0.0.1"
    assert Redactor(RedactionConfig(preset="relaxed")).redact(text) == lab.Redaction(text)
    assert Redactor(RedactionConfig(preset="seed")).redact(text).text == redact(text) == "[EMAIL] [IP]"
    assert lab.Redactor().redact(text).text == "[EMAIL] [IP]"


def test_rules_switched_off_and_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    row = {"id": "seed-email", "type": "staff", "pattern": "STAFF-[0-9]{4}", "replacement": "[STAFF]"}
    mine.write_text(json.dumps([row, {**row, "id": "new", "pattern": "TEAM-[0-9]{2}", "enabled": True}]))
    config = RedactionConfig(preset="seed", rules=str(mine), off=("seed-ip",))
    assert Redactor(config).redact("a@b.cd STAFF-1234 TEAM-12 10.0.0.1").text == "a@b.cd [STAFF] [STAFF] 10.0.0.1"


@pytest.mark.parametrize(
    ("row", "off", "words"),
    [
        ({}, ("seed-emial",), "redaction.off: found seed-emial; expected the id of a rule; did you mean seed-email?"),
        ({"pattern": "[a-z.]+@x"}, (), "mine.json: x: pattern: found a match that begins with an unbounded repeat"),
        ({"replacement": "gone"}, (), "expected one placeholder such as [EMAIL]"),
        ({"replacement": "[A] [B]"}, (), "expected one placeholder such as [EMAIL]"),
    ],
)
def test_a_bad_configuration(tmp_path: Path, row: dict[str, Any], off: tuple[str, ...], words: str) -> None:
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps([{"id": "x", "type": "t", "pattern": "xyz", "replacement": "[X]", **row}]))
    preset = "seed" if off else "strict"
    with pytest.raises(RuleError) as error:
        Redactor(RedactionConfig(preset=preset, rules=str(mine), off=off))
    assert words in str(error.value)


# --- properties ---------------------------------------------------------------------------------------------------


def check(redactor: Redactor, text: str) -> None:
    made = redactor.redact(text)
    assert redactor.redact(made.text).text == made.text
    at = 0
    for each in made.spans:
        assert at <= each.start < each.end <= len(text)
        at = each.end
    assert replaced(text, made.spans) == made.text


@settings(deadline=None, max_examples=300)
@given(TEXTS)
def test_twice_is_once_and_spans_fit(small: Redactor, text: str) -> None:
    check(small, text)


@settings(deadline=None, max_examples=100)
@given(TEXTS)
def test_the_same_with_the_full_set(text: str) -> None:
    check(STRICT, text)


@settings(deadline=None, max_examples=200)
@given(VALUES, st.booleans())
def test_json_stays_json(small: Redactor, value: Any, spaced: bool) -> None:
    text = json.dumps([value], ensure_ascii=spaced, indent=2 if spaced else None)
    check(small, text)
    clean = json.loads(small.redact(text).text)
    assert clean == small.redact_value([value])

    def shape(one: Any, key: str = "") -> Any:
        if isinstance(one, dict):
            return {name: shape(each, name) for name, each in one.items()}
        if isinstance(one, list):
            return [shape(each, key) for each in one]
        number = isinstance(one, int) and not isinstance(one, bool) and number_name(key, str(one))
        return "" if number or isinstance(one, str) else one

    assert shape(clean) == shape([value])


@settings(deadline=None, max_examples=300)
@given(TEXTS, st.lists(st.integers(0, 200)))
def test_in_chunks_it_is_the_same(small: Redactor, text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    stream = small.stream()
    parts = [stream.feed(text[start:end]) for start, end in itertools.pairwise(places)]
    assert "".join([*parts, stream.close()]) == small.redact(text).text


def test_a_stream_holds_little(small: Redactor) -> None:
    line = "nothing to see here, 这里什么都没有 42, "
    for redactor, most in ((small, 100), (STRICT, STRICT.lag or 0)):
        assert redactor.lag is not None
        stream = redactor.stream()
        given_, taken = 0, 0
        for _ in range(300):
            given_ += len(line)
            taken += len(stream.feed(line))
            assert given_ - taken <= 2 * most + 200
        assert taken + len(stream.close()) == given_
    stream = small.stream()
    assert stream.feed('{"a": "ada@x.org') == ""  # it may become JSON
    assert stream.feed('", nonsense ' + "x" * 200).startswith('{"a": "[EMAIL]", nonsense xxx')


@settings(deadline=None, max_examples=60)
@given(TEXTS.map(lambda text: f"so {text} that is all, and nothing more is said of it here or there. " * 3))
def test_in_single_characters_with_the_full_set(text: str) -> None:
    stream = STRICT.stream()
    assert "".join([*map(stream.feed, text), stream.close()]) == STRICT.redact(text).text


@settings(deadline=None, max_examples=200)
@given(st.lists(TEXTS, max_size=4))
def test_numbers_are_put_back(numbered: Redactor, texts: list[str]) -> None:
    for text in texts:
        talk = numbered.conversation()
        made = talk.redact(text)
        assert talk.restore(made.text) == restore(made.text, talk.keys) == text
        assert numbered.redact(made.text).text == made.text


@settings(deadline=None, max_examples=100)
@given(TEXTS)
def test_candidates_leave_out_nothing(small: Redactor, text: str) -> None:
    for redactor in (small, STRICT):
        named = Candidates(redactor.rules).of(text)
        assert [rule.id for rule in redactor.rules if rule not in named and list(find(rule, text))] == []


@settings(deadline=None, max_examples=200)
@given(TEXTS)
def test_finds_lie_within_blocks(small: Redactor, text: str) -> None:
    for rule in small.rules:
        around = blocks(text, [rule])
        for each in find(rule, text):
            assert any(start <= each.start and each.end <= end for start, end in around)


@settings(deadline=None, max_examples=200)
@given(TEXTS)
def test_the_seed_is_its_nine_substitutions(text: str) -> None:
    wanted = text
    for rule in preset_rules("seed"):
        wanted = rule.compiled.sub(lambda _, rule=rule: rule.replacement, wanted)  # type: ignore[misc]
    made = Redactor(RedactionConfig(preset="seed")).redact(text)
    assert made.text == redact(text) == wanted == replaced(text, made.spans)
    assert [each.start for each in made.spans] == sorted(each.start for each in made.spans)


def test_a_chain_ends_soon(small: Redactor) -> None:
    """Each find makes way for the next; after so many turns the block goes, and no more than it."""
    text = "kept, " + "#1" * (3 * TURNS) + ", kept"
    made = small.redact(text)
    assert made.text.startswith("kept,")
    assert made.text.endswith(" kept")
    assert "#" not in made.text
    check(small, text)
    rule = Rule("end", "t", "", "", "", __import__("re").compile("x$"), "[X]")
    assert replaced("y" + "x" * 99, settle("y" + "x" * 99, [rule], small.walls)).startswith("[X]")


@pytest.mark.parametrize("kind", ["any", "ascii", "runs"])
def test_a_megabyte_of_anything(kind: str) -> None:
    chance = random.Random(1)
    if kind == "any":
        text = "".join(chr(chance.randrange(0x110000)) for _ in range(1_000_000))
    else:
        text = "".join(
            chance.choices("a1.-@/:= \n" if kind == "runs" else [chr(code) for code in range(128)], k=300_000)
        )
    check(STRICT if kind == "any" else Redactor(RedactionConfig(preset="relaxed")), text)


# --- numbers ------------------------------------------------------------------------------------------------------


def test_numbers_last_for_a_conversation(numbered: Redactor, tmp_path: Path) -> None:
    talk = numbered.conversation()
    assert talk.redact("ada@x.org bob@x.org ada@x.org").text == "[EMAIL_1] [EMAIL_2] [EMAIL_1]"
    assert talk.redact_value({"to": "bob@x.org", "password": "p"}) == {"to": "[EMAIL_2]", "password": "[PASSWORD_1]"}
    assert [each.text for each in talk.redact_many(["ada@x.org", "[EMAIL_3] eve@x.org"])] == [
        "[EMAIL_1]",
        "[EMAIL_3] [EMAIL_4]",
    ]
    stream = talk.stream()
    assert stream.feed("bob@x.org") + stream.close() == "[EMAIL_2]"
    assert talk.restore("tell [EMAIL_2] and [EMAIL_9]") == "tell bob@x.org and [EMAIL_9]"
    assert repr(talk) == "Conversation(KeyMap(4 placeholders))"
    path = tmp_path / "keys.json"
    talk.keys.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KeyMap.load(path) == talk.keys
    again = numbered.conversation(KeyMap.load(path))
    assert again.redact("new@x.org ada@x.org").text == "[EMAIL_3] [EMAIL_1]"
    with pytest.raises(TypeError, match="holds secrets"):
        pickle.dumps(talk.keys)
    path.write_text("[1]")
    with pytest.raises(DataError, match="expected a key map"):
        KeyMap.load(path)


# --- recognisers --------------------------------------------------------------------------------------------------


def test_a_recogniser_takes_part() -> None:
    def names(text: str) -> list[tuple[int, int, str, float]]:
        at = text.find("Ada Lovelace")
        return [(at, at + 12, "person name", 0.9)] if at >= 0 else []

    redactor = Redactor(RedactionConfig(), recognisers=[names])
    text = "Ada Lovelace <ada@x.org> and 密码"
    made = redactor.redact(text)
    assert made.text == "[PERSON_NAME] <[EMAIL]> and 密码"
    assert made.spans[0].rule == "recogniser-names"
    assert redactor.redact(made.text).text == made.text
    stream = redactor.stream()
    assert stream.feed(text) + stream.close() == made.text
    assert [each.text for each in redactor.redact_many([text])] == [made.text]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([(0, 99, "x")], "found the span 0:99; expected a span within 0:5"),
        ([(3, 1, "x")], "found the span 3:1"),
        ([(0, 1)], "expected (start, end, type)"),
        ([(0.0, 1, "x")], "found float, int, str"),
        ([(0, 1, " ")], "expected two int and a str"),
        ([7], "found a int"),
    ],
)
def test_a_bad_span_is_named(found: list[Any], words: str) -> None:
    with pytest.raises(RuleError) as error:
        Redactor(recognisers=[lambda _: found]).redact("hello")
    assert words in str(error.value)


class _Result:
    start, end, entity_type, score, start_char, end_char, label_ = 0, 3, "PERSON", 0.9, 0, 3, "PERSON"


class _Model:
    ents = (_Result(),)

    def analyze(self, **_: Any) -> list[_Result]:
        return [_Result()]

    def __call__(self, _: str) -> _Model:
        return self


def test_adapters() -> None:
    assert list(recognisers.presidio(engine=_Model())("Ada")) == [(0, 3, "PERSON", 0.9)]
    assert list(recognisers.spacy(_Model())("Ada")) == [(0, 3, "PERSON")]
    for make in (recognisers.presidio, lambda: recognisers.spacy("en_core_web_sm")):
        with pytest.raises(LabError, match="pip install"):
            make()


# --- against Node -------------------------------------------------------------------------------------------------

SCRIPT = r"""
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
const redact = (text) => text
  .replace(/\/Users\/[^\/\s]+/g, '/Users/[REDACTED]')
  .replace(/\/home\/[^\/\s]+/g, '/home/[REDACTED]')
  .replace(/C:\\Users\\[^\\\s]+/g, 'C:\\Users\\[REDACTED]')
  .replace(/[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}/g, '[EMAIL]')
  .replace(/\b\d{3}-\d{3}-\d{4}\b/g, '[PHONE]')
  .replace(/\+\d{10,}/g, '[PHONE]')
  .replace(/sk-[a-zA-Z0-9]{32,}/g, '[API_KEY]')
  .replace(/Bearer\s+[a-zA-Z0-9_-]+/g, 'Bearer [TOKEN]')
  .replace(/\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b/g, '[IP]');
process.stdout.write(JSON.stringify(texts.map(redact)));
"""
PIECES = [
    "/Users/",
    "/home/",
    "C:\\Users\\",
    "ada",
    "@",
    ".com",
    ".c",
    "555-123-4567",
    "+8613800138000",
    "sk-",
    "a1" * 16,
    "Bearer ",
    "Bearer\u3000",
    "10.0.0.1",
    "1.2.3.4.5",
    "[EMAIL]",
    "\u00a0",
    "\ufeff",
    "\x1c",
    "\x85",
    "中",
    "é",
    "🙂",
    "/",
    "\\",
    " ",
    "\n",
    "-",
    "_",
    "%",
    "+",
    "٣",
    "\u017f",
    "9",
    "a",
    "[",
    "]",
]


@pytest.mark.skipif(NODE is None, reason="node is not on PATH")
def test_the_seed_is_what_node_makes_of_it() -> None:
    chance = random.Random(5)
    texts = ["".join(chance.choices(PIECES, k=chance.randint(1, 14))) for _ in range(1_500)]
    texts += [
        "".join(chr(chance.choice((chance.randrange(0x20, 0x7F), chance.randrange(0xD800)))) for _ in range(40))
        for _ in range(500)
    ]
    done = subprocess.run(
        [str(NODE), "-e", SCRIPT], input=json.dumps(texts), capture_output=True, encoding="utf-8", check=True
    )
    wanted = json.loads(done.stdout)
    seed = Redactor(RedactionConfig(preset="seed"))
    assert [seed.redact(text).text for text in texts] == wanted
    assert sum(text != clean for text, clean in zip(texts, wanted, strict=True)) > 500


# --- many texts --------------------------------------------------------------------------------------------------


def test_many_are_as_each(small: Redactor) -> None:
    texts = [*corpus(60_000), "", "{", '["ada@x.org"]', '{"a": "b\\u0040c.de", "password": "x"}']
    for redactor in (small, STRICT, Redactor(RedactionConfig(preset="seed"))):
        assert redactor.redact_many(texts) == [redactor.redact(text) for text in texts]
    assert texts[:5] == corpus(60_000)[:5]


def test_speed_is_measured() -> None:
    named = [what for what, seconds in redaction_costs(corpus(5_000), runs=1) if seconds >= 0]
    assert named == ["the seed's nine", f"default, {len(STRICT.rules)} rules"]
