"""Waiting for a condition, never for a time."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import redis

T = TypeVar("T")


def wait_for(
    condition: Callable[[], T], *, seconds: float = 15, what: str = "", every: float = 0.05
) -> T:
    """Return the condition's first true value; fails when there is none in time.

    It is tried `every` so many seconds: one that costs much takes time from what it waits for.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"Not within {seconds} s: {what or condition}")
        time.sleep(every)
    return value


def answers(client: redis.Redis) -> bool:
    """Say whether a Redis server answers."""
    with suppress(redis.ConnectionError):
        return bool(client.ping())
    return False
