"""The owners of the scenes, and the conditions that scenes wait for."""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest
import redis
from celery import Celery, current_app

from fleet import Broker
from fleet.overruling import overrule
from jobs import setup_celery
from jobs.core.states import ENDED, State
from jobs.models import Owner, Run
from jobs.runs import dispatch
from tests.judge import TaskLog, read_task_events
from tests.judge.log import TaskEvent
from tests.waiting import wait_for


def make_owner(slug: str, **fields: object) -> Owner:
    """Return an owner with these fields, and no limits else."""
    free = {"max_running": None, "paused_at": None, "paused_until": None, "paused_reason": ""}
    made, _ = Owner.objects.update_or_create(slug=slug, defaults={**free, **fields})
    return made


def reached(run: Run | UUID, *states: State, seconds: float = 20) -> Run:
    """Wait until a run is in one of these states; return it as it is then."""
    run_id = run.id if isinstance(run, Run) else run
    wanted = Run.objects.filter(id=run_id, state__in=states)
    try:
        return wait_for(wanted.first, seconds=seconds)
    except AssertionError:
        last = Run.objects.get(id=run_id)
        raise AssertionError(
            f"run {run_id} is {last.state}, not {', '.join(states)}: {last.history}"
        ) from None


def ended(run: Run | UUID, *, seconds: float = 20) -> Run:
    """Wait until a run has ended; return it as it is then."""
    return reached(run, *ENDED, seconds=seconds)


def states(run: Run) -> list[str]:
    """Return the states of a run's history, first to last."""
    return [state for state, _, _ in run.moves]


def outcomes(run: Run) -> list[str]:
    """Return how each attempt of a run ended, first to last."""
    return [attempt.outcome for attempt in run.attempts]


def bodies(log: TaskLog, run: Run) -> list[TaskEvent]:
    """Return the starts and ends of a run's bodies, by the tasks' own log."""
    return [event for event in read_task_events(log.path) if event.run == str(run.id)]


def event_count(log: TaskLog, event: str, *, task: str | None = None) -> int:
    """Return how many starts or ends the log has; of one task, if it is named."""
    events = read_task_events(log.path)
    return sum(one.event == event and task in (None, one.task) for one in events)


def start_count(log: TaskLog, *, task: str | None = None) -> int:
    """Return how many bodies have begun; of one task, if it is named."""
    return event_count(log, "start", task=task)


def most_at_once(log: TaskLog, *, of: Container[str | None]) -> int:
    """Return how many bodies of these runs, or tasks, were alive together at most."""
    alive = most = 0
    for event in read_task_events(log.path):
        if event.run in of or event.task in of:
            alive += {"start": 1, "end": -1}[event.event]
            most = max(most, alive)
    return most


@contextmanager
def publishing_to(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Celery]:
    """Have this process publish hints to another broker; yield an app on it."""
    with Celery("scene", set_as_current=False) as app:
        app.config_from_object("django.conf:settings", namespace="CELERY")
        setup_celery(app)
        overrule(app.conf, broker_url=url)
        hints = Broker(app)
        monkeypatch.setattr(dispatch, "broker", lambda: hints)
        yield app


@contextmanager
def broker_client() -> Iterator[redis.Redis]:
    """A client of the Redis that is the broker, whatever form its URL has."""
    with current_app.connection_for_write() as connected:
        yield connected.default_channel.client


def keys_with(client: redis.Redis, texts: list[str]) -> list[str]:
    """Return the keys of Redis that contain one of these texts."""
    readers = {
        b"string": client.get,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"hash": client.hgetall,
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"none": lambda _key: (),  # gone since the scan
    }
    # Bodies of messages are base64, headers are not.
    return [
        key.decode()
        for key in client.scan_iter()
        if any(text in str(readers[client.type(key)](key)) for text in texts)
    ]
