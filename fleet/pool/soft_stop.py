"""The soft signal, which stops only the body of the job that it is for.

Soft time limits and cancels send it to a child. Billiard's handler raises wherever the child is:
before or after the body, in the next job, or in the child's own loop, which ends the child. Here
the main process first notes the job to stop in shared memory, and the child raises only in the body
of that job.
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
    """Handle the signal in this child; `is_asked` says whether its current job is to stop."""
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
    """Allow the signal to raise anywhere in the job, or only within `stoppable`.

    Anywhere is for plain tasks: Celery's trace handles the error.
    """
    global _may_raise  # noqa: PLW0603
    _may_raise = anywhere


@contextmanager
def stoppable() -> Iterator[None]:
    """Have the signal end this block by SoftTimeLimitExceeded, even if it came earlier."""
    global _may_raise  # noqa: PLW0603
    _may_raise = True
    try:
        _raise_if_asked()
        yield
    finally:
        _may_raise = False
