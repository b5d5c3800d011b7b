"""fleet/worker/node.py: what is refused before a worker boots, and what a worker survives."""

import logging
import time
from collections import deque
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery, bootsteps
from celery.concurrency import prefork, solo, thread
from celery.concurrency.base import BasePool
from celery.exceptions import ImproperlyConfigured
from kombu.asynchronous import Hub

from fleet.worker.node import DurableRuns, _pool_of, _post, _refuse_other_pools, _wake
from jobs.wiring import application


@pytest.mark.parametrize(
    ("setting", "value"),
    [("worker_pool_start_method", "spawn"), ("worker_consumer", "elsewhere:Consumer")],
)
def test_what_breaks_a_promise_is_refused_by_name(setting: str, value: str) -> None:
    """Before a task is guarded or a child forked; `celery worker` ends with this error."""
    with Celery("refused", broker="memory://", set_as_current=False) as app:
        app.conf[setting] = value
        worker = SimpleNamespace(app=app, hub=None)
        step = DurableRuns(worker)
        with pytest.raises(ImproperlyConfigured, match=f"{setting} is {value}"):
            step.create(worker)


@pytest.mark.parametrize("pool", [thread.TaskPool, solo.TaskPool])
def test_a_pool_that_stops_no_task_is_given_no_durable_run(pool: type[BasePool]) -> None:
    """It is refused by name, unless it takes plain tasks alone or a setting allows it."""
    with Celery("refused", broker="memory://", set_as_current=False) as app:
        worker: Any = SimpleNamespace(app=app, pool=pool(1, app=app))
        handed = replace(application(), plain_queues=("system", "inbox"))
        app.amqp.queues.select(["jobs", "system"])
        with pytest.raises(ImproperlyConfigured, match=rf"{_pool_of(worker)}, .* of jobs: "):
            _refuse_other_pools(worker, handed)
        _refuse_other_pools(worker, replace(handed, allows_other_pools=True))
        app.amqp.queues.select(["system", "inbox"])
        _refuse_other_pools(worker, handed)
        app.amqp.queues.select(["jobs"])
        worker.pool = prefork.TaskPool(1, app=app)
        _refuse_other_pools(worker, handed)


@pytest.mark.parametrize("state", [bootsteps.RUN, bootsteps.CLOSE])
def test_an_error_of_one_answer_does_not_end_the_worker(
    state: int, caplog: pytest.LogCaptureFixture
) -> None:
    """In the loop, which an exception of a callback would end, and after the loop's end."""

    def breaks() -> None:
        raise OSError(message)

    message = f"the answer {uuid4()} could not be dealt with"
    hub = Hub()
    worker: Any = SimpleNamespace(hub=hub, blueprint=SimpleNamespace(state=state))
    with caplog.at_level(logging.ERROR):
        _post(worker, deque(), breaks)
        assert (message in caplog.text) == (state == bootsteps.CLOSE)
        for callback in hub._pop_ready():
            callback()
    assert message in caplog.text


def test_answers_are_dealt_with_in_their_order() -> None:
    """The order of the queue: Kombu's loop keeps its callbacks in a set."""
    hub, dealt, posted = Hub(), list[int](), deque[Any]()
    worker: Any = SimpleNamespace(hub=hub, blueprint=SimpleNamespace(state=bootsteps.RUN))
    for number in range(100):
        _post(worker, posted, partial(dealt.append, number))
    for callback in hub._pop_ready():
        callback()
    hub.close()
    assert dealt == list(range(100))


def test_a_loop_that_sleeps_hears_that_it_is_to_stop() -> None:
    """At once, not when its next timer is due."""
    hub = Hub()
    hub.timer.call_after(60, lambda: None)
    turns = hub.create_loop()
    next(turns)
    began_at = time.monotonic()
    _wake(SimpleNamespace(hub=hub), sig="SIGTERM", how="Warm", exitcode=0)
    next(turns)
    assert time.monotonic() - began_at < 10
    _wake(SimpleNamespace(hub=None))  # a pool without a loop
    hub.close()


def test_a_cold_stop_ends_tasks_before_it_leaves() -> None:
    """The worker that takes over a run must not find its old task at work."""
    done: list[str] = []

    def note(name: str) -> Any:
        return lambda *_args, **_kwargs: done.append(name) or True

    worker: Any = SimpleNamespace(pool=SimpleNamespace(terminate=note("tasks end")))
    step = DurableRuns(worker)
    step.application = replace(application(), leave=note("the row ends"))
    step._posted = deque([note("what was answered is done")])
    step.node = SimpleNamespace(id=uuid4())
    step.gate = SimpleNamespace(close=note("nothing more begins"))
    step.io_thread = SimpleNamespace(flush=note("what is left is written"), stop=note("I/O thread"))
    step.heartbeat = SimpleNamespace(stop=note("heartbeat"))
    step.terminate(worker)
    ends = ["nothing more begins", "tasks end", "what was answered is done"]
    ends += ["what is left is written", "the row ends"]
    assert [word for word in done if word in ends] == ends
