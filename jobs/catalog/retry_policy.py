"""May a failed attempt be tried again, and when? The run's own policy first, then the settings."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobs.core.conf import setting

LOST: Final = "WorkerLostError"
"""The name of the error that stands for a worker, or a process of its pool, that is gone."""

LONGEST: Final = 30 * 86_400.0
"""Seconds. No delay is longer, whoever asks for it: it must fit into a date."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How a run is tried again. Spans are in seconds.

    `retry_on` and `give_up_on` hold names of exception classes, with or without their
    module; a subclass matches by its parent's name. An empty `retry_on` means any error;
    `give_up_on` wins. The defaults of the numbers are settings (`jobs/core/conf.py`).
    """

    max_attempts: int
    backoff_seconds: float
    backoff_cap_seconds: float
    retry_on: tuple[str, ...] = ()
    give_up_on: tuple[str, ...] = ()


def backoff(
    policy: RetryPolicy, *, attempt: int, rand: Callable[[], float] = random.random
) -> float:
    """Return the seconds to wait after the given attempt (1 is the first) has failed.

    Doubles from `backoff_seconds` up to the cap; jitter takes a point between half
    and the whole ("equal jitter", Brooker, AWS Architecture Blog 2015).
    """
    # 2 ** 60 seconds is past any cap; a larger exponent would overflow a float.
    full = min(policy.backoff_cap_seconds, policy.backoff_seconds * 2.0 ** min(attempt - 1, 60))
    return full * (0.5 + rand() / 2)


def gives_up(
    *, attempt: int, max_attempts: int, give_up_on: Collection[str], names: Sequence[str]
) -> bool:
    """Say whether this attempt was the last, or its error is one after which none follows."""
    return attempt >= max_attempts or not set(give_up_on).isdisjoint(names)


def retry_delay(
    policy: RetryPolicy,
    *,
    attempt: int,
    names: Sequence[str],
    wanted: float | None = None,
    rand: Callable[[], float] = random.random,
) -> float | None:
    """Return the seconds until the next attempt, or None when the run has failed for good.

    `names` are the error's class names; `wanted` is a delay that the task itself or the
    other side asked for (a countdown, a Retry-After), which stands in for the back-off.
    """
    most, give_up_on = policy.max_attempts, policy.give_up_on
    if gives_up(attempt=attempt, max_attempts=most, give_up_on=give_up_on, names=names):
        return None
    # A lost worker is not the task's error, so `retry_on` has no say in it.
    narrowed = policy.retry_on and LOST not in names
    if narrowed and set(policy.retry_on).isdisjoint(names):
        return None
    if wanted is not None:
        # The constant first: it is what `max` keeps when the other one is NaN.
        return min(LONGEST, max(0.0, wanted))
    return backoff(policy, attempt=attempt, rand=rand)


def delay_after(
    policy: Mapping[str, Any], attempt: int, names: Sequence[str], wanted: float | None
) -> float | None:
    """Return the seconds until the next attempt of a run, or None when it has failed for good.

    `policy` is what the run's row holds, with its `max_attempts`; `names` are those of the
    error's classes; `wanted` is a delay that the task asked for.
    """
    complete = RetryPolicy(
        max_attempts=policy["max_attempts"],
        backoff_seconds=policy.get("backoff_seconds", setting("BACKOFF_SECONDS")),
        backoff_cap_seconds=policy.get("backoff_cap_seconds", setting("BACKOFF_CAP_SECONDS")),
        retry_on=tuple(policy.get("retry_on", ())),
        give_up_on=tuple(policy.get("give_up_on", ())),
    )
    return retry_delay(complete, attempt=attempt, names=names, wanted=wanted)


def is_last(policy: Mapping[str, Any], attempt: int) -> bool:
    """Say whether a run has failed for good when this attempt's worker is lost."""
    give_up_on = policy.get("give_up_on", ())
    return gives_up(
        attempt=attempt, max_attempts=policy["max_attempts"], give_up_on=give_up_on, names=(LOST,)
    )
