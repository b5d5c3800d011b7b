"""jobs/calendars/approvals.py: who may agree to what, until when, and what it opens."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.calendars.approvals import approve, reject, revoke
from jobs.calendars.windows import request_window
from jobs.core.errors import ApprovalRefused, OptionError
from jobs.core.sql import now
from jobs.models import AuditEntry, Calendar, Opening, Owner, Window, WindowDecision
from tests.jobs.windows_world import approver, calendar_of

HOUR = timedelta(hours=1)
NAIVE = datetime.fromisoformat("2036-01-01")


@pytest.fixture
def start() -> datetime:
    """The start of the first occurrence of `daily`."""
    return (now() + timedelta(days=1)).replace(microsecond=0)


@pytest.fixture
def daily(acme: Owner, anna: User, start: datetime) -> Window:
    """An hour each day from tomorrow on, asked for by anna."""
    return request_window(
        calendar_of(acme, needs_approval=True),
        starts=start.replace(tzinfo=None),
        duration=HOUR,
        zone="UTC",
        rule="FREQ=DAILY",
        actor=anna,
    )


def opened(window: Window) -> list[datetime]:
    """Return when its calendar opens, in the next days."""
    rows = Opening.objects.filter(calendar=window.calendar).order_by("opens_at")
    return [row.opens_at for row in rows[:3]]


def test_a_window_opens_once_it_is_approved(daily: Window, ben: User, start: datetime) -> None:
    """All its occurrences, and the decision is kept, with who and why, and audited."""
    assert opened(daily) == []
    made = approve(daily, actor=ben, reason="as agreed")
    assert opened(daily)[:2] == [start, start + 24 * HOUR]
    assert (made.decision, made.actor_name, made.revision) == ("approved", "ben", 1)
    entry = AuditEntry.objects.get(action="approve window")
    assert (entry.actor, entry.owner, entry.reason) == (ben, daily.calendar.owner, "as agreed")


def test_one_occurrence_is_approved_alone(daily: Window, ben: User, start: datetime) -> None:
    """And one may be revoked of all that are approved."""
    approve(daily, actor=ben, occurrence_at=start + 24 * HOUR)
    assert opened(daily) == [start + 24 * HOUR]
    approve(daily, actor=ben)
    revoke(daily, actor=ben, occurrence_at=start)
    assert opened(daily)[:2] == [start + 24 * HOUR, start + 48 * HOUR]
    reject(daily, actor=ben)
    assert opened(daily) == []


def test_who_asked_does_not_approve(daily: Window, anna: User) -> None:
    """Not even a superuser; but may take back, and where two eyes do, agree."""
    anna.is_superuser = True
    anna.save()
    with pytest.raises(ApprovalRefused, match="four eyes: anna has asked for this window"):
        approve(daily, actor=anna)
    revoke(daily, actor=anna)
    Calendar.objects.update(four_eyes=False)
    approve(Window.objects.get(), actor=anna)
    assert opened(daily)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"occurrence_at": NAIVE}, "occurrence_at: is a datetime with a time zone"),
        ({"expires_at": NAIVE}, "expires_at: is a datetime with a time zone"),
        ({"reason": "x" * 501}, "reason: is text of at most 500"),
        ({"reason": "\ud800"}, "reason: holds a lone surrogate"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    daily: Window, ben: User, fields: dict[str, Any], problem: str
) -> None:
    """By its field, and nothing is decided."""
    with pytest.raises(OptionError, match=problem):
        approve(daily, actor=ben, **fields)
    assert not daily.decisions.exists()


def test_times_that_decide_nothing_are_refused(daily: Window, ben: User, start: datetime) -> None:
    """An expiry that has passed, or before the occurrence; a start of none, naming the next."""
    with pytest.raises(OptionError, match="expires_at: is in the past"):
        approve(daily, actor=ben, expires_at=now() - HOUR)
    with pytest.raises(OptionError, match="not after the occurrence's start"):
        approve(daily, actor=ben, occurrence_at=start, expires_at=start)
    with pytest.raises(OptionError, match=f"the next one starts {start + 24 * HOUR:%Y-%m-%d %H}"):
        approve(daily, actor=ben, occurrence_at=start + HOUR)


@pytest.mark.parametrize("decide", [approve, reject, revoke])
def test_nobody_else_decides(daily: Window, ben: User, northwind: Owner, decide: Any) -> None:
    """In Python as in the admin: the verb says what it takes, and nothing is kept."""
    takes = "takes the permission jobs.approve_window, and the role approver or admin at acme"
    with pytest.raises(ApprovalRefused, match=takes):
        decide(daily, actor=approver("stranger", northwind))
    for nobody in ("ben", None, 5):
        with pytest.raises(OptionError, match="actor: is the user or token that decides, not "):
            decide(daily, actor=nobody)
    Calendar.objects.update(owner=None)
    with pytest.raises(ApprovalRefused, match=r"ben may not .* takes a superuser"):
        decide(Window.objects.get(), actor=ben)
    assert not WindowDecision.objects.exists()
