"""Waiting for a condition, never for a time."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import redis

SLOWEST: Final = 10
"""How many times slower than usual a machine may be before a limit fails a test."""

T = TypeVar("T")


def wait_for(
    condition: Callable[[], T], *, seconds: float = 15, what: str = "", every: float = 0.05
) -> T:
    """Return the condition's first true value; fails when there is none in time.

    `seconds` is the limit on a machine of usual speed; a slow one has SLOWEST times as long. The
    condition is tried every `every` seconds: one that costs much takes time from what it waits for.
    """
    deadline = time.monotonic() + SLOWEST * seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"Not within {SLOWEST * seconds} s: {what or condition}")
        time.sleep(every)
    return value


def stays_false(condition: Callable[[], object], *, seconds: float, every: float = 0.05) -> bool:
    """Say whether a condition is false for as long as `seconds`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return False
        time.sleep(every)
    return True


def answers(client: redis.Redis) -> bool:
    """Say whether a Redis server answers."""
    with suppress(redis.ConnectionError):
        return bool(client.ping())
    return False
