"""The retrieval task: rows and corpora, metrics by hand, the same order as KnowHub.search, and what the data shows."""

from __future__ import annotations

import gzip
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openclaw_lab as lab
from openclaw_lab.errors import DataError, TaskError
from openclaw_lab.experiments.corpus import read_corpus
from openclaw_lab.experiments.dataset import Dataset, load_dataset
from openclaw_lab.experiments.evaluate import Results, evaluate
from openclaw_lab.experiments.sweep import sweep
from openclaw_lab.files import bundled
from openclaw_lab.knowhub.embed import embedder_named
from openclaw_lab.knowhub.ranking import MAX_LIFT, embed_entries, embed_queries, in_context, lift, shared_words
from openclaw_lab.knowhub.service import KnowHub

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("OPENCLAW_LAB_DATA") or ROOT.parent / "shared" / "data") / "retrieval"
HASH = lab.LabConfig().with_({"knowhub.embedder": "hash"})
MINI = load_dataset("retrieval/mini")

TEXTS = [
    ("a", "the nginx socket gives error 502 after a restart"),
    ("b", "cats sleep most of the day"),
    ("c", "error 502 again"),
    ("d", "重启之后接口返回错误 502"),
]


def write(folder: Path, queries: list[Any], corpus: list[Any] | None = None, name: str = "x") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}_queries.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in queries) + "\n", "utf-8")
    rows = [{"id": i, "text": text} for i, text in TEXTS] if corpus is None else corpus
    (folder / f"{name}_corpus.jsonl").write_text("\n".join(json.dumps(each) for each in rows) + "\n", "utf-8")
    return path


def ask(query: str, *relevant: str, **more: Any) -> dict[str, Any]:
    return {"id": more.pop("id", query), "query": query, "relevant": list(relevant), "lang": "en", **more}


# --- rows ---------------------------------------------------------------------------------------------------------


def test_a_query_file_brings_its_corpus(tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path, [ask("cats", "b"), ask("nothing", lang="zh")]))
    assert (data.format, len(data), [sample.label for sample in data]) == ("retrieval", 2, [("b",), ()])
    assert [each.id for each in data.corpora["x_queries"].documents] == ["a", "b", "c", "d"]
    assert data[:1].corpora == data.corpora


def test_a_folder_and_gzip(tmp_path: Path) -> None:
    write(tmp_path, [ask("cats", "b")])
    other = write(tmp_path, [ask("502", "c")], name="y")
    for path in (other, other.with_name("y_corpus.jsonl")):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    data = load_dataset(tmp_path)
    assert sorted(data.corpora) == ["x_queries", "y_queries"]
    assert evaluate("retrieval", data, HASH, method="bm25").metrics["recall@5"].value == 1


def test_the_hash_names_the_corpus_too(tmp_path: Path) -> None:
    queries = [ask("cats", "b")]
    one = load_dataset(write(tmp_path / "1", queries))
    other = load_dataset(write(tmp_path / "2", queries, [{"id": "b", "text": "cats sleep"}]))
    assert one.hash != other.hash


@pytest.mark.parametrize(
    ("queries", "corpus", "words"),
    [
        ([ask("cats", "nowhere")], None, "relevant 'nowhere'"),
        ([{"query": "cats", "relevant": "b"}], None, "relevant: found b; expected a list of ids"),
        ([{"query": "cats", "relevant": [1]}], None, "a list of ids"),
        ([{"query": 3, "relevant": []}], None, "query: found 3; expected a string"),
        ([ask("cats", "b")], [{"id": "b"}], "text: found no value"),
        ([ask("cats", "b")], [{"id": 1, "text": "x"}], "id: found 1"),
        ([ask("cats", "b")], [{"id": "b", "text": "x"}, {"id": "b", "text": "y"}], "the id 'b' again"),
        ([ask("cats", "b")], [{"id": "b", "task": "t", "content": "x", "score": 7}], "score: found 7"),
    ],
)
def test_bad_rows(tmp_path: Path, queries: list[Any], corpus: list[Any] | None, words: str) -> None:
    with pytest.raises(DataError) as raised:
        load_dataset(write(tmp_path, queries, corpus))
    assert words in str(raised.value)


