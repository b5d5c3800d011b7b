"""Whether and when a failed attempt is followed by another: by the run's policy, then settings."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobs.core.conf import setting

LOST: Final = "WorkerLostError"
"""The error type of an attempt whose worker, or process of its pool, was lost."""

LONGEST: Final = 30 * 86_400.0
"""The longest delay in seconds: the result must be a valid date."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How a run is tried again. Spans are in seconds.

    `retry_on` and `give_up_on` are names of exception classes, with or without their module; a
    subclass matches its parent's name. An empty `retry_on` means any error; `give_up_on` wins.
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

    Doubles from `backoff_seconds` up to the cap; jitter picks a point between half and the whole
    ("equal jitter", Brooker, AWS Architecture Blog 2015).
    """
    # 2 ** 60 exceeds any cap; a larger exponent would overflow a float.
    full = min(policy.backoff_cap_seconds, policy.backoff_seconds * 2.0 ** min(attempt - 1, 60))
    return full * (0.5 + rand() / 2)


def gives_up(
    *, attempt: int, max_attempts: int, give_up_on: Collection[str], names: Sequence[str]
) -> bool:
    """Say whether this attempt was the last, or failed with an error of `give_up_on`."""
    return attempt >= max_attempts or not set(give_up_on).isdisjoint(names)


def retry_delay(
    policy: RetryPolicy,
    *,
    attempt: int,
    names: Sequence[str],
    wanted: float | None = None,
    rand: Callable[[], float] = random.random,
) -> float | None:
    """Return the seconds until the next attempt, or None if there is none.

    `names` are the error's class names; `wanted` replaces the back-off (a Retry-After).
    """
    most, give_up_on = policy.max_attempts, policy.give_up_on
    if gives_up(attempt=attempt, max_attempts=most, give_up_on=give_up_on, names=names):
        return None
    # A lost worker is not the task's error, so `retry_on` does not apply.
    narrowed = policy.retry_on and LOST not in names
    if narrowed and set(policy.retry_on).isdisjoint(names):
        return None
    if wanted is not None:
        # The constant first: `max` keeps it if the other is NaN.
        return min(LONGEST, max(0.0, wanted))
    return backoff(policy, attempt=attempt, rand=rand)


def delay_after(
    policy: Mapping[str, Any], attempt: int, names: Sequence[str], wanted: float | None
) -> float | None:
    """Return `retry_delay` for the policy of a run's row, with its `max_attempts`."""
    complete = RetryPolicy(
        max_attempts=policy["max_attempts"],
        backoff_seconds=policy.get("backoff_seconds", setting("BACKOFF_SECONDS")),
        backoff_cap_seconds=policy.get("backoff_cap_seconds", setting("BACKOFF_CAP_SECONDS")),
        retry_on=tuple(policy.get("retry_on", ())),
        give_up_on=tuple(policy.get("give_up_on", ())),
    )
    return retry_delay(complete, attempt=attempt, names=names, wanted=wanted)


def is_last(policy: Mapping[str, Any], attempt: int) -> bool:
    """Say whether no attempt follows if this one's worker is lost."""
    give_up_on = policy.get("give_up_on", ())
    return gives_up(
        attempt=attempt, max_attempts=policy["max_attempts"], give_up_on=give_up_on, names=(LOST,)
    )
