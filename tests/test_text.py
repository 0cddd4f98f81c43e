"""Words of Chinese and English texts, their language, token counts with and without the encoding files."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import time
import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import rjieba
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_lab import text as module
from openclaw_lab.errors import ConfigError, TokenWarning
from openclaw_lab.experiments.dataset import load_dataset
from openclaw_lab.messages import as_text
from openclaw_lab.text import count_tokens, estimate_tokens, language, words

ENCODINGS = ("cl100k_base", "o200k_base")


@pytest.fixture
def forgetful() -> Iterator[None]:
    """The encoders are looked for anew, before and after."""
    module._encoder.cache_clear()
    yield
    module._encoder.cache_clear()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("   \n\t", []),
        ("…!?—·🙂👩‍💻", []),
        ("Hello, World", ["hello", "world"]),
        ("kb_search(query='x')", ["kb", "search", "query", "x"]),
        ("__init__", ["init"]),
        ("don't", ["don", "t"]),
        ("straße STRASSE", ["strasse", "strasse"]),
        ("v2.10 3.14", ["v2", "10", "3", "14"]),
        ("ＡＰＩ　ｋｅｙ１２", ["api", "key12"]),
        ("ﬁle ①", ["file", "1"]),
        ("cafe\u0301", ["café"]),
        ("数据库", ["数据库", "数据", "据库"]),
        ("数据", ["数据"]),
        ("查", ["查"]),
        ("查。数据", ["查", "数据"]),
        ("用pytest跑测试", ["用", "pytest", "跑", "测试", "跑测"]),
        ("v2版本", ["v2", "版本"]),
        ("版本v2", ["版本", "v2"]),
        ("查_库", ["查", "库"]),
        ("ひらがな", ["ひら", "らが", "がな"]),
        ("ﾃｽﾄ", ["テス", "スト"]),
        ("コード・レビュー", ["コー", "ード", "レビ", "ビュ", "ュー"]),
        ("の", ["の"]),
        ("검색 결과", ["검색", "결과"]),
        ("서", ["서"]),
        ("🙂 ok 🙂", ["ok"]),
        ("二〇二四", ["二", "〇", "二四", "二〇", "〇二"]),
        ("привет мир", ["привет", "мир"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert sorted(words(text)) == sorted(expected)


ODD = "aZ09_ é ßſ-\n，。版本数据库々〇\ufada\u3097\u3099かなカー한국ﬀΩⅣ１"


@given(st.text(st.sampled_from(ODD), max_size=25))
def test_words_are_what_their_definition_says(text: str) -> None:
    assert words(text) == list(_defined(unicodedata.normalize("NFKC", text).casefold()))


def _defined(text: str) -> Iterator[str]:
    """Run by run, without a thought of speed."""
    for match in module._RUN.finditer(text):
        han, syllables, other = match.groups()
        run = match.group()
        pairs = [run[i : i + 2] for i in range(len(run) - 1)]
        if han:
            cut = rjieba.cut(run) if pairs else [run]
            yield from (*cut, *(pair for pair in pairs if pair not in cut))
        elif syllables:
            yield from pairs or [run]
        else:
            parts = module._OTHER_SCRIPT.split(other)
            for index, part in enumerate(parts):
                yield from _defined(part) if index % 2 else filter(None, [part])


def test_a_short_chinese_query_meets_a_longer_cut() -> None:
    assert set(words("记忆库")) & set(words("把它存进长期记忆"))
    assert not set(words("天气")) & set(words("把它存进长期记忆"))


@settings(deadline=None)  # the first example may load a library
@given(st.text())
def test_words_are_never_empty_and_never_hold_separators(text: str) -> None:
    found = words(text)
    assert all(word and not any(char.isspace() or char == "_" for char in word) for word in found)
    assert found == words(unicodedata.normalize("NFKC", text))


@settings(deadline=None)  # the first example may load a library
@given(st.text(), st.text())
def test_words_of_two_lines_are_the_words_of_both(first: str, second: str) -> None:
    assert words(f"{first}\n{second}") == words(first) + words(second)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "en"),
        ("123 …", "en"),
        ("please fix it", "en"),
        ("请修复", "zh"),
        ("用 pytest 跑一下 tests 目录", "zh"),
        ("He wrote 你好 at the top of a rather long English letter", "en"),
        ("ひらがな", "en"),
        ("한국어", "en"),
        ("为 OpenClaw 写一个 reminder plugin", "zh"),
        ("请 review 这个 PR before merging", "zh"),
        ("中 one two", "zh"),
        ("中 one two three", "en"),
        ("What does 改 mean in this sentence?", "en"),
    ],
)
def test_language(text: str, expected: str) -> None:
    assert language(text) == expected


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello world",
        "记住这条经验：先跑测试。",
        "def f(x):\n\treturn x\n" * 50,
        "🙂" * 40,
        "<|endoftext|>",
        "a\ud83d",
    ],
)
def test_counts_are_tiktokens_own(text: str, encoding: str) -> None:
    count_tokens("", encoding)  # makes the encoding known to tiktoken without a network
    assert count_tokens(text, encoding) == len(tiktoken.get_encoding(encoding).encode_ordinary(text))


@settings(deadline=None)  # the first example may load a library
@given(st.text(max_size=200))
def test_counts_are_tiktokens_own_for_any_text(text: str) -> None:
    count_tokens("")
    assert count_tokens(text) == len(tiktoken.get_encoding("cl100k_base").encode_ordinary(text))


@pytest.mark.parametrize("char", ["a", " ", "\n", "中", "^", "😀"])
def test_two_million_times_one_character_is_quick(char: str) -> None:
    count_tokens("")
    start = time.process_time()
    assert count_tokens(char * 2_000_000) > 1000
    assert time.process_time() - start < 8  # measured: 2 s at most; quadratic merging would take an hour


def test_another_encoding_is_refused_by_both() -> None:
    for count in (count_tokens, estimate_tokens):
        with pytest.raises(ConfigError, match="cl100k_base or o200k_base"):
            count("x", "p50k_base")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("spoken", ["zh", "en"])
def test_the_estimate_is_within_15_percent_on_bundled_texts(spoken: str, encoding: str) -> None:
    rows = [str(sample.input) for sample in load_dataset("injection/mini").where(lang=spoken)]
    sessions = [as_text(sample.input.messages) for sample in load_dataset("sessions/mini").where(lang=spoken)]
    for texts in (rows, sessions):
        real = sum(count_tokens(text, encoding) for text in texts)
        assert sum(estimate_tokens(text, encoding) for text in texts) == pytest.approx(real, rel=0.15)
    long = [text for text in sessions if len(text) > 1000]
    assert len(long) > 5
    off = [abs(estimate_tokens(text, encoding) / count_tokens(text, encoding) - 1) for text in long]
    assert sorted(off)[len(off) // 2] < 0.15


@settings(deadline=None)  # the first example may load a library
@given(st.text(max_size=300))
def test_the_estimate_takes_any_text(text: str) -> None:
    assert 0 <= estimate_tokens(text) <= 3 * len(text)


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("damage", ["no folder", "no file", "cut", "a folder"])
def test_without_the_file_the_count_is_the_estimate_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    name = module._ENCODINGS["cl100k_base"][0]
    real = module._encoding_folder()
    assert real
    if damage == "cut":
        (tmp_path / name).write_bytes((real / name).read_bytes()[:-100])
    if damage == "a folder":
        (tmp_path / name).mkdir()
    monkeypatch.setattr(module, "_encoding_folder", lambda: None if damage == "no folder" else tmp_path)
    with pytest.warns(TokenWarning, match="estimated"):
        assert count_tokens("先跑测试 then commit") == estimate_tokens("先跑测试 then commit")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert count_tokens("again") == estimate_tokens("again")


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("before", [None, "/somewhere/else"])
def test_the_environment_is_put_back(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    if before is None:
        monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    else:
        monkeypatch.setenv("TIKTOKEN_CACHE_DIR", before)
    assert count_tokens("hello world") == 2
    assert os.environ.get("TIKTOKEN_CACHE_DIR") == before


def test_a_count_neither_imports_litellm_nor_asks_the_network(tmp_path: Path) -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "from openclaw_lab.text import count_tokens\n"
        "assert count_tokens('你好 world') > 1 and count_tokens('你好 world', 'o200k_base') > 1\n"
        "assert 'litellm' not in sys.modules\n"
    )
    ours = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=ours, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


def test_the_files_are_those_of_the_installed_litellm() -> None:
    folder = module._encoding_folder()
    assert folder
    assert importlib.metadata.version("litellm")
    assert all((folder / name).is_file() for name, _ in module._ENCODINGS.values())
