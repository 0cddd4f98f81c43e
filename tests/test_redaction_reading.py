"""The second reading of a text: what it says, where it stands, and that pieces and turns make no difference to it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_lab.redaction.reading import begun, held_back, reading, seams
from openclaw_lab.redaction.redactor import Redactor
from openclaw_lab.redaction.spans import Found, replaced

STRICT = Redactor()
PIECES = [
    "138", "12345678", "１３８", "１２３４", "5678", "5678", "\u200b", "\ufeff", "\u200d", "\ufe0f", "–", "\u00a0",
    "—", "-",
    "ada", "@", "＠", "example", ".", "．", "com", "密码：", "password: ", "Ａｂｃ", "hunter2x", " ", "，",
    "中文", "Ａ", "[EMAIL]",
    "[", "]", "🙂", "❤", "\n", "订单号", "sk-proj-abcdefghijklmnop1234", "/home/", "１",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain", None),
        ("普通的文字，没有别的：（好）", None),
        ("👨\u200d👩\u200d👧 ❤\ufe0f ok 1\ufe0f\u20e3", None),
        ("\ufeffbegins, ends\u200b", None),
        ("می\u200cخواهم", None),
        ("2019 – 2024, well–known—so", None),
        ("１３８", "138"),
        ("Ａｂｃ＠ｘ．ｏｒｇ", "Abc@x.org"),
        ("138\u200b\u2060123", "138123"),
        ("密\u200b码", "密码"),
        ("138–1234\u00a05678", "138-1234 5678"),
    ],
)
def test_what_a_text_is_read_as(text: str, said: str | None) -> None:
    made = reading(text)
    assert (made and made.text) == said
    if made:
        assert len(made.places) == len(made.text)
        assert list(made.places) == sorted(made.places)


def test_finds_have_their_places_in_the_text() -> None:
    text = "a\u200bb１２c"
    made = reading(text)
    assert made is not None
    assert made.text == "ab12c"
    spans = [Found(0, 2, "t", "r", "[T]"), Found(2, 4, "t", "r", "[T]")]
    assert [text[each.start : each.end] for each in made.placed(spans)] == ["a\u200bb", "１２"]
    assert list(made.spaces([(-3, 2), (1, 3), (3, 99), (7, 9)])) == [(0, 3), (2, 4), (4, 7), (6, 7)]


@pytest.mark.parametrize(
    ("text", "count", "place"), [("abcd", 2, 2), ("ab\u200bcd", 2, 3), ("ab\u200b\u200b", 1, 1), ("a\u200b", 2, 0)]
)
def test_what_can_be_seen_is_counted(text: str, count: int, place: int) -> None:
    assert held_back(text, count) == place


def test_the_end_of_a_beginning_is_open() -> None:
    made = begun("１38\u200b\u200b")
    assert made is not None
    assert made.text == "138"
    assert list(seams("ab\u200bc–")) == [(1, 4), (3, 6)]


def piecewise(redactor: Redactor, text: str, cuts: Sequence[int]) -> str:
    stream = redactor.stream()
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    parts = [stream.feed(text[start:end]) for start, end in itertools.pairwise(places)]
    return "".join([*parts, stream.close()])


@settings(deadline=None, max_examples=300)
@given(TEXTS)
def test_twice_is_once_and_spans_fit(text: str) -> None:
    made = STRICT.redact(text)
    assert replaced(text, made.spans) == made.text
    assert STRICT.redact(made.text).text == made.text
    assert STRICT.redact_many([text]) == [made]
    assert STRICT.conversation().redact(text) == made


@settings(deadline=None, max_examples=60)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.lists(st.integers(0, 3000), max_size=20))
def test_in_pieces_it_is_the_same(texts: list[str], cuts: list[int]) -> None:
    text = "so it is said here, and 这里也没有什么. " * 12
    text = "".join(f"{each} {text}" for each in texts)
    assert piecewise(STRICT, text, cuts) == STRICT.redact(text).text


def test_a_stream_waits_for_no_more_than_it_must() -> None:
    stream = STRICT.stream()
    line = "第１２章 nothing\u200bto see here, 这里什么都没有, "
    given_, taken = 0, 0
    for _ in range(1500):
        given_ += len(line)
        taken += len(stream.feed(line))
        assert given_ - taken <= 2 * (STRICT.lag or 0) + 400
    assert taken + len(stream.close()) == given_
    text = "a " * 50 + "138" + "\u200b" * 3000 + "12345678 b"
    assert piecewise(STRICT, text, range(0, 6000, 7)) == "a " * 50 + "[PHONE] b"


def test_json_keeps_its_form() -> None:
    assert STRICT.redact('{"to": "138\\u200b12345678", "n": 1}').text == '{"to": "[PHONE]", "n": 1}'
    assert STRICT.redact('{"to": "１３８１２３４５６７８"}').text == '{"to": "[PHONE]"}'
