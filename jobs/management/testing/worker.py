"""A worker inside the test's process: it admits, calls and records as a real one does.

The verbs are those of a worker: `jobs.runs.admission`, `fleet.worker.child`, `jobs.runs.recording`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import Any, Final
from uuid import uuid4

from celery import current_app
from django.db import DatabaseError, connection, connections, transaction

from fleet import Admission, AdmissionRequest, Application, BrokerUnavailable, Hint, Node, Refusal
from jobs.management.testing.inline import run_here
from jobs.models import Run
from jobs.runs import admission, recording
from jobs.system import heartbeat
from jobs.wiring import application

HOSTNAME: Final = "pytest@test"


class InProcessWorker:
    """A worker of one test, with a row in `jobs_worker` that ends with the test."""

    def __init__(self) -> None:
        queues = sorted(current_app.amqp.queues)
        self._node = Node(uuid4(), HOSTNAME, os.getpid(), "solo", 1, queues)

    def run(self, run: Run) -> Refusal | None:
        """Run one queued run to the end of its attempt; None, or why it may not start now."""
        # Each time: the clock may have been moved.
        heartbeat.beat(self._node, [str(run.id)])
        request = AdmissionRequest(str(run.id), run.task)
        answer = admission.admit(self._node.id, [request])[request.key]
        if not isinstance(answer, Admission):
            return answer
        report = self._call(run.task, answer)
        recording.record([report])
        return None

    def _call(self, task: str, admitted: Admission) -> Any:
        app, verbs = current_app._get_current_object(), _application()
        with _open_connections():
            if not connection.in_atomic_block:
                return run_here(app, task, admitted, verbs)
            # A failed statement of the task would spoil the test's transaction. It is undone, and
            # the report has its error; a real worker commits what the task wrote before it.
            reports: list[Any] = []
            with suppress(DatabaseError), transaction.atomic():
                reports.append(run_here(app, task, admitted, verbs))
            return reports[0]


@contextmanager
def _open_connections() -> Iterator[None]:
    """Keep the test's connections open: with Celery's signals of a worker, a task closes them."""
    # A run inside of another one finds them kept.
    kept = [one for one in connections.all(initialized_only=True) if "close" not in vars(one)]
    for one in kept:
        vars(one)["close"] = lambda: None
    try:
        yield
    finally:
        for one in kept:
            del vars(one)["close"]


@cache
def _application() -> Application:
    """Return the functions of a worker; a task's open transaction is the test's, and stays."""
    return replace(application(), leave_clean=lambda: None)


class NoBroker:
    """Stands in for Redis. Hints are dropped, or with a worker run at once."""

    def __init__(self) -> None:
        self.worker: InProcessWorker | None = None
        """Runs each hint when it is published; None: a run waits for `drain`."""

    def post(self, hints: Sequence[Hint], receipt: Any, *, timeout: float) -> list[Any]:  # noqa: ARG002
        """Take the hints of single submits."""
        self._take(hints)
        return [receipt]

    def publish(
        self,
        hints: Sequence[Hint],
        *,
        timeout: float,  # noqa: ARG002  the signature of fleet.Broker
        are_in_outbox: bool = False,  # noqa: ARG002
    ) -> None:
        """Take the hints of bulks, retries and recurring jobs."""
        self._take(hints)

    def withdraw(self, queue: str, hints: Any, *, timeout: float) -> None:
        """Do nothing: a hint that was dropped need not be taken back."""

    def backlog(self, queue: str, *, timeout: float) -> int:  # noqa: ARG002
        """Return 0: nothing waits here."""
        return 0

    def __getattr__(self, name: str) -> Any:
        raise BrokerUnavailable(f"this test has no Redis: {name} needs a broker")

    def _take(self, hints: Sequence[Hint]) -> None:
        if self.worker is None:
            return
        found = Run.objects.filter(id__in=[hint.run_id for hint in hints if hint.job is None])
        for run in found.order_by("-priority", "id"):
            self.worker.run(run)
