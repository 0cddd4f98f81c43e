"""The bundled data is what its datasheet says: counts, both labels everywhere, nothing twice, nothing real."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
import unicodedata
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import pytest

from openclaw_lab.experiments.dataset import load_dataset
from openclaw_lab.files import bundled
from openclaw_lab.messages import OPPORTUNITY_KINDS, Session

INJECTION = load_dataset("injection/mini")
SESSIONS: list[Session] = [sample.input for sample in load_dataset("sessions/mini")]
FILES = [
    bundled("datasets") / name
    for name in ("injection/mini.jsonl", "sessions/mini.jsonl", "knowledge/mini.jsonl", "retrieval/mini_queries.jsonl")
]
QUERIES = load_dataset("retrieval/mini")
BENIGN_KINDS = {"benign_plain", "benign_trigger", "benign_quote", "benign_prompt"}


def raw(number: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in FILES[number].read_text("utf-8").splitlines()]


def strings(value: object) -> list[str]:
    """Every string in a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    return [text for each in value for text in strings(each)] if isinstance(value, list) else []


# --- injection ----------------------------------------------------------------------------------------------------


def test_counts() -> None:
    labels = Counter(sample.label for sample in INJECTION)
    assert len(INJECTION) >= 400
    assert 0.45 <= labels[0] / len(INJECTION) <= 0.55
    by_language = Counter((sample.lang, sample.label) for sample in INJECTION)
    assert set(by_language) == {(lang, label) for lang in ("zh", "en") for label in (0, 1)}
    assert min(by_language.values()) >= 100


def test_every_channel_has_both_labels_in_both_languages() -> None:
    found = Counter((sample.fields["channel"], sample.lang, sample.label) for sample in INJECTION)
    channels = {"user", "tool_output", "email", "web_page", "skill_file", "memory_entry", "code_comment", "document"}
    assert set(found) == {(channel, lang, label) for channel in channels for lang in ("zh", "en") for label in (0, 1)}
    assert min(found.values()) >= 10


def test_fields_agree_with_the_label() -> None:
    for sample in INJECTION:
        assert sample.group
        assert sample.input.strip()
        assert ("attack" in sample.fields) == (sample.label == 1 and sample.kind in ("direct", "indirect")), sample.id
        assert (sample.kind in BENIGN_KINDS) == (sample.label == 0), sample.id
        assert (sample.kind == "direct") <= (sample.fields["channel"] == "user"), sample.id


@pytest.mark.parametrize("number", [0, 1])
def test_ids_are_unique_and_every_row_is_our_own(number: int) -> None:
    rows = raw(number)
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["source"] for row in rows} == {"openclaw_lab"}
    assert all(row["id"].startswith(row["lang"]) for row in rows)


def test_no_near_duplicates_across_groups() -> None:
    """Character 5-gram Jaccard below 0.6 for every two rows of different groups, by way of an inverted index."""
    assert not _near_duplicates([(sample.id, sample.group, sample.input) for sample in INJECTION])


