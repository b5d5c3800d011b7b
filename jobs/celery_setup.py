"""The Celery app of a project: what Fairshift sets in it, under what the project sets.

Imported before Django's settings, and by every process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from celery import Celery
from celery.signals import worker_init
from celery.utils.imports import symbol_by_name
from kombu import Exchange, Queue

import fleet
from fleet.overruling import overrule
from jobs.core.conf import early_setting

HALF_A_DAY: Final = 12 * 3600
OURS: Final[Mapping[str, tuple[Callable[[], Any], str]]] = {
    "broker_connection_retry_on_startup": (lambda: True, "a worker waits for Redis at its start"),
    "broker_transport_options": (
        lambda: {
            "fair_queues": [early_setting("JOBS_QUEUE"), early_setting("NOTICES_QUEUE")],
            "lease_seconds": early_setting("LEASE_SECONDS"),
            "socket_timeout": 5,
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
            "health_check_interval": 10,
            # For queues that are not fair: when a dead worker's task is delivered again, and how
            # long a task may run before a second start.
            "visibility_timeout": HALF_A_DAY,
        },
        "merged with yours by key; `fair_queues` has yours and ours",
    ),
    "result_backend": (
        lambda: "jobs.runs.result_backend:ResultBackend",
        "django-celery-results' backend, with chords that survive a killed process",
    ),
    "result_extended": (lambda: True, "a result names its task, arguments and worker"),
    "task_default_queue": (lambda: early_setting("JOBS_QUEUE"), "plain calls share the fair queue"),
    "task_queues": (
        lambda: (),
        "yours, the default queue, and the three of Fairshift, each with an exchange of its own",
    ),
    "task_routes": (lambda: None, "first the calls of other languages, then yours"),
    "task_acks_late": (lambda: True, "a killed worker's task is delivered again"),
    "worker_prefetch_multiplier": (lambda: 1, "a slot takes no work that another could do"),
    "worker_send_task_events": (lambda: True, "Flower shows tasks"),
    "beat_scheduler": (
        lambda: "jobs.system.beat:Scheduler",
        "django-celery-beat's scheduler, of which any number may run",
    ),
}
"""Celery's settings that Fairshift has a default for, each with what it does here."""
MERGED: Final = frozenset({"broker_transport_options", "task_queues", "task_routes"})
"""Settings of which a project's value and ours both count."""


def celery_app(name: str, *, settings: str = "") -> Celery:
    """Return the Celery app of a Django project, with all that Fairshift needs.

    The project's settings are those of the module `settings`, by default `NAME.settings`, unless
    the environment's DJANGO_SETTINGS_MODULE names another one. Celery's are `CELERY_...` in it.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings or f"{name}.settings")
    app = Celery(name)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    app.autodiscover_tasks()
    setup_celery(app)
    return app


def setup_celery(app: Celery) -> None:
    """Give a Celery app what Fairshift needs; call it where the app is made.

    The transport of fair queues, an owner for every call, the workers' steps, and defaults for
    Celery's settings. What the project sets goes before; `MERGED` are merged.
    """
    fleet.use_fair_transport()
    fleet.route_calls()
    app.autodiscover_tasks(["jobs"])
    # Not by `add_defaults`, which Celery looks at before the project's settings.
    if app.configured:
        _add_ours(app.conf)
    app.on_after_configure.connect(_add_ours, weak=False, dispatch_uid="fairshift")
    worker_init.connect(partial(_wire, app), weak=False, dispatch_uid=f"fairshift {id(app)}")


def _wire(app: Celery, sender: Any, **_signal: Any) -> None:
    """Give a worker of an app the functions of Fairshift, before its boot steps are built."""
    if sender.app is app and not fleet.is_installed(app):
        # By its name: it needs models, and so Django's apps.
        fleet.install(app, symbol_by_name("jobs.wiring:application")())


def _add_ours(source: Any, **_signal: Any) -> None:
    """Set what the project has not set, and Fairshift's parts of what is merged."""
    source.update({name: make() for name, (make, _) in OURS.items() if not _is_set(source, name)})
    options, _ = OURS["broker_transport_options"]
    names = ("JOBS_QUEUE", "SYSTEM_QUEUE", "NOTICES_QUEUE")
    queues = [source["task_default_queue"], *map(early_setting, names)]
    overrule(
        source,
        broker_transport_options=merged_options(options(), source["broker_transport_options"]),
        task_queues=merged_queues(source["task_queues"] or (), queues),
        task_routes=merged_routes(source["task_routes"], early_setting("INBOX_QUEUE")),
    )


def _is_set(source: Any, name: str) -> bool:
    """Say whether a setting is the project's, in any form of its name."""
    of_celery = source.maps.pop()
    try:
        source[name]
    except KeyError:
        return False
    else:
        return True
    finally:
        source.maps.append(of_celery)


def merged_options(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the transport's options: theirs before ours, and the fair queues of both."""
    fair = dict.fromkeys([*ours["fair_queues"], *theirs.get("fair_queues", ())])
    return {**ours, **theirs, "fair_queues": list(fair)}


def merged_queues(theirs: Any, names: Iterable[str]) -> Any:
    """Return the queues in the form of theirs, a mapping or a list, with those that are missing."""
    known = set(theirs) if isinstance(theirs, Mapping) else {queue.name for queue in theirs}
    # Each has its own exchange: with a shared one, both queues would get every message.
    missing = [
        Queue(name, Exchange(name), routing_key=name)
        for name in dict.fromkeys(names)
        if name not in known
    ]
    if isinstance(theirs, Mapping):
        return {**theirs, **{queue.name: queue for queue in missing}}
    return (*theirs, *missing)


def merged_routes(theirs: Any, inbox: str) -> list[Any]:
    """Return the routers: that of calls from other languages, then theirs.

    No worker consumes that queue: the system's worker reads it in order.
    """
    ours = {f"fairshift.{verb}_jobs": {"queue": inbox} for verb in ("upsert", "delete")}
    routers = theirs if isinstance(theirs, list | tuple) else [] if theirs is None else [theirs]
    return [ours, *(router for router in routers if router != ours)]
