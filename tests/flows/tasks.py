"""Tasks for the flows: one that misbehaves in every way, and ends of chords and links."""

import logging
import os
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, NoReturn

from celery import chain, chord, current_task, group, shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import transaction

from fleet import HEADER
from jobs import Cancel, current_run, job
from tests.tasks import DEATHS, ERRORS, RESULTS, logged

logger = logging.getLogger(__name__)


def _raising(make: Callable[[], BaseException]) -> Callable[[], NoReturn]:
    def act() -> NoReturn:
        raise make()

    return act


def _hang() -> None:
    time.sleep(60)


def _hang_on() -> None:
    """Past the soft time limit as well."""
    while True:
        try:
            time.sleep(60)
        except SoftTimeLimitExceeded:
            continue


def _match() -> None:
    """Hold the GIL in one call of C."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def _read() -> None:
    """Wait for a peer that sends nothing."""
    near, _far = socket.socketpair()
    near.recv(1)


def _retry() -> NoReturn:
    raise current_task.retry(countdown=0.1, exc=ValueError("asked for another try"))


WAYS: dict[str, Callable[[], Any]] = {
    **{name: _raising(make) for name, make in ERRORS.items()},
    **DEATHS,
    **RESULTS,
    "hang": _hang,
    "hang_on": _hang_on,
    "match": _match,
    "read": _read,
    "retry": _retry,
}


@shared_task(name="flows.secret")
def secret(value: str, seconds: float = 0, fails: bool = False) -> str:
    """Return a secret value, or fail with it."""
    with logged():
        time.sleep(seconds)
        if fails:
            raise ValueError(f"cannot use {value}")
        return f"used {value}"


@shared_task(name="flows.log_secret")
def log_secret(backwards: str) -> None:
    """Log a text that was given backwards."""
    with logged():
        logger.info("%s", backwards[::-1])


@shared_task(name="flows.log_lines")
def log_lines(count: int, path: str, pause: float = 0.0, size: int = 20) -> None:
    """Log numbered lines, and write the time of each to a file first; threads log some of them."""
    with logged(), Path(path).open("a") as times, ThreadPoolExecutor(2) as others:
        for number in range(1, count + 1):
            times.write(f"{number} {time.time()}\n")
            times.flush()
            text = f"{number} {'x' * size}"
            if number % 3:
                logger.warning(text)
            else:
                others.submit(print, text).result()
            time.sleep(pause)


@shared_task(name="flows.break_with_locals")
def break_with_locals(value: str) -> None:
    """Fail where a local variable has the value backwards."""
    with logged():
        backwards = {"value": value[::-1]}
        raise LookupError(f"{len(backwards)} is not enough")


@shared_task(name="flows.hold")
def hold(path: str) -> None:
    """Keep the slot until there is a file at this path."""
    with logged():
        while not Path(path).exists():
            time.sleep(0.02)


@shared_task(name="flows.misbehave")
def misbehave(way: str, times: int = 100, n: int = 0) -> Any:
    """Misbehave in that way in the first `times` attempts; then return n."""
    with logged() as facts:
        return WAYS[way]() if facts["attempt"] <= times else n


@shared_task(
    name="flows.autoretry",
    autoretry_for=(ConnectionError,),
    max_retries=50,
    retry_backoff=True,
    retry_kwargs={"countdown": 0.1},
)
def autoretry(times: int) -> int:
    """Fail as Celery's own `autoretry_for` expects it, in the first `times` attempts."""
    with logged() as facts:
        if facts["attempt"] <= times:
            raise ConnectionError("the other side hung up")
        return int(facts["attempt"])


@shared_task(name="flows.whose")
def whose(_told: Any = None) -> list[str]:
    """Return owner and submission of its call."""
    with logged():
        facts = getattr(current_task.request, HEADER)
        return [facts["owner"], facts["submission"]]


@shared_task(name="flows.fan_out")
def fan_out(ids: list[str]) -> None:
    """Call plain tasks in every way of Celery's; those with these ids store their results."""
    with logged():
        alone, member, link, end = (whose.si().set(task_id=one, ignore_result=False) for one in ids)
        alone.apply_async(headers={"trace": "a caller's own"})
        group(member, whose.si()).delay()
        chain(whose.si(), link).delay()
        chord([whose.si().set(ignore_result=False) for _ in range(2)], end).delay()


@shared_task(name="flows.fork_on")
def fork_on(copy_raises: bool = False) -> int:
    """Fork, and continue in both processes; return the pid of the copy, which may raise."""
    with logged():
        pass
    copy = os.fork()
    if not copy and copy_raises:
        raise SystemExit("in the copy")
    return copy


@shared_task(name="flows.told")
def told(text: Any) -> Any:
    """Return its argument: the end of a link, an errback or a chord."""
    with logged():
        return text


@job(name="flows.offered")
def offered(kind: Literal["row", "no row"]) -> str:
    """Run only with a row."""
    with logged():
        return kind


@job(name="flows.offered_twice")
def offered_twice(kind: str, other: str) -> str:
    """Run only with a row; with two arguments Celery would call it in place, as an errback."""
    with logged():
        return kind + other


@shared_task(name="flows.count_owners")
def count_owners() -> int:
    """Use the database as any task does."""
    from jobs.models import Owner

    with logged():
        return Owner.objects.filter(slug="acme").count()


@shared_task(name="flows.report_progress")
def report_progress(path: str) -> None:
    """Report one step of four inside a transaction, and four when there is a file at this path."""
    run = current_run()
    with logged(), transaction.atomic():
        assert run is not None
        run.progress(1, 4, "one of four")
        run.progress(2, 4, "two of four")
        while not Path(path).exists():
            time.sleep(0.02)
        run.progress(4, 4)


@shared_task(name="flows.go_on")
def go_on(path: str) -> Any:
    """Keep a checkpoint and wait for a file; an attempt that finds a checkpoint returns it."""
    run = current_run()
    with logged():
        assert run is not None
        if run.last_checkpoint is None:
            with transaction.atomic():
                run.checkpoint({"page": 7})
                while not Path(path).exists():
                    time.sleep(0.02)
        return run.last_checkpoint


@shared_task(name="flows.stop_when_cancelled")
def stop_when_cancelled() -> None:
    """Run until it is cancelled, whatever its worker's signal says; then say so."""
    run = current_run()
    with logged():
        assert run is not None
        while True:
            try:
                if run.is_cancelled:
                    raise Cancel("asked to stop")
                time.sleep(0.02)
            except SoftTimeLimitExceeded:
                continue
