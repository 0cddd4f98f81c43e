"""The built-in tasks by name."""

from __future__ import annotations

import importlib
from typing import Any

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.task import Task
from openclaw_lab.knobs import nearest

_HOME = {
    "reminders": "RemindersTask",
    "live": "LiveTask",
    "redaction": "RedactionTask",
    "injection": "InjectionTask",
    "skills": "SkillsTask",
    "retrieval": "RetrievalTask",
    "extraction": "ExtractionTask",
}
TASKS = tuple(_HOME)


def task_named(task: object, options: dict[str, Any] | None = None) -> Task:
    """A Task as it is, or the built-in one of that name made with the options."""
    if not isinstance(task, str | Task):
        found = f"the class {task.__name__}" if isinstance(task, type) else task
        raise TaskError("task", found, "a task's name or a Task object")
    if not isinstance(task, str):
        if options:
            raise TaskError(f"task {task.name}", f"the options {', '.join(options)}", "none beside a Task object")
        return task
    if task not in _HOME:
        raise TaskError(f"task {task!r}", expected="a known task", todo=nearest(task, _HOME))
    if task == "reminders" and "model" in (options or {}):
        task = "live"  # the same question, asked of an agent that runs
    module = importlib.import_module(f"openclaw_lab.experiments.tasks.{task}")
    try:
        made: Task = getattr(module, _HOME[task])(**(options or {}))
    except TypeError as error:
        raise TaskError(f"task {task}", str(error), "options that the task knows") from None
    return made
