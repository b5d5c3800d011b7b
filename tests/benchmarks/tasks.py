"""Tasks that benchmarks call, on both sides; the harness reads what they leave behind."""

import logging
import os
import time
from functools import cache

from celery import shared_task
from redis import Redis

from tests.benchmarks.servers import COUNTER, client

logger = logging.getLogger(__name__)


@shared_task(name="bench.count")
def count() -> None:
    """Add one to the counter in Redis."""
    _redis().incr(COUNTER)


@shared_task(name="bench.say")
def say() -> None:
    """Do what `count` does, and log a line."""
    logger.info("one more is counted, of %s", COUNTER)
    _redis().incr(COUNTER)


@shared_task(name="bench.work")
def work(owner: str, seconds: float = 0.0, number: int = 0, lines: int = 0) -> None:
    """Take `seconds`, log some lines, and write down the owner and the times."""
    began = time.monotonic()
    for line in range(lines):
        logger.info("line %d of %s", line, owner)
    if seconds:
        time.sleep(seconds)
    _write(f"{owner} {number} {began:.6f} {time.monotonic():.6f}\n")


@cache
def _redis() -> Redis:
    return client(os.environ["REDIS_URL"])


@cache
def _log() -> int:
    return os.open(os.environ["BENCH_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def _write(line: str) -> None:
    os.write(_log(), line.encode())  # one call: lines of several processes do not mix
