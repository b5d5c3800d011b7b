"""Checks of how a project connects Celery, fleet and jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from celery import Celery, current_app
from celery.app import default_app
from celery.exceptions import ImproperlyConfigured
from celery.signals import worker_init
from celery.utils.imports import symbol_by_name
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution

import fleet
from jobs.calendars.ical_feed import MOUNT, feed_path
from jobs.catalog.registry import never_awaited
from jobs.core.conf import setting, unknown_settings, wrong_settings
from jobs.system.unserved import undeclared_routes

SCHEDULER: Final = "jobs.system.beat:Scheduler"
RESULTS: Final = "jobs.runs.result_backend:ResultBackend"
SEE: Final = "docs/start/own-project.md has it all."


@register("fairshift", deploy=True)
def check_wiring(**_arguments: Any) -> list[CheckMessage]:
    """Refuse a Celery app without what Fairshift needs."""
    app = current_app._get_current_object()
    if unknown_settings() or wrong_settings():
        return []  # other checks report these; no setting can be read
    return list(_not_this_project(app)) or [*_process(app), *_configuration(app)]


@register("fairshift", deploy=True)
def check_feeds(**_arguments: Any) -> list[CheckMessage]:
    """Warn if calendars' feeds have no address."""
    if feed_path("secret") is not None:
        return []
    return [
        Caution(
            "jobs.urls is not mounted: the feeds of calendars have no address.",
            hint=f"Add {MOUNT} to urlpatterns.",
            id="fairshift.W020",
        )
    ]


@register("fairshift", deploy=True)
def check_versions(**_arguments: Any) -> list[CheckMessage]:
    """Warn of versions of Celery, billiard, Kombu and redis-py that were not tested."""
    untested = fleet.untested_versions()
    if untested is None:
        return []
    what = "Workers of fair queues boot" if untested.boots else "No worker of fair queues boots"
    return [
        Caution(
            f"{what} with this Celery, billiard, Kombu and redis-py, which were not tested.",
            hint=untested.sentence,
            id="fairshift.W021",
        )
    ]


@register("fairshift", deploy=True)
def check_tasks(**_arguments: Any) -> list[CheckMessage]:
    """Refuse tasks that are `async def`."""
    return [
        Error(
            f"Task {name} is `async def`, which Celery calls and never awaits: its body would not"
            " run, and each call would count as succeeded.",
            hint="Make it a plain function that calls asgiref's async_to_sync; or give its base"
            " class a __call__ that awaits.",
            id="fairshift.E021",
        )
        for name in never_awaited()
    ]


def is_of_project(app: Celery) -> bool:
    """Say whether an app is not Celery's default one, made before or without the project's."""
    return bool(app.set_as_current) or app.main != "default"


def _not_this_project(app: Celery) -> Iterator[CheckMessage]:
    if not is_of_project(app):
        yield Error(
            "The current Celery app is Celery's default, not this project's: nothing of"
            " CELERY_... counts, and submit() finds neither its queues nor its broker.",
            hint='Write `app = celery_app("…")`, or an import of your app, into the __init__.py'
            f" beside settings.py. {SEE}",
            id="fairshift.E010",
        )
    elif default_app != app:  # a proxy
        yield Error(
            f"The Celery app {app.main!r} is set in this thread only; other threads, such as a web"
            " server's, have another one.",
            hint='Call os.environ.setdefault("DJANGO_SETTINGS_MODULE", ...) before the app is'
            f" made, and make it in the __init__.py beside settings.py. {SEE}",
            id="fairshift.E010",
        )


def _process(app: Celery) -> Iterator[CheckMessage]:
    """Yield errors of this process, outside the app's settings."""
    if not fleet.is_fair(app):
        url = app.conf.broker_write_url or "amqp://"  # Celery's own default
        scheme = str(url).partition("://")[0].partition("+")[0]
        is_redis = scheme in {"redis", "rediss", "sentinel"}
        yield Error(
            "Celery's own transport is used for Redis: owners do not share the workers, and"
            " nothing keeps what a killed worker held."
            if is_redis
            else f"The broker is {scheme}, not Redis.",
            hint=f"Call jobs.setup_celery(app) where the Celery app is made. {SEE}"
            if is_redis
            else f"Set CELERY_BROKER_URL to a URL of Redis. {SEE}",
            id="fairshift.E011",
        )
    if not fleet.is_routing():
        yield Error(
            "Task calls are given no owner: all plain calls are those of the owner 'shared'.",
            hint=f"Call jobs.setup_celery(app) where the Celery app is made. {SEE}",
            id="fairshift.E012",
        )
    # Celery connects functions of its own.
    hooks = [receiver.__module__ for receiver in worker_init._live_receivers(None)]
    if all(name.startswith("celery.") for name in hooks):
        yield Error(
            "Nothing is connected to worker_init: workers would not know of durable runs.",
            hint=f"Call jobs.setup_celery(app) where the Celery app is made. {SEE}",
            id="fairshift.E013",
        )


