"""jobs/catalog/retry_policy.py: how often and after which delay a failed attempt is tried again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from jobs.catalog.retry_policy import (
    LONGEST,
    LOST,
    RetryPolicy,
    backoff,
    delay_after,
    retry_delay,
)

NAMES = ("Timeout", "lab.Timeout", "OSError", "builtins.OSError")
attempts = st.integers(1, 10_000)
seconds = st.floats(0, 30 * 86_400)
random = st.floats(0, 1, exclude_max=True)


def a_policy(**chosen: Any) -> RetryPolicy:
    """Return a policy of three attempts, unlike where it says so."""
    numbers = {"max_attempts": 3, "backoff_seconds": 2.0, "backoff_cap_seconds": 600.0}
    return RetryPolicy(**{**numbers, **chosen})


@given(attempts, seconds, seconds, random)
def test_the_backoff_stays_under_its_cap(
    attempt: int, base: float, cap: float, point: float
) -> None:
    """Whatever the attempt: never negative, never above the cap, at least half without luck."""
    policy = a_policy(backoff_seconds=base, backoff_cap_seconds=cap)
    full = backoff(policy, attempt=attempt, rand=lambda: 1.0)
    delay = backoff(policy, attempt=attempt, rand=lambda: point)
    assert 0 <= full / 2 <= delay <= full <= cap


@given(attempts, st.integers(1, 100))
def test_attempts_are_bounded(attempt: int, most: int) -> None:
    """There is a next attempt exactly until `max_attempts` are spent."""
    delay = retry_delay(a_policy(max_attempts=most), attempt=attempt, names=NAMES)
    assert (delay is not None) == (attempt < most)


@pytest.mark.parametrize(
    ("retry_on", "give_up_on", "is_retried"),
    [
        ((), (), True),
        (("OSError",), (), True),
        (("builtins.OSError",), (), True),
        (("ValueError",), (), False),
        ((), ("lab.Timeout",), False),
        (("OSError",), ("Timeout",), False),
        ((), ("ValueError",), True),
    ],
)
def test_errors_are_matched_by_the_names_of_their_classes(
    retry_on: tuple[str, ...], give_up_on: tuple[str, ...], is_retried: bool
) -> None:
    """With or without module, own or a parent's; giving up wins."""
    policy = a_policy(retry_on=retry_on, give_up_on=give_up_on)
    assert (retry_delay(policy, attempt=1, names=NAMES) is not None) == is_retried


def test_a_lost_worker_is_no_error_of_the_task() -> None:
    """`retry_on` has no say in it, `give_up_on` and the attempts have."""
    narrow = a_policy(retry_on=("ValueError",))
    assert retry_delay(narrow, attempt=1, names=[LOST]) is not None
    assert retry_delay(narrow, attempt=3, names=[LOST]) is None
    assert retry_delay(a_policy(give_up_on=(LOST,)), attempt=1, names=[LOST]) is None


@given(st.floats())
def test_a_wanted_delay_stands_in_for_the_backoff(wanted: float) -> None:
    """It is kept inside what a row can hold: a Retry-After is another machine's word."""
    delay = retry_delay(a_policy(), attempt=1, names=NAMES, wanted=wanted)
    assert delay is not None
    assert 0 <= delay <= LONGEST
    if 0 <= wanted <= LONGEST:
        assert delay == wanted


@pytest.mark.parametrize(
    ("policy", "attempt", "low", "high"),
    [
        ({}, 1, 4, 8),
        ({}, 9, 10, 20),
        ({"backoff_seconds": 100.0}, 1, 10, 20),
        ({"backoff_seconds": 100.0, "backoff_cap_seconds": 60.0}, 1, 30, 60),
        ({"backoff_seconds": 0.0}, 1, 0, 0),
    ],
)
def test_the_settings_complete_the_policy(
    settings: Settings, policy: dict[str, Any], attempt: int, low: float, high: float
) -> None:
    """With jitter, the delay lies in the upper half of what the back-off says."""
    settings.FAIRSHIFT = {"BACKOFF_SECONDS": 8.0, "BACKOFF_CAP_SECONDS": 20.0}
    delay = delay_after({"max_attempts": 10, **policy}, attempt, ["ValueError"], None)
    assert delay is not None
    assert low <= delay <= high
