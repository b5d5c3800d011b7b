"""jobs/calendars/windows.py: asked for, changed, removed: checked, audited, and asked for again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.calendars.approvals import approve, reject, revoke
from jobs.calendars.changes import changing
from jobs.calendars.windows import change_window, delete_window, request_window
from jobs.core.errors import ApprovalRefused, OptionError
from jobs.core.sql import now
from jobs.models import ApiToken, AuditEntry, Calendar, Opening, Owner, Window, WindowDecision
from jobs.owners.tokens import make_token
from tests.jobs.windows_world import approver, calendar_of

NIGHTS: dict[str, Any] = {
    "starts": datetime.fromisoformat("2026-01-03 22:00"),
    "duration": timedelta(hours=8),
    "zone": "Europe/Berlin",
    "rule": "FREQ=DAILY",
}


@pytest.fixture
def nights(acme: Owner) -> Calendar:
    """A calendar whose windows need approval."""
    return calendar_of(acme, needs_approval=True)


def is_agreed(window: Window) -> bool:
    return Opening.objects.filter(calendar=window.calendar).exists()


def test_a_window_is_stored_as_it_was_checked(nights: Calendar, anna: User) -> None:
    """By the clock, as text, in one way to be written; who asked for it stands beside."""
    made = request_window(nights, **{**NIGHTS, "rule": "freq=daily"}, reason="quiet", actor=anna)
    made.refresh_from_db()
    assert (made.starts, made.duration_seconds, made.rule) == (
        "2026-01-03T22:00:00",
        28_800,
        "FREQ=DAILY",
    )
    assert (made.effect, made.revision, made.requested_by) == ("window", 1, anna)
    entry = AuditEntry.objects.get(action="request window")
    assert (entry.actor, entry.owner, entry.reason) == (anna, nights.owner, "quiet")
    assert entry.details["after"]["rule"] == "FREQ=DAILY"


@pytest.mark.parametrize(
    "fields",
    [
        {"duration": timedelta(hours=9)},
        {"zone": "UTC"},
        {"added": (datetime.fromisoformat("2026-01-04 12:00"),)},
    ],
    ids=str,
)
def test_a_change_that_may_open_more_needs_a_new_approval(
    nights: Calendar, anna: User, ben: User, fields: dict[str, Any]
) -> None:
    """An approval of what it was does not count, and who changed it is who asked."""
    window = request_window(nights, **NIGHTS, actor=ben)
    approve(window, actor=anna)
    assert is_agreed(window)
    changed = change_window(window, actor=anna, **fields)
    assert (changed.revision, changed.requested_by) == (2, anna)
    assert not is_agreed(window)
    assert AuditEntry.objects.get(action="change window").details["approval"] == "asked again"
    approve(changed, actor=ben)
    assert is_agreed(window)


def test_all_who_wrote_an_unapproved_request_are_its_requesters(
    acme: Owner, nights: Calendar, anna: User, ben: User
) -> None:
    """Who asked first may not approve what another one made of it, nor by a token."""
    cora = approver("cora", acme)
    window = request_window(nights, **NIGHTS, actor=anna)
    changed = change_window(window, actor=ben, duration=timedelta(hours=9))
    changed = change_window(changed, actor=ben, duration=timedelta(hours=10))
    robot = make_token("robot", scopes=["approve"], owner=acme).token
    ApiToken.objects.filter(pk=robot.pk).update(created_by=anna, has_maker=True)
    robot = ApiToken.objects.get()
    for one in (anna, ben, robot):
        with pytest.raises(ApprovalRefused, match="four eyes"):
            approve(changed, actor=one)
    approve(changed, actor=cora)
    assert is_agreed(window)
    # What was approved is no request any more: only the next change is.
    changed = change_window(changed, actor=cora, duration=timedelta(hours=11))
    approve(changed, actor=anna)
    assert is_agreed(window)


@pytest.mark.parametrize(
    "fields",
    [
        {"duration": timedelta(hours=7)},
        {"excluded": [datetime.fromisoformat("2026-01-04 22:00")]},
        {"valid_until": datetime.now(UTC) + timedelta(days=20)},
        {"rule": "FREQ=DAILY;COUNT=5000"},
    ],
    ids="-".join,
)
def test_a_change_that_only_narrows_keeps_its_approval(
    nights: Calendar, anna: User, ben: User, fields: dict[str, Any]
) -> None:
    """It holds at once, and the audit says so; to take it back needs a new approval."""
    window = request_window(nights, **NIGHTS, actor=anna)
    approve(window, actor=ben)
    changed = change_window(window, actor=ben, **fields)
    assert (changed.revision, changed.requested_by, is_agreed(window)) == (1, anna, True)
    entry = AuditEntry.objects.get(action="change window")
    assert entry.actor == ben
    assert entry.details["approval"] == "unchanged: the change only narrows the window"
    given = {**NIGHTS, "excluded": (), "valid_until": None}
    assert change_window(window, actor=ben, **given).revision == 2
    assert not is_agreed(window)


@pytest.mark.parametrize("decision", [None, reject, revoke])
def test_what_is_narrowed_without_an_approval_has_none(
    nights: Calendar, anna: User, ben: User, decision: Any
) -> None:
    """It is asked for as it is now, by the person who changed it."""
    window = request_window(nights, **NIGHTS, actor=ben)
    if decision is not None:
        decision(window, actor=anna)
    changed = change_window(window, actor=anna, duration=timedelta(hours=7))
    assert (changed.revision, changed.requested_by, is_agreed(window)) == (2, anna, False)


def test_one_occurrence_stays_approved_or_revoked_when_a_window_is_narrowed(
    nights: Calendar, anna: User, ben: User
) -> None:
    """Decisions on one go by its start; if that changes, it needs a new approval."""
    window = request_window(nights, **NIGHTS, actor=anna)
    approve(window, actor=ben)
    gone = Opening.objects.filter(calendar=nights, opens_at__gt=now()).earliest("opens_at").opens_at
    revoke(window, actor=ben, occurrence_at=gone)
    change_window(window, actor=anna, duration=timedelta(hours=7))
    openings = Opening.objects.filter(calendar=nights)
    assert openings.exists() and not openings.filter(opens_at=gone).exists()
    later = datetime.fromisoformat("2026-01-03 23:00")
    changed = change_window(window, actor=anna, starts=later, duration=timedelta(hours=6))
    assert (changed.revision, is_agreed(window)) == (2, False)


def test_a_window_is_removed_with_its_decisions(nights: Calendar, anna: User, ben: User) -> None:
    """The audit keeps what it was; removing it twice is harmless."""
    window = request_window(nights, **NIGHTS, actor=anna)
    approve(window, actor=ben)
    other = request_window(nights, **NIGHTS)
    delete_window(window, actor=anna, reason="moved")
    delete_window(window, actor=anna, reason="moved")
    assert Window.objects.get() == other
    assert not WindowDecision.objects.exists()
    entry = AuditEntry.objects.get(action="delete window")
    assert (entry.reason, entry.details["before"]["rule"]) == ("moved", "FREQ=DAILY")


def test_the_last_window_is_not_removed(nights: Calendar) -> None:
    """Nobody has agreed to a calendar that is always open; nothing is changed."""
    window = request_window(nights, **NIGHTS)
    with pytest.raises(OptionError, match="the last one of calendar 'nights'"):
        delete_window(window)
    with pytest.raises(OptionError, match="the last one of calendar 'nights'"):
        change_window(window, effect="freeze")
    assert Window.objects.get().effect == "window"
    with changing(nights):
        delete_window(window)
        request_window(nights, **NIGHTS)
    assert Window.objects.get() != window
