"""Ends copies of a worker's process, which a task has made by a fork.

A copy shares its parent's pipes and connections. If it left the task's body, it would store a
second outcome, close its parent's connections, and read the next jobs.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from celery import Task

SAYS: Final = (
    "fairshift: process %d is a copy of process %d that a task has forked; it left the task's body "
    "and ends here (a forked process should end itself by os._exit)\n"
)


def end_copies(tasks: Mapping[str, Task]) -> None:
    """Have forked copies end with the task's body; call it before tracers are built from `run`."""
    for task in tasks.values():
        if not hasattr(task, "_fairshift_ends_copies"):
            task._fairshift_ends_copies = True
            task.run = _without_copies(task.run)


def end_copy_of(pid: int) -> None:
    """End this process at once if it is not process `pid` but a copy of it."""
    if os.getpid() != pid:
        # Directly to the descriptor: log handlers may share connections with the parent.
        with suppress(OSError):
            os.write(2, (SAYS % (os.getpid(), pid)).encode())
        os._exit(1)


def _without_copies(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def alone(*args: Any, **kwargs: Any) -> Any:
        pid = os.getpid()
        try:
            return run(*args, **kwargs)
        finally:
            # Whatever the body raised, also SystemExit.
            end_copy_of(pid)

    return alone
