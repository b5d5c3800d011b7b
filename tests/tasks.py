"""Tasks for scenes. Each notes its start and its end in the log at JUDGE_LOG, when that is set."""

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from celery import current_task, shared_task
from celery.exceptions import SoftTimeLimitExceeded

from tests.judge.log import TaskLog, clocks_now


@contextmanager
def logged() -> Iterator[dict[str, Any]]:
    """Note start and end of the running task; yield its run, attempt and token.

    Outside of a durable run these are None, and the attempt is Celery's own count.
    """
    began = clocks_now()
    from jobs.catalog.context import current_run

    context = current_run()
    retries = (current_task.request.retries or 0) if current_task else 0
    facts = {
        "run": str(context.run_id) if context else None,
        "attempt": context.attempt if context else retries + 1,
        "token": context.token if context else None,
    }
    path = os.environ.get("JUDGE_LOG")
    if not path:
        yield facts
        return
    log, name = TaskLog(path), current_task.name if current_task else ""
    log.start(**facts, task=name, clocks=began)
    try:
        yield facts
    # SystemExit and its like end a body too.
    except BaseException as error:
        log.end(**facts, task=name, outcome=f"raised {type(error).__name__}")
        raise
    log.end(**facts, task=name, outcome="returned")


@shared_task(name="tests.record")
def record(n: int, seconds: float = 0) -> dict[str, Any]:
    """Take `seconds`; return n, and the token by which the judge knows the attempt."""
    with logged() as facts:
        time.sleep(seconds)
        return {"n": n, "token": facts["token"], "attempt": facts["attempt"]}


@shared_task(name="tests.record_apart")
def record_apart(n: int, seconds: float) -> dict[str, Any]:
    """Do what `record` does; its run time is unknown to workers, so it is never queued ahead."""
    return record.run(n, seconds)


@shared_task(name="tests.fail")
def fail(times: int) -> dict[str, Any]:
    """Raise in the first `times` attempts, then succeed."""
    with logged() as facts:
        if facts["attempt"] <= times:
            raise ValueError(f"attempt {facts['attempt']} of {times} that fail")
        return {"token": facts["token"], "attempt": facts["attempt"]}


class UnpicklableError(Exception):
    """Cannot leave the process: it holds a lock."""

    def __init__(self) -> None:
        super().__init__("holds a lock", threading.Lock())


class UnloadableError(Exception):
    """Can be pickled but not loaded: its constructor wants another number of arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


class SpeechlessError(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("this exception has no text")

    __repr__ = __str__


def _exit() -> NoReturn:
    os._exit(1)


def _segfault() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)


ERRORS: dict[str, Callable[[], BaseException]] = {
    "value_error": lambda: ValueError("the device said no"),
    "system_exit": lambda: SystemExit(3),
    "keyboard_interrupt": KeyboardInterrupt,
    "unpicklable": UnpicklableError,
    "unloadable": lambda: UnloadableError("one", "two"),
    "one_megabyte": lambda: ValueError("x" * 1_000_000),
    "speechless": SpeechlessError,
}
DEATHS: dict[str, Callable[[], None]] = {"exit": _exit, "segv": _segfault}


@shared_task(name="tests.sleep")
def sleep(seconds: float, ignore_soft: bool = False) -> dict[str, Any]:
    """Take `seconds`, with `ignore_soft` also past the soft time limit."""
    with logged() as facts:
        ends_at = time.monotonic() + seconds
        while (left := ends_at - time.monotonic()) > 0:
            try:
                time.sleep(left)
            except SoftTimeLimitExceeded:
                if not ignore_soft:
                    raise
        return {"token": facts["token"]}


def _circular() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


RESULTS: dict[str, Callable[[], Any]] = {
    "set": lambda: {1, 2, 3},
    "object": object,
    "nan": lambda: float("nan"),
    "huge": lambda: "x" * 10_000_000,
    "circular": _circular,
}


@shared_task(name="tests.break_transaction")
def break_transaction() -> str:
    """Return with a transaction left open on Django's connection, in which a statement failed."""
    from django.db import DatabaseError, connection, transaction

    with logged():
        transaction.set_autocommit(False)
        try:
            connection.cursor().execute("SELECT 1 / 0")
        except DatabaseError as error:
            return type(error).__name__
        raise AssertionError("PostgreSQL divided by zero")


@shared_task(name="tests.close_connection")
def close_connection() -> None:
    """Close the database connection behind Django's back."""
    from django.db import connection

    with logged():
        connection.ensure_connection()
        connection.connection.close()


@shared_task(name="tests.fork_child")
def fork_child() -> int:
    """Fork, let the child leave at once, and return its exit status."""
    with logged():
        child = os.fork()
        if child == 0:
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@shared_task(name="tests.add")
def add(x: int, y: int) -> int:
    """Return the sum of two numbers."""
    with logged():
        return x + y


@shared_task(name="tests.echo")
def echo(text: str, fails: bool = False) -> str:
    """Return the text, or raise an error with it."""
    with logged():
        if fails:
            raise ValueError(text)
        return text


@shared_task(name="tests.total", ignore_result=False)
def total(numbers: list[int]) -> int:
    """Return the sum of any number of numbers: the end of a chord."""
    with logged():
        return sum(numbers)
