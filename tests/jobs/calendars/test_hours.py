"""jobs/calendars/hours.py: what processes keep of calendars is never older, and never what was
undone.
"""

import pytest
from django.db import transaction

from jobs.calendars import hours
from jobs.calendars.changes import changing
from jobs.core.sql import now
from jobs.models import Calendar, Owner, Window
from jobs.windows import is_open
from tests.jobs.windows_world import calendar_of, freeze, window


def is_open_now(calendar: Calendar) -> bool:
    return is_open([hours.hours_of([calendar.pk])[calendar.pk]], at=now())


def test_a_change_is_seen_at_once(acme: Owner) -> None:
    """By who has read the calendar before."""
    calendar = calendar_of(acme)
    assert is_open_now(calendar)
    freeze(calendar)
    assert not is_open_now(calendar)


def test_what_was_rolled_back_is_not_kept(acme: Owner) -> None:
    """Though it was read while it was there, and the next change has its version."""
    calendar = calendar_of(acme)
    assert is_open_now(calendar)
    with transaction.atomic():
        with changing(calendar):
            window(calendar, opens_in=3_600, seconds=60)
            assert not is_open_now(calendar)
        assert not is_open_now(calendar)
        transaction.set_rollback(True)
    window(calendar, opens_in=-60, seconds=3_600)
    assert is_open_now(calendar)


def test_what_is_read_amid_a_change_is_read_again(acme: Owner) -> None:
    """A block may change more after it."""
    calendar = calendar_of(acme)
    with changing(calendar):
        assert is_open_now(calendar)
        freeze(calendar)
    assert not is_open_now(calendar)


def test_a_window_that_cannot_be_read_closes_its_calendar(acme: Owner) -> None:
    """One that raw SQL has broken; others are not concerned."""
    calendar, other = calendar_of(acme), calendar_of(acme, "other")
    broken = window(calendar, opens_in=-60, seconds=3_600)
    with changing(calendar):
        Window.objects.filter(pk=broken.pk).update(rule="FREQ=NEVER", zone="Nowhere/Else")
    assert (is_open_now(calendar), is_open_now(other)) == (False, True)


@pytest.mark.parametrize("most", [0, 1])
def test_what_is_kept_is_bounded(acme: Owner, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """And nothing that is asked for is missing for it."""
    monkeypatch.setattr(hours, "CACHE_LIMIT", most)
    ids = {calendar_of(acme, name).pk for name in ("a", "b", "c")}
    assert hours.hours_of(ids).keys() == ids
    assert hours.hours_of(ids).keys() == ids
