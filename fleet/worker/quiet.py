"""Lines that Celery logs of tasks: without the values of durable runs, and none of quiet tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

TRACE: Final = "celery.app.trace"
RECEIVED: Final = "celery.worker.strategy"
HIDDEN: Final = "(hidden)"
VALUES: Final = frozenset({"args", "kwargs", "return_value", "exc", "traceback"})
"""The fields of Celery's lines that hold values of the task."""


class HidesValues(logging.Filter):
    """Hides the values in lines of tasks for which `is_run` is true, but for an error's class."""

    def __init__(self, is_run: Callable[[], bool]) -> None:
        super().__init__()
        self._is_run = is_run

    def filter(self, record: logging.LogRecord) -> bool:
        if not isinstance(record.args, Mapping) or not self._is_run():
            return True
        shown = {**record.args, **dict.fromkeys(VALUES & record.args.keys(), HIDDEN)}
        error = record.exc_info[0] if record.exc_info else None
        if error is not None and "exc" in shown:
            shown["exc"] = error.__name__
        record.args, record.exc_info = shown, None
        if hasattr(record, "data"):
            record.data = shown
        return True


def hide_values(is_run: Callable[[], bool]) -> None:
    """Have Celery's lines hide the values of runs; a repeated call changes nothing."""
    logger = logging.getLogger(TRACE)
    if not any(isinstance(each, HidesValues) for each in logger.filters):
        logger.addFilter(HidesValues(is_run))


class HidesTasks(logging.Filter):
    """Hides lines below the level of a warning about tasks whose names begin with a prefix.

    Fairshift's own rounds would write eight lines a second, also while nothing runs.
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING or not isinstance(record.args, Mapping):
            return True
        return not str(record.args.get("name")).startswith(self._prefix)


def hide_tasks(prefix: str) -> None:
    """Have Celery write no line when a task of a prefix begins or succeeds; safe to repeat."""
    for name in (RECEIVED, TRACE):
        logger = logging.getLogger(name)
        if not any(isinstance(each, HidesTasks) for each in logger.filters):
            logger.addFilter(HidesTasks(prefix))
