"""A plugin's plain hooks and tools, each within its time limit, on threads of the plugin's own.

Calls one after the other use the same thread; a call beside another one gets a thread of its own, so that none waits,
and is late, for what another agent does. What outlasts its limit is left behind: Python cannot stop a thread.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any

from openclaw_lab.errors import PluginError

_HERE = threading.local()
_Job = tuple[Callable[..., Any], Callable[[], Any], "queue.SimpleQueue[tuple[bool, Any]]"]
_Jobs = queue.SimpleQueue["_Job | None"]


class Worker:
    """The threads of one plugin. A call that is late ends their use: every later one fails at once.

    `late` then says which call that was. A call from within a call runs where it is.
    """

    def __init__(self, name: str) -> None:
        self.late = ""
        self._name = name
        self._pool, self._token = _Pool(), object()

    def run(self, function: Callable[[], Any], limit: float, what: str) -> Any:
        """What a function gives within `limit` seconds; whatever it raises is raised."""
        if getattr(_HERE, "token", None) is self._token:
            return function()
        if self.late:
            raise PluginError(f"plugin {self._name} is disabled: {self.late}")
        answer: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        pool = self._pool
        with pool.lock:
            jobs = pool.idle.pop() if pool.idle else None
        if jobs is None:
            jobs = queue.SimpleQueue()
            threading.Thread(
                target=_work, args=(self._token, jobs, pool), name=f"plugin-{self._name}-calls", daemon=True
            ).start()
        jobs.put((contextvars.copy_context().run, function, answer))
        try:
            good, value = answer.get(timeout=limit)
        except queue.Empty:
            self.late = f"{what}: took longer than {limit:g} s"
            raise PluginError(self.late) from None
        if good:
            return value
        raise value

    def close(self) -> None:
        """Let the threads end, each once it is done; a later call starts another one."""
        pool, self._pool = self._pool, _Pool()
        with pool.lock:
            pool.closed = True
            for jobs in pool.idle:
                jobs.put(None)


class _Pool:
    """The threads that wait for a job, each as where its jobs are put."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[_Jobs] = []
        self.closed = False


def _work(token: object, jobs: _Jobs, pool: _Pool) -> None:
    _HERE.token = token
    while (job := jobs.get()) is not None:
        run, function, answer = job
        try:
            said = True, run(function)
        except BaseException as error:  # SystemExit and the like too: the caller must not wait in vain
            said = False, error
        with pool.lock:  # before the answer, so that the next call finds this thread
            closed = pool.closed
            if not closed:
                pool.idle.append(jobs)
        answer.put(said)
        if closed:
            return
        del run, function, answer, job, said
