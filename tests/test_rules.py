"""Rules mean the same in Python as in JavaScript: by a table, and by comparison with Node where it is installed."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from openclaw_lab.errors import DataError, RuleError
from openclaw_lab.injection import detectors
from openclaw_lab.rules.pattern import compile_js, js_collapse
from openclaw_lab.rules.rule import load_rules

SEED = load_rules(Path(detectors.__file__).with_name("rules") / "seed.json")
NODE = shutil.which("node")
SPACES = "\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
NO_SPACES = "\x1c\x1d\x1e\x1f\x85\u180e\u200b\u2060a0_中"


@pytest.mark.parametrize("char", SPACES, ids=lambda c: f"U+{ord(c):04X}")
def test_white_space(char: str) -> None:
    for pattern in (r"\s", r"[\s]", r"[x\s]", r"[\sx]", r"[^\S]"):
        assert compile_js(pattern).fullmatch(char)
    for pattern in (r"\S", r"[^\s]", r"[\S]", r"[x\S]"):
        assert not compile_js(pattern).search(char)
    assert js_collapse(f"{char}a{char}{char}b{char}") == "a b"


@pytest.mark.parametrize("char", NO_SPACES, ids=lambda c: f"U+{ord(c):04X}")
def test_no_white_space(char: str) -> None:
    for pattern in (r"\s", r"[\s]", r"[^\S]"):
        assert not compile_js(pattern).search(char)
    for pattern in (r"\S", r"[\S]", r"[^\s]"):
        assert compile_js(pattern).fullmatch(char)
    assert js_collapse(char) == char


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "matched"),
    [
        (r"\d+", "", "٣४３ 42", "42"),
        (r"\w+", "", "中é ab_1", "ab_1"),
        (r"\bkey\b", "", "密key钥", "key"),
        (r"\bkey\b", "", "akey", None),
        (r"\D", "", "٣", "٣"),
        (r"\W", "", "é", "é"),
        ("system", "i", "SyStEm", "SyStEm"),
        ("system", "i", "\u017fystem", None),  # long s
        ("key", "i", "\u212aey", None),  # Kelvin sign
        ("[a-z]", "i", "\u017f\u212a", None),
        (r"\w", "i", "\u017f\u212a", None),
        ("忽略", "i", "请忽略", "忽略"),
        (".", "", "\n\r\u2028\u2029", None),
        (".", "", "\x85", "\x85"),
        (".", "s", "\u2028", "\u2028"),
        ("[.]", "", "a.", "."),
        (r"\.", "", "a.", "."),
        ("a$", "", "a\n", None),
        ("a$", "", "ba", "a"),
        ("a$", "m", "a\u2028b", "a"),
        ("a$", "m", "a\x85b", None),
        ("^b", "m", "a\rb", "b"),
        ("^b", "", "a\nb", None),
        ("[$^]", "", "x^", "^"),
        ("[(?]x", "", "?x", "?x"),
        ("[*+]+", "", "a+*", "+*"),
        ("[[]", "", "[", "["),
        ("[a&&b]", "", "&", "&"),
        ("[a||b]", "", "|", "|"),
        (r"[\]]", "", "]", "]"),
        (r"[\d\-]", "", "-", "-"),
        (r"[-\s]", "", "-", "-"),
        (r"[\s-]", "", "-", "-"),
        (r"[\s\S]", "", "\u2028", "\u2028"),
        (r"[^\s\S]", "", "a \n", None),
        (r"\u4e2d\x41", "", "中A", "中A"),
        (r"(a)\1", "", "aa", "aa"),
        ("(?<=x)a(?!b)", "", "abxa", "a"),
        ("(?<!x)a(?=b)(?:b)", "", "xabab", "ab"),
        ("x{2}", "", "axx", "xx"),
        (r"\/\-\{", "", "/-{", "/-{"),
        ("🙂", "", "a🙂", "🙂"),
        ("", "", "a", ""),
    ],
)
def test_translation(pattern: str, flags: str, text: str, matched: str | None) -> None:
    found = compile_js(pattern, flags).search(text)
    assert (found.group() if found else None) == matched


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        ("(", ""), ("a)", ""), ("[a", ""), ("*a", ""), ("a{2,1}", ""), ("[b-a]", ""), ("\\", ""), ("[a\\", ""),
        ("(?", ""),
        ("(?<=a+)b", ""), (r"(a)\2", ""), ("a{99999999999}", ""),
        # valid in Python only, or valid in both and read differently
        ("(?P<n>a)", ""), ("(?i)a", ""), ("(?i:a)", ""), ("(?#c)", ""), ("(?>a)", ""), ("(a)(?(1)b)", ""), ("a++", ""),
        ("a*+", ""), ("a?+", ""), ("a{2}+", ""), ("a{,3}", ""), ("[]", ""), ("[]a]", ""), ("[^]", ""), (r"\A", ""),
        (r"a\Z", ""), (r"\a", ""), (r"\e", ""), (r"\_a\G", ""), (r"\0", ""), (r"[\1]", ""), (r"[\B]", ""),
        (r"\u12", ""),
        (r"\u{1F642}", ""), (r"\x4", ""), (r"\cA", ""), (r"\p{L}", ""), (r"\N{DASH}", ""), (r"\U0001F642", ""),
        (r"[a-\s]", ""), (r"[\s-x]", ""), ("[🙂]", ""), ("🙂+", ""), ("🙂{2}", ""), ("(?<n>a)", ""), (r"\k<n>", ""),
        # letters whose case JavaScript ignores and Python's ASCII mode does not
        ("é", "i"), ("[à-ÿ]", "i"), (r"\u00e9", "i"), (r"\xE9", "i"), ("\uff41", "i"), ("Д", "i"), ("ſ", "i"),
        ("[É]", "i"),
        # flags
        ("a", "u"), ("a", "y"), ("a", "x"), ("a", "iu"),
    ],
)  # fmt: skip
def test_what_does_not_mean_the_same_is_refused(pattern: str, flags: str) -> None:
    with pytest.raises(RuleError) as error:
        compile_js(pattern, flags, "rules.json: some-id")
    assert str(error.value).startswith("rules.json: some-id: found")
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("pattern", ["é", "Д"])
def test_the_same_letters_without_the_flag(pattern: str) -> None:
    assert compile_js(pattern).search(f"x{pattern}")


@settings(deadline=None)
@given(st.text(), st.sets(st.sampled_from("gimsuy")))
def test_any_pattern_compiles_or_is_refused(pattern: str, flags: set[str]) -> None:
    with contextlib.suppress(RuleError):
        assert isinstance(compile_js(pattern, "".join(flags)), re.Pattern)


def rule(**changed: object) -> dict[str, object]:
    return {"id": "a", "type": "override", "pattern": "x", "flags": "i", **changed}


def test_a_rule_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    rows = [rule(note="why"), rule(id="b", enabled=False), rule(id="c", flags="", languages=["zh"])]
    path.write_text(json.dumps(rows), "utf-8-sig")
    first, second = load_rules(path)
    assert (first.id, first.type, first.pattern, first.flags, first.note) == ("a", "override", "x", "i", "why")
    assert (second.id, second.note, second.compiled.search("X")) == ("c", "", None)
    path.write_text("[]")
    assert load_rules(path) == ()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "mine.json:1: found Expecting value; expected a JSON list of rules"),
        ("[\n{,}]", "mine.json:2: found Expecting property name"),
        ("{}", "mine.json: found {}; expected a JSON list of rules"),
        ("[" * 100_000, "mine.json: found JSON that cannot be read"),
        ("[3]", "mine.json: found 3; expected an object with the strings id, type and pattern"),
        ('[{"id": "a", "type": "t"}]', "expected an object with the strings id, type and pattern"),
        (json.dumps([rule(id=5)]), "expected an object with the strings id, type and pattern"),
        (json.dumps([rule(pattern="(")]), "mine.json: a: found (; expected a valid pattern"),
        (json.dumps([rule(flags="z")]), "mine.json: a: found the flag 'z'; expected flags among g, i, m, s"),
        (json.dumps([rule(flags=7)]), "mine.json: a: found the flag '7'"),
        (json.dumps([rule(flags=None)]), "mine.json: a: found the flag 'None'"),
        (json.dumps([rule(), rule()]), "mine.json: a: found the id twice; expected one rule an id"),
        (json.dumps([rule(), rule(enabled=False)]), "mine.json: a: found the id twice"),
        (json.dumps([rule(enabled=False, pattern="(")]), "mine.json: a: found ("),
    ],
)
def test_a_bad_rule_file(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(content, "utf-8")
    with pytest.raises(RuleError) as error:
        load_rules(path)
    assert expected in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_rule_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json.*expected an existing file"):
        load_rules(tmp_path / "none.json")


# --- against Node -------------------------------------------------------------------------------------------------

PATTERNS = [
    *((each.pattern, each.flags) for each in SEED),
    (r"\s+", ""), (r"\S+", ""), (r"[\s\S]", ""), (r"[^\s:]+$", "m"), (r"^.*$", "m"), (r"^.", ""), (r".$", ""),
    (r".+", "s"),
    (r"\bkey\b", "i"), (r"[a-z]+", "i"), (r"\w+\W", "i"), (r"\d", ""), (r"[&&|~[]", ""), (r"忽略.{0,3}指令", "i"),
]  # fmt: skip
WORDS = [
    "ignore", "all", "previous", "instructions", "do not follow", "the", "system", "system prompt", "<", "assistant",
    "developer", "tool", "forget", "everything", "new instructions:", "忽略", "指令", "key", "\u212aey", "\u017fystem",
    "É", "é", "&", "[", "0", "٣",
]  # fmt: skip
PIECES = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from([word.upper() for word in WORDS]),
    st.sampled_from(list(SPACES + NO_SPACES)),
    st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]),
)
SCRIPT = """
const {patterns, texts} = JSON.parse(require("fs").readFileSync(0, "utf8"));
const compiled = patterns.map(([pattern, flags]) => new RegExp(pattern, flags));
const look = (text) => compiled.map((each) => { const m = each.exec(text); return m && [m.index, m[0]]; });
process.stdout.write(JSON.stringify(texts.map((text) => {
  const collapsed = text.replace(/\\s+/g, " ").trim();
  return [collapsed, look(text), look(collapsed)];
})));
"""


def _texts() -> list[str]:
    """A few hundred strings made by hypothesis, near what the patterns look for."""
    texts: list[str] = []

    @settings(max_examples=400, database=None, derandomize=True, phases=[Phase.generate], deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.lists(PIECES, max_size=12).map("".join) | st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join))
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    return texts


@pytest.mark.skipif(NODE is None, reason="node is not on PATH")
def test_the_same_matches_as_node() -> None:
    texts = _texts()
    question = json.dumps({"patterns": PATTERNS, "texts": texts})
    done = subprocess.run([str(NODE), "-e", SCRIPT], input=question, capture_output=True, encoding="utf-8", check=True)
    compiled = [compile_js(pattern, flags) for pattern, flags in PATTERNS]

    def look(text: str) -> list[Any]:
        found = [each.search(text) for each in compiled]
        return [match and [match.start(), match.group()] for match in found]

    hits = 0
    for text, (collapsed, plain, after) in zip(texts, json.loads(done.stdout), strict=True):
        assert js_collapse(text) == collapsed, ascii(text)
        for looked_at, theirs in ((text, plain), (collapsed, after)):
            assert look(looked_at) == theirs, ascii(looked_at)
            hits += sum(each is not None for each in theirs[: len(SEED)])
    assert len(texts) > 300
    assert hits > 20
