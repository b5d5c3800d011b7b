"""Plain Celery tasks for test_plain_celery.py: they replace, reject and publish themselves."""

import os
import signal
from typing import Any

from celery import Task, chain, current_app, group, shared_task
from celery.exceptions import Reject

from tests.tasks import logged

if os.environ.get("DEDUPLICATE"):
    current_app.conf.worker_deduplicate_successful_tasks = True


@shared_task(name="plain.add", ignore_result=False)
def add(x: int, y: int) -> int:
    return x + y


@shared_task(name="plain.total", ignore_result=False)
def total(numbers: list[int]) -> int:
    return sum(numbers)


@shared_task(name="plain.replaced", bind=True)
def replaced(self: Task, way: str, number: int) -> Any:
    """Replace itself by another task that returns `number` + 1."""
    one = add.s(number, 1)
    ways = {
        "signature": one,
        "chain": chain(add.s(number, 0), add.s(1)),
        "group": chain(group(add.s(number, 0), add.s(0, 1)), total.s()),
    }
    return self.replace(ways[way])


@shared_task(name="plain.noted")
def noted(number: int) -> int:
    """Note that it ran."""
    with logged():
        return number


@shared_task(name="plain.again", bind=True)
def again(self: Task, times: int) -> int:
    """Publish itself under its own id, and with the same number of retries, `times` times."""
    with logged():
        if times:
            self.signature_from_request(args=(times - 1,), retries=0).apply_async()
        return times


@shared_task(name="plain.reject_until", bind=True)
def reject_until(self: Task, other: str) -> None:
    """Reject itself until another task has succeeded."""
    with logged():
        if not self.AsyncResult(other).successful():
            raise Reject("the other has not run", requeue=True)


@shared_task(name="plain.die_after_success", bind=True)
def die_after_success(self: Task) -> None:
    """Store a success, and end the worker before it acknowledges the message."""
    with logged():
        self.backend.mark_as_done(self.request.id, "stored")
        os.killpg(os.getpgid(os.getppid()), signal.SIGKILL)
