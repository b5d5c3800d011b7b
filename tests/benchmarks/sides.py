"""The two sides of a comparison: the same tasks, once on stock Celery and once on Fairshift."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from celery import Celery

from jobs.management.stack.programs import job_worker
from jobs.management.stack.stack import Program


@dataclass(frozen=True)
class Side:
    """An app to publish with, its queue, and the command of a worker with this many slots."""

    name: str
    app: Celery
    queue: str
    program: Callable[[str, int], Program]


def stock() -> Side:
    """Return stock Celery at its best."""
    from tests.benchmarks.stock import QUEUE, app

    return Side("stock", app, QUEUE, stock_program)


QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")


def stock_program(name: str, slots: int, *, options: Sequence[str] = QUIET) -> Program:
    """Return a worker of stock Celery."""
    command = [sys.executable, "-m", "celery", "--app", "tests.benchmarks.stock", "worker"]
    given = ["--hostname", f"{name}@%h", "--queues", "stock", "--loglevel", "WARNING"]
    given += ["--pool", "prefork", "--concurrency", str(slots), *options]
    # Celery would take stock Celery for a part of the Django project, and slow it down.
    return Program(name, [*command, *given], environment={"DJANGO_SETTINGS_MODULE": ""})


def fair() -> Side:
    """Return Fairshift as it is shipped: the project's settings, the stack's own worker."""
    from config.celery import app

    return Side("fair", app, "jobs", lambda name, slots: job_worker(name, slots=slots))
