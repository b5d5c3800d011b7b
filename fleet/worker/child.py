"""Inside the pool: run the user's task and report its outcome.

The retry is decided here, before Celery stores an outcome, so that errbacks, chords and
AsyncResult see the final one only. The report goes to the main process beside Celery's own result;
a pool child has no database connection of ours.
"""

from __future__ import annotations

import contextvars
import functools
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NoReturn

from billiard.common import terminate_handler_fired
from billiard.einfo import ExceptionInfo
from celery import Task
from celery.exceptions import Ignore, Reject, Retry, WorkerShutdown, WorkerTerminate
from celery.worker.request import Request

from fleet import logs, tracing
from fleet.contract import (
    HEADER,
    NOT_BEGUN,
    Application,
    Kind,
    LogChunk,
    NotBegun,
    Report,
    is_hint,
)
from fleet.coroutines import NeverAwaited, is_never_awaited
from fleet.crash_points import crash_point
from fleet.pool import stoppable
from fleet.router import acting_as
from fleet.steering import MOST_STARTS, Snooze, SnoozedTooOften, Steer
from fleet.worker import indirect
from fleet.worker.charging import with_part
from fleet.worker.failures import (
    class_names,
    failure,
    format_traceback,
    safe_text,
    steered,
    unwrapped,
)
from fleet.worker.quiet import hide_tasks, hide_values

# In the order of Celery's own `Task.retry`.
RETRY_PARAMETERS: Final = ("args", "kwargs", "exc", "throw", "eta", "countdown")
EVENT_FIELDS: Final = frozenset({"runtime", "terminated", "expired"})
"""The fields of a durable run's events, besides those that Celery adds to every event."""


class TaskExited(Exception):
    """The task raised an error such as SystemExit; its process continues."""


class NotReached(Exception):
    """Celery's trace of the task failed before the task began; the worker's log shows why."""


class WindowClosed(NotBegun):
    """The task has not begun: its window closed before its process came to it."""


class TaskRejected(Exception):
    """The task raised Celery's `Reject`, with this reason."""


@dataclass(slots=True)
class Flight:
    """One admitted run in this process."""

    run_id: str
    token: int
    attempt: int
    facts: Mapping[str, Any]
    closes_at: float | None = None
    begins_by: float | None = None
    report: Report | None = None
    entered: bool = False
    rule: Callable[[], float | None] | None = None
    """Of an attempt that has failed: returns the delay of its retry, None for no retry."""
    log: Sequence[LogChunk] = ()


_flight: contextvars.ContextVar[Flight | None] = contextvars.ContextVar("flight", default=None)
_is_in_plain: contextvars.ContextVar[bool] = contextvars.ContextVar("in_plain_task", default=False)


def install(tasks: Mapping[str, Task], application: Application) -> None:
    """Guard every task's `run` and `retry`, before tracers are built and children forked.

    Celery's own `autoretry_for` replaces `run` in the same way.
    """
    if application.hides_values:
        hide_values(lambda: _flight.get() is not None)
    if application.quiet_prefix:
        hide_tasks(application.quiet_prefix)
    for name, task in tasks.items():
        if not name.startswith("celery.") and not hasattr(task, "_fairshift_guarded"):
            task._fairshift_guarded = True
            if is_never_awaited(task.run, task.__class__):
                task.run = _refusing(task.name)
            task.Request = with_part(HintRequest, task.Request)
            task.run = _guarded_run(task, task.run, application)
            task.retry = _guarded_retry(task, task.retry)
    indirect.close(tasks, application.requires_row)


class HintRequest(Request):
    """A request that drops no hint, tells no values of its run, and gives errbacks their owner.

    Celery would drop a hint that was revoked by message or has an `expires`, and its run would wait
    for ever. After a lost child or a hard limit, the main process calls the errbacks, outside of
    any task whose owner they could inherit.
    """

    def revoked(self) -> bool:
        return False if is_hint(self.request_dict) else bool(super().revoked())

    def send_event(self, type: str, **fields: Any) -> Any:  # noqa: A002  Celery's name
        if is_hint(self.request_dict):
            # Not in Flower, where no permission to view values is needed.
            fields = {name: value for name, value in fields.items() if name in EVENT_FIELDS}
        return super().send_event(type, **fields)

    def on_failure(self, *args: Any, **kwargs: Any) -> Any:
        with acting_as(self.request_dict):
            return super().on_failure(*args, **kwargs)

    def on_timeout(self, *args: Any, **kwargs: Any) -> Any:
        with acting_as(self.request_dict):
            return super().on_timeout(*args, **kwargs)


