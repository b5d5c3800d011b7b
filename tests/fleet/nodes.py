"""A worker node without Celery's worker around it, for scenes at its gate."""

import queue
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from celery import current_app, shared_task
from celery.concurrency.base import BasePool
from celery.exceptions import TaskRevokedError
from celery.worker import state as worker_state
from celery.worker.request import Request

from fleet.contract import is_hint
from fleet.worker import child
from fleet.worker.charging import Entrance
from fleet.worker.gate import Gate
from fleet.worker.io_thread import IOThread
from jobs.catalog.registry import resolve
from jobs.wiring import application
from tests.jobs.scenes import living_worker


@shared_task(name="tests.gate.double")
def double(x: Any) -> Any:
    return 2 * x


@shared_task(name="tests.gate.nap")
def nap(seconds: float) -> None:
    time.sleep(seconds)


@shared_task(name="tests.gate.fail")
def fail() -> None:
    raise ValueError("the device said no")


class ConsumerDouble(SimpleNamespace):
    """What the gate asks of Celery's consumer."""

    __hash__ = object.__hash__


class Node:
    """A worker node without Celery's worker: a real I/O thread, gate and pool, and a loop."""

    def __init__(self, pool: BasePool) -> None:
        self.app = current_app._get_current_object()
        self.posted: queue.Queue[Callable[[], None]] = queue.Queue()
        self.begun: list[Request] = []
        self.later: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []
        made = application()
        self.id = living_worker()
        self.io_thread = IOThread(made, self.id, self._post)
        self.gate = Gate(made, self.io_thread)
        for task in map(resolve, (double, fail, nap)):
            child.install({task.name: task}, made)
        self.pool = pool
        pool.apply_async = Entrance(pool)
        self.consumer = self._consumer()
        worker = SimpleNamespace(
            pool=pool,
            consumer=self.consumer,
            semaphore=None,
            timer=SimpleNamespace(call_after=lambda *later: self.later.append(later)),
        )
        self.gate.attach(worker)
        self.connection = self.app.connection_for_read()
        self.channel = self.connection.default_channel
        self.io_thread.start()

    def receive(self) -> Any:
        """Take the next message off the broker and pass it to the gate; return it."""
        message = self.channel.basic_get("jobs")
        assert message is not None, "a message waits"
        if is_hint(message.headers):
            assert self.gate.take_hint(message)
        else:
            request = self.request(message)
            worker_state.task_reserved(request)
            self.gate.on_request(request)
        return message

    def request(self, message: Any) -> Request:
        """Return the request that Celery makes of a message."""
        return Request(
            message,
            on_ack=message.ack_log_error,
            on_reject=message.reject_log_error,
            app=self.app,
            hostname="w1@here",
            task=self.app.tasks[message.headers["task"]],
            connection_errors=(OSError,),
            body=message.body,
            headers=message.headers,
            decoded=False,
        )

    def _consumer(self) -> Any:
        return ConsumerDouble(
            process=self.begun.append,
            app=self.app,
            pool=self.pool,
            hostname="w1@here",
            event_dispatcher=None,
            connection_errors=(OSError,),
            strategies=self.app.tasks,
            task_buckets=defaultdict(lambda: None),
            disable_rate_limits=False,
            on_task_message=set(),
        )

    def _post(self, *steps: Callable[[], None]) -> None:
        for step in steps:
            self.posted.put(step)

    def turn(self, *, until: Callable[[], object]) -> None:
        """Turn the loop until something holds."""
        deadline = time.monotonic() + 200
        while not until():
            assert time.monotonic() < deadline, "the loop turned in vain"
            try:
                self.posted.get(timeout=0.01)()
            except queue.Empty:
                continue

    def begin(self) -> None:
        """Give an admitted run a slot of the pool, as Celery's worker does."""
        self.turn(until=lambda: self.begun)
        request = self.begun.pop(0)
        with suppress(TaskRevokedError):
            request.execute_using_pool(self.pool)

    def admit(self) -> Any:
        """Receive the next message; return it when its run is admitted."""
        message = self.receive()
        self.turn(until=lambda: self.begun)
        return message

    def start(self) -> Any:
        """Receive the next message and give its run a slot of the pool; return it."""
        message = self.receive()
        self.begin()
        return message

    def end(self) -> None:
        self.io_thread.stop()
        self.io_thread.join(200)
        self.connection.release()
