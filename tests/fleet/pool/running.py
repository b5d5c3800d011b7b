"""A pool over real children, with the loop in which it works, and jobs for it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from billiard.exceptions import WorkerLostError
from celery import current_app
from kombu.asynchronous import Hub, set_event_loop
from kombu.asynchronous.semaphore import LaxBoundedSemaphore

from fleet.pool import TaskPool, children_of

A_MOMENT = 0.001
PATIENCE_SECONDS = 300
SLOTS = 100
FREE = 50
two_children = pytest.mark.parametrize("pool", [{"children": 2}], indirect=True)


class Loop:
    """A pool of one child or more, and the event loop in which it works."""

    def __init__(self, children: int = 1, **options: Any) -> None:
        self.hub = Hub()
        set_event_loop(self.hub)
        app = current_app._get_current_object()
        options |= {"threads": False, "initargs": (app, "w1@here")}
        self.tasks = TaskPool(children, app=app, **options)
        self.tasks.start()
        self.tasks.register_with_event_loop(self.hub)
        self.hub.call_repeatedly(0.02, lambda: None)
        self.turns = self.hub.create_loop()

    @property
    def processes(self) -> Any:
        return children_of(self.tasks)

    def end(self) -> None:
        for child in self.processes.children:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
        self.tasks.terminate()
        set_event_loop(None)


class Running(Loop):
    """A pool that has booted; 50 of 100 slots are free."""

    def __init__(self, *, children: int = 1, **options: Any) -> None:
        self.slots = LaxBoundedSemaphore(SLOTS)
        self.slots.value = FREE
        super().__init__(children, putlocks=False, semaphore=self.slots, **options)
        self.answers: list[Any] = []
        self.errors: list[Any] = []
        self._until = time.monotonic() + PATIENCE_SECONDS
        self.turn_until(lambda: all(child.has_booted for child in self.processes.children))

    @property
    def pids(self) -> list[int]:
        return list(self.tasks.info["processes"])

    def call(self, function: Any, *args: Any, **options: Any) -> Any:
        """Hand a job in, as if it had a slot."""
        self.slots.value -= 1
        callbacks = {"callback": self.answers.append, "error_callback": self.errors.append}
        return self.tasks.apply_async(function, args, **(callbacks | options))

    def begin(self, function: Any, *args: Any, **options: Any) -> Any:
        """Hand a job in; return it when the pool knows its child."""
        job = self.call(function, *args, **options)
        self.turn_until(lambda: job.child)
        return job

    def turn(self) -> None:
        assert time.monotonic() < self._until, "the loop turned in vain"
        next(self.turns)

    def turn_until(self, holds: Callable[[], object]) -> None:
        while not holds():
            self.turn()

    def turn_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self.turn_until(lambda: time.monotonic() >= until)

    def settle(self, count: int) -> list[Any]:
        """Turn until there are this many answers."""
        self.turn_until(lambda: len(self.answers) >= count)
        return self.answers

    def error(self) -> Any:
        """Turn until there is an error; return it."""
        self.turn_until(lambda: self.errors)
        [einfo] = self.errors
        return getattr(einfo.exception, "exc", einfo.exception)

    def is_lost(self) -> bool:
        return isinstance(self.error(), WorkerLostError)


@pytest.fixture
def pool(request: pytest.FixtureRequest) -> Iterator[Running]:
    running = Running(**getattr(request, "param", {}))
    yield running
    running.end()


def length(text: str) -> int:
    """A job whose arguments may be long."""
    return len(text)


def repeated(text: str, times: int) -> str:
    """A job whose answer may be long."""
    return text * times


def nap(seconds: float) -> None:
    """A job that takes this long."""
    time.sleep(seconds)
