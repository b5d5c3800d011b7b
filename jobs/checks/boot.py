"""Refuse a worker at its boot if it would break a promise. It waits for absent servers."""

from __future__ import annotations

from functools import partial
from typing import Any

import psycopg
from celery import bootsteps
from celery.signals import celeryd_init
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

import fleet
from jobs.checks.broker import installation_problems
from jobs.checks.pooling import leave_pool, pooling_mode
from jobs.core import crypto
from jobs.core.conf import setting


class RefusesUnwired(bootsteps.Step):
    """Checks a worker when its steps are built, after all hooks of worker_init."""

    def create(self, worker: Any) -> None:
        consumed = set(worker.app.amqp.queues.consume_from)
        try:
            queue = setting("JOBS_QUEUE")
        except ImproperlyConfigured as error:
            raise fleet.Refused(str(error)) from None
        if queue in consumed:
            _refuse_unwired(worker.app, queue)
            _refuse_bad_ring()
        leave_pool()
        if consumed & {queue, setting("SYSTEM_QUEUE"), *fleet.fair_queues(worker.app)}:
            _refuse_without_session()
        if consumed & {queue, setting("SYSTEM_QUEUE")}:
            try:
                _refuse_unmigrated()
                for problem in installation_problems(worker.app):
                    raise fleet.Refused(f"{problem.msg} {problem.hint}")
            finally:
                # The pool's processes must not inherit it.
                if not connection.in_atomic_block:
                    connection.close()


def _refuse_unwired(app: Any, queue: str) -> None:
    """Refuse a worker without Fairshift's steps, or with a queue that is not fair."""
    if not fleet.is_installed(app):
        raise fleet.Refused(
            f"This worker takes durable runs of queue {queue!r}, and nothing has called "
            "jobs.setup_celery(app) where the Celery app is made (docs/start/own-project.md)."
        )
    if queue not in fleet.fair_queues(app):
        raise fleet.Refused(
            f"The queue {queue!r} is not fair: owners would wait behind one another. Add"
            f' "fair_queues": [{queue!r}] to CELERY_BROKER_TRANSPORT_OPTIONS'
            " (docs/start/own-project.md)."
        )


def _refuse_bad_ring() -> None:
    """Refuse a worker whose key ring cannot be read or fetched; its children inherit the ring."""
    try:
        crypto.ring()
    except ImproperlyConfigured as error:
        raise fleet.Refused(str(error)) from None


def _refuse_without_session() -> None:
    """Refuse a worker behind a pooler that keeps no session."""
    parameters = connection.get_connection_params() | {"autocommit": True}
    try:
        mode = pooling_mode(partial(psycopg.connect, **parameters))
    except psycopg.Error:
        return
    if mode:
        raise fleet.Refused(
            f"A pooler before PostgreSQL shares connections between {mode}s, and a worker needs"
            " sessions. Set DATABASES (DATABASE_URL in Fairshift's own project) of workers to"
            " PostgreSQL itself, or to a pooler with pool_mode = session"
            " (docs/operate/scale.md#pgbouncer)."
        )


def _refuse_unmigrated() -> None:
    """Refuse a worker if migrations of Fairshift, not of other apps, are missing."""
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes("jobs"))
    except DatabaseError:
        return
    if missing:
        raise fleet.Refused(
            f"{fleet.counted(len(missing), 'migration')} of Fairshift not applied to database"
            f" {connection.settings_dict['NAME']!r}: run `python manage.py migrate`."
        )


@celeryd_init.connect
def _add_step(instance: Any, **_signal: Any) -> None:
    instance.app.steps["worker"].add(RefusesUnwired)
