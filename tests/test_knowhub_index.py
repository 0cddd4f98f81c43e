"""The index in memory: exact against a plain computation, whatever was added, changed, filtered or dropped."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_lab.knowhub.columns import Column
from openclaw_lab.knowhub.entry import Entry
from openclaw_lab.knowhub.facts import Facts
from openclaw_lab.knowhub.index import Index
from openclaw_lab.knowhub.lexical import Bm25
from openclaw_lab.knowhub.speed import batch_cost, save_cost, search_cost
from openclaw_lab.knowhub.store import Row, checksum_of

DIMENSION = 16
STATUS = ("live", "superseded")
WORDS = ["alpha", "beta", "gamma", "delta", "日志", "重启"]


def unit(rng: np.random.Generator, count: int) -> np.ndarray:
    rows = rng.standard_normal((count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def row(rng: np.random.Generator, name: str, revision: int, *, pieces: int = 1, **more: object) -> Row:
    terms = [str(word) for word in rng.choice(WORDS, 4)]
    entry = dataclasses.replace(Entry(name, "task", " ".join(terms), ("tool",)), **more)  # type: ignore[arg-type]
    vectors = unit(rng, pieces)
    return Row(entry, revision, terms, vectors, checksum_of(vectors))


def filled(count: int = 60, pieces: Sequence[int] = (1,)) -> tuple[Index, dict[str, Row]]:
    rng, index = np.random.default_rng(1), Index(DIMENSION)
    rows = [
        row(rng, f"e{n:03}", n + 1, pieces=pieces[n % len(pieces)], score=1 + n % 5, status=STATUS[n % 7 == 6])
        for n in range(count)
    ]
    for start in range(0, count, 9):
        index.add(rows[start : start + 9])
    return index, {each.entry.id: each for each in rows}


def test_a_column_grows() -> None:
    column, kept = Column(np.int32), []
    for number in range(700):
        column.append(number)
        column.extend(range(number, number + 3))
        kept += [number, *range(number, number + 3)]
    assert column.values.tolist() == kept
    assert len(column) == 2_800


@pytest.mark.parametrize("pieces", [(1,), (1, 3, 2)])
@pytest.mark.parametrize("count", [3, 20])
def test_search_is_exact(pieces: Sequence[int], count: int) -> None:
    index, rows = filled(pieces=pieces)
    rng = np.random.default_rng(5)
    for vector in unit(rng, 5):
        for filters in ({}, {"min_score": 4}, {"include_superseded": True}, {"min_score": 5, "types": ["none"]}):
            mask = index.facts.mask(**filters)  # type: ignore[arg-type]
            allowed = {index.facts.ids[number] for number in np.flatnonzero(mask)}
            cosines = {name: float((rows[name].vectors @ vector).max()) for name in allowed}
            wanted = sorted(cosines.items(), key=lambda pair: -pair[1])[:count]
            found = index.search(vector, [], mask, count, 0.0)
            assert [index.facts.ids[each.row] for each in found] == [name for name, _ in wanted]
            assert [each.similarity for each in found] == pytest.approx([cosine for _, cosine in wanted], abs=1e-5)


@pytest.mark.parametrize("balance", [0.0, 0.5])
@pytest.mark.parametrize("least", [-2.0, 0.4])
def test_search_is_exact_among_many(balance: float, least: float) -> None:
    """So many rows that the highest scores are told from a part of them; a language with few rows has its share."""
    rng, index = np.random.default_rng(8), Index(DIMENSION)
    texts = ["plain words", "日志重启之后又报错"]
    rows = [
        dataclasses.replace(row(rng, f"e{n:05}", n + 1), entry=Entry(f"e{n:05}", "", texts[n % 97 == 0], ("tool",)))
        for n in range(6_000)
    ]
    index.add(rows)
    chinese = np.arange(len(rows)) % 97 == 0
    vectors = np.concatenate([each.vectors for each in rows])
    for vector in unit(rng, 5):
        found = index.search(vector, ["alpha", "日志"], index.facts.mask(), 20, 0.3, balance, least)
        words = index._words.scores(["alpha", "日志"])
        words = words / (words + index._words.possible(["alpha", "日志"]) / 2)
        cosines = vectors @ vector
        blend = cosines + 0.3 * words
        best = np.array([blend[chinese].max(), blend[~chinese].max()])
        blend += np.where(chinese, *np.minimum(balance * (best.max() - best), 0.2))
        first = [n for n in np.argsort(-blend, kind="stable")[:20].tolist() if cosines[n] >= least or words[n] > 0.5]
        assert [each.row for each in found] == first
        assert [each.blend for each in found] == pytest.approx(blend[first], abs=1e-5)


def test_one_long_text_does_not_crowd_out_the_others() -> None:
    rng, index = np.random.default_rng(2), Index(DIMENSION)
    vector = unit(rng, 1)[0]
    long = np.repeat(vector[None], 60, axis=0)
    index.add([Row(Entry("long", "t", "c", ("tool",)), 1, [], long, 1)])
    index.add([row(rng, f"e{n}", 2) for n in range(5)])
    found = index.search(vector, [], index.facts.mask(), 6, 0.0)
    assert len(found) == 6
    assert index.facts.ids[found[0].row] == "long"
    assert found[0].similarity == pytest.approx(1.0)


@pytest.mark.parametrize("pieces", [(1,), (1, 3, 2)])
def test_neighbours_of_a_block_are_those_of_each(pieces: Sequence[int]) -> None:
    index, rows = filled(pieces=pieces)
    vectors, mask = unit(np.random.default_rng(3), 7), index.facts.mask(min_score=2)
    together = index.neighbours(vectors, mask, 5)
    for vector, found in zip(vectors, together, strict=True):
        single = index.nearest(vector, mask, 5)
        assert [name for name, _ in found] == [name for name, _ in single]
        firsts = {name: float(rows[name].vectors[0] @ vector) for name, _ in found}
        assert dict(found) == pytest.approx(firsts, abs=1e-5)
    assert index.neighbours(vectors, np.zeros(len(mask), dtype=bool), 5) == [[]] * 7


@pytest.mark.parametrize("least", [-2.0, 0.0, 0.3])
@pytest.mark.parametrize("pieces", [(1,), (1, 3, 2)])
def test_the_nearest_live_ones_are_those_of_the_mask(pieces: Sequence[int], least: float) -> None:
    index, rows = filled(pieces=pieces)
    for number in range(30):  # most of these must be passed over
        scopes = ("agent:a", "org:openclaw") if number % 2 else ("org:other",)
        old = rows[f"e{number:03}"]
        index.add([dataclasses.replace(old, entry=dataclasses.replace(old.entry, scopes=scopes), revision=100)])
    for vector in unit(np.random.default_rng(6), 8):
        for scopes in (("org:openclaw",), ("org:other",), ("agent:a",), ("agent:b", "org:none")):
            allowed = index.nearest(vector, index.facts.mask(scopes=scopes), 5)
            wanted = [pair for pair in allowed if pair[1] >= least]
            found = index.nearest_live(vector, scopes, 5, least)
            assert [name for name, _ in found] == [name for name, _ in wanted]
            assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in wanted], abs=1e-6)


def test_entries_of_the_same_form_are_known() -> None:
    index, rows = Index(DIMENSION), [row(np.random.default_rng(7), f"e{n}", n + 1) for n in range(3)]
    index.add(dataclasses.replace(each, form=number // 2) for number, each in enumerate(rows))
    index.add([dataclasses.replace(rows[0], form=5, revision=9)])
    index.add([dataclasses.replace(rows[0], form=5, revision=10)])
    assert [list(index.alike(form)) for form in (0, 1, 5, 6)] == [["e0", "e1"], ["e2"], ["e0"], []]


def test_a_language_is_lifted() -> None:
    index = Index(DIMENSION)
    vector = np.eye(DIMENSION, dtype=np.float32)[0]
    for number, (text, cosine) in enumerate([("english text here", 0.9), ("中文的内容", 0.5), ("more english", 0.6)]):
        side = np.zeros(DIMENSION, dtype=np.float32)
        side[0], side[1] = cosine, math.sqrt(1 - cosine**2)
        index.add([Row(Entry(str(number), "", text, ("tool",)), number + 1, [], side[None], number)])
    mask = index.facts.mask()
    assert [each.row for each in index.search(vector, [], mask, 3, 0.0)] == [0, 2, 1]
    lifted = index.search(vector, [], mask, 3, 0.0, balance=0.5)
    assert [each.row for each in lifted] == [0, 1, 2]
    assert [each.blend for each in lifted] == pytest.approx([0.9, 0.7, 0.6])


def test_a_changed_text_leaves_no_trace_in_scores() -> None:
    rng = np.random.default_rng(4)
    rows = [row(rng, f"e{n}", n + 1, pieces=1 + n % 2) for n in range(12)]
    changed = row(rng, "e3", 20)
    one, other = Index(DIMENSION), Index(DIMENSION)
    one.add([*rows, changed])
    other.add([*(each for each in rows if each.entry.id != "e3"), changed])
    vector = unit(rng, 1)[0]
    names = []
    for index in (one, other):
        found = index.search(vector, ["alpha", "beta", "日志"], index.facts.mask(), 12, 0.5)
        names.append([(index.facts.ids[each.row], round(each.blend, 5), round(each.lexical, 5)) for each in found])
    assert names[0] == names[1]
    assert (len(one), one.facts.dropped, one.revision) == (12, 1, 20)
    assert np.array_equal(one.vectors_of("e3"), changed.vectors)


def test_a_known_text_changes_only_its_facts() -> None:
    index, rows = filled(10)
    before = index.pieces
    new = dataclasses.replace(rows["e001"], entry=dataclasses.replace(rows["e001"].entry, score=5), revision=99)
    index.add([new])
    assert (index.pieces, len(index), index.revision) == (before, 10, 99)
    assert bool(index.facts.mask(min_score=5)[index.facts.row_of["e001"]])


def test_an_empty_index_finds_nothing() -> None:
    index, vector = Index(DIMENSION), np.ones(DIMENSION, dtype=np.float32)
    assert index.search(vector, ["a"], index.facts.mask(), 5, 0.5) == []
    assert index.nearest(vector, index.facts.mask(), 5) == []


# --- speed --------------------------------------------------------------------------------------------------------


def test_the_measurements_run_and_compare_like_with_like() -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "日志里说连接超时"]
    for ours, bare in (search_cost(words, 3_000, 5), save_cost(words, 20), batch_cost(words, 30, "hash")):
        assert 0 < bare < ours < 60


# --- words --------------------------------------------------------------------------------------------------------


def plain_bm25(rows: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    average = sum(map(len, rows)) / len(rows)
    scores = []
    for terms in rows:
        score = 0.0
        for term in set(query):
            have, count = sum(term in each for each in rows), list(terms).count(term)
            idf = math.log(1 + (len(rows) - have + 0.5) / (have + 0.5))
            score += idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(terms) / average))
        scores.append(score)
    return scores


TERMS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(TERMS, min_size=2, max_size=8), TERMS, st.sets(st.integers(0, 7)))
def test_bm25_is_the_formula_whatever_was_removed(rows: list[list[str]], query: list[str], gone: set[int]) -> None:
    index = Bm25()
    for terms in rows:
        index.add(terms)
    removed = [number for number in sorted(gone) if number < len(rows) - 1]
    for number in removed:
        index.remove(number)
    kept = [number for number in range(len(rows)) if number not in removed]
    scores = index.scores(query)
    assert [float(scores[n]) for n in kept] == pytest.approx(plain_bm25([rows[n] for n in kept], query), rel=1e-4)


def test_bm25_of_nothing() -> None:
    assert Bm25().scores(["a"]).tolist() == []
    index = Bm25()
    index.add([])
    assert index.scores(["a"]).tolist() == [0.0]


# --- filters ------------------------------------------------------------------------------------------------------

SCOPES = ["org:openclaw", "team:x", "agent:a", "agent:b"]
ENTRIES = st.builds(
    lambda scopes, types, score, owner, status, flagged: Entry(
        "", "t", "c", tuple(types), score, tuple(scopes), owner, status=status, flagged=flagged
    ),
    st.lists(st.sampled_from(SCOPES), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(["tool", "plan", "usecase"]), min_size=1, max_size=2, unique=True),
    st.integers(1, 5),
    st.sampled_from(["", "agent:a"]),
    st.sampled_from(["live", "superseded", "retired"]),
    st.booleans(),
)
ASKED = st.fixed_dictionaries(
    {
        "min_score": st.integers(1, 5),
        "types": st.lists(st.sampled_from(["tool", "plan"]), max_size=2),
        "scopes": st.none() | st.lists(st.sampled_from(SCOPES), max_size=3),
        "owner": st.none() | st.just("agent:a"),
        "agent": st.none() | st.sampled_from(["", "a", "b", "c"]),
        "include_superseded": st.booleans(),
        "include_flagged": st.booleans(),
    }
)


def may_be_found(entry: Entry, asked: dict[str, Any]) -> bool:
    scopes, agent = asked["scopes"], asked["agent"]
    own = {f"agent:{agent}"} if agent is not None else {each for each in scopes or () if each.startswith("agent:")}
    hidden = entry.private and (agent is not None or scopes is not None) and not own & set(entry.scopes)
    return (
        not hidden
        and (scopes is None or bool(set(scopes) & set(entry.scopes)))
        and entry.score >= asked["min_score"]
        and (not asked["types"] or bool(set(asked["types"]) & set(entry.types)))
        and (asked["owner"] is None or entry.owner == asked["owner"])
        and (entry.status == "live" or bool(asked["include_superseded"]))
        and (not entry.flagged or bool(asked["include_flagged"]))
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(ENTRIES, max_size=12), ENTRIES, ASKED)
def test_a_mask_is_what_the_filter_says(entries: list[Entry], changed: Entry, asked: dict[str, Any]) -> None:
    facts = Facts()
    named = [dataclasses.replace(entry, id=str(number)) for number, entry in enumerate(entries)]
    for entry in named:
        facts.add(entry)
    if named:
        named[0] = dataclasses.replace(changed, id="0")
        facts.revise(named[0])
    assert facts.mask(**asked).tolist() == [may_be_found(entry, asked) for entry in named]
