"""jobs/calendars/ical_feed.py and jobs/pages/ical_feed.py: what a calendar program is shown, and
to whom.
"""

from datetime import UTC, datetime, timedelta

import icalendar
import pytest
import recurring_ical_events
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from jobs import submit
from jobs.calendars import approvals
from jobs.calendars.hours import entry_of
from jobs.calendars.ical_feed import feed, forget_secret, new_secret
from jobs.calendars.ical_import import import_ical
from jobs.core.sql import now
from jobs.models import AuditEntry, Calendar, Owner, Window
from jobs.windows import CalendarHours, occurrences, open_spans
from tests.jobs.calendars.ical.samples import SAMPLES
from tests.jobs.windows_world import calendar_of, freeze, window

pytestmark = pytest.mark.django_db

START, END = datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 8, 1, tzinfo=UTC)


def shown(content: bytes) -> list[icalendar.Event]:
    """Return the entries of a feed, as another program reads them."""
    read = icalendar.Calendar.from_ical(content)
    assert isinstance(read, icalendar.Calendar)
    return list(read.events)


def summaries(content: bytes) -> list[str]:
    return [str(one["SUMMARY"]) for one in shown(content)]


def of_day(calendar: Calendar) -> bytes:
    """Return the feed of a calendar for two days around now."""
    return feed(calendar, start=now() - timedelta(days=1), end=now() + timedelta(days=1))


def statuses(calendar: Calendar) -> list[str]:
    return [str(one["STATUS"]) for one in shown(of_day(calendar))]


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_another_program_sees_what_counts(acme: Owner, sample: str) -> None:
    """A file is imported and its feed read by recurring-ical-events: the same occurrences."""
    hours = calendar_of(acme)
    import_ical(hours, SAMPLES[sample].encode(), effect="window", source=sample)
    read = icalendar.Calendar.from_ical(feed(hours, start=START, end=END))
    assert isinstance(read, icalendar.Calendar)
    theirs = recurring_ical_events.of(read).between(START, END)
    ours = [
        (span.start, span.end)
        for row in Window.objects.all()
        for span in occurrences(entry_of(row), start=START, end=END)
    ]
    assert sorted((one["DTSTART"].dt, one["DTEND"].dt) for one in theirs) == sorted(ours)
    assert ours
    again = feed(hours, start=START, end=END)
    assert again == feed(hours, start=START, end=END)


def test_a_feed_can_be_imported_again(acme: Owner, northwind: Owner) -> None:
    """It opens another calendar at the same times."""
    hours, other = calendar_of(acme), calendar_of(northwind)
    import_ical(hours, SAMPLES["google"].encode(), effect="window", source="google")
    import_ical(other, feed(hours, start=START, end=END), effect="window", source="feed")
    ours, theirs = (
        open_spans([CalendarHours(tuple(map(entry_of, one.windows.all())))], start=START, end=END)
        for one in (hours, other)
    )
    assert ours == theirs and ours


def test_what_is_agreed_to_is_told_apart(acme: Owner) -> None:
    """Nobody has agreed: tentative; no: cancelled; a freeze needs nobody."""
    hours = calendar_of(acme, needs_approval=True, four_eyes=False)
    root = User.objects.create_superuser("root")
    one = window(hours, opens_in=60, seconds=60, reason="patches")
    assert statuses(hours) == ["TENTATIVE"]
    approvals.approve(one, actor=root)
    assert statuses(hours) == ["CONFIRMED"]
    approvals.revoke(one, actor=root)
    assert statuses(hours) == ["CANCELLED"]
    approvals.approve(one, actor=root, expires_at=now() + timedelta(seconds=30))
    assert statuses(hours) == ["TENTATIVE"]
    freeze(hours)
    [closed, _] = shown(of_day(hours))
    assert [str(closed[name]) for name in ("SUMMARY", "STATUS", "TRANSP")] == [
        "Freeze",
        "CONFIRMED",
        "OPAQUE",
    ]
    assert summaries(of_day(hours))[1] == "Service window: patches"


def test_runs_that_wait_are_a_number(acme: Owner, northwind: Owner) -> None:
    """At their opening, and nothing of what they are; another owner's are not counted."""
    hours = calendar_of(acme)
    one = window(hours, opens_in=3_600, seconds=3_600)
    window(calendar_of(northwind), opens_in=3_600, seconds=3_600)
    for number in range(3):
        submit("tests.add", 4_711, number, owner="acme", labels={"site": "secret"})
    submit("tests.add", 1, 2, owner="northwind")
    content = of_day(hours)
    assert sorted(summaries(content)) == ["3 runs planned", "Service window"]
    [runs] = [one for one in shown(content) if "planned" in one["SUMMARY"]]
    assert runs["DTSTART"].dt == datetime.fromisoformat(one.starts).replace(
        tzinfo=UTC, microsecond=0
    )
    for word in (b"4711", b"secret", b"tests.add", b"acme"):
        assert word not in content


def test_ids_stay(acme: Owner) -> None:
    """Each occurrence has its own, also when others are taken out; no two share one."""
    hours = calendar_of(acme)
    row = window(hours, opens_in=-60, seconds=60, rule="FREQ=HOURLY")
    before = {str(one["UID"]) for one in shown(of_day(hours))}
    first = datetime.fromisoformat(row.starts) + timedelta(hours=1)
    Window.objects.update(excluded=[first.isoformat()])
    after = {str(one["UID"]) for one in shown(of_day(hours))}
    assert len(before) >= 24 and after < before and len(before - after) == 1


def address(secret: str) -> str:
    return f"/calendars/{secret}.ics"


def test_who_has_the_secret_may_read(acme: Owner) -> None:
    """Without a login; a program that has it already is told so. Only the secret's hash is stored.

    A new secret makes the former one useless; forgotten, there is none. All is audited.
    """
    hours = calendar_of(acme, name="Nights; of acme")
    window(hours, opens_in=60, seconds=60)
    first, second = new_secret(hours), new_secret(hours)
    assert len(first) == 43 and first != second
    hours.refresh_from_db()
    stored = bytes(hours.feed_hash or b"")
    assert len(stored) == 32 and second.encode() not in stored
    at = address(second)
    answer = Client().get(at)
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/calendar; charset=utf-8")
    assert b"BEGIN:VEVENT" in answer.content and not answer.cookies
    again = Client().get(at, headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    window(hours, opens_in=120, seconds=60)
    assert Client().get(at, headers={"If-None-Match": answer["ETag"]}).status_code == 200
    assert Client().head(at).status_code == 200
    assert Client().post(at).status_code == 405
    for _ in range(2):
        forget_secret(hours)
    assert {Client().get(address(one)).status_code for one in (first, second)} == {404}
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert [one for one in actions if "publish" in one] == [
        "publish calendar",
        "publish calendar",
        "unpublish calendar",
    ]


@pytest.mark.parametrize("is_debug", [False, True])
def test_nobody_learns_what_there_is(acme: Owner, settings: Settings, is_debug: bool) -> None:
    """One answer to all that are wrong: no secret, no feed, another one's, something odd."""
    settings.DEBUG = is_debug
    new_secret(calendar_of(acme))
    wrong = ("x", "0" * 43, "nights", "%00", "é", "-" * 3_000)
    answers = [Client().get(address(secret)) for secret in wrong]
    assert {(one.status_code, one.content) for one in answers} == {
        (404, b"There is no such calendar.\n")
    }
