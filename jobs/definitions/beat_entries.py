"""django-celery-beat's PeriodicTasks as jobs; an entry without an equivalent is refused. Pure."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final

from celery import current_app
from celery.exceptions import QueueNotFound

from fleet import HEADER
from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.registry import offer_of, resolve
from jobs.core.errors import ArgumentError, OptionError
from jobs.definitions.beat_schedules import cron_of, span_of

# Fields for the routing of a message, apart from the queue.
_ROUTING: Final = ("exchange", "routing_key")
MOST_ATTEMPTS: Final = 100
LAST: Final = 9
"""On Redis Celery serves priority 0 first and 9 last, and treats higher ones as 9."""


def job_of(entry: Any, *, owner: str, now: datetime) -> dict[str, Any]:
    """Return a PeriodicTask as a job for `jobs.upsert_jobs`; its name becomes the key.

    Raises OptionError, ArgumentError or UnknownTask, naming the entry's field, for what a job
    cannot do in the same way. The upsert checks the limits of the job's fields.
    """
    for name in _ROUTING:
        if getattr(entry, name) is not None:
            raise OptionError(name, "has no counterpart: a job names its `queue` alone; clear it")
    _refuse_headers(_json(entry, "headers", dict), owner=owner)
    if entry.expires is not None and entry.expires <= now:
        raise OptionError("expires", "has passed: it would never be due")
    job = {
        "key": entry.name,
        "name": entry.name,
        "task": entry.task,
        "arguments": _arguments(entry),
        "queue": entry.queue or routed(entry.task),
        **_schedule(entry, now=now),
        **attempts_of(entry.task),
    }
    if entry.priority is not None:
        job["priority"] = LAST - min(entry.priority, LAST)
    if entry.expire_seconds:
        job["deadline_seconds"] = entry.expire_seconds
    return job


def routed(task: str) -> str:
    """Return the queue that CELERY_TASK_ROUTES has for a task; empty if none has one."""
    try:
        queue = str(current_app.amqp.router.route({}, task)["queue"].name)
    except QueueNotFound as error:
        raise OptionError("queue", f"is none that CELERY_TASK_QUEUES has: {error}") from error
    return "" if queue == current_app.conf.task_default_queue else queue


def attempts_of(name: str) -> dict[str, Any]:
    """Return the attempts of a task as Celery gives them: one, unless the task says otherwise."""
    task = resolve(name)
    if "max_attempts" in offer_of(task).policy:
        return {}
    retried = getattr(task, "autoretry_for", None)
    if not retried:
        return {"max_attempts": 1}
    most = MOST_ATTEMPTS if task.max_retries is None else task.max_retries + 1
    never = getattr(task, "dont_autoretry_for", ())
    return {
        "max_attempts": min(most, MOST_ATTEMPTS),
        "retry_on": [f"{error.__module__}.{error.__qualname__}" for error in retried],
        "give_up_on": [f"{error.__module__}.{error.__qualname__}" for error in never],
    }


def _refuse_headers(headers: dict[str, Any], *, owner: str) -> None:
    """Refuse headers, except one that names the owner of the job."""
    named = headers.get(HEADER)
    other = named.get("owner", owner) if isinstance(named, dict) else owner
    if other != owner:
        raise OptionError("headers", f"name the owner {other!s:.100}, not {owner}: import it there")
    if headers and headers != {HEADER: {"owner": owner}}:
        raise OptionError("headers", "have no counterpart: a run has no headers; clear them")


def _arguments(entry: Any) -> dict[str, Any]:
    """Return positional and keyword arguments by their names in the task's signature."""
    args, kwargs = _json(entry, "args", list), _json(entry, "kwargs", dict)
    schema = ArgumentSchema.of(resolve(entry.task))
    positional, by_name = schema.bind(args, kwargs)
    named = dict(zip(schema.positional, positional, strict=False))
    if len(positional) > len(named):
        raise ArgumentError(schema.rest or "args", "are any number, which a job cannot hold")
    return {**named, **by_name}


def _json(entry: Any, field: str, kind: type) -> Any:
    try:
        value = json.loads(getattr(entry, field) or ("[]" if kind is list else "{}"))
    except ValueError as error:
        raise OptionError(field, f"is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise OptionError(field, f"is not JSON {'array' if kind is list else 'object'}")
    return value


def _schedule(entry: Any, *, now: datetime) -> dict[str, Any]:
    if entry.solar is not None:
        raise OptionError("solar", "has no counterpart: a job has no solar schedule")
    if entry.clocked is not None:
        if entry.clocked.clocked_time <= now:
            raise OptionError("clocked", "has passed")
        return {"once_at": entry.clocked.clocked_time}
    if entry.one_off:
        problem = "has no counterpart with a schedule that repeats: make it a clocked one"
        raise OptionError("one_off", problem)
    bounds = {"start_at": entry.start_time, "end_at": entry.expires}
    if entry.interval is not None:
        return {**span_of(entry.interval), **bounds}
    if entry.crontab is not None:
        return {**cron_of(entry.crontab), **bounds}
    raise OptionError("schedule", "is missing")


def is_ours(entry: Any) -> bool:
    """Say whether an entry belongs to Fairshift or Celery."""
    return str(entry.task).startswith(("fairshift.", "celery."))
