"""The redaction task: the seed's figures to the row, counts by hand, partial rows, each rule alone, what is shown."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes

import openclaw_lab as lab
from openclaw_lab.config import LabConfig, RedactionConfig
from openclaw_lab.errors import LabError, TaskError
from openclaw_lab.experiments.dataset import Dataset, Sample, load_dataset
from openclaw_lab.experiments.evaluate import Results, evaluate
from openclaw_lab.experiments.secrets import Secrets
from openclaw_lab.experiments.tasks.breakdown import by_rule, by_type, latency
from openclaw_lab.experiments.tasks.outcomes import REMOVED, Outcome, aligned, judged, outcome, touches
from openclaw_lab.experiments.tasks.redaction import RedactionTask
from openclaw_lab.messages import Span
from openclaw_lab.redaction.redactor import Redactor
from openclaw_lab.redaction.spans import Found, Redaction

DATA = Path(os.environ.get("OPENCLAW_LAB_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
SEED = LabConfig.preset("seed")
STRICT = LabConfig()

# The table of the data's README: what the seed document's own function does on each file.
SEED_TABLE = [
    ("argus_zh_en", 500, 486, 47, 3, 57, 7, {"phone": (4, 81), "pii": (2, 51), "email": (36, 37), "ssn": (0, 23)}),
    ("cn_pii_tests", 40, 45, 10, 0, 10, 0, {"phone": (1, 16), "id_number": (0, 10), "email": (9, 9)}),
    ("detect_secrets", 151, 75, 2, 0, 2, 0, {"key": (2, 75)}),
    ("home_paths", 58, 65, 64, 0, 64, 0, {"path": (64, 65)}),
    ("logs", 285, 368, 355, 1, 361, 5, {"ip": (325, 337), "email": (30, 31)}),
    ("pii_bench_zh_formal", 500, 1588, 105, 0, 105, 0, {"person": (0, 531), "email": (105, 105), "phone": (0, 450)}),
    ("pii_syn_nano", 121, 271, 32, 10, 42, 0, {"email": (32, 33), "key": (0, 26)}),
    ("presidio_research", 1385, 2846, 68, 5, 73, 0, {"person": (0, 854), "credit_card": (0, 136)}),
    ("presidio_unit", 580, 373, 27, 30, 64, 7, {"iban": (0, 158), "ip": (20, 86), "phone": (1, 28)}),
    ("tech_benign", 530, 10, 9, 1, 270, 260, {"email": (9, 10)}),
    ("tracebacks", 133, 23, 23, 0, 23, 0, {"path": (23, 23)}),
]  # fmt: skip


def marked(text: str, *, complete: bool = True, row: str = "1", **more: str) -> Sample:
    """A sample of a text with its secrets written as `⟦type:value⟧`."""
    plain, spans = "", []
    for part in re.split("(⟦[^⟧]*⟧)", text):
        if part.startswith("⟦"):
            kind, _, value = part[1:-1].partition(":")
            spans.append(Span(len(plain), len(plain) + len(value), kind))
            part = value
        plain += part
    return Sample(row, plain, Secrets(tuple(spans), complete), **{"dataset": "made", **more})


def made(*samples: str | Sample) -> Dataset:
    """A dataset of marked texts; ids are numbers."""
    rows = [each if isinstance(each, Sample) else marked(each) for each in samples]
    return Dataset("made", "redaction", tuple(replace(each, id=str(n)) for n, each in enumerate(rows)))


def values(results: Results) -> dict[str, tuple[float, int]]:
    return {name: (each.value, each.n) for name, each in results.metrics.items()}


# --- the seed's table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "rows", "spans", "whole", "partly", "redactions", "false", "types"), SEED_TABLE)
def test_the_seeds_figures(
    name: str, rows: int, spans: int, whole: int, partly: int, redactions: int, false: int,
    types: dict[str, tuple[int, int]],
) -> None:  # fmt: skip
    path = DATA / "redaction" / f"{name}.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not there; set OPENCLAW_LAB_DATA to the folder of the public data")
    results = evaluate("redaction", load_dataset(path), SEED)
    tallies = {key: int(each.sum()) for key, each in results.measured.tallies.items()}
    assert len(results.data) == rows
    assert (tallies["secrets"], tallies["removed"], tallies["partly"]) == (spans, whole, partly)
    answers = [answer for answer in results.prepared.variant().answers if isinstance(answer, Outcome)]
    assert sum(len(answer.spans) for answer in answers) == redactions
    assert sum(sum(answer.wrong) for answer in answers) == false
    assert results.metrics["recall"].value == pytest.approx(whole / spans)
    table = by_type(results).frame.set_index("type")
    for kind, (full, total) in types.items():
        assert (table.loc[kind, "recall"], table.loc[kind, "recall_n"]) == (pytest.approx(full / total), total)


# --- counts by hand -----------------------------------------------------------------------------------------------

MADE = made(
    "mail ⟦email:bob@example.com⟧ or ⟦phone:13800138000⟧",  # one removed, one leaked
    "版本 10.2.3.4 已发布",  # one false redaction
    "你好，世界",  # nothing, rightly
    marked("call ⟦phone:555-123-4567⟧ or 1.2.3.4", complete=False),  # removed; 1.2.3.4 is nobody's business
    "Bearer ⟦key:abc.def⟧",  # partly
    '{"user": "⟦email:zhang@example.cn⟧", "n": 1}',  # removed; JSON stays
)


def test_metrics_by_hand() -> None:
    plain = len(MADE[0].input) - 26 + len(MADE[1].input) + len(MADE[2].input) + 7 + len(MADE[5].input) - 16
    expected = {
        "recall": (3 / 5, 5), "partial": (1 / 5, 5), "leaked": (1 / 5, 5), "false_redactions": (1 / 5, 5),
        "precision": (3 / 4, 4), "excess": (8 / plain, plain), "structure": (1.0, 1), "idempotent": (1.0, 6),
        "unscored": (0.0, 6),
    }  # fmt: skip
    assert values(evaluate("redaction", MADE, SEED)) == {
        name: (pytest.approx(value), n) for name, (value, n) in expected.items()
    }


def test_the_frame_has_a_row_a_text() -> None:
    frame = evaluate("redaction", MADE, SEED).frame
    assert frame["id"].tolist() == [sample.id for sample in MADE]
    counts = frame[["spans", "removed", "partly", "leaked", "redactions"]].astype(int).to_numpy().tolist()
    assert counts == [[2, 1, 0, 1, 1], [0, 0, 0, 0, 1], [0] * 5, [1, 1, 0, 0, 2], [1, 0, 1, 0, 1], [1, 1, 0, 0, 1]]
    assert frame["false"].fillna(-1).tolist() == [0, 1, 0, -1, 0, 0]
    assert frame["correct"].tolist() == [False, False, True, True, False, True]
    assert frame["complete"].tolist() == [True, True, True, False, True, True]
    assert frame["reason"][1] == "false redaction: seed-ip removes 10…(8 ip), which is no secret"
    assert frame["reason"][2] == "nothing removed"
    assert frame["reason"][4] == "partly leaked: key a…(7 key): seed-bearer removes 3 of 7 characters"
    assert frame["reason"][5] == "removed by seed-email"


def test_a_partial_row_tells_nothing_of_what_else_is_removed() -> None:
    texts = ["⟦email:a@example.com⟧ 1.2.3.4", "1.2.3.4"]
    partial = evaluate("redaction", made(*(marked(text, complete=False) for text in texts)), SEED)
    assert values(partial)["recall"] == (1.0, 1)
    for name in ("false_redactions", "precision", "excess"):
        assert partial.metrics[name].n == 0
        assert math.isnan(partial.metrics[name].value)
    assert partial.errors().empty
    assert by_rule(partial).frame[["false", "costs", "spoilt"]].to_numpy().sum() == 0
    whole = evaluate("redaction", made(*texts), SEED)
    assert values(whole)["false_redactions"] == (1.0, 2)
    assert by_rule(whole).frame.set_index("rule").loc["seed-ip", ["false", "costs", "spoilt"]].tolist() == [2, 2, 2]


def test_neighbours_count_as_one_and_halves_as_half() -> None:
    def halves(text: str) -> Redaction:
        return Redaction(f"[A][B]{text[6:]}", (Found(0, 3, "x", "a", "[A]"), Found(3, 6, "x", "b", "[B]")))

    results = evaluate("redaction", made("⟦key:secret⟧ more", "⟦key:secrets⟧ more"), redactor=halves)
    assert results.frame["removed"].tolist() == [1, 0]
    assert results.frame["partly"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("start", "written"), [(3, "/Users/[REDACTED]"), (10, "[REDACTED]")], ids=["with its frame", "the name alone"]
)
def test_words_that_a_rule_writes_again_are_neither_leaked_nor_removed(start: int, written: str) -> None:
    text = "cd /Users/ada/src"
    found = (Found(start, 13, "path", "home", written),)
    for size, states in ((10, (2,)), (14, (1,))):  # the label ends with the name, or lies beyond it
        secrets = Secrets((Span(3, 3 + size, "path"),))
        made_ = judged(text, secrets, found, {"home": "/Users/[REDACTED]"})
        assert (made_.states, made_.wrong, made_.excess) == (states, (False,), 0)
    nothing = judged(text, Secrets(), found, {"home": "/Users/[REDACTED]"})
    assert (nothing.wrong, nothing.excess) == ((True,), 3)


@pytest.mark.parametrize("text", [r"C:\Users\ada", r"C:\\Users\\ada", r"C:\\\\Users\\\\ada"])
def test_a_frame_may_be_escaped(text: str) -> None:
    secrets = Secrets((Span(0, len(text), "path"),))
    found = (Found(len(text) - 3, len(text), "path", "home", "[REDACTED]"),)
    assert judged(text, secrets, found, {"home": r"C:\Users\[REDACTED]"}).states == (REMOVED,)
    assert judged(text, secrets, found, {"home": r"D:\Users\[REDACTED]"}).states == (1,)


def test_json_and_a_second_pass() -> None:
    def breaks(text: str) -> str:
        return text.replace("}", "]") if len(text) % 2 else f"{text}!"

    results = evaluate("redaction", made('{"a": 1}', '{"aa": 1}', "odd", "even"), redactor=breaks)
    assert values(results)["structure"] == (0.0, 2)
    assert values(results)["idempotent"] == (0.75, 4)
    assert results.errors()["error"].drop_duplicates().tolist() == ["false redaction", "broken JSON", "not idempotent"]
    numbers = made("13800138000", "[1, 2]", '"text"')
    assert evaluate("redaction", numbers).metrics["structure"].n == 1


def test_by_type_by_hand() -> None:
    table = by_type(evaluate("redaction", MADE, SEED))
    frame = table.frame.set_index("type")
    assert frame.index.tolist() == ["email", "phone", "key"]
    assert frame["recall"].tolist() == [1.0, 0.5, 0.0]
    assert frame["partial"].tolist() == [0.0, 0.0, 1.0]
    assert frame["leaked"].tolist() == [0.0, 0.5, 0.0]
    assert frame["recall_n"].tolist() == [2, 2, 1]
    assert frame["recall_low"].between(0, frame["recall"]).all()
    assert "redaction by type on made" in str(table)


def test_groups_make_intervals_wider() -> None:
    texts = [marked(f"⟦email:a{n}@example.com⟧ ⟦key:k{n}⟧") for n in range(20)]
    alone = evaluate("redaction", made(*texts), SEED).metrics["recall"]
    grouped = made(*(replace(each, group=str(n % 2)) for n, each in enumerate(texts)))
    together = evaluate("redaction", grouped, SEED).metrics["recall"]
    assert alone.value == together.value == 0.5
    assert alone.high - alone.low <= together.high - together.low


# --- each rule alone ----------------------------------------------------------------------------------------------


def write_rules(folder: Path, *rules: dict[str, Any]) -> str:
    path = folder / "mine.json"
    path.write_text(json.dumps(rules, ensure_ascii=False), "utf-8")
    return str(path)


RULES: tuple[dict[str, Any], ...] = (
    {"id": "ab", "type": "a", "pattern": "ab{1,3}", "replacement": "[AB]"},
    {"id": "bc", "type": "b", "pattern": "bc", "replacement": "[BC]"},
    {"id": "c-end", "type": "c", "pattern": "c(?![a-z])", "replacement": "[C]"},
    {"id": "hash", "type": "d", "pattern": "(?<![a-z])#[a-c]", "replacement": "[HASH]"},
    {"id": "never", "type": "e", "pattern": "zzz", "replacement": "[Z]"},
)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabConfig]:
    """Small rules that overlap, and see what the others leave; not linted, for they are read very often."""
    path = write_rules(tmp_path_factory.mktemp("rules"), *RULES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("openclaw_lab.redaction.redactor.lint", lambda rule, file: None)
        yield LabConfig().with_({"redaction.preset": "relaxed", "redaction.rules": path})


def test_gains_and_costs_by_hand(own: LabConfig) -> None:
    results = evaluate(
        "redaction",
        made(
            "⟦x:ab⟧c",  # ab and bc overlap: abc is one redaction; ab removes x alone, bc removes half of it
            "bc",  # bc is wrong; without it c-end is still wrong
            "⟦y:#a⟧",  # hash gains
            "ab ⟦x:bc⟧",  # ab is wrong, and its cost
        ),
        own,
    )
    frame = by_rule(results).frame
    assert frame[["rule", "type", "redactions", "false", "gains", "costs", "spoilt"]].to_numpy().tolist() == [
        ["bc", "b", 2, 1, 1, 0, 0], ["hash", "d", 1, 0, 1, 0, 0], ["ab", "a", 2, 1, 1, 1, 1],
    ]  # fmt: skip


TEXTS = st.lists(
    st.tuples(st.text("abc#[] ", max_size=12), st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4)), max_size=2),
              st.booleans()),
    min_size=1, max_size=6,
)  # fmt: skip


def labelled(rows: Sequence[tuple[str, list[tuple[int, int]], bool]]) -> Dataset:
    samples = []
    for text, spans, complete in rows:
        kept = tuple(Span(start, start + size, "x") for start, size in spans if start + size <= len(text))
        samples.append(Sample("", text, Secrets(kept, complete), "made"))
    return made(*samples)


def brute(data: Dataset, config: RedactionConfig, rule: str) -> tuple[int, int]:
    """Gains and costs of a rule by redacting every text twice."""
    whole, less = Redactor(config), Redactor(replace(config, off=(*config.off, rule)))
    frames = {each.id: each.replacement for each in whole.rules}
    gains = costs = 0
    for sample in data:
        a, b = (outcome(each.redact, sample.input, sample.label, frames) for each in (whole, less))
        assert isinstance(a, Outcome)
        assert isinstance(b, Outcome)
        gains += sum(x == REMOVED != y for x, y in zip(a.states, b.states, strict=True))
        if sample.label.complete:
            costs += sum(
                bad and not any(touches(each, other) for other in b.spans)
                for each, bad in zip(a.spans, a.wrong, strict=True)
            )
    return gains, costs


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.sets(st.sampled_from(["ab", "bc", "c-end"]), max_size=2))
def test_leave_one_out_is_what_brute_force_gives(own: LabConfig, rows: Any, off: set[str]) -> None:
    data, config = labelled(rows), own.with_({"redaction.off": tuple(sorted(off))})
    frame = by_rule(evaluate("redaction", data, config)).frame.set_index("rule")
    for rule in Redactor(config.redaction).rules:
        found = tuple(frame.loc[rule.id, ["gains", "costs"]]) if rule.id in frame.index else (0, 0)
        assert found == brute(data, config.redaction, rule.id), rule.id


@pytest.mark.parametrize("config", [SEED, STRICT], ids=["seed", "strict"])
def test_leave_one_out_on_the_bundled_texts(config: LabConfig) -> None:
    data = load_dataset("redaction/mini")[:200]
    frame = by_rule(evaluate("redaction", data, config)).frame.set_index("rule")
    assert frame["gains"].sum() > 0
    for rule in [*frame.index[:8], *frame.index[-4:]]:
        assert tuple(frame.loc[rule, ["gains", "costs"]]) == brute(data, config.redaction, rule), rule


def test_rules_within_json_are_found(own: LabConfig) -> None:
    inner = json.dumps({"k": "⟦x:ab⟧"}, ensure_ascii=False)
    data = made(json.dumps({"a": inner, "e": "#\u0061"}, ensure_ascii=False), '{"ab": "\\u0061\\u0062"}')
    frame = by_rule(evaluate("redaction", data, own)).frame.set_index("rule")
    assert frame.loc["ab", ["redactions", "gains", "costs"]].tolist() == [2, 1, 1]
    assert frame.loc["hash", ["redactions", "costs"]].tolist() == [1, 1]


def test_by_rule_by_dataset(own: LabConfig) -> None:
    data = made(marked("⟦x:ab⟧", dataset="one"), marked("ab", dataset="two"), marked("nothing", dataset="three"))
    results = evaluate("redaction", data, own)
    assert by_rule(results, by="dataset").frame[["rule", "dataset", "gains", "costs"]].to_numpy().tolist() == [
        ["ab", "one", 1, 0], ["ab", "two", 0, 1],
    ]  # fmt: skip
    named = by_rule(results, by="dataset", rules=["never", "ab"]).frame
    assert len(named) == 6
    assert named[named["rule"] == "never"][["redactions", "gains", "costs"]].to_numpy().sum() == 0
    assert by_rule(results, rules="ab").frame["rule"].tolist() == ["ab"]


def test_by_rule_refuses(own: LabConfig) -> None:
    results = evaluate("redaction", made("ab"), own)
    with pytest.raises(TaskError, match="did you mean hash"):
        by_rule(results, rules=["hush"])
    with pytest.raises(TaskError, match="of your own"):
        by_rule(evaluate("redaction", made("ab"), redactor=str.upper))
    with pytest.raises(TaskError, match="what evaluate"):
        by_rule(evaluate("injection", "injection/mini"))
    with pytest.raises(TaskError, match="what evaluate"):
        by_type(results.frame)  # type: ignore[arg-type]


# --- sweeps -------------------------------------------------------------------------------------------------------


def test_a_sweep_is_what_each_setting_gives_alone() -> None:
    data = load_dataset("redaction/mini")[:120]
    offs = [(), ("seed-ip",), ("seed-ip", "seed-email"), ("seed-mac-path",)]
    swept = lab.sweep("redaction", data, SEED, {"redaction.off": offs})
    for choice in swept.choices:
        fresh = evaluate("redaction", data, choice.config)
        brute_force = [outcome(Redactor(choice.config.redaction).redact, each.input, each.label) for each in data]
        assert fresh.prepared.variant(choice.config.redaction.off).answers == brute_force
        assert [str(each) for each in choice.metrics.values()] == [str(each) for each in fresh.metrics.values()]
    assert swept.frame["recall"].is_monotonic_decreasing or swept.frame["recall"].nunique() > 1
    assert isinstance(swept.plot(), Axes)


def test_a_sweep_prepares_once_for_each_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    plain = RedactionTask.prepare

    def counted(self: RedactionTask, data: Dataset, config: LabConfig) -> Any:
        calls.append(config.redaction.preset)
        return plain(self, data, config)

    monkeypatch.setattr(RedactionTask, "prepare", counted)
    space = {"redaction.preset": ["seed", "relaxed"], "redaction.off": [()]}
    frame = lab.sweep("redaction", MADE, SEED, space).frame
    assert calls == ["seed", "relaxed"]
    assert frame["recall"].tolist() == [3 / 5, 0.0]
    lab.sweep("redaction", MADE, SEED, {"redaction.off": [(), ("seed-ip",), ("seed-email",)]})
    assert calls[2:] == ["seed"]


def test_an_unknown_rule_is_an_error_even_where_nothing_is_found() -> None:
    with pytest.raises(LabError, match=r"redaction\.off: found seed-ib; .*did you mean seed-ip"):
        evaluate("redaction", made("hello"), SEED.with_({"redaction.off": ("seed-ib",)}))


def test_presets_compare_and_plot() -> None:
    data = load_dataset("redaction/mini")
    seed, strict = evaluate("redaction", data, SEED), evaluate("redaction", data, STRICT)
    assert strict.metrics["recall"].value >= seed.metrics["recall"].value
    assert strict.metrics["idempotent"].value == strict.metrics["structure"].value == 1
    frame = lab.compare({"seed": seed, "strict": strict}).frame.set_index("metric")
    assert frame.loc["recall", "difference"] >= 0
    assert isinstance(strict.plot(by="lang"), Axes)
    assert strict.by("kind").frame["recall_n"].sum() == 604


# --- redactors of one's own ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "removed"),
    [
        ("", "", []),
        ("same", "same", []),
        ("mail bob@example.com now", "mail [EMAIL] now", ["bob@example.com"]),
        ("bob@example.com", "[EMAIL]", ["bob@example.com"]),
        ("电话 13800138000，谢谢", "电话 [PHONE]，谢谢", ["13800138000"]),
        ("a=sk-123456789, b=sk-987654321", "a=[KEY], b=[KEY]", ["sk-123456789, b=sk-987654321"]),
        ("first sk-123456789 then sk-987654321", "first [KEY] then [KEY]", ["sk-123456789", "sk-987654321"]),
        ("gone", "", ["gone"]),
        ("kept", "kept and more", []),
    ],
)
def test_what_a_text_says_about_the_spans(before: str, after: str, removed: list[str]) -> None:
    assert [before[each.start : each.end] for each in aligned(before, after)] == removed


def test_a_redactor_that_gives_texts() -> None:
    def starred(text: str) -> str:
        return text.replace("bob@example.com", "***")

    results = evaluate("redaction", MADE, redactor=starred)
    assert results.metrics["recall"].value == 1 / 5
    assert results.task.options() == {"redactor": "starred"}
    assert evaluate("redaction", MADE, SEED, redactor=Redactor(SEED.redaction).redact).metrics == (
        evaluate("redaction", MADE, SEED).metrics
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "TypeError: the redactor gave NoneType, not a Redaction or a str"),
        (Redaction("other", ()), "ValueError: the text does not follow from the spans"),
        (RuntimeError("no model for bob@example.com"), "RuntimeError: no model for bo…(15 email)"),
    ],
)
def test_what_a_redactor_could_not_redact_is_unscored(answer: Any, reason: str) -> None:
    def fails(text: str) -> Any:
        if "bob" not in text:
            return text
        if isinstance(answer, Exception):
            raise answer
        return answer

    results = evaluate("redaction", MADE, redactor=fails)
    assert values(results)["unscored"] == (1 / 6, 6)
    assert results.metrics["recall"].n == 3
    assert results.metrics["idempotent"].n == 5
    assert results.frame["correct"].isna().tolist() == [True, *[False] * 5]
    assert results.frame["reason"][0] == reason
    assert results.errors()["error"].tolist()[-1] == "unscored"
    assert by_type(results).frame["recall_n"].sum() == 3


def test_ctrl_c_in_a_redactor_stops() -> None:
    def stopped(text: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate("redaction", MADE, redactor=stopped)


def test_a_sample_without_labels() -> None:
    for label in (None, 1, ()):
        with pytest.raises(TaskError, match=r"sample a label: found a .*; expected Secrets"):
            evaluate("redaction", Dataset("made", "redaction", (Sample("a", "text", label),)))
    far = Dataset("made", "redaction", (Sample("a", "text", Secrets((Span(2, 9, "key"),))),))
    with pytest.raises(TaskError, match="sample a: found the span 2:9; expected one in 0:4"):
        evaluate("redaction", far)
    with pytest.raises(TaskError, match="a callable"):
        evaluate("redaction", MADE, redactor="seed")


# --- what is shown ------------------------------------------------------------------------------------------------

KEY, CARD, PASSWORD = "tok_q8Zr41Vx77Lm", "4000 0012 3456 7899", "Xy7#"
SHOWN = made(
    f"the key is ⟦key:{KEY}⟧ and the card {CARD}",
    f"密码 ⟦password:{PASSWORD}⟧，版本 10.20.30.40",
    "contact ⟦email:zhou@example.com⟧ at 10.0.0.9",
)


def test_errors_come_worst_first_with_reasons_and_nothing_to_read() -> None:
    errors = evaluate("redaction", SHOWN, SEED).errors()
    assert errors["error"].tolist() == ["leaked", "leaked", "false redaction", "false redaction"]
    assert errors["value"].tolist() == ["to…(16 key)", "X…(4 password)", "10…(11 ip)", "10…(8 ip)"]
    assert errors["rule"].tolist() == ["", "", "seed-ip", "seed-ip"]
    assert errors["reason"][0] == "key to…(16 key): no rule removes it"
    assert errors["text"][0].startswith("the key is »to…(16 key)« and the card")
    assert errors["text"][2] == "密码 ‹X…(4 password)›，版本 »10…(11 ip)«"


def test_nothing_that_is_displayed_holds_a_secret() -> None:
    results = evaluate("redaction", SHOWN, SEED)
    shown = [
        results.errors().to_html(), results.frame.to_html(), results.frame.to_csv(), str(results), repr(results.data),
        by_rule(results).mimebundle()["text/html"], *map(SHOWN.excerpt, SHOWN), repr(SHOWN[0].label),
    ]  # fmt: skip
    for text in shown:
        for secret in (KEY, PASSWORD, "zhou@"):
            assert secret not in text
    assert "4000 0012" not in results.frame.to_csv() or not Redactor(RedactionConfig()).redact(CARD).spans


def test_reveal_shows_them() -> None:
    results = evaluate("redaction", SHOWN, SEED, reveal=True)
    assert results.errors()["value"].tolist() == [KEY, PASSWORD, "10.20.30.40", "10.0.0.9"]
    assert results.frame["text"].tolist() == [sample.input for sample in SHOWN]
    assert results.task.options() == {}, "what is shown changes no figure"
    assert str(results) == str(evaluate("redaction", SHOWN, SEED))


def test_no_errors() -> None:
    errors = evaluate("redaction", made("hello"), SEED).errors()
    assert errors.empty
    assert "error" in errors


# --- time, gate ---------------------------------------------------------------------------------------------------


def test_latency() -> None:
    frame = latency(MADE, SEED, runs=1).frame
    assert frame[["dataset", "texts", "characters"]].to_numpy().tolist() == [
        ["made", 6, sum(len(sample.input) for sample in MADE)]
    ]
    assert frame["us_per_1000"][0] > 0
    assert "latency" not in {spec.name for spec in RedactionTask.metrics}
    assert latency(MADE, redactor=str.upper, by="id", runs=1).frame["texts"].tolist() == [1] * 6


def test_evidence_can_be_gated(tmp_path: Path) -> None:
    data = load_dataset("redaction/mini")
    evidence = lab.export(SEED, tmp_path / "out", evidence=[evaluate("redaction", "redaction/mini", SEED)])
    path = evidence.folder / "evidence.json"
    assert not [check for check in lab.gate(path) if check.worse]
    worse = {
        check.metric for check in lab.gate(path, config=SEED.with_({"redaction.preset": "relaxed"})) if check.worse
    }
    assert "recall" in worse
    assert KEY not in path.read_text("utf-8")
    written = path.read_text("utf-8")
    labelled_ = [sample.input[span.start : span.end] for sample in data[:50] for span in sample.label.spans]
    assert not [value for value in labelled_ if len(value) > 8 and value in written]


def test_evidence_of_a_redactor_of_ones_own_needs_it(tmp_path: Path) -> None:
    results = evaluate("redaction", "redaction/mini", SEED, redactor=str.upper)
    path = lab.export(SEED, tmp_path / "out", evidence=[results]).folder / "evidence.json"
    with pytest.raises(TaskError, match=r"a redactor of your own \(upper\).*redactor=yours"):
        lab.gate(path)
