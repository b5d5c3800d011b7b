"""An error keeps its facts wherever it travels."""

import pickle

import pytest

from jobs.catalog.builtin.errors import CommandFailed, HttpRequestFailed, HttpRequestRefused
from jobs.core.errors import (
    ApprovalRefused,
    ArgumentError,
    FairshiftError,
    IcalError,
    IdempotencyConflict,
    OptionError,
    PayloadTooLarge,
    PermissionMissing,
    ResultError,
    RowRequired,
    ScheduleError,
    UnknownOwner,
    UnknownTask,
    WindowError,
)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ArgumentError("host", "is required"), "argument host: is required"),
        (UnknownTask("pign", "ping"), "'pign' may be submitted; did you mean 'ping'?"),
        (UnknownTask("pign"), "no task named 'pign' may be submitted; is its module imported"),
        (UnknownTask("len", is_name=False), "len is no Celery task; decorate its function with"),
        (RowRequired("ping"), "task 'ping' runs only with a row: use submit()"),
        (PayloadTooLarge(300_000, 262_144), "at least 300,000 bytes, the limit is 262,144"),
        (OptionError("priority", "is from 0 to 9"), "option priority: is from 0 to 9"),
        (ScheduleError("cron", "has 6 fields"), "schedule, cron: has 6 fields"),
        (WindowError("duration", "is too long"), "window, duration: is too long"),
        (ApprovalRefused("nights", "four eyes"), "calendar 'nights': four eyes"),
        (IcalError(7, "is not UTF-8", (9, "too")), "line 7: is not UTF-8; line 9: too"),
        (UnknownOwner("acme"), "no owner 'acme'"),
        (PermissionMissing("jobs.view_run", is_token=True), "view_run of the token's maker"),
        (IdempotencyConflict("k-1"), "'k-1' was used with"),
        (ResultError("too large"), "cannot be kept: too large"),
        (HttpRequestFailed("GET x", "answered 503", 5.0), "GET x: answered 503; asked to wait 5 s"),
        (HttpRequestRefused("GET x", "answered 404"), "GET x: answered 404"),
        (CommandFailed("clean", "failed", "line"), "command clean: failed\nline"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, FairshiftError) else "",
)
def test_an_error_survives_pickling(error: FairshiftError, text: str) -> None:
    """What a pool's child raises reaches its parent as it was, facts and text."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
    assert text in str(copy)
