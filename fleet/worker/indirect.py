"""Closes ways around the gate: plain messages that have Celery call another task's body.

Celery's `map` and `starmap` call the task that their arguments name, and an errback with more than
one argument is called in the process of the failure. Neither sends a message that the gate could
drop, and every client of the broker can use both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from celery import Task, signature

CALLING: Final = ("celery.map", "celery.starmap")
"""Celery's own tasks that call another one's body; its `chunks` sends the second of them."""


class RunsOnlyWithRow(Exception):
    """A plain message named a task that runs only with a row; the task was not called."""


def close(tasks: Mapping[str, Task], requires_row: Callable[[str], bool]) -> None:
    """Keep `map`, `starmap` and errbacks in place from calling tasks that require a row."""
    for name, task in tasks.items():
        if name in CALLING:
            task.run = _guarded(task, task.run, requires_row)
        elif requires_row(name) and hasattr(task, "__header__"):
            # Celery sends an errback whose header is a partial, which is refused where it is sent.
            task.__header__ = functools.partial(task.__header__)


def _guarded(
    task: Task, run: Callable[..., Any], requires_row: Callable[[str], bool]
) -> Callable[..., Any]:
    @functools.wraps(run)
    def guarded(called: Any, elements: Any) -> Any:
        # Find the task in the same way as `map` does.
        name = signature(called, app=task.app).type.name
        if requires_row(name):
            raise RunsOnlyWithRow(f"{task.name} would call {name}, which runs only with a row")
        return run(called, elements)

    return guarded