def test_no_corpus(tmp_path: Path) -> None:
    path = write(tmp_path, [ask("cats", "b")])
    path.with_name("x_corpus.jsonl").unlink()
    with pytest.raises(DataError, match=r"queries without a corpus; expected a file x_corpus\.jsonl"):
        load_dataset(path)
    path.with_name("x_corpus.jsonl").write_text("")
    with pytest.raises(DataError, match="an empty file"):
        load_dataset(path)


def test_history_must_be_a_list(tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path, [ask("cats", "b", history="before")]))
    with pytest.raises(TaskError, match="a list of the turns"):
        evaluate("retrieval", data, HASH)


def test_a_method_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="did you mean bm25"):
        evaluate("retrieval", MINI, HASH, method="bm52")
    bare = Dataset("bare", "retrieval", MINI.samples)
    with pytest.raises(TaskError, match="expected a corpus"):
        evaluate("retrieval", bare, HASH)


# --- metrics ------------------------------------------------------------------------------------------------------


def test_metrics_by_hand(tmp_path: Path) -> None:
    """BM25 puts c before a for "error 502"; d shares 502 alone and comes third."""
    queries = [ask("error 502", "a", "d", id="1"), ask("cats", "b", id="2"), ask("sleep", "c", id="3")]
    queries += [ask("502", id="4"), ask("zebra", id="5")]
    results = evaluate("retrieval", load_dataset(write(tmp_path, queries)), HASH, method="bm25")
    found = {name: metric.value for name, metric in results.metrics.items()}
    gain = 1 / math.log2(3) + 1 / math.log2(4)
    assert found["recall@1"] == pytest.approx((0 + 1 + 0) / 3)
    assert found["recall@5"] == pytest.approx((1 + 1 + 0) / 3)
    assert found["mrr"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert found["ndcg@10"] == pytest.approx((gain / (1 + 1 / math.log2(3)) + 1 + 0) / 3)
    assert found["false_answers"] == 0.5
    assert {name: metric.n for name, metric in results.metrics.items()} == {
        "recall@1": 3, "recall@5": 3, "mrr": 3, "ndcg@10": 3, "false_answers": 2, "recall_kept": 3,
        "tokens": 5, "budget_used": 5, "answered": 3, "left_out": 8,
    }  # fmt: skip
    frame = results.frame.set_index("id")
    assert frame.loc["1", "found"] == "c a d"
    assert frame.loc["1", "rank"] == 2
    assert list(results.errors()["error"]) == ["missed", "false answer"]


def test_history_is_read_where_rows_have_it(tmp_path: Path) -> None:
    data = load_dataset(write(tmp_path, [ask("and what do they do", "b", history=["I like cats", "so do I"])]))
    for method in ("knowhub", "bm25", "embedding"):
        with_it = evaluate("retrieval", data, HASH, method=method)
        assert with_it.metrics["recall@1"].value == 1, method
    without = evaluate("retrieval", data, HASH, method="bm25", history=False)
    assert without.metrics["recall@5"].value == 0
    assert without.task.options() == {"method": "bm25", "history": False}


def test_settings_are_those_of_the_search(tmp_path: Path) -> None:
    rows = [{"id": str(score), "task": "Error 502", "content": "restart", "score": score} for score in (1, 3, 5)]
    data = load_dataset(write(tmp_path, [ask("error 502", "1", id="1"), ask("cats", id="2")], rows))

    def found(**changes: Any) -> str:
        config = HASH.with_({f"knowhub.{name}": value for name, value in changes.items()})
        return str(evaluate("retrieval", data, config).frame["found"][0])

    assert found() == "5 3"
    assert found(min_score=1) == "5 3 1"
    assert found(quality_weight=0.0) == "3 5"
    strict = HASH.with_({"knowhub.min_similarity": 0.9})
    assert evaluate("retrieval", data, strict).metrics["false_answers"].value == 0


def test_a_sweep_embeds_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from openclaw_lab.experiments.tasks import retrieval

    made: list[int] = []
    whole = retrieval.embed_entries

    def counted(*given: Any) -> Any:
        made.append(1)
        return whole(*given)

    monkeypatch.setattr(retrieval, "embed_entries", counted)
    space = {"knowhub.lexical_weight": np.linspace(0, 2, 20).tolist(), "knowhub.min_similarity": [-1.0, 0.3]}
    began = time.process_time()
    swept = lab.sweep("retrieval", MINI, HASH, space)
    assert len(made) == 1
    assert len(swept.frame) == 40
    assert time.process_time() - began < 20
    rows = swept.frame.pivot_table("recall@5", "knowhub.lexical_weight", "knowhub.min_similarity")
    assert (rows[0.3] <= rows[-1.0]).all()


# --- what both are made of ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("best", "balance", "lifts"),
    [
        ([0.6, 0.4], 0.5, [0.0, 0.1]),
        ([0.2, 0.8], 0.5, [MAX_LIFT, 0.0]),
        ([0.6, 0.4], 0.0, [0.0, 0.0]),
        ([0.6], 0.5, [0.0]),
        ([[0.6, 0.4], [0.1, 0.3]], 1.0, [[0.0, 0.2], [0.2, 0.0]]),
    ],
)
def test_lift(best: list[Any], balance: float, lifts: list[Any]) -> None:
    assert lift(np.array(best), balance) == pytest.approx(np.array(lifts))


