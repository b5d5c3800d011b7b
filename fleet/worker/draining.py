"""A worker that drains: it takes no more runs, ends those that it has, and stays."""

from __future__ import annotations

import logging
from typing import Any

from celery import bootsteps

from fleet import log_events
from fleet.worker.gate import Gate

logger = logging.getLogger(__name__)


class Draining:
    """Stops the taking of one worker node, and lets it begin again."""

    def __init__(self, worker: Any, gate: Gate) -> None:
        self._worker = worker
        self._gate = gate
        self._queues: set[str] = set()
        """The queues that the worker consumed before it drained. Empty while it does not drain."""

    def follow(self, *, drains: bool) -> None:
        """Drain or take again, as each heartbeat says; call it in the event loop.

        If the broker is away, a later heartbeat tries again.
        """
        consumer = self._worker.consumer
        is_running = self._worker.blueprint.state == bootsteps.RUN
        if not is_running or getattr(consumer, "task_consumer", None) is None:
            return
        if drains:
            self._drain(consumer)
        elif self._queues:
            self._take_again(consumer)

    def _drain(self, consumer: Any) -> None:
        taken = sorted(self._worker.app.amqp.queues.consume_from)
        if taken:
            log_events.WORKER_DRAINS.log(logger, queues=", ".join(taken))
        self._queues.update(taken)
        # First, so that what still arrives goes back as well.
        self._gate.close()
        for queue in taken:
            consumer.cancel_task_queue(queue)

    def _take_again(self, consumer: Any) -> None:
        log_events.WORKER_TAKES_AGAIN.log(logger, queues=", ".join(sorted(self._queues)))
        self._gate.open()
        for queue in sorted(self._queues):
            consumer.add_task_queue(queue)
            self._queues.discard(queue)
