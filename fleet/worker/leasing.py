"""The boot step of a worker on fair queues: its transport, its pool, and the life of its leases."""

from __future__ import annotations

import gc
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from celery import bootsteps, signals
from celery.concurrency import prefork
from redis import Redis
from redis.client import PubSub

from fleet import log_events
from fleet.callbacks import guarded
from fleet.keys import epoch_channel
from fleet.pool import TaskPool, end_copies
from fleet.refusal import Refused
from fleet.transport.leases import Leases
from fleet.transport.password import logs_refused_password
from fleet.transport.transport import Transport, fair_queues
from fleet.versions import ALLOW_UNTESTED, untested_versions
from fleet.worker.charging import Entrance, PutsAside, with_part
from fleet.worker.consumer import Consumer

logger = logging.getLogger(__name__)

DEFAULT_CONSUMER: Final = "celery.worker.consumer:Consumer"
RENEWALS_A_LEASE: Final = 4
AUDIT_SECONDS: Final = 4.0
"""The longest pause between renewals, each of which audits the queue's keys."""
LOOK_SECONDS: Final = 0.5
COLLECT_AT: Final = (20_000, 20, 50)
"""Thresholds of the garbage collector: messages outlive Python's default of 700 allocations."""


class FairQueues(bootsteps.StartStopStep):
    """Enforces late acknowledgement, charges runs, renews leases, and gives back what is left."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        # Before Celery creates its pool.
        if worker.pool_cls is prefork.TaskPool:
            worker.pool_cls = TaskPool

    def create(self, worker: Any) -> FairQueues:
        self.app = worker.app
        refuse_stock_transport(worker.app)
        refuse_untested_versions(worker.app)
        if worker.consumer_cls == DEFAULT_CONSUMER:
            worker.consumer_cls = Consumer
        end_copies(worker.app.tasks)
        for task in worker.app.tasks.values():
            task.Request = with_part(PutsAside, task.Request)
        if threading.current_thread() is threading.main_thread():
            # Not in a process that runs a worker in a thread, such as a test's. All present objects
            # stay: the collector skips them, here and in the children.
            gc.freeze()
            gc.set_threshold(*COLLECT_AT)
        consumed = set(worker.app.amqp.queues.consume_from)
        if consumed & set(fair_queues(worker.app)):
            for task in worker.app.tasks.values():
                # Before strategies are built. A message that is acknowledged early has no lease
                # while it runs, and so no cap, lock or worker time.
                task.acks_late = True
        return self

    def start(self, worker: Any) -> None:
        worker.pool.apply_async = Entrance(worker.pool)
        self.renewal = worker.renewal = Renewal(worker.app, may_take=lambda: may_take(worker))
        if issubclass(worker.app.connection_for_write().get_transport_cls(), Transport):
            self.renewal.start()

    def stop(self, worker: Any) -> None:
        # Connected last: the other steps' receivers run first.
        signals.worker_shutdown.connect(guarded(self._leave), sender=worker, weak=False)
        # The pool still runs its jobs, and needs their leases until `worker_shutdown`.
        try:
            with leases_of(self.app) as (leases, client):
                leases.give_back_waiting(client)
        except Exception as error:
            log_events.LEASES_NOT_RETURNED.log(logger, error=error)

    def terminate(self, worker: Any) -> None:  # noqa: ARG002  Celery hands it in
        self._leave()

    def _leave(self, **_signal: Any) -> None:
        self.renewal.stop()
        try:
            with leases_of(self.app) as (leases, client):
                leases.leave(client)
                leases.has_worker, leases.may_take = False, None
        except Exception as error:
            log_events.LEASES_LEFT.log(logger, error=error)


def slots_of(worker: Any) -> int:
    """Return how many tasks a worker can run at once now; 0 if its pool has no process.

    An autoscaled pool counts at its maximum: it may have no process while it is idle.
    """
    most = worker.autoscaler.max_concurrency if getattr(worker, "autoscaler", None) else 0
    try:
        return max(0, most, worker.pool.num_processes)
    except AttributeError:
        return 0  # a prefork pool that has ended


def may_take(worker: Any) -> bool:
    """Say whether a worker takes messages: it has a process, and its database is not away."""
    away = getattr(worker.consumer, "away", None)
    return slots_of(worker) > 0 and not (away is not None and away.is_away)


class Renewal(threading.Thread):
    """Renews the leases in a thread, as a solo pool runs tasks in the event loop.

    At once if a queue begins a new epoch: a worker with full slots takes nothing, and would learn
    too late that the queue has lost its leases.
    """

    def __init__(self, app: Any, *, may_take: Callable[[], bool]) -> None:
        super().__init__(name="fairshift-leases", daemon=True)
        self._app = app
        self._may_take = may_take
        self._stopped = threading.Event()
        self._pause = app.conf.broker_transport_options.get("lease_seconds", 30.0)
        self._pause = min(self._pause / RENEWALS_A_LEASE, AUDIT_SECONDS)
        self._renewed_at = -math.inf

    def is_owed(self, *, since: float) -> bool:
        """Say whether Redis has confirmed no renewal since this time."""
        return self.is_alive() and self._renewed_at < since

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        channels = [
            epoch_channel(queue)
            for queue in fair_queues(self._app)
            if queue in self._app.amqp.queues.consume_from
        ]
        is_lost = False
        while not self._stopped.is_set():
            try:
                with leases_of(self._app) as (leases, client), client.pubsub() as subscription:
                    if channels:
                        subscription.subscribe(*channels)
                    leases.has_worker, leases.may_take = True, self._may_take
                    while not self._stopped.is_set():
                        leases.measure_round_trip(client)
                        leases.renew(client)
                        self._renewed_at = time.monotonic()
                        is_lost = False
                        self._rest(subscription)
            except Exception as error:
                if not is_lost and not logs_refused_password(logger, error):
                    kind = type(error).__name__
                    log_events.LEASES_NOT_RENEWED.log(logger, kind=kind, error=error)
                is_lost = True
                # Soon: a second after the broker is back, other workers take again.
                self._stopped.wait(min(LOOK_SECONDS, self._pause))

    def _rest(self, subscription: PubSub) -> None:
        """Wait until the next renewal is due, or an epoch has begun."""
        until = time.monotonic() + self._pause
        while not self._stopped.is_set() and (rest := until - time.monotonic()) > 0:
            if not subscription.subscribed:
                self._stopped.wait(rest)
            elif subscription.get_message(ignore_subscribe_messages=True, timeout=rest):
                return


@contextmanager
def leases_of(app: Any) -> Iterator[tuple[Leases, Redis]]:
    """Give this process's leases, and a client over a new connection."""
    with app.connection_for_write() as connection:
        channel = connection.default_channel
        with channel.conn_or_acquire() as client:
            yield channel.leases, client


