"""fleet/worker/child.py: Celery's own exceptions ask for what the row can record."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Task
from celery.exceptions import Ignore, Reject

from fleet import Kind
from tests.fleet.children import Child
from tests.tasks import UnpicklableError


@pytest.mark.parametrize(
    ("asked", "delay"),
    [
        ({"countdown": 7}, 7),
        ({"countdown": 0}, 0),
        ({"countdown": float("inf")}, 30 * 86_400),
        ({"countdown": -5}, 0),
    ],
)
def test_a_task_may_ask_for_its_retry(pool: Child, asked: dict[str, Any], delay: float) -> None:
    """With Celery's own `retry`, after its countdown, under the run's policy."""

    def ask(self: Task) -> None:
        raise self.retry(exc=OSError("no route"), **asked)

    task = pool.task(ask, bind=True)
    report, _ = pool.fly(task)
    assert (report.kind, report.delay, report.error_type) == (Kind.RETRYING, delay, "OSError")
    assert pool.fly(task, attempt=3)[0].kind is Kind.FAILED


def test_a_retry_may_be_asked_for_at_a_time(pool: Child) -> None:
    """As an aware time."""

    def ask(self: Task) -> None:
        raise self.retry(eta=datetime.now(UTC) + timedelta(seconds=60))

    report, _ = pool.fly(pool.task(ask, bind=True))
    assert 55 < (report.delay or 0) <= 60


def test_an_error_may_say_how_long_to_wait(pool: Child) -> None:
    """The other side's Retry-After."""

    class TooManyRequestsError(Exception):
        retry_after = 30

    def call() -> None:
        raise TooManyRequestsError

    assert pool.fly(call)[0].delay == 30.0


def test_a_task_that_asks_to_be_ignored_is_done(pool: Child) -> None:
    """It asked that nothing more be done; it has no result."""

    def ignore() -> None:
        raise Ignore

    report, _ = pool.fly(ignore)
    assert (report.kind, report.result) == (Kind.SUCCEEDED, None)


@pytest.mark.parametrize(
    ("requeue", "attempt", "kind"),
    [(False, 1, Kind.FAILED), (True, 1, Kind.RETRYING), (True, 3, Kind.FAILED)],
)
def test_a_task_that_rejects_its_message_has_failed(
    pool: Child, *, requeue: bool, attempt: int, kind: Kind
) -> None:
    """For good, or, asking for the message again, under the run's policy; no hint goes back."""

    def reject() -> None:
        raise Reject(UnpicklableError(), requeue=requeue)

    report, error = pool.fly(reject, attempt=attempt)
    assert (report.kind, report.error_type) == (kind, "TaskRejected")
    assert "holds a lock" in report.error_message and "in reject" in report.traceback
    assert type(error).__name__ == ("TaskRejected" if kind is Kind.FAILED else "Retry")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"args": ()}, "keeps its arguments"),
        ({"kwargs": {"depth": 2}}, "keeps its arguments"),
        ({"throw": False}, "throw=False"),
    ],
)
def test_a_retry_that_a_row_cannot_keep_is_an_error(
    pool: Child, asked: dict[str, Any], says: str
) -> None:
    """A reader of the run sees what was asked for in vain."""

    def ask(self: Task) -> None:
        self.retry(**asked)

    report, _ = pool.fly(pool.task(ask, bind=True), attempt=3)
    assert (report.kind, report.error_type) == (Kind.FAILED, "TypeError")
    assert says in report.error_message
