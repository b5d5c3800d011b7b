"""Too many openings of a calendar: refused at each save and at import, harmless if written."""

from datetime import datetime, timedelta
from time import process_time

import pytest
from django.test import Client
from django.urls import reverse

from jobs.calendars import changes
from jobs.calendars.ical_feed import new_secret
from jobs.calendars.ical_import import import_ical, preview_ical
from jobs.calendars.windows import change_window, delete_window, request_window
from jobs.core.errors import IcalError, WindowError
from jobs.models import Calendar, Opening, Owner, Window
from jobs.windows import amount
from tests.jobs.calendars.ical.samples import calendar as ics
from tests.jobs.calendars.ical.samples import event
from tests.jobs.windows_world import calendar_of

pytestmark = pytest.mark.django_db

OFTEN = "FREQ=MINUTELY;INTERVAL=5"
FLOOD = ics(
    *(
        event("DTSTART:20260606T220000Z", "DURATION:PT1M", f"RRULE:{OFTEN}", uid=f"{each}")
        for each in range(1_000)
    )
)
LIMIT = "20,000 openings in 62 days"
RARER = "FREQ=MINUTELY;INTERVAL=50"


@pytest.fixture
def tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the limit, though texts name the whole: to store 20,000 openings takes long."""
    monkeypatch.setattr(amount, "MOST_OPENINGS", 2_000)


def often(calendar: Calendar, **changes: object) -> Window:
    starts = datetime.fromisoformat("2026-01-01T00:00")
    given = {"starts": starts, "duration": timedelta(minutes=1), "zone": "UTC"}
    return request_window(calendar, **{**given, "rule": OFTEN, **changes})


@pytest.mark.parametrize("act", [preview_ical, import_ical])
def test_an_import_of_too_many_is_refused_at_once(acme: Owner, act: object) -> None:
    """With the line of the event that passes the limit, in seconds, and nothing is written."""
    hours = calendar_of(acme)
    began = process_time()
    with pytest.raises(IcalError, match=LIMIT) as refused:
        act(hours, FLOOD, effect="window", source="flood")  # type: ignore[operator]
    assert process_time() - began < 5
    assert refused.value.line is not None and "RRULE" in str(refused.value)
    assert not Window.objects.exists()


def test_a_save_of_too_many_is_refused(acme: Owner, tenth: None) -> None:
    """The second one in 50 minutes is, by request and by change; the first one stays."""
    hours = calendar_of(acme)
    often(hours, rule=RARER)
    kept = Opening.objects.filter(calendar=hours).count()
    with pytest.raises(WindowError, match=LIMIT) as refused:
        often(hours, rule=RARER)
    assert refused.value.field == "rule"
    daily = often(hours, rule="FREQ=DAILY", effect="freeze", reason="backup")
    with pytest.raises(WindowError, match=LIMIT):
        change_window(daily, rule="FREQ=MINUTELY;INTERVAL=10")
    assert Window.objects.count() == 2
    assert Opening.objects.filter(calendar=hours).count() <= kept


def written_past_all_checks(hours: Calendar, *, count: int = 60) -> None:
    one = {"calendar": hours, "starts": "2026-01-01T00:00:00", "duration_seconds": 60}
    Window.objects.bulk_create([Window(**one, rule=OFTEN) for _ in range(count)])
    Calendar.objects.update(version=99)


@pytest.mark.proof
def test_what_is_written_past_all_checks_is_closed_and_stops_no_page(
    as_root: Client, acme: Owner
) -> None:
    """Lists, month and feed answer; the way back to fewer windows is open."""
    hours = calendar_of(acme)
    written_past_all_checks(hours)
    secret = new_secret(hours)
    began = process_time()
    assert changes.make_openings(hours) == 0
    pages = [
        reverse("admin:jobs_calendar_changelist"),
        reverse("admin:jobs_calendar_change", args=[hours.pk]),
        reverse("jobs:calendar", args=[hours.pk]),
        reverse("admin:jobs_window_changelist"),
        f"/calendars/{secret}.ics",
    ]
    assert [as_root.get(page).status_code for page in pages] == [200] * len(pages)
    assert process_time() - began < 5
    assert "20,000 openings" in as_root.get(pages[2]).content.decode()
    delete_window(Window.objects.all()[0])
    assert Window.objects.count() == 59


@pytest.mark.parametrize(("minutes", "a_day"), [(37, 39), (5, 288)])
def test_a_month_shows_a_window_of_many_times_on_each_of_its_days(
    as_root: Client, acme: Owner, minutes: int, a_day: int
) -> None:
    """As one piece with a count, on the last day as on the first; nothing is left out."""
    hours = calendar_of(acme)
    often(hours, rule=f"FREQ=MINUTELY;INTERVAL={minutes}")
    page = as_root.get(reverse("jobs:calendar", args=[hours.pk]), {"month": "2026-11"})
    view = page.context["view"]
    days = [day for week in view.weeks for day in week]
    assert (len(days), view.problem) == (42, "")
    for day in days:
        [piece] = day.pieces
        count = int(piece.hours.split(" × ")[0])
        assert abs(count - a_day) <= 1, (day.day, piece.hours)