def refuse_stock_transport(app: Any) -> None:
    """Raise ImproperlyConfigured when fair queues would be served by Kombu's own transport."""
    if not fair_queues(app):
        return
    if app.conf.broker_transport:
        # It would be ignored, replace ours, or not know Sentinel.
        raise Refused(
            f"broker_transport_options names fair_queues, and broker_transport is "
            f"{app.conf.broker_transport!r}: leave it unset, the URL's scheme decides"
        )
    connection = app.connection_for_write()
    found = connection.get_transport_cls()
    if not issubclass(found, Transport):
        raise Refused(
            f"broker_transport_options names fair_queues, and {connection.transport_cls} is "
            f"{found.__module__}.{found.__qualname__}: use Redis, and call "
            "fleet.use_fair_transport() before the app connects"
        )


def refuse_untested_versions(app: Any) -> None:
    """Raise Refused when fair queues would be served on versions of lines that were not tested.

    Other releases of tested lines are warned of, as are others that are allowed.
    """
    untested = untested_versions()
    if untested is None or not fair_queues(app):
        return
    if not untested.boots and not app.conf.broker_transport_options.get(ALLOW_UNTESTED):
        raise Refused(untested.sentence)
    log_events.UNTESTED_VERSIONS.log(logger, sentence=untested.sentence)
