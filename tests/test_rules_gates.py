"""What a pattern needs is read off its tree; what makes it slow is refused; each field of a rule file is checked."""

from __future__ import annotations

import json
import pickle
import types
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_lab.errors import RuleError
from openclaw_lab.redaction.redactor import preset_rules
from openclaw_lab.rules.gate import CLASSES, gate_of
from openclaw_lab.rules.lint import lint
from openclaw_lab.rules.pattern import compile_js
from openclaw_lab.rules.relaxed import escaped, relaxed_form
from openclaw_lab.rules.rule import Rule, all_rules, combined, load_rules, switched_on
from openclaw_lab.rules.sieve import Sieve, Sought


@pytest.mark.parametrize(
    ("pattern", "flags", "literals", "digits", "before", "after"),
    [
        ("sk-[a-z]{20,40}", "", ("sk-",), 0, 0, 43),
        ("SK-[a-z]+", "i", ("sk-",), 0, 0, None),
        (r"(?<![\w.])[\w.]{1,64}@\w{1,9}", "", ("@",), 0, 65, 10),
        (r"\d{3}-\d{4}", "", ("-",), 4, 3, 5),
        (r"(?<!\d)1[3-9]\d{9}(?!\d)", "", (), 11, 1, 12),
        (r"(?:\d{17}[\dXx]|\d{15})", "", (), 15, 18, 18),
        ("(?:key|token)=", "i", ("key=", "token="), 0, 0, 6),
        ("gh[pousr]_x", "", ("ghp_x", "gho_x", "ghu_x", "ghs_x", "ghr_x"), 0, 0, 5),
        (r"x?y(?:ab|cd){2}", "", ("yabab", "yabcd", "ycdab", "ycdcd"), 0, 5, 5),
        (r"(?<=id: )[a-z]{8}", "", ("id: ",), 0, 8, 12),
        (r"\bname(?=:)", "", ("name",), 0, 1, 5),
        ("(?:abc)+d", "", ("abc",), 0, 0, None),
        ("密码[:：]", "", ("密码:", "密码："), 0, 0, 3),
    ],
)
def test_gates(
    pattern: str, flags: str, literals: tuple[str, ...], digits: int, before: int | None, after: int | None
) -> None:
    gate = gate_of(compile_js(pattern, flags))
    assert gate is not None
    assert (set(gate.literals), gate.digits) == (set(literals), digits)
    # Never less than what a match can reach; a little more does no harm.
    for known, least in ((gate.before, before), (gate.after, after)):
        assert known is None if least is None else known is not None and least <= known <= least + 12


@pytest.mark.parametrize(
    ("pattern", "flags"), [(r"\w{3}", ""), ("a*", ""), ("(?:a|[^b]x)", ""), (r"(a|[b-z\s])\1", "")]
)
def test_no_gate(pattern: str, flags: str) -> None:
    gate = gate_of(compile_js(pattern, flags))
    assert gate is None or not any(len(each) > 1 for each in gate.literals)


@pytest.mark.parametrize(
    ("pattern", "flags", "anchors", "holds"),
    [
        ("sk-[a-z]{20}", "", ["sk"], True),
        ("sk-[a-z]{20}", "", ["sk", "pk"], True),
        ("sk-[a-z]{20}", "", ["pk"], False),
        ("(?:sk|pk)-x", "", ["sk-"], False),
        ("(?:sk|pk)-x", "", ["-"], True),
        ("Key=[a-z]{9}", "i", ["KEY"], True),
        ("Key=[a-z]{9}", "", ["KEY"], False),
        (r"(?:\w{2}-lock|lock@\w)", "", ["lock"], True),
        (r"\d+", "", ["1"], False),
        ("(?:key)?x{2}", "", ["key"], False),
    ],
)
def test_anchors_are_proved(tmp_path: Path, pattern: str, flags: str, anchors: list[str], holds: bool) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([{"id": "a", "type": "t", "pattern": pattern, "flags": flags, "anchors": anchors}]))
    if holds:
        assert load_rules(path)[0].anchors == tuple(anchors)
    else:
        with pytest.raises(
            RuleError, match=r"mine\.json: a: anchors: found .*; expected literals of which every match"
        ):
            load_rules(path)