def test_a_title_is_averaged_into_every_piece() -> None:
    embedder = embedder_named("hash")
    long = "One sentence about cats. " * 40
    (bare, none), (titled, left_out) = embed_entries(embedder, [("", long), ("dogs", long)])
    (title,) = embedder.embed(["dogs"])
    assert (none, left_out) == (0, 0)
    assert len(bare) == len(titled) == 3
    assert np.linalg.norm(titled, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    assert (titled @ title > bare @ title).all()
    assert embed_entries(embedder, []) == []


def test_history_moves_a_query_half_way() -> None:
    embedder = embedder_named("hash")
    alone, within = embed_queries(embedder, [("and then?", ()), ("and then?", ["cats", "dogs"])])
    (joined,) = embedder.embed(["cats dogs and then?"])
    assert within == pytest.approx((alone + joined) / 2)
    assert in_context("e", ["a", "b", "c", "d", "x"]) == "b c d x e"


@given(st.floats(0, 1e4), st.floats(0, 1e4))
def test_shared_words_are_a_share(bm25: float, possible: float) -> None:
    assert 0 <= shared_words(bm25, possible) <= 1


# --- the same as KnowHub.search -----------------------------------------------------------------------------------


def knowledge(folder: Path, embedder: str) -> tuple[KnowHub, dict[str, str]]:
    """The bundled entries in a store, and the row's id of each entry's id."""
    rows = [json.loads(line) for line in (bundled("datasets") / "knowledge/mini.jsonl").read_text("utf-8").splitlines()]
    kb = KnowHub.open(folder, embedder=embedder)
    names = ("task", "content", "types", "score")
    saved = kb.save_many([{name: row[name] for name in names} for row in rows])
    return kb, {each.id: row["id"] for each, row in zip(saved, rows, strict=True)}


def check_same_order(results: Results, kb: KnowHub, ids: dict[str, str], count: int) -> None:
    for _, row in results.frame.iloc[:: len(results.frame) // count].iterrows():
        found = [ids[hit.entry.id] for hit in kb.search(row["query"], top_k=5)]
        assert " ".join(found) == row["found"], row["query"]


def test_the_task_measures_what_search_does(tmp_path: Path) -> None:
    """Every bundled entry lives on in the store, so that the corpus is the same; then so are the first five."""
    results = evaluate("retrieval", MINI, HASH)
    kb, ids = knowledge(tmp_path, "hash")
    with kb:
        alive = sum(entry.status == "live" for entry in kb.entries())
        assert alive == len(MINI.corpora["mini_queries"].documents)
        check_same_order(results, kb, ids, 60)


# --- what the data shows ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bundled_results() -> dict[str, Results]:
    return {method: evaluate("retrieval", MINI, method=method) for method in ("knowhub", "bm25")}


@pytest.mark.parametrize(("kind", "least"), [("zh_en", 0.75), ("en_zh", 0.75), ("same", 0.84), ("exact", 0.94)])
def test_recall_on_the_bundled_set(bundled_results: dict[str, Results], kind: str, least: float) -> None:
    rows = {method: each.by("kind").frame.set_index("kind") for method, each in bundled_results.items()}
    assert rows["knowhub"].loc[kind, "recall@5"] >= least
    if kind != "exact":
        assert rows["knowhub"].loc[kind, "recall@5_low"] > rows["bm25"].loc[kind, "recall@5"]


def test_better_than_the_baseline(bundled_results: dict[str, Results]) -> None:
    compared = lab.compare({"bm25": bundled_results["bm25"], "knowhub": bundled_results["knowhub"]}).frame
    rows = compared.set_index("metric")
    for name in ("recall@1", "recall@5", "mrr", "ndcg@10"):
        assert rows.loc[name, "low"] > 0, name


@pytest.mark.skipif(not DATA.is_dir(), reason="the public data is not here: set OPENCLAW_LAB_DATA")
def test_public_facts_about_users() -> None:
    data = load_dataset(DATA / "bfcl_memory_queries.jsonl.gz")
    assert evaluate("retrieval", data).metrics["recall@5"].value >= 0.93
    assert evaluate("retrieval", data, method="bm25").metrics["recall@5"].value < 0.93


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the public data is not here: set OPENCLAW_LAB_DATA")
def test_public_conversations_with_elided_topics() -> None:
    data = load_dataset(DATA / "kdconv_queries.jsonl.gz")
    assert evaluate("retrieval", data).metrics["recall@5"].value >= 0.25
    assert evaluate("retrieval", data, method="bm25", history=False).metrics["recall@5"].value < 0.2


def test_corpus_rows_may_be_entries() -> None:
    corpus = read_corpus(bundled("datasets") / "knowledge" / "mini.jsonl")
    first = corpus.documents[0]
    assert first.text.startswith(f"{first.title}\n")
    assert corpus.row_of[first.id] == 0


def test_budgets_and_limits_decide_what_is_let_through() -> None:
    space = {"growth.max_tokens": [0, 40, 100, 500, 5000], "knowhub.top_k": [1, 5]}
    frame = sweep("retrieval", MINI, HASH, space).frame
    for top, rows in frame.groupby("knowhub.top_k"):
        ordered = rows.sort_values("growth.max_tokens")
        assert ordered["recall_kept"].is_monotonic_increasing
        assert ordered["tokens"].is_monotonic_increasing
        assert (ordered["tokens"] <= ordered["growth.max_tokens"]).all()
        assert ordered["recall_kept"].iloc[0] == 0
        assert ordered["recall_kept"].iloc[-1] == pytest.approx(ordered[f"recall@{top}"].iloc[-1])
    strict = sweep("retrieval", MINI, HASH, {"knowhub.min_similarity": [-1.0, 0.2, 0.9]}, method="embedding").frame
    assert strict["tokens"].is_monotonic_decreasing
    assert strict["false_answers"].is_monotonic_decreasing


# --- as memories --------------------------------------------------------------------------------------------------

MEMORIES = [
    {"id": "p1", "text": "以后回复请用要点，不要大段文字。", "type": "preference"},
    {"id": "p2", "text": "I prefer short answers without small talk.", "type": "preference"},
    {"id": "k1", "text": "The staging database is wiped every Sunday night.", "type": "knowledge"},
    {"id": "k2", "text": "我住在杭州西湖区。", "type": "knowledge"},
    {"id": "e1", "text": "Lesson learned: the deploy script fails without the VPN.", "type": "experience"},
    {"id": "x1", "text": "Cats sleep most of the day.", "type": "passage"},
]
ASKED = [
    ask("when is the staging database wiped?", "k1"), ask("我住在哪个区？", "k2"),
    ask("why does the deploy script fail?", "e1"), ask("how long should answers be?", "p2"),
    ask("回复用什么格式？", "p1"), ask("zxqv plmk"),
]  # fmt: skip
DEFAULT = lab.LabConfig().with_({"growth.min_similarity": 0.5})


def test_the_method_growth_is_what_a_growth_memory_injects(tmp_path: Path) -> None:
    """The same texts in a real memory: for each question the same are let through, and the block has as many tokens."""
    data = load_dataset(write(tmp_path / "d", ASKED, MEMORIES))
    config = DEFAULT.with_({"growth.standing": False, "growth.max_tokens": 120, "growth.recency_weight": 0.0})
    results = evaluate("retrieval", data, config, method="growth")
    with lab.GrowthMemory.open(tmp_path / "g", "a1", config=config) as memory:
        for row in MEMORIES:
            kind = "knowledge" if row["type"] == "passage" else row["type"]
            uri = f"agent://a1/{ {'preference': 'preferences'}.get(kind, kind) }/x/{row['id']}"
            memory.remember(row["text"], uri=uri, importance=3)
        blocks = [memory.inject(each["query"]) for each in ASKED]
    kept = [{each.entry.uri.rpartition("/")[2] for each in block.used} for block in blocks]
    answerable = [(each, own) for each, own in zip(ASKED, kept, strict=True) if each["relevant"]]
    assert results.metrics["tokens"].value == pytest.approx(np.mean([block.tokens for block in blocks]))
    share = np.mean([each["relevant"][0] in own for each, own in answerable])
    assert results.metrics["answered"].value == results.metrics["recall_kept"].value == pytest.approx(share)
    assert share >= 0.6


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("growth.max_tokens", [0, 40, 60, 80, 120, 500]),
        ("growth.knowledge_budget", [0, 20, 40, 200]),
        ("growth.max_results", [1, 2, 10]),
    ],
)
def test_a_budget_of_memories_swept(tmp_path: Path, field: str, values: list[int]) -> None:
    data = load_dataset(write(tmp_path, ASKED, MEMORIES))
    frame = sweep(
        "retrieval", data, DEFAULT.with_({"growth.min_similarity": 0.0}), {field: values}, method="growth"
    ).frame
    assert frame["recall_kept"].is_monotonic_increasing
    assert frame["left_out"].is_monotonic_decreasing
    assert frame["tokens"].iloc[0] < frame["tokens"].iloc[-1]
    assert (frame["budget_used"] <= 1).all()
    if field == "growth.max_tokens":
        assert (frame["tokens"] <= frame[field]).all()


def test_a_threshold_of_memories_swept_for_two_embedders(tmp_path: Path) -> None:
    """As a chance, 0.7 lets through about as much with each embedder; as a raw cosine it lets through nothing."""
    data = load_dataset(write(tmp_path, ASKED, MEMORIES))
    space: dict[str, Any] = {
        "growth.min_similarity": [0.0, 0.3, 0.7, 0.99],
        "knowhub.embedder": ["hash", DEFAULT.knowhub.embedder],
    }
    plain = DEFAULT.with_({"growth.standing": False, "knowhub.lexical_weight": 0.0})
    frame = sweep("retrieval", data, plain, space, method="growth").frame
    for _, rows in frame.groupby("knowhub.embedder"):
        assert rows.sort_values("growth.min_similarity")["tokens"].is_monotonic_decreasing
        assert rows["false_answers"].max() == 1
    raw = evaluate(
        "retrieval", data, plain.with_({"growth.calibrated": False, "growth.min_similarity": 0.7}), method="growth"
    )
    meant = evaluate("retrieval", data, plain.with_({"growth.min_similarity": 0.7}), method="growth")
    assert raw.metrics["answered"].value < meant.metrics["answered"].value
