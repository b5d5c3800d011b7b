"""jobs/runs/context.py: what a task may know of its run."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from celery import Task
from celery._state import _task_stack

from fleet import HEADER
from jobs.catalog.context import RunContext, current_run
from jobs.catalog.registry import resolve

RUN = "01987f3c-0000-7000-8000-000000000001"
FACTS = {
    "run": RUN,
    "token": 4,
    "attempt": 2,
    "policy": {"max_attempts": 3},
    "owner": "acme",
    "job": 7,
    "submission": None,
    "due_at": "2026-03-01T12:00:00+00:00",
    "labels": {"site": "berlin"},
}


@contextmanager
def in_task(**request: Any) -> Iterator[None]:
    """Stand inside a task with this request, as Celery's tracer does."""
    task: Task = resolve("tests.add")
    _task_stack.push(task)
    task.push_request(**request)
    try:
        yield
    finally:
        task.pop_request()
        _task_stack.pop()


@pytest.mark.parametrize(
    "facts",
    [
        None,
        "x",
        {"owner": "acme", "submission": 1},
        {"owner": "acme", "submission": 1, "token": 4, "attempt": 1},
        {"owner": "acme", "submission": 1, "run": RUN, "token": 4},
    ],
)
def test_a_plain_task_has_no_run(facts: Any) -> None:
    """A hint's header alone is not an admission; nor has code outside of a task a run."""
    assert current_run() is None
    with in_task(id="x", **{HEADER: facts}):
        assert current_run() is None


def test_an_admitted_run_is_told_what_it_is() -> None:
    """Times come back as times, the id as an id."""
    with in_task(id=RUN, **{HEADER: FACTS}):
        assert current_run() == RunContext(
            run_id=UUID(RUN),
            token=4,
            attempt=2,
            max_attempts=3,
            owner="acme",
            job_id=7,
            submission_id=None,
            due_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
            labels={"site": "berlin"},
        )
    with in_task(id=RUN, **{HEADER: {**FACTS, "due_at": None}}):
        run = current_run()
        assert run is not None and run.due_at is None