def _near_duplicates(texts: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Pairs of ids among (id, group, text) whose groups differ and whose texts are nearly the same."""
    grams = [_grams(text) for _, _, text in texts]
    rows_of: defaultdict[str, list[int]] = defaultdict(list)
    for row, found in enumerate(grams):
        for gram in found:
            rows_of[gram].append(row)
    shared = Counter(pair for rows in rows_of.values() for pair in combinations(rows, 2))
    return [
        (texts[a][0], texts[b][0])
        for (a, b), both in shared.items()
        if texts[a][1] != texts[b][1] and both >= 0.6 * (len(grams[a]) + len(grams[b]) - both)
    ]


def _grams(text: str) -> set[str]:
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return {plain[i : i + 5] for i in range(max(1, len(plain) - 4))}


def attacks(kind: str) -> list[Any]:
    return [pytest.param(s.input, id=s.id) for s in INJECTION if s.fields.get("attack") == kind]


@pytest.mark.parametrize("text", attacks("encoded_base64"))
def test_base64_rows_hold_base64_of_readable_text(text: str) -> None:
    joined = re.sub(r"(?<=[A-Za-z0-9+/])\n[ >#*/]*(?=[A-Za-z0-9+/])", "", text)
    assert any(_decoded(run) for run in re.findall(r"[A-Za-z0-9+/_-]{16,}={0,2}", joined))


def _decoded(run: str) -> str:
    try:
        plain = base64.b64decode(run + "=" * (-len(run) % 4), altchars=None if "_" not in run else b"-_", validate=True)
        text = plain.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return text if text.isprintable() and len(text) >= 6 else ""


@pytest.mark.parametrize("text", attacks("obfuscated_homoglyph"))
def test_homoglyph_rows_mix_scripts_within_a_word(text: str) -> None:
    mixed = any(len(_scripts(word)) > 1 for word in re.findall(r"[^\W\d_]+", text))
    assert mixed or _is_compatible(text) or _mixes_chinese(text)


def _scripts(word: str) -> set[str]:
    return {unicodedata.name(char, "?").split()[0] for char in word} & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"}


def _is_compatible(text: str) -> bool:
    """Look-alikes that are other forms of the same character: full-width or mathematical letters, CJK radicals."""
    return any(unicodedata.normalize("NFKC", char) != char and char.isalpha() for char in text) or any(
        "RADICAL" in unicodedata.name(char, "") for char in text
    )


def _mixes_chinese(text: str) -> bool:
    """Rare or traditional forms among simplified ones, as in 忽畧 for 忽略: each set lacks the other's characters."""
    return all(any(not char.encode(name, "ignore") for char in text) for name in ("gb2312", "big5"))


@pytest.mark.parametrize("text", attacks("obfuscated_zero_width"))
def test_zero_width_rows_hold_invisible_characters(text: str) -> None:
    assert sum(unicodedata.category(char) == "Cf" for char in text) >= 3


@pytest.mark.parametrize("sample", [pytest.param(s, id=s.id) for s in INJECTION if s.label == 0])
def test_harmless_rows_hide_nothing(sample: Any) -> None:
    assert sum(unicodedata.category(char) == "Cf" and char != "\u200d" for char in sample.input) <= 2


# --- sessions -----------------------------------------------------------------------------------------------------


def test_session_counts() -> None:
    languages = Counter(str(session.fields["lang"]) for session in SESSIONS)
    assert len(SESSIONS) >= 40
    assert min(languages["zh"], languages["en"]) >= 20
    assert Counter(session.fields["split"] for session in SESSIONS).keys() == {"tune", "held"}
    marked = Counter(each.kind for session in SESSIONS for each in session.opportunities or ())
    assert marked.keys() == set(OPPORTUNITY_KINDS)
    assert min(marked.values()) >= 20
    assert sum(session.opportunities == () for session in SESSIONS) >= 10


@pytest.mark.parametrize("session", SESSIONS, ids=lambda s: s.id)
def test_a_session_hangs_together(session: Session) -> None:
    messages = session.messages
    roles = [message.role for message in messages]
    assert roles[0] in ("system", "user")
    assert "user" in roles
    times = [message.timestamp for message in messages]
    assert all(before is not None and after is not None and before < after for before, after in zip(times, times[1:]))  # noqa: B905, RUF007
    waiting: dict[str | None, None] = {}
    seen: set[str | None] = set()
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id in waiting
            del waiting[message.tool_call_id]
        else:
            assert not waiting, "a call without its result"
            assert not message.tool_calls or message.role == "assistant"
        for call in message.tool_calls:
            assert call.id not in seen
            assert call.name
            assert not isinstance(call.arguments, str)
            seen.add(call.id)
            waiting[call.id] = None
        assert message.text or message.tool_calls or message.role == "tool"
    assert not waiting


@pytest.mark.parametrize("session", SESSIONS, ids=lambda s: s.id)
def test_opportunities_point_at_the_right_kind_of_message(session: Session) -> None:
    assert session.opportunities is not None
    allowed = {"feedback": {"user"}, "task_end": {"assistant"}, "recovery": {"tool", "assistant"}}
    for each in session.opportunities:
        assert 0 <= each.index < len(session.messages)
        assert session.messages[each.index].role in allowed.get(each.kind, {"tool", "assistant", "user"}), each
        assert each.note
    places = [(each.index, each.kind) for each in session.opportunities]
    assert len(set(places)) == len(places)
    assert [index for index, _ in places] == sorted(index for index, _ in places)


# --- knowledge and the queries asked of it ------------------------------------------------------------------------


def test_knowledge_counts() -> None:
    rows = raw(2)
    assert len(rows) == 500
    assert Counter(row["lang"] for row in rows) == {"en": 227, "zh": 273}
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(row["id"].startswith(f"k{row['lang']}-") for row in rows)
    topics = Counter(row["topic"] for row in rows)
    assert sum(count for count in topics.values() if count > 1) >= 0.9 * len(rows), "most entries have a look-alike"


def test_knowledge_rows_are_whole() -> None:
    types = {"user_profile", "strategy", "tool", "usecase", "definition", "plan"}
    seen: set[str] = set()
    for row in raw(2):
        assert set(row) == {"id", "task", "content", "types", "score", "lang", "topic", "source"}
        assert row["task"].strip()
        assert row["content"].strip()
        assert row["types"]
        assert row["score"] in range(1, 6)
        assert set(row["source"]) == {"name", "category", "urls"}
        seen |= set(row["types"])
    assert types <= seen


def test_query_counts() -> None:
    rows = raw(3)
    assert len(rows) == 409
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["source"] for row in rows} == {"openclaw_lab"}
    assert Counter(row["kind"] for row in rows) == {
        "same": 174, "zh_en": 70, "en_zh": 63, "exact": 57, "unanswerable": 45,
    }  # fmt: skip
    assert Counter(row["lang"] for row in rows) == {"zh": 213, "en": 196}