PARTS = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        "[ab]",
        "[0-9]",
        r"\d{2}",
        "x?",
        "a*",
        "(?:ab|c)",
        "(?:a|b1)+",
        "-",
        "(?=a)",
        "(?!b)",
        "(?<=a)",
        "(?<!b)",
        r"\b",
        "(?:1|22|a3)",
        "[a-c]{1,2}",
        r"\w{2,3}",
        "[^a]",
        "中",
        "中?",
        "[中文]{2}",
        "(a)",
        "^",
        "$",
        "(?:(?<!a)|(?<=b))",
        r"\s",
        r"\s{1,2}",
    ]
)


@settings(deadline=None, max_examples=400)
@given(st.lists(PARTS, min_size=1, max_size=6).map("".join), st.text("ab1-c3x中A", max_size=14), st.booleans())
def test_every_match_holds_its_gate(pattern: str, text: str, ignore: bool) -> None:
    compiled = compile_js(pattern, "i" if ignore else "")
    gate = gate_of(compiled)
    for match in compiled.finditer(text) if gate else ():
        assert gate is not None
        looked_at = text.lower() if ignore else text
        found = [at for each in gate.literals for at in range(len(text)) if looked_at.startswith(each, at)]
        assert found or not gate.literals
        if gate.literals and gate.before is not None:
            near = [at for at in found if at - gate.before <= match.start()]
            assert [at for at in near if gate.after is None or match.end() <= at + gate.after]
        for name, size in gate.runs:
            members = CLASSES[name][0].decode()
            runs = "".join(char if char in members else "\0" for char in text).split("\0")
            assert max(map(len, runs)) >= size


TEXTS = st.text("ab1-c3x中A \u3000\ufeff", max_size=14)


@settings(deadline=None, max_examples=400)
@given(st.lists(PARTS, min_size=1, max_size=6).map("".join), TEXTS, st.booleans())
def test_a_relaxed_pattern_finds_as_much(pattern: str, text: str, ignore: bool) -> None:
    compiled = compile_js(pattern, "i" if ignore else "")
    for match in compiled.finditer(text):
        made = Sieve([Sought((), partial(relaxed_form, compiled))])
        # In any part of the text that holds the match, too.
        for part in (text, text[match.start() :], match.group()):
            assert match.end() == match.start() or made.of(part.encode())


@settings(deadline=None, max_examples=200)
@given(st.text("ab1-c3x中A", max_size=14), st.lists(st.sampled_from(["ab", "1", "x-", "中", "A"]), max_size=4))
def test_a_sieve_names_what_is_there(text: str, words: list[str]) -> None:
    pairs = [(one, other) for one in ["", *words] for other in words]
    made = Sieve([Sought((escaped(one),) if one else (), partial(escaped, other), one) for one, other in pairs])
    for each in (made, pickle.loads(pickle.dumps(made))):
        for _ in range(2):  # an answer that is remembered is the same
            assert each.of(text.encode()) == [at for at, pair in enumerate(pairs) if all(one in text for one in pair)]


def sieve(*rows: tuple[tuple[str, ...], str]) -> Sieve:
    return Sieve([Sought(needs, partial(str, form)) for needs, form in rows])


