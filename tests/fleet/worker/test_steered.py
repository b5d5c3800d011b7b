"""fleet/steering.py and fleet/worker/failures.py: a task decides how its attempt ends."""

from typing import Any

import pytest

from fleet import Kind
from fleet.steering import MOST_STARTS, Cancel, Discard, Snooze, Steer
from fleet.worker import child
from tests.fleet.children import Child


def raising(steer: Any) -> Any:
    def act() -> None:
        raise steer

    return act


def returning(steer: Any) -> Any:
    def act() -> Any:
        return steer

    return act


@pytest.mark.parametrize("ending", [raising, returning])
def test_a_snooze_is_a_retry_without_an_error(pool: Child, ending: Any) -> None:
    """Raised or returned, also by a last attempt. Celery sees a retry."""
    report, error = pool.fly(ending(Snooze(90)), attempt=3)
    assert (report.kind, report.delay, report.cause) == (Kind.RETRYING, 90.0, "snoozed")
    assert (report.error_type, type(error).__name__) == ("", "Retry")


def test_a_run_is_not_snoozed_for_ever(pool: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start adds to its history: after so many, the attempt has failed."""
    monkeypatch.setattr(child, "MOST_STARTS", 4)
    report, _ = pool.fly(raising(Snooze(90)), attempt=3)
    assert (report.kind, report.error_type) == (Kind.FAILED, "SnoozedTooOften")
    assert f"{MOST_STARTS:,} times" in report.error_message


@pytest.mark.parametrize("ending", [raising, returning])
def test_a_cancel_ends_the_run(pool: Child, ending: Any) -> None:
    """Celery stores nothing: the main process announces it."""
    report, error = pool.fly(ending(Cancel("no site left")))
    assert (report.kind, report.delay) == (Kind.CANCELLED, None)
    assert (report.cause, report.error_message) == ("cancelled by its task", "no site left")
    assert type(error).__name__ == "Ignore"


@pytest.mark.parametrize("ending", [raising, returning])
def test_a_discard_fails_the_run_for_good(pool: Child, ending: Any) -> None:
    """Whatever attempts are left; Celery sees the error."""
    report, error = pool.fly(ending(Discard("the site is closed")))
    assert (report.kind, report.delay) == (Kind.FAILED, None)
    assert (report.error_type, report.error_message) == ("Discard", "the site is closed")
    assert isinstance(error, Discard)


@pytest.mark.parametrize("seconds", [0, 0.99, -1, 2_592_001, float("nan"), float("inf")])
def test_a_snooze_has_limits(seconds: float) -> None:
    """They are named."""
    with pytest.raises(ValueError, match="seconds is from 1 to 2592000"):
        Snooze(seconds)


@pytest.mark.parametrize("kind", [Cancel, Discard])
def test_a_reason_has_limits(kind: type[Steer]) -> None:
    """It is a text, and not empty."""
    for reason in ("", "x" * 501):
        with pytest.raises(ValueError, match="from 1 to 500 characters"):
            kind(reason)
    with pytest.raises(TypeError, match="reason is a text"):
        kind(None)
