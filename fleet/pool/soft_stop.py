"""The soft signal to stop a job: it ends the body of the job that it is meant for, nothing else.

A soft time limit and a cancel send a child the same signal. Billiard's handler raises wherever the
child is when the signal arrives: before the body, after it, in the next job, or in the child's own
loop, which ends the child. So the main process writes down first, in memory that both share, which
job is to stop, and the child raises only while it runs the body of that job.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from billiard.exceptions import SoftTimeLimitExceeded

_is_asked: Callable[[], bool] | None = None
_may_raise = False


def install(is_asked: Callable[[], bool]) -> None:
    """Take the signal in this child; `is_asked` says whether its current job is to stop."""
    global _is_asked  # noqa: PLW0603  one child is one process
    _is_asked = is_asked
    signal.signal(signal.SIGUSR1, _on_signal)


def _on_signal(_number: int, _frame: Any) -> None:
    if _may_raise:
        _raise_if_asked()


def _raise_if_asked() -> None:
    if _is_asked is not None and _is_asked():
        raise SoftTimeLimitExceeded


def allow(*, anywhere: bool) -> None:
    """Say whether the child's job may be stopped wherever it is, or in its body only.

    Anywhere is for plain tasks: Celery's trace runs their body, and deals with the error around it.
    """
    global _may_raise  # noqa: PLW0603
    _may_raise = anywhere


@contextmanager
def stoppable() -> Iterator[None]:
    """Have the signal end this block with SoftTimeLimitExceeded, also one that came before it."""
    global _may_raise  # noqa: PLW0603
    _may_raise = True
    try:
        _raise_if_asked()
        yield
    finally:
        _may_raise = False