def _configuration(app: Celery) -> Iterator[CheckMessage]:
    """Yield errors of the app's settings."""
    yield from _results(app)
    yield from _queues(app)
    yield from _routes(app)
    yield from _scheduler(app)


def _results(app: Celery) -> Iterator[CheckMessage]:
    from jobs.runs.result_backend import ResultBackend

    try:
        is_ours = isinstance(app.backend, ResultBackend)
    except (ImproperlyConfigured, ImportError):
        is_ours = False
    if not is_ours:
        yield Error(
            f"CELERY_RESULT_BACKEND is {app.conf.result_backend!r}: a chord whose member's process"
            " dies may hang.",
            hint=f"Set it to {RESULTS!r}.",
            id="fairshift.E014",
        )


def _queues(app: Celery) -> Iterator[CheckMessage]:
    queues = app.amqp.queues
    jobs = setting("JOBS_QUEUE")
    missing = [name for name in (jobs, setting("SYSTEM_QUEUE")) if name not in set(queues)]
    if missing:
        yield Error(
            f"CELERY_TASK_QUEUES has {', '.join(sorted(queues))}, and not {' and '.join(missing)}:"
            " runs that name no queue, or Fairshift's own tasks, have none.",
            hint=f"Add Queue(name, Exchange(name), routing_key=name) for each. {SEE}",
            id="fairshift.E015",
        )
    places = [(queue.exchange.name, queue.routing_key) for queue in queues.values()]
    if len(places) > len(set(places)):
        yield Error(
            "Queues of CELERY_TASK_QUEUES share an exchange and a routing key: a message for one"
            " goes to all of them.",
            hint=f"Give each its own: Queue(name, Exchange(name), routing_key=name). {SEE}",
            id="fairshift.E016",
        )
    default = app.conf.task_default_queue
    if default not in set(queues):
        yield Error(
            f"CELERY_TASK_DEFAULT_QUEUE is {default!r}, which is not in CELERY_TASK_QUEUES: no"
            " worker takes plain calls.",
            hint=f"Set CELERY_TASK_DEFAULT_QUEUE to {jobs!r}.",
            id="fairshift.E017",
        )
    if jobs not in fleet.fair_queues(app):
        yield Error(
            f"The queue {jobs!r} is not fair: owners would wait behind one another.",
            hint=f'Add "fair_queues": [{jobs!r}] to CELERY_BROKER_TRANSPORT_OPTIONS. {SEE}',
            id="fairshift.E018",
        )


def _routes(app: Celery) -> Iterator[CheckMessage]:
    for queue, routed in sorted(undeclared_routes(app).items()):
        yield Caution(
            f"{routed} is routed to queue {queue!r}, which CELERY_TASK_QUEUES does not declare: no"
            f" worker takes from it, unless it is started with --queues {queue}.",
            hint="Add Queue(name, Exchange(name), routing_key=name) for it, and start a worker; or"
            " correct the route. If another project's workers take from it, add fairshift.W022 to"
            " SILENCED_SYSTEM_CHECKS.",
            id="fairshift.W022",
        )


def _scheduler(app: Celery) -> Iterator[CheckMessage]:
    from jobs.system.beat import Scheduler

    given = app.conf.beat_scheduler
    try:
        found = symbol_by_name(given)
    except (ImportError, AttributeError, ValueError):
        found = None
    if not (isinstance(found, type) and issubclass(found, Scheduler)):
        yield Error(
            f"CELERY_BEAT_SCHEDULER is {given!r}: Fairshift's own tasks, which promote and rescue"
            " runs, are not sent, or by every beat that runs.",
            hint=f"Set it to {SCHEDULER!r}.",
            id="fairshift.E019",
        )
