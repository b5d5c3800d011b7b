"""See what a running task logs and prints, and give it to the log of its attempt.

Records are seen by a factory of `logging`, and prints by what stands in for `sys.stdout` and
`sys.stderr`; both still go where they went before. A line belongs to the attempt whose task has
this context, or else to the one of this process, if the thread is not older than the attempt. A
forked copy of the process keeps no lines.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from fleet import LogChunk
from jobs.catalog.redaction import log_redactor
from jobs.catalog.run_log import writer
from jobs.catalog.run_log.attempt import AttemptLog
from jobs.catalog.run_log.lines import LEVELS, text_of
from jobs.core import log_events
from jobs.core.conf import setting

logger = logging.getLogger(__name__)

REDIRECTED: Final = "celery.redirected"
"""The logger that Celery writes what is printed to: the print itself is seen."""
_LOWERED: Final = ("", "celery.task")
"""Loggers of which a run may have lower levels than the worker: the root, and that of Celery's
`get_task_logger`, which has handlers of its own."""


class _Attempt:
    """An attempt whose lines are kept. Its log is made with the first one: most have none."""

    __slots__ = ("_given", "_log", "is_closed", "level", "strangers")

    def __init__(self, level: int, given: tuple[Any, ...], strangers: Sequence[Any]) -> None:
        self.level, self.strangers = level, strangers
        self._given = given
        self._log: AttemptLog | None = None
        self.is_closed = False

    @property
    def log(self) -> AttemptLog:
        if self._log is None:
            task, facts, args, kwargs = self._given
            made = AttemptLog(
                owner=facts["owner"],
                run_id=UUID(facts["run"]),
                token=facts["token"],
                redactor=lambda: log_redactor(task, args, kwargs),
            )
            with _making:
                self._log = self._log or made
        return self._log

    def end(self) -> Sequence[LogChunk]:
        self.is_closed = True
        return () if self._log is None else self._log.end()


_making: Final = threading.Lock()
_of_context: ContextVar[_Attempt | None] = ContextVar("fairshift_run_log", default=None)


@dataclass(slots=True)
class _Process:
    """What this process has."""

    attempt: _Attempt | None = None
    """The one that its main thread runs."""
    is_installed: bool = False
    is_child: bool = False
    level: int = -1
    """The level to which `_lower` has set the loggers."""


_process: Final = _Process()


def begin(
    task: str, facts: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Keep what this task logs from now on, if its run has a row and a log. Raises nothing."""
    try:
        _begin(task, facts, args, kwargs)
    except Exception as error:
        log_events.RUN_LOG_NOT_WRITTEN.log(logger, run_id=facts.get("run"), error=error)


def _begin(
    task: str, facts: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    named = facts["policy"].get("log_level")
    level = LEVELS[named] if named in LEVELS else LEVELS[setting("RUN_LOG_LEVEL")]
    if facts.get("key") != facts["run"] or level == LEVELS["OFF"]:
        return
    _install()
    is_main = threading.current_thread() is threading.main_thread()
    # Threads that are older than the attempt are not its task's.
    strangers = threading.enumerate() if is_main else ()
    attempt = _Attempt(level, (task, facts, args, kwargs), strangers)
    _of_context.set(attempt)
    if is_main:
        _process.attempt = attempt
    if _process.is_child:
        _lower(level)


def end() -> Sequence[LogChunk]:
    """End the log of the current task; return what is left to write of it. Raises nothing."""
    attempt = _of_context.get()
    if attempt is None:
        return ()
    _of_context.set(None)
    if _process.attempt is attempt:
        _process.attempt = None
    try:
        if _process.is_child:
            _lower(LEVELS[setting("RUN_LOG_LEVEL")])
        return attempt.end()
    except Exception as error:
        facts = {"run_id": attempt.log.run_id, "error": error}
        log_events.RUN_LOG_NOT_WRITTEN.log(logger, exc_info=error, **facts)
        return ()


def in_child(**_signal: Any) -> None:
    """Prepare a process of the pool: for Celery's `worker_process_init`."""
    _process.is_child = True
    _install()
    _lower(LEVELS[setting("RUN_LOG_LEVEL")])


def _install() -> None:
    # Each time: in a test, for example, another capture may have replaced them.
    if not isinstance(sys.stdout, _Seen | None):
        sys.stdout = _Seen(sys.stdout, logging.INFO, "stdout")
    if not isinstance(sys.stderr, _Seen | None):
        sys.stderr = _Seen(sys.stderr, logging.WARNING, "stderr")
    if not _process.is_installed:
        _process.is_installed = True
        logging.setLogRecordFactory(_seeing(logging.getLogRecordFactory()))
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    for attempt in (_process.attempt, _of_context.get()):
        if attempt is not None:
            attempt.is_closed = True
    _process.attempt = None
    writer.after_fork()


def _current() -> _Attempt | None:
    attempt = _of_context.get()
    if attempt is None:
        attempt, thread = _process.attempt, threading.current_thread()
        if attempt is None or thread in attempt.strangers or writer.is_writer(thread):
            return None
    return None if attempt.is_closed else attempt


def _seeing(make: Callable[..., logging.LogRecord]) -> Callable[..., logging.LogRecord]:
    def made(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        # A copy of a record is made without a level.
        is_new = record.levelno is not None and record.name != REDIRECTED
        at = _current() if is_new else None
        if at is not None and record.levelno >= at.level:
            # A line is not worth a failed task.
            with suppress(Exception):
                at.log.add(record.levelno, record.name, text_of(record), record.created)
        return record

    return made


class _Seen:
    """A stream that also gives what is written to the log of the task."""

    def __init__(self, stream: Any, level: int, name: str) -> None:
        self._stream, self._level, self._name = stream, level, name

    def write(self, text: str) -> Any:
        written = self._stream.write(text)
        at = _current()
        if at is not None and self._level >= at.level and isinstance(text, str):
            with suppress(Exception):
                at.log.print(self._level, self._name, text)
        return written

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


# --- a level below the worker's ------------------------------------------------------------
class _AsBefore(logging.Filter):
    """Of a logger's handlers: they write no line that the logger's own level would have hidden."""

    def __init__(self, own: logging.Logger) -> None:
        super().__init__()
        self.own, self.level = own, own.level

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= self.level:
            return True
        # A logger with a level of its own decides for itself.
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None and not logger.level:
            logger = logger.parent
        return logger is not self.own


_filters: Final[list[_AsBefore]] = []


def _lower(level: int) -> None:
    """Let loggers make records of a level that the attempt's log has, and handlers do not write."""
    if level == _process.level:
        return
    _process.level = level
    if not _filters:
        for name in _LOWERED:
            own = logging.getLogger(name)
            _filters.append(_AsBefore(own))
            for handler in own.handlers:
                handler.addFilter(_filters[-1])
    for each in _filters:
        wanted = min(each.level, level)
        if each.level and each.own.level != wanted:
            each.own.setLevel(wanted)
