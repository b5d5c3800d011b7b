"""A worker's consumer, which keeps the event loop turning while the broker is away.

Celery's own waits for the broker inside the loop, up to 30 s between two tries, and gives up after
100. Meanwhile outcomes are not read, time limits do not act, and the worker loses its runs because
it seems to hang.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from celery.exceptions import WorkerShutdown, WorkerTerminate
from celery.worker import consumer, state
from celery.worker.request import Request
from kombu import Connection
from kombu.asynchronous import set_event_loop
from kombu.exceptions import OperationalError

from fleet import log_events
from fleet.callbacks import guarded
from fleet.pool import children_of
from fleet.transport.password import logs_refused_password
from fleet.worker.away import Away
from fleet.worker.celery_requests import AdmittedRequests
from fleet.worker.gate import Gate
from fleet.worker.unknown_tasks import UnknownTasks

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
EVENTS_SECONDS: Final = 0.1
EVENTS_AT_ONCE: Final = 500


class Consumer(consumer.Consumer):
    """Celery's consumer, with another way to wait for a lost broker."""

    gate: Gate | None = None
    unknown: UnknownTasks | None = None
    away: Away | None = None
    connection_errors: tuple[type[BaseException], ...]
    first_connection_attempt: bool
    timer_entries_before_start: set[Any] | None = None
    timer_entries_registered: set[Any] | None = None
    _events_due_at = 0.0

    def __init__(self, process: Callable[[Any], Any], *args: Any, **options: Any) -> None:
        self.process = process
        """Celery's next step for a request."""
        super().__init__(self._on_request, *args, **options)
        # Kombu raises it when it has retried a publish, such as mingle's hello. Celery would end
        # the worker.
        self.connection_errors = (*self.connection_errors, OperationalError)
        if self.hub is not None:
            self.timer.clear = partial(cancel_entries_of_connection, self)
        for step in self.steps:
            if step is not None:
                step.start = partial(self._start_step, step.start)

    def start(self) -> None:
        """Consume until the worker ends; without file descriptors, end its tasks before that.

        Celery would end them at once, and then with the status of a success.
        """
        try:
            super().start()
        except WorkerTerminate as error:
            cause = error.__cause__
            if not (isinstance(cause, OSError) and cause.errno == errno.EMFILE):
                raise
            log_events.WORKER_GIVES_UP.log(logger)
            raise WorkerShutdown(1) from cause

    def _on_request(self, request: Any) -> None:
        (self.gate.on_request if self.gate else self.process)(request)

    def _start_step(self, start: Callable[[Consumer], None], parent: Consumer) -> None:
        """Start a boot step; in a restart, turn the loop first.

        A restart waits for some 60 replies of Redis. Over a slow network that takes longer than a
        lease, and a worker sends no heartbeat while its loop stands still.
        """
        if self.hub is not None and self.hub._waker is not None and self.restart_count > 0:
            self.hub._waker.wake()
            self._turn(0)
        start(parent)

    def connect(self) -> Connection:
        """Return an open connection; after a lost one, wait before the first try."""
        if self.hub is not None:
            # Here for Celery before 5.7, which has no such attributes; likewise in `on_ready`.
            self.timer_entries_before_start = timer_entries(self.timer)
            self.timer_entries_registered = None
        if self.hub is not None and self.restart_count > 0:
            # The loss has cleared the loop, which the pool's drain needs: restore both, as after
            # a reconnect.
            set_event_loop(self.hub)
            self.controller.register_with_event_loop(self.hub)
            self._turn(LOOK_SECONDS)
        return super().connect()

    def update_strategies(self) -> None:
        """Build what handles messages, for this connection."""
        super().update_strategies()
        if self.gate:
            self.gate.celery_requests = AdmittedRequests(self)

    def create_task_handler(self, *args: Any, **options: Any) -> Callable[[Any], None]:
        """Return what handles a message; the gate takes hints before it."""
        if self.gate:
            self.task_consumer.channel.take_hint = self.gate.take_hint
        handler: Callable[[Any], None] = super().create_task_handler(*args, **options)
        return handler

    def on_ready(self) -> None:
        """Note which timer entries the connection has added, and tell the pool."""
        if self.hub is not None:
            before = self.timer_entries_before_start or set()
            self.timer_entries_registered = timer_entries(self.timer) - before
        super().on_ready()

    def ensure_connected(self, conn: Connection) -> Connection:
        """Return the connection once it is open; retry until then, unless settings forbid it."""
        conf, is_first = self.app.conf, self.first_connection_attempt
        on_startup = conf.broker_connection_retry_on_startup if is_first else None
        retries = conf.broker_connection_retry if on_startup is None else on_startup
        if self.hub is None or not retries:
            return super().ensure_connected(conn)
        conn.ensure = _once  # type: ignore[assignment, method-assign]
        while True:
            state.maybe_shutdown()
            try:
                conn.ensure_connection(max_retries=0)
            except OperationalError as error:
                if not logs_refused_password(logger, error):
                    log_events.BROKER_AWAY.log(logger, address=conn.as_uri(), error=error)
                conn.maybe_switch_next()
                self._turn(LOOK_SECONDS)
            else:
                self.first_connection_attempt = False
                return conn

    def on_close(self) -> None:
        """Forget what the connection brought, but not what is in the pool."""
        in_pool = self.gate.waiting_in_pool() if self.gate else []
        super().on_close()
        if self.gate:
            # Asked again: a dead child may turn out not to have read its jobs.
            self.gate.reclaim([*in_pool, *self.gate.waiting_in_pool()])
            # Celery frees every slot; what continues still takes its own.
            if children := children_of(self.pool):
                children.retake_slots(also=self.gate.starting_count)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Let go of a lost connection."""
        # Celery logs only its type.
        log_events.CONSUMER_RESTARTED.log(logger, kind=type(exc).__name__, error=exc)
        try:
            super().on_connection_error_after_connected(exc)
        except Exception as error:
            # Kombu restores unacknowledged messages over the connection that it has just closed.
            # This is not needed: their rows know the worker that holds them.
            log_events.CONNECTION_LOST_BADLY.log(logger, error=error)

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Give a hint back for workers that know its task; deal with others as Celery does."""
        if self.unknown is None or not self.unknown.on_message(message):
            super().on_unknown_task(body, message, exc)

    def on_send_event_buffered(self) -> None:
        """Publish buffered events ten times a second, not in every turn of the loop."""
        now = time.monotonic()
        if self.hub is not None and now >= self._events_due_at:
            # A time, not a flag: a lost connection cancels its timers.
            self._events_due_at = now + EVENTS_SECONDS
            self.event_dispatcher.buffer_limit = EVENTS_AT_ONCE
            self.hub.call_later(EVENTS_SECONDS, guarded(self._publish_events))

    def _publish_events(self) -> None:
        if self.event_dispatcher:
            self.event_dispatcher.flush()

    def _turn(self, seconds: float) -> None:
        """Turn the event loop once at least, and for at least this many seconds."""
        until = time.monotonic() + seconds
        timed_before = timer_entries(self.timer)
        loop = self.hub.create_loop()
        while True:
            state.maybe_shutdown()
            try:
                next(loop)
            except StopIteration:
                loop = self.hub.create_loop()
            except self.connection_errors as error:
                log_events.LOOP_ERROR_WHILE_AWAY.log(logger, error=error)
                loop = self.hub.create_loop()
            if time.monotonic() >= until:
                break
        # Celery cancels timer entries that are new since the connection began. Those of time
        # limits that started meanwhile must stay.
        added = timer_entries(self.timer) - timed_before
        self.timer_entries_before_start = (self.timer_entries_before_start or set()) | added


def timer_entries(timer: Any) -> set[Any]:
    """Return the entries of a timer."""
    return {scheduled.entry for scheduled in timer.queue}


def cancel_entries_of_connection(consumer: Any) -> None:
    """Cancel the timer entries of a consumer's connection, and those of messages with an ETA.

    The broker delivers such messages again. Called in place of the `clear` of the worker's timer:
    Celery before 5.7 clears all of it, with the time limits of running tasks and our heartbeat.
    """
    present = timer_entries(consumer.timer)
    added = consumer.timer_entries_registered
    if added is None:  # lost before the loop began
        added = present - (consumer.timer_entries_before_start or set())
    for entry in added | {each for each in present if _is_of_message(each)}:
        consumer.timer.cancel(entry)


def _is_of_message(entry: Any) -> bool:
    return bool(entry.args) and isinstance(entry.args[0], Request)


def _once(_obj: Any, fun: Callable[..., Any], **_policy: Any) -> Callable[..., Any]:
    """Return `fun` itself, without Kombu's retries of a publish.

    They would block the event loop while Redis is away. The consumer reconnects instead.
    """
    return fun
