"""The retrieval task: queries with the ids that answer them in; recall, MRR, nDCG and false answers out.

`method` says what is measured: "knowhub" (what KnowHub.search does, with the same code and config), "growth" (what
GrowthMemory.inject makes of the same documents as memories: its threshold, ranks and budgets), or a part of the search
alone as a baseline: "bm25" (shared words) or "embedding" (the cosine). `compare` shows the paired difference.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openclaw_lab.config import LabConfig
from openclaw_lab.errors import TaskError, excerpt
from openclaw_lab.experiments.corpus import Document
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.metrics import Array, Measured, MetricSpec
from openclaw_lab.experiments.rows import given_options, live_options
from openclaw_lab.experiments.task import Task
from openclaw_lab.experiments.tasks.asked import Asked, Found, Matrix, first
from openclaw_lab.experiments.tasks.through import Through, as_memories, near_enough, under_one_budget
from openclaw_lab.growth.lookup import LOOK
from openclaw_lab.knobs import nearest
from openclaw_lab.knowhub.embed import Embedder, embedder_named
from openclaw_lab.knowhub.lexical import Bm25
from openclaw_lab.knowhub.ranking import SAME_WORDS, embed_entries, embed_queries, lift, query_words, shared_words
from openclaw_lab.models import PREFIX
from openclaw_lab.spending import Bill, Spending
from openclaw_lab.text import language, words

if TYPE_CHECKING:
    import pandas as pd

METHODS = ("knowhub", "growth", "bm25", "embedding")
DEPTH = 10


class RetrievalTask(Task):
    """Measures a search; `history=False` leaves out the turns before a query even where rows have them.

    `options` are for `knowhub.embedder` when it is `litellm:<model>`: those of `models.embed` (`cassette`, …) and
    limits (`budget`, `price`, `concurrency`, `per_minute`), which hold for all that the task asks.
    """

    name = "retrieval"
    format = "retrieval"
    section = "knowhub"
    reads = ("knowhub", "growth")
    headline = ("recall@1", "recall@5", "mrr", "ndcg@10")
    goal = ("mrr", {})
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
            "recall_kept", "kept", "answerable", "share of the relevant that limits and budgets let through",
            better="higher",
        ),
        MetricSpec("answered", "got", "answerable", "queries for which something relevant is let through",
                   better="higher"),
        MetricSpec("tokens", "spent", "queries", "tokens of what is let through a query", "tokens", better="lower",
                   proportion=False),
        MetricSpec("budget_used", "spent_share", "queries", "share of growth.max_tokens that it takes",
                   proportion=False),
        MetricSpec("left_out", "over", "found", "share of what is found that limits and budgets leave out",
                   better="lower", proportion=False),
        MetricSpec(
            "false_answers", "answered", "unanswerable", "queries without an answer that get a hit", better="lower"
        ),
    )  # fmt: skip

    def __init__(self, method: str = "knowhub", history: bool = True, **options: Any) -> None:
        if method not in METHODS:
            raise TaskError("task retrieval: method", method, "a known method", nearest(str(method), METHODS))
        self.method, self.history = method, bool(history)
        self._options, self._live = given_options(options), live_options(options)
        self._embedders: dict[str, Embedder] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Sent to another process it makes its embedder there."""
        return {**self.__dict__, "_embedders": {}}

    def asks(self, config: LabConfig) -> bool:
        """Whether the embedder is a live model."""
        return self.method != "bm25" and config.knowhub.embedder.startswith(PREFIX)

    def bill(self, prepared: Sequence[Asked]) -> Bill:
        """Everything that this task asked so far."""
        spending: Spending = self._live["spending"]
        return spending.bill

    def _embedder(self, config: LabConfig) -> Embedder:
        """The config's; options are refused where there is nobody to take them."""
        name, live = config.knowhub.embedder, self.asks(config)
        if self._options and not live:
            found = f"the options {', '.join(self._options)}"
            raise TaskError("task retrieval", found, "options that the task knows, or of a knowhub.embedder litellm:…")
        if not live:
            return embedder_named(name)
        if name not in self._embedders:
            self._embedders[name] = embedder_named(name, **self._live)
        return self._embedders[name]

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
        embedder = self._embedder(config) if self.method != "bm25" or self._options else None
        return tuple(self._asked(data, name, rows, embedder) for name, rows in numbers.items())

    def _asked(self, data: Dataset, name: str, numbers: list[int], embedder: Embedder | None) -> Asked:
        corpus = data.corpora[name]
        queries = [(data[number].input, self._history(data[number])) for number in numbers]
        relevant = np.zeros((len(queries), len(corpus.documents)), dtype=bool)
        for row, number in enumerate(numbers):
            relevant[row, [corpus.row_of[each] for each in data[number].label]] = True
        bm25, shared = _lexical(corpus.documents, queries)
        similarity = np.zeros_like(bm25) if embedder is None else _similarity(corpus.documents, queries, embedder)
        marks = np.array([document.score for document in corpus.documents])
        chinese = np.array([language(document.text) == "zh" for document in corpus.documents])
        texts = tuple(query for query, _ in queries)
        return Asked(np.array(numbers), texts, corpus, similarity, bm25, shared, relevant, marks, chinese)

    def _history(self, sample: Sample) -> list[str]:
        turns = sample.fields.get("history") if self.history else None
        if turns is not None and not isinstance(turns, list):
            raise TaskError(f"sample {sample.id} history", turns, "a list of the turns before the query")
        return [str(turn) for turn in turns or ()]

    def measure(self, prepared: Sequence[Asked], config: LabConfig) -> Measured:
        """Tallies a query: shares of what is relevant, or whether there is a hit where nothing is."""
        parts = [self._tallies(asked, config) for asked in prepared]
        tallies = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Measured(tallies, np.concatenate([asked.samples for asked in prepared]))

    def _tallies(self, asked: Asked, config: LabConfig) -> dict[str, Array]:
        score, valid = self._scores(asked, config)
        if self.method == "growth":
            through = as_memories(
                asked, first(score, valid, LOOK * config.growth.max_results), config, self._embedder(config)
            )
        else:
            through = under_one_budget(asked, first(score, valid, DEPTH), config)
        return _tallies(asked, first(score, valid, DEPTH), through, config)

    def _found(self, asked: Asked, config: LabConfig) -> Found:
        return first(*self._scores(asked, config), DEPTH)

    def _scores(self, asked: Asked, config: LabConfig) -> tuple[Matrix, NDArray[np.bool_]]:
        """Every score and whether it is one of a hit, as in KnowHub.search or by one of its parts."""
        settings = config.knowhub
        if self.method == "bm25":
            return asked.bm25, asked.bm25 > 0
        if self.method == "embedding":
            return asked.similarity, asked.similarity >= settings.min_similarity
        growth = self.method == "growth"
        allowed = asked.marks >= (1 if growth else settings.min_score)
        score = asked.similarity + settings.lexical_weight * asked.shared
        groups = [each for each in (asked.chinese & allowed, ~asked.chinese & allowed) if each.any()]
        best = np.stack([score[:, group].max(axis=1) for group in groups] or [np.zeros(len(score))], axis=1)
        for group, up in zip(groups, lift(best, settings.language_balance).T, strict=False):
            score[:, group] += up[:, None]
        score += settings.quality_weight * (asked.marks - 3) / 5
        close = near_enough(asked.similarity, config, self._embedder(config)) if growth else None
        near = asked.similarity >= settings.min_similarity if close is None else close
        return score, (near | (asked.shared > SAME_WORDS)) & allowed

    def rows(self, data: Dataset, prepared: Sequence[Asked], config: LabConfig) -> pd.DataFrame:
        """id, dataset, lang, kind, query, relevant, found (five ids), rank, correct, score, reason, text of the best.

        `correct`: something relevant is among the first five; for a query without an answer: there is no hit.
        """
        import pandas as pd

        made: dict[int, list[Any]] = {}
        for asked in prepared:
            found = self._found(asked, config)
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


