"""Inside the pool: run the user's task and find out what became of it.

The retry is decided here, before Celery stores an outcome, so that errbacks, chords and
AsyncResult see the final one only. What happened goes back to the main process beside
Celery's own answer; a pool child has no database connection of ours.
"""

from __future__ import annotations

import contextvars
import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from celery import Task
from celery.exceptions import Ignore, Reject, Retry, WorkerShutdown, WorkerTerminate

from fleet.contract import HEADER, Edges, Kind, Report
from fleet.failures import class_names, failure, format_traceback, safe_text
from fleet.faults import crash_point


class TaskExited(Exception):
    """The task raised what would end its process, such as SystemExit; the process goes on."""


@dataclass(slots=True)
class Flight:
    """One admitted run in this process."""

    run_id: str
    token: int
    attempt: int
    policy: Mapping[str, Any]
    report: Report | None = None
    entered: bool = False


_flight: contextvars.ContextVar[Flight | None] = contextvars.ContextVar("flight", default=None)


def install(tasks: Mapping[str, Task], edges: Edges) -> None:
    """Guard every task's `run` and `retry`, before tracers are built and children forked.

    Celery's own `autoretry_for` replaces `run` in the same way.
    """
    for name, task in tasks.items():
        if not name.startswith("celery.") and not hasattr(task, "_fairshift_guarded"):
            task._fairshift_guarded = True
            task.run = _guarded_run(task, task.run, edges)
            task.retry = _guarded_retry(task, task.retry)


def traced(trace: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Trace a task as Celery does; return Celery's three values and our report.

    `args` are those of Celery's trace: name, id, request, body, content type and encoding.
    """
    facts = args[2][HEADER]
    flight = Flight(facts["run"], facts["token"], facts["attempt"], facts["policy"])
    slot = _flight.set(flight)
    try:
        failed, value, runtime = trace(*args, **kwargs)
    finally:
        _flight.reset(slot)
    crash_point("child.after_run")
    report = flight.report
    if failed and (report is None or report.kind is Kind.SUCCEEDED):
        # The task was not reached, or its callbacks could not be sent: Celery has stored
        # a failure, and so do we.
        report = failure(flight.run_id, flight.token, value.exception, str(value.traceback))
    elif report is None:
        report = Report(flight.run_id, flight.token, Kind.SUCCEEDED, time.monotonic())
    return failed, value, runtime, report


def _guarded_run(task: Task, run: Callable[..., Any], edges: Edges) -> Callable[..., Any]:
    @functools.wraps(run)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        flight = _flight.get()
        # A task may call another's function, or its own: only the outermost call is the run.
        if flight is None or flight.entered or task.request.id != flight.run_id:
            return run(*args, **kwargs)
        flight.entered = True
        crash_point("child.before_run")
        try:
            return _run(flight, edges, functools.partial(run, *args, **kwargs))
        finally:
            # Before Celery stores an outcome over a connection that the task may have broken.
            edges.leave_clean()

    return guarded


def _guarded_retry(task: Task, retry: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(retry)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        flight = _flight.get()
        if flight is None or task.request.id != flight.run_id:
            return retry(*args, **kwargs)
        # Celery's retry would publish the arguments; a durable run waits in its row instead.
        error = kwargs.get("exc") or (args[2] if len(args) > 2 else None)
        raise Retry(exc=error, when=kwargs.get("countdown"))

    return guarded


def _run(flight: Flight, edges: Edges, call: Callable[[], Any]) -> Any:
    try:
        value = call()
        result = edges.encode_result(value)
    except (WorkerShutdown, WorkerTerminate):
        raise
    except (Ignore, Reject):
        flight.report = Report(flight.run_id, flight.token, Kind.SUCCEEDED, time.monotonic())
        raise
    except Retry as asked:
        error = asked.exc if isinstance(asked.exc, BaseException) else asked
        wanted = asked.when if isinstance(asked.when, int | float) else None
        raise _settle(flight, edges, error, wanted=wanted) from None
    except BaseException as error:
        shown = _settle(flight, edges, error, wanted=_asked_delay(error))
        if shown is error:
            raise
        raise shown from error
    flight.report = Report(
        flight.run_id, flight.token, Kind.SUCCEEDED, time.monotonic(), result=result
    )
    return value


def _asked_delay(error: BaseException) -> float | None:
    """Return the seconds that the other side asked to be left alone (a Retry-After), if any."""
    delay = getattr(error, "retry_after", None)
    return float(delay) if isinstance(delay, int | float) else None


def _settle(
    flight: Flight, edges: Edges, error: BaseException, *, wanted: float | None
) -> BaseException:
    """Decide between retry and failure, note it, and return what Celery shall see raised."""
    text = format_traceback(error)
    delay = edges.retry_delay(flight.policy, flight.attempt, class_names(error), wanted)
    flight.report = failure(flight.run_id, flight.token, error, text, delay=delay)
    if delay is not None:
        # A bare Retry stores RETRY and publishes nothing: promotion queues the run again.
        return Retry(message=safe_text(error), exc=_presentable(error), when=delay)
    return _presentable(error)


def _presentable(error: BaseException) -> Exception:
    """Return the error as one that neither ends this process nor the worker's main one."""
    if isinstance(error, Exception) and not isinstance(error, MemoryError):
        return error
    return TaskExited(f"{type(error).__name__}: {safe_text(error)}")
