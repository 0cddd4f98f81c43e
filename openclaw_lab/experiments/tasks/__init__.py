"""The built-in tasks by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from openclaw_lab.errors import TaskError
from openclaw_lab.knobs import nearest

if TYPE_CHECKING:
    from openclaw_lab.experiments.task import Task

_HOME = {"reminders": "RemindersTask", "injection": "InjectionTask"}
TASKS = tuple(_HOME)


def task_named(task: str | Task, options: dict[str, Any] | None = None) -> Task:
    """A Task as it is, or the built-in one of that name made with the options."""
    if not isinstance(task, str):
        if options:
            raise TaskError(f"task {task.name}", f"the options {', '.join(options)}", "none beside a Task object")
        return task
    if task not in _HOME:
        raise TaskError(f"task {task!r}", expected="a known task", todo=nearest(task, _HOME))
    module = importlib.import_module(f"openclaw_lab.experiments.tasks.{task}")
    try:
        made: Task = getattr(module, _HOME[task])(**(options or {}))
    except TypeError as error:
        raise TaskError(f"task {task}", str(error), "options that the task knows") from None
    return made