def _lexical(documents: Sequence[Document], queries: _Queries) -> tuple[Matrix, Matrix]:
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


def _similarity(documents: Sequence[Document], queries: _Queries, embedder: Embedder) -> Matrix:
    """The cosine of each query (a row) with the best piece of each document."""
    pieces = [vectors for vectors, _ in embed_entries(embedder, [(each.title, each.text) for each in documents])]
    starts = np.cumsum([0, *(len(each) for each in pieces[:-1])])
    cosines = embed_queries(embedder, queries) @ np.concatenate(pieces).T
    return np.asarray(np.maximum.reduceat(cosines, starts, axis=1), dtype=np.float32)


def _tallies(asked: Asked, found: Found, through: Through, config: LabConfig) -> dict[str, Array]:
    total = asked.relevant.sum(axis=1)
    right = np.take_along_axis(asked.relevant, found.rows, axis=1) & found.hit
    ranks = np.arange(1, right.shape[1] + 1)
    discount = 1 / np.log2(ranks + 1)
    ideal = np.concatenate([[0.0], np.cumsum(discount)])[np.minimum(total, right.shape[1])]
    some = np.maximum(total, 1)
    tallies = {
        "kept": through.right / some, "got": through.right > 0, "queries": np.ones(len(total)),
        "spent": through.tokens, "spent_share": through.tokens / max(config.growth.max_tokens, 1),
        "over": through.found - through.kept, "found": through.found,
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
