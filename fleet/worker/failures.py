"""Failures as text that PostgreSQL can store, clipped, and ends that a task asked for. Pure."""

from __future__ import annotations

import time
import traceback
from typing import Final

from billiard.einfo import ExceptionWithTraceback
from billiard.exceptions import SoftTimeLimitExceeded, TimeLimitExceeded
from celery.exceptions import Ignore, Retry

from fleet.contract import Kind, Report
from fleet.steering import CANCELLED, DISCARDED, SNOOZED, Discard, Snooze, Steer

MESSAGE_CHARACTERS: Final = 2_000
TRACEBACK_CHARACTERS: Final = 16_000


def failure(
    run_id: str,
    token: int,
    error: BaseException,
    trace: str,
    *,
    delay: float | None = None,
    cause: str = "",
) -> Report:
    """Return the report of a failed attempt: retried after `delay` seconds, or final if None."""
    return Report(
        run_id,
        token,
        Kind.FAILED if delay is None else Kind.RETRYING,
        time.monotonic(),
        error_type=_clipped(type(error).__name__[:200], 200),
        error_message=safe_text(error),
        traceback=_clipped(trace, TRACEBACK_CHARACTERS),
        delay=delay,
        cause=cause,
    )


def unwrapped(error: BaseException) -> BaseException:
    """Return a child's error without the traceback that billiard wraps it in."""
    return error.exc if isinstance(error, ExceptionWithTraceback) else error


def class_names(error: BaseException) -> tuple[str, ...]:
    """Return the names of an error's class and its parents, bare and with their module."""
    return tuple(
        name
        for cls in type(error).__mro__
        for name in (cls.__name__, f"{cls.__module__}.{cls.__qualname__}")
    )


def safe_text(error: object) -> str:
    """Return the text of an error or its reason, even if its `__str__` raises."""
    # A task may raise these errors itself, with other arguments or none.
    if isinstance(error, TimeLimitExceeded) and [type(it) for it in error.args] in ([int], [float]):
        return f"ran longer than its time limit of {error.args[0]:g} s"
    if isinstance(error, SoftTimeLimitExceeded) and not error.args:
        return "was told to stop: it reached its soft time limit, or was cancelled"
    try:
        return _clipped(str(error), MESSAGE_CHARACTERS)
    except Exception as broken:
        return f"(its text could not be read: {type(broken).__name__})"


def format_traceback(error: BaseException) -> str:
    """Return an error's traceback from the task's own frame on."""
    lines = traceback.TracebackException(
        type(error), error, error.__traceback__, limit=-40, compact=True
    ).format()
    try:
        return "".join(lines)
    except Exception as broken:
        return f"(the traceback could not be read: {type(broken).__name__})"


def _clipped(text: str, most: int) -> str:
    """Keep head and tail: one has the cause, the other the place."""
    # PostgreSQL's text holds no NUL, and UTF-8 no lone surrogate.
    text = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - most} characters left out …\n{text[-half:]}"


def steered(run_id: str, token: int, steer: Steer) -> tuple[Report, Exception]:
    """Return the report of an attempt that snoozed, discarded or cancelled its run.

    And the exception that ends it for Celery.
    """
    if isinstance(steer, Snooze):
        report = Report(
            *(run_id, token, Kind.RETRYING, time.monotonic()), delay=steer.seconds, cause=SNOOZED
        )
        return report, Retry(message=str(steer), exc=steer, when=steer.seconds)
    if isinstance(steer, Discard):
        return failure(run_id, token, steer, "", cause=DISCARDED), steer
    # Ignore: Celery stores no result. The main process announces the cancel.
    report = failure(run_id, token, steer, "", cause=CANCELLED)
    return report._replace(kind=Kind.CANCELLED), Ignore(str(steer))