def test_what_the_engine_cannot_take_is_always_named(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = sieve(((), "a"), ((), "(?<=a)b"), (("b{2000}",), "c"), ((), ""))
    assert odd.of(b"") == [1, 3]
    assert odd.of(b"xc") == [1, 2, 3]
    monkeypatch.setattr("openclaw_lab.rules.sieve.MEMORY", 1)
    big = sieve(((), "a"), ((), "|".join(f"{end}[a-c]{{900}}" for end in range(300))))
    assert big.of(b"") == [0, 1]
    monkeypatch.setattr("openclaw_lab.rules.sieve.re2.Set", _Failing)
    assert sieve(((), "[a-z]{9}"), (("b",), "c")).of(b"") == [0, 1]


class _Failing:
    """A set that runs out of memory in each text."""

    def __init__(self) -> None:
        self._set = types.SimpleNamespace(Match=lambda _: [])
        self.Add = lambda _: 0
        self.Compile = lambda: None

    SearchSet = classmethod(lambda cls, _: cls())


# --- slow patterns ------------------------------------------------------------------------------------------------


def linted(pattern: str, flags: str = "") -> None:
    compiled = compile_js(pattern, flags)
    lint(Rule("r", "t", pattern, flags, "", compiled, gate=gate_of(compiled)), "mine.json")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("[a-z.]+@", "begins with an unbounded repeat of [.a-z]"),
        (r"\d+x", "add a left boundary such as (?<![0-9]), or bound the repeat: {1,64}"),
        (r"(?:\d+)-x", "begins with an unbounded repeat"),
        ("(a+)+b", "an unbounded repeat of [a] within a repeat"),
        ("(?:a|b+)*c", "within a repeat"),
        (r"x(?:\w+\s?)*y", "bound the inner repeat"),
        (r"key\d+\w+z", "two unbounded repeats of [0-9] that meet"),
        ("key.*a.*b", "that meet"),
        ("key[^x]*x", "bound its repeats more tightly"),
        (r"\w{1,1000}@", "bound its repeats more tightly"),
        ("[^a]{4}", "a literal or a number of digits that every match holds"),
    ],
)
def test_slow_patterns_are_refused(pattern: str, words: str) -> None:
    with pytest.raises(RuleError) as error:
        linted(pattern)
    assert str(error.value).startswith("mine.json: r: pattern: found")
    assert words in str(error.value)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?<![\w.])[\w.]{1,64}@[\w.]{1,64}",
        r"STAFF-\d+",
        r"EMP\d{6}",
        r"(?<!\d)1[3-9]\d{9}(?!\d)",
        r"(?<!\w)\w+@x",
        r"(?:key|token)\s{0,4}=\s{0,4}(\S{4,64})",
        r"a-(?:\.\w+)*",
        "密码[:：](.{1,20})",
    ],
)
def test_quick_patterns_pass(pattern: str) -> None:
    linted(pattern)


# --- rule files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"id": "a b"}, "mine.json: a b: id: found 'a b'; expected letters, digits"),
        ({"type": " "}, "mine.json: a: type: found ' '; expected the name of what is found"),
        ({"pattern": ""}, "mine.json: a: pattern: found ''; expected a pattern"),
        ({"anchors": "x"}, "mine.json: a: anchors: found 'x'; expected a list of literals"),
        ({"anchors": [""]}, "expected a list of literals"),
        (
            {"validator": "lunh"},
            "mine.json: a: validator: found lunh; expected the name of a check; did you mean luhn?",
        ),
        ({"validator": 3}, "mine.json: a: validator: found 3; expected the name of a check"),
        ({"replacement": "$1"}, "mine.json: a: replacement: found '$1'; expected a replacement without $"),
        ({"replacement": None}, "expected a replacement without $"),
        ({"languages": ["Chinese"]}, "mine.json: a: languages: found ['Chinese']; expected a list of language codes"),
        ({"languages": "zh"}, "expected a list of language codes"),
        ({"enabled": "yes"}, "mine.json: a: enabled: found 'yes'; expected true or false"),
        ({"note": 3}, "mine.json: a: note: found 3; expected a string"),
        ({"patern": "x"}, "mine.json: a: patern: expected a field of a rule; did you mean pattern?"),
    ],
)
def test_fields(tmp_path: Path, changed: dict[str, Any], expected: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([{"id": "a", "type": "t", "pattern": "x", **changed}]))
    with pytest.raises(RuleError) as error:
        all_rules(path)
    assert expected in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_lists_of_rules() -> None:
    seed = preset_rules("seed")
    changed = Rule("seed-ip", "ip", "x", "", "", compile_js("x"), enabled=False)
    more = Rule("more", "t", "y", "", "", compile_js("y"))
    both = combined(seed, [changed, more])
    assert [rule.id for rule in both] == [*(rule.id for rule in seed), "more"]
    assert [rule.id for rule in switched_on(both, ["more"], "off")] == [rule.id for rule in seed][:-1]
    with pytest.raises(RuleError, match=r"off: found mor; expected the id of a rule; did you mean more\?"):
        switched_on(both, ["mor"], "off")
