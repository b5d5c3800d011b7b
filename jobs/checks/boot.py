"""A worker that nobody has handed the edges of durable runs is refused at its boot.

It would start a run's task without arguments, outside of the row.
"""

from __future__ import annotations

from typing import Any

from celery import bootsteps
from celery.exceptions import ImproperlyConfigured
from celery.signals import celeryd_init

import fleet
from jobs.conf import setting


class RefusesUnwired(bootsteps.Step):
    """Looks when the steps are built: all hooks of worker_init have been called by then."""

    def create(self, worker: Any) -> None:
        queue = setting("JOBS_QUEUE")
        if queue in worker.app.amqp.queues.consume_from and not fleet.is_installed(worker.app):
            raise ImproperlyConfigured(
                f"this worker takes durable runs of queue {queue!r}, and nothing has called "
                "fleet.install(app, edges()): connect a function that does so to worker_init, "
                "where the Celery app is made (docs/own-project.md)"
            )


@celeryd_init.connect
def _add_step(instance: Any, **_signal: Any) -> None:
    instance.app.steps["worker"].add(RefusesUnwired)
