"""A pool's entrance, of every task: the gate, the slots, and when a run starts and ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from billiard.exceptions import WorkerLostError
from celery.exceptions import TaskRevokedError
from celery.utils.imports import symbol_by_name
from celery.worker import state as worker_state
from celery.worker.request import Request

from fleet.pool import Job, children_of
from fleet.transport.quarantine import SHAPE_ERRORS
from fleet.worker.failures import unwrapped


class Entrance:
    """Replaces a pool's `apply_async`: first the gate, if the worker has one, then `hand_in`."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._apply_async = pool.apply_async
        self.gate: Callable[..., Any] = self.hand_in

    def __call__(self, *args: Any, **options: Any) -> Any:
        try:
            job = self.gate(*args, **options)
        except SHAPE_ERRORS as error:
            request = worker_state.requests.get(options.get("correlation_id"))
            if request is None or not put_aside(request, error):
                raise
            # Celery frees the slot on this error only.
            raise TaskRevokedError(request.id) from error
        # Not in the `try`: the task that gets the slot may raise such an error, too.
        self.lend_slot(job)
        return job

    def lend_slot(self, job: Any) -> None:
        """Let another task use the slot of one that was just handed in, if both are short."""
        if children := children_of(self._pool):
            children.lend_slot(job)

    def hand_in(self, *args: Any, **options: Any) -> Any:
        """Hand a task to the pool, and tell its queue when it starts and ends."""
        request = worker_state.requests.get(options.get("correlation_id"))
        message = getattr(request, "message", None)
        qos: Any = getattr(getattr(message, "channel", None), "qos", None)
        if message is None or not hasattr(qos, "finished"):
            return self._apply_async(*args, **options)
        tag = message.delivery_tag
        watched = {**options, **_Watch(qos, tag, options).callbacks()}
        # The lease counts as started from here on, not from the pool's report: a pool that ends, or
        # whose worker has lost its connection, still executes the tasks that it has.
        lease = qos.leases.start(tag)
        if lease is not None and children_of(self._pool):
            watched["expected"] = lease.expected_seconds
        job = self._apply_async(*args, **watched)
        if lease is not None and isinstance(job, Job):
            job.give_back = partial(qos.leases.give_back, tag)
            job.on_withdrawn = lease.undo_start
        return job


class PutsAside(Request):
    """A request that has a malformed message put aside, and its slot freed."""

    def revoked(self) -> bool:
        try:
            return bool(super().revoked())
        except SHAPE_ERRORS as error:
            if not put_aside(self, error):
                raise
            return True


def with_part(part: type[Request], base: Any) -> type[Request]:
    """Return a task's request class, or the class of this name, with a part; safe to repeat."""
    found = symbol_by_name(base)
    return found if issubclass(found, part) else type(found.__name__, (part, found), {})


def put_aside(request: Any, error: Exception) -> bool:
    """Put the message of a request into quarantine; False if it is from a stock queue."""
    quarantine = getattr(request.message.channel, "quarantine", None)
    if quarantine is None:
        return False
    worker_state.task_ready(request)
    quarantine.put_aside(request.message.delivery_tag, error)
    return True


class _Watch:
    """One run: its start, and its end by whichever callback the pool calls first."""

    def __init__(self, qos: Any, tag: str, options: dict[str, Any]) -> None:
        self._qos = qos
        self._tag = tag
        self._celerys = options
        self._began_at = time.monotonic()

    def callbacks(self) -> dict[str, Callable[..., Any]]:
        """Return ours, for those of Celery that are set; each calls Celery's in the end."""
        ours: dict[str, Callable[..., Any]] = {
            "accept_callback": self._accepted,
            "callback": self._returned,
            "error_callback": self._failed,
            "timeout_callback": self._timed_out,
        }
        return {name: own for name, own in ours.items() if self._celerys.get(name) is not None}

    def _accepted(self, pid: int, accepted_at: float) -> Any:
        self._began_at = accepted_at
        return self._celerys["accept_callback"](pid, accepted_at)

    def _returned(self, answer: Any, *more: Any) -> Any:
        # Celery's tracer returns a flag, a value and its own measure in seconds: this process may
        # read them much later.
        try:
            seconds = float(answer[2])
        except (TypeError, LookupError, ValueError):
            seconds = self._elapsed()
        self._qos.finished(self._tag, seconds)
        return self._celerys["callback"](answer, *more)

    def _failed(self, einfo: Any = None, *more: Any, **facts: Any) -> Any:
        if einfo is not None and isinstance(unwrapped(einfo.exception), WorkerLostError):
            self._qos.leases.lose(self._tag)
        self._qos.finished(self._tag, self._elapsed())
        return self._celerys["error_callback"](einfo, *more, **facts)

    def _timed_out(self, soft: bool, timeout: float) -> Any:
        if not soft:
            self._qos.finished(self._tag, self._elapsed())
        return self._celerys["timeout_callback"](soft, timeout)

    def _elapsed(self) -> float:
        return time.monotonic() - self._began_at