def traced(trace: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Trace a task as Celery does; return Celery's three values and our report.

    `args` are those of Celery's trace: name, id, request, body, content type and encoding.
    """
    facts = args[2][HEADER]
    flight = Flight(
        *(facts["run"], facts["token"], facts["attempt"], facts),
        closes_at=facts.get("closes_at"),
        begins_by=facts.get("begins_by"),
    )
    slot = _flight.set(flight)
    began_at = time.monotonic()
    try:
        traceparent = args[2].get("traceparent")
        with tracing.continuing(traceparent), logs.bind(**_log_facts(args[0], flight, facts)):
            failed, value, runtime = trace(*args, **kwargs)
    except MemoryError as lost:
        # Celery lets it out, to end the process.
        traceback.clear_frames(lost.__traceback__)
        failed, value, runtime = True, ExceptionInfo(), time.monotonic() - began_at
    finally:
        _flight.reset(slot)
    crash_point("child.after_run")
    report = flight.report
    if report is None and not failed and runtime is None:
        # No failure and no run time: Celery never called the task, and only logged why.
        failed, value, runtime = True, _not_reached(), 0.0
    error = unwrapped(value.exception) if failed else None
    if error is None or isinstance(error, Ignore):
        # A task that raises Ignore needs no retry.
        report = report or Report(flight.run_id, flight.token, Kind.SUCCEEDED, time.monotonic())
    elif report is None or report.kind is Kind.SUCCEEDED:
        # The task was not reached, or its callbacks could not be sent: Celery has stored a
        # failure, so we record one. Or its failure could not be settled: its rule decides.
        delay = flight.rule() if flight.rule else None
        report = failure(flight.run_id, flight.token, error, str(value.traceback), delay=delay)
    # The pool reads several results at once, and children report no start.
    return failed, value, runtime, report._replace(started_at=began_at, log=flight.log)


# Read by the pool's child: a soft signal may interrupt only the body of such a job.
traced.stops_in_body = True  # type: ignore[attr-defined]


def _log_facts(task: str, flight: Flight, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what every line of a run says."""
    run = {"run_id": flight.run_id, "owner": facts.get("owner")}
    return run | {"task": task, "attempt": flight.attempt}


def _not_reached() -> ExceptionInfo:
    try:
        raise NotReached("Celery could not begin it: the log of its worker says why")
    except NotReached:
        return ExceptionInfo()


def _guarded_run(
    task: Task, run: Callable[..., Any], application: Application
) -> Callable[..., Any]:
    @functools.wraps(run)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        flight = _flight.get()
        if flight is None and not _is_inner(task):
            slot = _is_in_plain.set(True)
            try:
                return run(*args, **kwargs)
            finally:
                _is_in_plain.reset(slot)
                # The next task of this process may be a durable run.
                application.leave_clean()
        # A task may call task functions, also its own: only the outermost call is the run.
        if flight is None or flight.entered or task.request.id != flight.run_id:
            return run(*args, **kwargs)
        flight.entered = True
        crash_point("child.before_run")
        try:
            application.begin_log(task.name, flight.facts, args, kwargs)
            # Last: from here on the task runs.
            if error := _too_late(flight):
                raise _wait_again(flight, error)
            return _run(flight, application, functools.partial(run, *args, **kwargs))
        finally:
            flight.log = application.end_log()
            # Before Celery stores an outcome over a connection that the task may have broken.
            application.leave_clean()

    return guarded


def _is_inner(task: Task) -> bool:
    """Say whether another task's body, or the project's code, has called this plain task."""
    return _is_in_plain.get() or task.request.called_directly or task.request.is_eager


def _refusing(name: str) -> Callable[..., Any]:
    """Return a body that fails, in place of one that would return a coroutine."""

    def refuse(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise NeverAwaited(name)

    return refuse


def _guarded_retry(task: Task, retry: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(retry)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        flight = _flight.get()
        if flight is None or task.request.id != flight.run_id:
            return retry(*args, **kwargs)
        # Celery's retry would publish the arguments; a durable run waits in its row instead.
        given = dict(zip(RETRY_PARAMETERS, args, strict=False)) | kwargs
        if given.get("args") is not None or given.get("kwargs") is not None:
            raise TypeError("a durable run keeps its arguments: retry() takes no others")
        if not given.get("throw", True):
            raise TypeError("a durable run is retried by leaving the task: not with throw=False")
        when, eta = given.get("countdown"), given.get("eta")
        if eta is not None:
            when = (eta - datetime.now(eta.tzinfo)).total_seconds()
        raise Retry(exc=given.get("exc"), when=when)

    return guarded


def _run(flight: Flight, application: Application, call: Callable[[], Any]) -> Any:
    try:
        with stoppable():
            value = call()
        if isinstance(value, Steer):
            raise value
        result = application.encode_result(value)
    except Steer as steer:
        raise _steered(flight, application, steer) from None
    except (WorkerShutdown, WorkerTerminate, Ignore):
        raise
    except Reject as refusal:
        rejected = TaskRejected(safe_text(refusal.reason)).with_traceback(refusal.__traceback__)
        if refusal.requeue:
            raise _settle(flight, application, rejected, wanted=None) from None
        # No retry. Celery would store a failure as well.
        text = format_traceback(rejected)
        flight.report = failure(flight.run_id, flight.token, rejected, text)
        raise rejected from None
    except SystemExit as error:
        if terminate_handler_fired():
            # Not raised by the task: this process is told to end, and the main one decides.
            raise
        raise _settle(flight, application, error, wanted=None) from error
    except Retry as asked:
        cause = asked.exc if isinstance(asked.exc, BaseException) else asked
        wanted = asked.when if isinstance(asked.when, int | float) else None
        raise _settle(flight, application, cause, wanted=wanted) from None
    except BaseException as error:
        shown = _settle(flight, application, error, wanted=_asked_delay(error))
        if shown is error:
            raise
        raise shown from error
    flight.report = Report(
        flight.run_id, flight.token, Kind.SUCCEEDED, time.monotonic(), result=result
    )
    return value


def _too_late(flight: Flight) -> NotBegun | None:
    at = time.monotonic()
    if flight.closes_at is not None and at > flight.closes_at:
        return WindowClosed("its window closed before it began")
    if flight.begins_by is not None and at > flight.begins_by:
        # For example, this process was frozen: another worker may have the run now.
        return NotBegun("its process came to it too late")
    return None


def _wait_again(flight: Flight, error: NotBegun) -> Retry:
    """Have the run wait for another start; the attempt does not count, as it did nothing."""
    flight.report = failure(flight.run_id, flight.token, error, "", delay=0.0, cause=NOT_BEGUN)
    return Retry(message=safe_text(error), exc=error, when=0)


def _steered(flight: Flight, application: Application, steer: Steer) -> BaseException:
    """End the attempt as its task says; note the report, and return the error to raise."""
    if isinstance(steer, Snooze) and flight.token >= MOST_STARTS:
        return _settle(flight, application, SnoozedTooOften(), wanted=None)
    flight.report, error = steered(flight.run_id, flight.token, steer)
    return error


def _asked_delay(error: BaseException) -> float | None:
    """Return the delay in seconds that the error asks for (a Retry-After), if any."""
    delay = getattr(error, "retry_after", None)
    return float(delay) if isinstance(delay, int | float) else None


def _settle(
    flight: Flight, application: Application, error: BaseException, *, wanted: float | None
) -> BaseException:
    """Decide between retry and failure, note the report, and return the error to raise."""
    if isinstance(error, MemoryError):
        # The task's frames hold what it had: what follows needs some of it.
        traceback.clear_frames(error.__traceback__)
    flight.rule = functools.partial(
        application.retry_delay, flight.facts["policy"], flight.attempt, class_names(error), wanted
    )
    text = format_traceback(error)
    delay = None if isinstance(error, NeverAwaited) else flight.rule()
    flight.report = failure(flight.run_id, flight.token, error, text, delay=delay)
    if delay is not None:
        # A bare Retry stores RETRY and publishes nothing: promotion queues the run again.
        return Retry(message=safe_text(error), exc=_presentable(error), when=delay)
    return _presentable(error)


def _presentable(error: BaseException) -> Exception:
    """Return an error that ends neither this process nor the worker's main one."""
    if isinstance(error, Exception) and not isinstance(error, MemoryError):
        return error
    return TaskExited(f"{type(error).__name__}: {safe_text(error)}")
