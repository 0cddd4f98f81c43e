"""The retrieval task: queries with the ids that answer them in; recall, MRR, nDCG and false answers out.

`method` says what is measured: "knowhub" (what KnowHub.search does, with the same code and config), or one of its
parts alone as a baseline: "bm25" (shared words) or "embedding" (the cosine). `compare` shows the paired difference.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import KnowHubConfig, LabConfig
from openclaw_lab.errors import TaskError, excerpt
from openclaw_lab.experiments.corpus import Corpus, Document
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.metrics import Array, Measured, MetricSpec
from openclaw_lab.experiments.task import Task
from openclaw_lab.knobs import nearest
from openclaw_lab.knowhub.embed import embedder_named
from openclaw_lab.knowhub.lexical import Bm25
from openclaw_lab.knowhub.ranking import SAME_WORDS, embed_entries, embed_queries, lift, query_words, shared_words
from openclaw_lab.text import count_tokens, language, words

if TYPE_CHECKING:
    import pandas as pd

METHODS = ("knowhub", "bm25", "embedding")
DEPTH = 10
_Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Asked:
    """One corpus and its queries: `samples[i]` is the number of row i's sample; columns are documents.

    `similarity` is the cosine of a document's best piece; `bm25` and its share `shared` are 0 without a common word.
    `marks` are the documents' scores, `chinese` says which of them are Chinese.
    """

    samples: NDArray[np.intp]
    corpus: Corpus
    similarity: _Matrix
    bm25: _Matrix
    shared: _Matrix
    relevant: NDArray[np.bool_]
    marks: NDArray[np.int_]
    chinese: NDArray[np.bool_]
    sizes: dict[int, int] = field(default_factory=dict, compare=False, repr=False)

    def tokens(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """The tokens of documents by their rows; each is counted once."""
        for row in np.unique(rows).tolist():
            if row not in self.sizes:
                self.sizes[row] = count_tokens(self.corpus.documents[row].text)
        return np.vectorize(self.sizes.__getitem__, otypes=[float])(rows) if rows.size else np.zeros(rows.shape)


@dataclass(frozen=True, slots=True)
class Found:
    """The first DEPTH documents of each query, best first; `hit` says which of them are found at all."""

    rows: NDArray[np.intp]
    score: NDArray[np.float64]
    hit: NDArray[np.bool_]


class RetrievalTask(Task):
    """Measures a search; `history=False` leaves out the turns before a query even where rows have them."""

    name = "retrieval"
    format = "retrieval"
    section = "knowhub"
    headline = ("recall@1", "recall@5", "mrr", "ndcg@10")
    metrics = (
        MetricSpec("recall@1", "recall_1", "answerable", "share of the relevant that is found first", better="higher"),
        MetricSpec(
            "recall@5", "recall_5", "answerable", "share of the relevant among the first five", better="higher"
        ),
        MetricSpec(
            "mrr", "reciprocal", "answerable", "1 / rank of the first relevant one, 0 beyond ten", better="higher"
        ),
        MetricSpec("ndcg@10", "ndcg", "answerable", "gain of the first ten over log2(rank + 1)", better="higher"),
        MetricSpec(
            "recall_kept", "kept", "answerable",
            "share of the relevant among what knowhub.top_k and the tokens of growth.max_tokens let through",
            better="higher",
        ),
        MetricSpec("tokens", "spent", "queries", "tokens of what is let through a query", "tokens", better="lower",
                   proportion=False),
        MetricSpec("budget_used", "spent_share", "queries", "share of growth.max_tokens that it takes",
                   proportion=False),
        MetricSpec(
            "false_answers", "answered", "unanswerable", "queries without an answer that get a hit", better="lower"
        ),
    )  # fmt: skip

    def __init__(self, method: str = "knowhub", history: bool = True) -> None:
        if method not in METHODS:
            raise TaskError("task retrieval: method", method, "a known method", nearest(str(method), METHODS))
        self.method, self.history = method, bool(history)

    def options(self) -> dict[str, Any]:
        """The method and whether history is read, where they are not the default."""
        made: dict[str, Any] = {} if self.method == "knowhub" else {"method": self.method}
        return made if self.history else {**made, "history": False}

    def prepared_by(self, config: LabConfig) -> Hashable:
        """Vectors depend on the embedder alone; weights and limits are applied afterwards."""
        return config.knowhub.embedder if self.method != "bm25" else ""

    def prepare(self, data: Dataset, config: LabConfig) -> tuple[Asked, ...]:
        """Embed each corpus and its queries once; BM25 of every query against every document."""
        numbers: dict[str, list[int]] = {}
        for number, sample in enumerate(data):
            if sample.dataset not in data.corpora:
                raise TaskError(f"task retrieval: sample {sample.id}", expected="a corpus", todo="use load_dataset")
            numbers.setdefault(sample.dataset, []).append(number)
        return tuple(self._asked(data, name, rows, config.knowhub) for name, rows in numbers.items())

    def _asked(self, data: Dataset, name: str, numbers: list[int], config: KnowHubConfig) -> Asked:
        corpus = data.corpora[name]
        queries = [(data[number].input, self._history(data[number])) for number in numbers]
        relevant = np.zeros((len(queries), len(corpus.documents)), dtype=bool)
        for row, number in enumerate(numbers):
            relevant[row, [corpus.row_of[each] for each in data[number].label]] = True
        bm25, shared = _lexical(corpus.documents, queries)
        similarity = np.zeros_like(bm25) if self.method == "bm25" else _similarity(corpus.documents, queries, config)
        marks = np.array([document.score for document in corpus.documents])
        chinese = np.array([language(document.text) == "zh" for document in corpus.documents])
        return Asked(np.array(numbers), corpus, similarity, bm25, shared, relevant, marks, chinese)

    def _history(self, sample: Sample) -> list[str]:
        turns = sample.fields.get("history") if self.history else None
        if turns is not None and not isinstance(turns, list):
            raise TaskError(f"sample {sample.id} history", turns, "a list of the turns before the query")
        return [str(turn) for turn in turns or ()]

    def measure(self, prepared: Sequence[Asked], config: LabConfig) -> Measured:
        """Tallies a query: shares of what is relevant, or whether there is a hit where nothing is."""
        parts = [_tallies(asked, self._found(asked, config.knowhub), config) for asked in prepared]
        tallies = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Measured(tallies, np.concatenate([asked.samples for asked in prepared]))

    def _found(self, asked: Asked, config: KnowHubConfig) -> Found:
        score, valid = self._scores(asked, config)
        score = np.where(valid, score, -np.inf)
        depth = min(DEPTH, score.shape[1])
        rows = np.sort(np.argpartition(-score, depth - 1, axis=1)[:, :depth], axis=1)
        order = np.argsort(-np.take_along_axis(score, rows, axis=1), axis=1, kind="stable")
        rows = np.take_along_axis(rows, order, axis=1)
        best = np.take_along_axis(score, rows, axis=1).astype(np.float64)
        return Found(rows, best, best > -np.inf)

    def _scores(self, asked: Asked, config: KnowHubConfig) -> tuple[_Matrix, NDArray[np.bool_]]:
        """Every score and whether it is one of a hit, as in KnowHub.search or by one of its parts."""
        if self.method == "bm25":
            return asked.bm25, asked.bm25 > 0
        if self.method == "embedding":
            return asked.similarity, asked.similarity >= config.min_similarity
        allowed = asked.marks >= config.min_score
        score = asked.similarity + config.lexical_weight * asked.shared
        groups = [each for each in (asked.chinese & allowed, ~asked.chinese & allowed) if each.any()]
        best = np.stack([score[:, group].max(axis=1) for group in groups] or [np.zeros(len(score))], axis=1)
        for group, up in zip(groups, lift(best, config.language_balance).T, strict=False):
            score[:, group] += up[:, None]
        score += config.quality_weight * (asked.marks - 3) / 5
        valid = (asked.similarity >= config.min_similarity) | (asked.shared > SAME_WORDS)
        return score, valid & allowed

    def rows(self, data: Dataset, prepared: Sequence[Asked], config: LabConfig) -> pd.DataFrame:
        """id, dataset, lang, kind, query, relevant, found (five ids), rank, correct, score, reason, text of the best.

        `correct`: something relevant is among the first five; for a query without an answer: there is no hit.
        """
        import pandas as pd

        made: dict[int, list[Any]] = {}
        for asked in prepared:
            found = self._found(asked, config.knowhub)
            for row, number in enumerate(asked.samples):
                made[int(number)] = _row(data[int(number)], asked, found, row)
        columns = ["id", "dataset", "lang", "kind", "query", "relevant", "found", "rank", "correct", "score"]
        frame = pd.DataFrame([made[number] for number in sorted(made)], columns=[*columns, "reason", "text"])
        return frame.astype({"rank": "Int64", "correct": "boolean"})

    def errors(self, frame: pd.DataFrame) -> pd.DataFrame:
        """What was not found first, then what was found too late, then answers to what has none."""
        wrong = frame[~frame["correct"].astype(bool)].copy()
        answerable = wrong["relevant"] != ""
        wrong.insert(0, "error", np.where(answerable, np.where(wrong["rank"].isna(), "missed", "late"), "false answer"))
        kinds = wrong["error"].map({"missed": 0, "late": 1, "false answer": 2})
        return wrong.loc[kinds.sort_values(kind="stable").index]


_Queries = Sequence[tuple[str, Sequence[str]]]


def _lexical(documents: Sequence[Document], queries: _Queries) -> tuple[_Matrix, _Matrix]:
    """BM25 of each query (a row) against each document, and the same as shares."""
    index = Bm25()
    for document in documents:
        index.add(words(document.text))
    scores = np.empty((len(queries), len(documents)), dtype=np.float32)
    shared = np.empty_like(scores)
    for row, query in enumerate(queries):
        terms = query_words(*query)
        scores[row] = index.scores(terms)
        shared[row] = shared_words(scores[row], index.possible(terms))
    return scores, shared


def _similarity(documents: Sequence[Document], queries: _Queries, config: KnowHubConfig) -> _Matrix:
    """The cosine of each query (a row) with the best piece of each document."""
    embedder = embedder_named(config.embedder)
    pieces = [vectors for vectors, _ in embed_entries(embedder, [(each.title, each.text) for each in documents])]
    starts = np.cumsum([0, *(len(each) for each in pieces[:-1])])
    cosines = embed_queries(embedder, queries) @ np.concatenate(pieces).T
    return np.asarray(np.maximum.reduceat(cosines, starts, axis=1), dtype=np.float32)


def _tallies(asked: Asked, found: Found, config: LabConfig) -> dict[str, Array]:
    total = asked.relevant.sum(axis=1)
    right = np.take_along_axis(asked.relevant, found.rows, axis=1) & found.hit
    ranks = np.arange(1, right.shape[1] + 1)
    discount = 1 / np.log2(ranks + 1)
    ideal = np.concatenate([[0.0], np.cumsum(discount)])[np.minimum(total, right.shape[1])]
    some = np.maximum(total, 1)
    first, budget = slice(config.knowhub.top_k), config.growth.max_tokens
    sizes = np.where(found.hit[:, first], asked.tokens(found.rows[:, first]), 0.0)
    fits = found.hit[:, first] & (np.cumsum(sizes, axis=1) <= budget)
    spent = (sizes * fits).sum(axis=1)
    tallies = {
        "kept": (right[:, first] & fits).sum(axis=1) / some, "spent": spent, "queries": np.ones(len(total)),
        "spent_share": spent / max(budget, 1),
        "answerable": total > 0, "unanswerable": total == 0, "answered": (total == 0) & found.hit.any(axis=1),
        "recall_1": right[:, :1].sum(axis=1) / some, "recall_5": right[:, :5].sum(axis=1) / some,
        "reciprocal": (right / ranks).max(axis=1), "ndcg": (right * discount).sum(axis=1) / np.where(total, ideal, 1),
    }  # fmt: skip
    return {name: np.asarray(each, dtype=float) for name, each in tallies.items()}


def _row(sample: Sample, asked: Asked, found: Found, row: int) -> list[Any]:
    documents = asked.corpus.documents
    hits = [int(each) for each, hit in zip(found.rows[row], found.hit[row], strict=True) if hit]
    ranks = [rank for rank, each in enumerate(hits, 1) if asked.relevant[row, each]]
    rank = ranks[0] if ranks else None
    correct = bool(rank and rank <= 5) if sample.label else not hits
    reason, text = "no hit", ""
    if hits:
        similarity, shared = asked.similarity[row, hits[0]], asked.shared[row, hits[0]]
        reason = f"first {documents[hits[0]].id}: similarity {similarity:.2f}, shared words {shared:.2f}"
        text = excerpt(documents[hits[0]].text, 120)
    five = " ".join(documents[each].id for each in hits[:5])
    about = [sample.id, sample.dataset, sample.lang, sample.kind, sample.input, " ".join(sample.label)]
    return [*about, five, rank, correct, found.score[row, 0] if hits else np.nan, reason, text]