def test_queries_agree_with_their_kind() -> None:
    languages = {row["id"]: row["lang"] for row in raw(2)}
    for sample in QUERIES:
        answers = {languages[each] for each in sample.label}
        wanted = {"zh_en": {"en"}, "en_zh": {"zh"}, "unanswerable": set()}.get(sample.kind)
        assert answers == wanted if wanted is not None else answers, sample.id
        assert (sample.lang == "zh") <= (sample.kind != "en_zh"), sample.id
        assert (sample.lang == "en") <= (sample.kind != "zh_en"), sample.id


@pytest.mark.parametrize("number", [2, 3])
def test_no_near_duplicates_among_entries_or_queries(number: int) -> None:
    rows = [row for row in raw(number) if row.get("kind") != "exact"]  # exact strings look alike on purpose
    texts = [(row["id"], row.get("query") or f"{row['task']} {row['content']}") for row in rows]
    assert not _near_duplicates([(name, name, text) for name, text in texts])


def test_no_query_is_a_title() -> None:
    titles = {" ".join(row["task"].casefold().split()) for row in raw(2)}
    assert not [sample.id for sample in QUERIES if " ".join(sample.input.casefold().split()) in titles]


# --- nothing real -------------------------------------------------------------------------------------------------

# Ends of names that the public network serves; what is not in the list (README.md, config.test) is no host name.
_ENDS = "com|org|net|io|dev|ai|co|cn|app|info|edu|gov|me|ru|de|uk|us|eu|fr|jp|xyz|top|site|online|cloud|tech"
_HOST = re.compile(rf"(?<![\w.@/-])(?:[a-z0-9-]+\.)+(?:{_ENDS}|example|test|invalid)(?![\w-]|\.\w|\()", re.IGNORECASE)
_ADDRESSED = re.compile(r"(?:\w+://|@)(?:[^\s/@\"'<>]*@)?([A-Za-z0-9](?:[A-Za-z0-9-]*\.)+[A-Za-z]{2,})")
_RESERVED = re.compile(
    r"(?:.*\.)?(?:example|test|invalid|localhost|local|internal)|(?:.*\.)?example\.(?:com|org|net)", re.I
)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.parent.name)
def test_hosts_are_reserved_for_examples(path: Any) -> None:
    content = [text for line in path.read_text("utf-8").splitlines() for text in strings(json.loads(line))]
    found = {name for text in content for name in (*_ADDRESSED.findall(text), *_HOST.findall(text))}
    found = {name for name in found if not name.startswith("pytest.mark.")}  # a decorator, not an address
    assert sorted(name for name in found if not _RESERVED.fullmatch(name)) == []
    assert len(found) >= {"injection": 20, "sessions": 20, "knowledge": 5, "retrieval": 0}[path.parent.name]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.parent.name)
def test_addresses_are_private_or_reserved_for_documentation(path: Any) -> None:
    text = path.read_text("utf-8")
    public = set()
    for candidate in set(re.findall(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])", text)):
        try:
            public |= {candidate} if ipaddress.ip_address(candidate).is_global else set()
        except ValueError:
            continue
    assert public == set()


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.parent.name)
def test_no_key_looks_live(path: Any) -> None:
    live = r"AKIA[0-9A-Z]{16}|ghp_[A-Za-z0-9]{36}|sk-[A-Za-z0-9]{40,}|xox[bp]-[0-9]{10,}-|-----BEGIN [A-Z ]*PRIVATE KEY"
    assert not re.findall(live, path.read_text("utf-8"))
