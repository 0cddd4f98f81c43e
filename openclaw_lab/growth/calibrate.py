"""An embedder in, what its cosines mean out: the chance that a question and a memory belong together.

A raw 0.7 says something else for each embedder: with one, unrelated texts lie at 0.2, with another at 0.8. Pairs of a
question and the memory that answers it, and all crosses of them, give two groups of cosines. With two normal
distributions of one variance (linear discriminant) and even odds, the chance is
1 / (1 + exp(-(cosine - middle) / width)).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from openclaw_lab.knowhub.embed import Embedder, full_name
from openclaw_lab.knowhub.ranking import embed_entries, embed_queries

# (question, memory that answers it), in Chinese, in English and across.
PAIRS: tuple[tuple[str, str], ...] = (
    ("What should I cook for dinner tonight?", "I am vegetarian and do not eat meat or fish."),
    ("Book me a seat on the train to Hamburg.", "I prefer a window seat when I travel by train."),
    ("Write a function that reads the file.", "I always want type annotations in Python code."),
    ("How do I release a new version?", "Our releases are tagged on Thursdays after the smoke test."),
    ("When can we meet next week?", "I am free for meetings in the afternoon only."),
    ("Draft a message to my manager.", "My manager is called Priya and likes short messages."),
    ("Why did the build fail again?", "The build fails when the cache folder is not cleared first."),
    ("Which database do we run?", "We moved our data from MySQL to PostgreSQL."),
    ("帮我推荐一家餐厅", "我对海鲜过敏，不能吃虾和蟹。"),
    ("这个脚本怎么部署到服务器？", "部署前要先停掉定时任务，否则会锁表。"),
    ("给客户写一封邮件", "我们给客户的邮件一律用敬语，结尾署团队名。"),
    ("周末去哪里玩比较好？", "我喜欢爬山，不喜欢人多的商场。"),
    ("这段代码帮我改一下格式", "我习惯缩进用四个空格，不用制表符。"),
    ("报表的口径是什么？", "周报的数据口径用中位数，不用平均数。"),
    ("我家附近有医院吗？", "我住在杭州西湖区。"),
    ("会议安排在什么时候合适？", "我上午要接送孩子，会议只能排在下午。"),
    ("帮我订一张去上海的票", "I always travel by high-speed rail and never fly."),
    ("How should the summary look?", "总结请用三条要点，不要写长段落。"),
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The two groups of cosines of one embedder, and what follows from them."""

    embedder: str
    related: float
    unrelated: float
    spread: float

    @property
    def middle(self) -> float:
        """The cosine at which both are equally likely."""
        return (self.related + self.unrelated) / 2

    @property
    def width(self) -> float:
        """What a step in cosine is divided by."""
        return self.spread**2 / max(self.related - self.unrelated, 1e-6)

    def level(self, cosine: float) -> float:
        """The chance that two texts with this cosine belong together, from 0 to 1."""
        return 1 / (1 + math.exp(min(max(-(cosine - self.middle) / self.width, -60.0), 60.0)))

    def cosine(self, level: float) -> float:
        """The cosine from which the chance is at least `level`, within -1 to 1."""
        if level <= 0:
            return -1.0
        if level >= 1:
            return 1.0
        return min(max(self.middle + self.width * math.log(level / (1 - level)), -1.0), 1.0)


def calibration(embedder: Embedder) -> Calibration:
    """What the cosines of an embedder mean; computed once for each name and version."""
    return _measured(full_name(embedder), _Held(embedder))


class _Held:
    """An embedder that does not count when calls are compared: its name does."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


@functools.lru_cache(maxsize=32)
def _measured(name: str, held: _Held) -> Calibration:
    questions = embed_queries(held.embedder, [(question, ()) for question, _ in PAIRS])
    memories = np.stack([rows[0] for rows, _ in embed_entries(held.embedder, [(text, text) for _, text in PAIRS])])
    cosines = questions @ memories.T
    own = np.eye(len(PAIRS), dtype=bool)
    near, far = cosines[own], cosines[~own]
    spread = float(np.sqrt((near.var() + far.var()) / 2))
    return Calibration(name, float(near.mean()), float(far.mean()), max(spread, 1e-3))
