"""Queues from which no worker takes although messages wait there or tasks are routed there.

Only workers of Fairshift report here: whether another project's workers take from a stock queue is
not known. From a fair queue no others can take.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from celery import Celery, current_app

from fleet import BrokerUnavailable
from jobs.core.conf import plain_queues, setting
from jobs.runs.dispatch import broker, owners


class Unserved(NamedTuple):
    """Queues without a worker, by name."""

    fair: Sequence[str] = ()
    """Fair queues in which messages wait."""
    stock: Sequence[str] = ()
    """Stock queues in which messages wait."""
    undeclared: Sequence[str] = ()
    """Empty queues to which tasks are routed, and which CELERY_TASK_QUEUES lacks."""


def unserved(taken: Collection[str]) -> Unserved:
    """Return the queues without a worker; `taken` are those of living workers.

    Fairshift's own queues are left out: their readers are looked at elsewhere. Empty if Redis is
    away.
    """
    app = current_app
    declared, routed = declared_queues(app), undeclared_routes(app)
    fair = owners().queues
    try:
        filled = {
            queue
            for queue in {*declared, *routed} - set(taken) - plain_queues()
            if broker().backlog(queue, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
        }
    except BrokerUnavailable:
        return Unserved()
    return Unserved(
        fair=sorted(filled.intersection(fair)),
        stock=sorted(filled.difference(fair)),
        undeclared=sorted(routed.keys() - filled - set(taken)),
    )


def declared_queues(app: Celery) -> set[str]:
    """Return the names in CELERY_TASK_QUEUES, with the default queue."""
    # Not of `app.amqp.queues`: Celery adds each queue to which it has published.
    given = app.conf.task_queues or ()
    names = given if isinstance(given, Mapping) else [queue.name for queue in given]
    return {*names, app.conf.task_default_queue}


def undeclared_routes(app: Celery) -> dict[str, str]:
    """Return what is routed to each queue that is not declared: a name of CELERY_TASK_ROUTES.

    Tasks' own option `queue` is read, too; a router that is a function is not asked.
    """
    known = declared_queues(app) | plain_queues()
    found: dict[str, str] = {}
    for what, queue in _routes(app):
        if queue not in known:
            found.setdefault(queue, what)
    return found


def _routes(app: Celery) -> Iterator[tuple[str, str]]:
    given = app.conf.task_routes or ()
    for routes in given if isinstance(given, (list, tuple)) else [given]:
        if isinstance(routes, Mapping):
            pairs = list(routes.items())
        else:
            pairs = list(routes) if isinstance(routes, (list, tuple)) else []
        for what, route in pairs:
            if queue := _queue_of(route.get("queue") if isinstance(route, Mapping) else route):
                yield str(getattr(what, "pattern", what)), queue
    for name, task in sorted(app.tasks.items()):
        if queue := _queue_of(getattr(task, "queue", None)):
            yield name, queue


def _queue_of(given: Any) -> str:
    """Return the name of a queue, which may be a `Queue`; empty for none."""
    return str(getattr(given, "name", given) or "")
