"""The thread of a process that writes the logs of its attempts. It begins with the first line."""

from __future__ import annotations

import logging
import threading
from typing import Final, Protocol
from uuid import UUID

from jobs.core import log_events

TICK_SECONDS: Final = 0.25

logger = logging.getLogger(__name__)


class Log(Protocol):
    """What the thread needs of an attempt's log."""

    run_id: UUID

    def flush_if_due(self) -> None: ...


class _Thread(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="fairshift-run-log", daemon=True)
        self.logs: set[Log] = set()
        self.some = threading.Event()
        self.tick = threading.Event()

    def run(self) -> None:
        while True:
            self.some.wait()
            self.tick.wait(TICK_SECONDS)
            self.tick.clear()
            for log in tuple(self.logs):
                try:
                    log.flush_if_due()
                except Exception as error:
                    # The other logs are written.
                    self.logs.discard(log)
                    facts = {"run_id": log.run_id, "error": error}
                    log_events.RUN_LOG_NOT_WRITTEN.log(logger, exc_info=error, **facts)
            self.some.clear()
            if self.logs:
                self.some.set()


_threads: Final[list[_Thread]] = []
"""The thread of this process, once there is one."""


def watch(log: Log) -> None:
    """Have the lines of a log written, once they are due."""
    if not _threads:
        _threads.append(_Thread())
        _threads[0].start()
    _threads[0].logs.add(log)
    _threads[0].some.set()


def forget(log: Log) -> None:
    for thread in _threads:
        thread.logs.discard(log)


def hurry() -> None:
    """Have the lines that wait written now."""
    for thread in _threads:
        thread.some.set()
        thread.tick.set()


def is_writer(thread: threading.Thread) -> bool:
    """Say whether it is this thread, whose own lines belong to no task."""
    return thread in _threads


def after_fork() -> None:
    """Forget the thread: a forked process has none."""
    _threads.clear()
