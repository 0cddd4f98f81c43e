"""An agent's growth memory at work: recalled before a turn, taught after it. Neither can stop the conversation.

What is learned is what the session holds, which is what was said: texts that were injected or recalled stand in the
outgoing copy only. A turn that is taken back later stays learned, as what its tools did in the world stays done.

The memories of a turn are kept after it, and what is asked to be remembered always is, unless learning is off. The
layers of the conversation itself are kept when it leaves the context: before a compaction, and at the end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any, TypeVar

from openclaw_lab.agent.host import HostProfile
from openclaw_lab.agent.memory import is_knowhub
from openclaw_lab.agent.prompt import Recall
from openclaw_lab.agent.session import SessionLog
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import excerpt
from openclaw_lab.growth.sayings import asks_to_remember

T = TypeVar("T")
_LOG = logging.getLogger("openclaw_lab.agent")
# User messages before the one that is asked about, which make a short question clear.
_BEFORE = 2
# Seconds that the end of an agent waits for a model to finish, as the host's agent_end does.
_PATIENCE = 30.0


class Learning:
    """The growth memory of one agent. `learned` and `faults` say what became of it, oldest first."""

    def __init__(self, memory: Any, config: LabConfig, host: HostProfile, access: bool) -> None:
        self.learned: list[object] = []
        self.faults: list[str] = []
        self._memory, self._config = memory, config
        hidden = frozenset() if access else host.gated
        self._when = "off" if "agent_end" in hidden else config.growth.learn
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: list[Future[None]] = []

    @classmethod
    def of(cls, memory: object, config: LabConfig, host: HostProfile, access: bool) -> Learning | None:
        """For what injects and extracts, and is no knowledge base; None for anything else."""
        able = all(callable(getattr(memory, verb, None)) for verb in ("inject", "extract"))
        return cls(memory, config, host, access) if able and not is_knowhub(memory) else None

    def recall(self, log: SessionLog) -> Recall | None:
        """What recalls for a message of a session; None where growth is off: the prompt is then as without a memory."""
        if not self._config.growth.enabled:
            return None

        def recalled(message: str) -> str:
            said = [each.text for each in log.messages[log.start :] if each.role == "user"][-_BEFORE:]
            return str(self._memory.inject(message, history=said, session=log.id))

        return recalled

    def after_turn(self, log: SessionLog) -> None:
        """The turn is over."""
        if self._when == "agent_end" or (self._when == "before_compaction" and asks_to_remember(_last_said(log))):
            self._learn(log, layers=False)

    def before_compaction(self, log: SessionLog) -> None:
        """Earlier messages are about to be dropped from the context."""
        if self._when != "off":
            self._learn(log, layers=True)

    def forked(self, log: SessionLog, parent: SessionLog) -> None:
        """A session goes on from another one: it does not teach the same again."""
        follow = getattr(self._memory, "follow", None)
        if self._when != "off" and callable(follow):
            self._kept(lambda: follow(log.id, parent.id))

    def close(self, log: SessionLog) -> None:
        """The session is over: keep what is new of it, and wait until what is under way is kept, within bounds."""
        if self._when != "off" and log.length:
            self._learn(log, layers=True)
        if self._pool is not None:
            _, late = wait_for(self._waiting, _PATIENCE)
            if late:
                self._fault(f"{len(late)} conversation(s) not learned within {_PATIENCE:g} s")
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool, self._waiting = None, []

    def _learn(self, log: SessionLog, *, layers: bool) -> None:
        extractor, messages, session = self._config.extraction.extractor, tuple(log.messages), log.id
        if extractor == "rules":
            self._extract(messages, session, extractor, layers)
            return
        if self._pool is None:  # a model takes its time, and the user does not wait for it
            self._pool = ThreadPoolExecutor(1, "openclaw-lab-learning")
        self._waiting = [each for each in self._waiting if not each.done()]
        self._waiting.append(self._pool.submit(self._extract, messages, session, extractor, layers))

    def _extract(self, messages: Sequence[Any], session: str, extractor: str, layers: bool) -> None:
        extract: Callable[..., Sequence[object]] = self._memory.extract
        found = self._kept(lambda: extract(messages, session=session, extractor=extractor, layers=layers))
        self.learned += found or ()

    def _kept(self, work: Callable[[], T]) -> T | None:
        """What it gives; None and a fault when it fails: a memory out of reach must not stop the conversation."""
        try:
            return work()
        except Exception as error:
            self._fault(f"{type(error).__name__}: {excerpt(str(error), 200)}")
            return None

    def _fault(self, text: str) -> None:
        self.faults.append(text)
        _LOG.warning("nothing learned: %s", text)


def _last_said(log: SessionLog) -> str:
    """The user's last message."""
    return next((each.text for each in reversed(log.messages) if each.role == "user"), "")
