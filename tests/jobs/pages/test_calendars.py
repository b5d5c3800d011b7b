"""jobs/pages/calendars: months that stay short, days in full, the feed, what fits."""

from typing import Any

from django.test import Client
from django.urls import reverse

from jobs.calendars import changes
from jobs.models import Calendar, Owner, Window
from tests.jobs.admin.calendars.test_page import nightly
from tests.jobs.scenes import living_worker, submitted
from tests.jobs.windows_world import calendar_of, window

LIST = reverse("jobs:calendars")


def names(client: Client, **query: Any) -> list[str]:
    """Return the names of the calendars that the list shows, in its order."""
    answer = client.get(LIST, query)
    assert answer.status_code == 200
    return [line[0].name for line in answer.context["lines"]]


def text(client: Client, name: str, *keys: Any, **query: Any) -> str:
    answer = client.get(reverse(f"jobs:{name}", args=keys), query)
    assert answer.status_code == 200
    return str(answer.content.decode())


def cells(client: Client, calendar: Calendar, **query: Any) -> dict[str, Any]:
    """Return the cells of a month by day."""
    answer = client.get(reverse("jobs:calendar", args=[calendar.pk]), query)
    assert answer.status_code == 200
    return {f"{cell.day.day}": cell for week in answer.context["cells"] for cell in week}


def one_of(calendar: Calendar, starts: str, *, hours: float, **columns: Any) -> Window:
    """Store one window or freeze, by the clock of UTC."""
    given = {"starts": starts, "duration_seconds": int(3_600 * hours), **columns}
    with changes.changing(calendar):
        return Window.objects.create(calendar=calendar, **given)


def test_the_list_says_which_are_open_and_what_waits(
    as_root: Client, acme: Owner, northwind: Owner
) -> None:
    """Those of an owner, and shared ones that apply to it."""
    asked = calendar_of(acme, "asked", needs_approval=True)
    nightly(asked)
    window(calendar_of(northwind, "now"), opens_in=-60, seconds=3_600)
    shared = Calendar.objects.create(name="shared")
    assert names(as_root) == ["shared", "now", "asked"]
    assert names(as_root, approval="asked") == ["asked"]
    assert names(as_root, owner="acme") == ["asked"]
    changes.attach(shared, acme)
    assert names(as_root, owner="acme") == ["shared", "asked"]
    shown = as_root.get(LIST).content.decode()
    assert "never open: no window is approved" in shown and "owner northwind" in shown


def test_a_month_shows_windows_freezes_requests_and_planned_work(
    as_root: Client, acme: Owner
) -> None:
    calendar = calendar_of(acme, needs_approval=True)
    one_of(calendar, "2026-11-28T22:00:00", hours=8, reason="move")
    one_of(calendar, "2026-11-26T00:00:00", hours=24, effect="freeze", reason="Thanksgiving")
    days = cells(as_root, calendar, month="2026-11")
    assert days["2026-11-26"].lines == [("freeze", "00:00–24:00 freeze Thanksgiving")]
    assert days["2026-11-28"].lines == [("asked", "22:00–24:00 not approved move")]
    assert days["2026-11-29"].lines == [("asked", "00:00–06:00 not approved move")]
    assert [look for look, _strips in days["2026-11-26"].rails] == ["freeze"]
    shown = text(as_root, "calendar", calendar.pk, month="2026-11")
    assert "1 window waits for approval" in shown and "Approve…" in shown
    assert reverse("jobs:calendar_day", args=[calendar.pk, "2026-11-28"]) in shown
    assert "month=2026-10" in shown and "month=2026-12" in shown
    assert reverse("admin:jobs_calendar_change", args=[calendar.pk]) in shown


def test_a_window_that_cannot_be_read_is_named_and_hides_no_other(
    as_root: Client, acme: Owner
) -> None:
    calendar = calendar_of(acme)
    nightly(calendar)
    broken = nightly(calendar)
    Window.objects.filter(pk=broken.pk).update(starts="soon")
    Calendar.objects.update(version=99)
    for name, keys in (("calendar", [calendar.pk]), ("calendar_day", [calendar.pk, "2026-11-12"])):
        assert "window from soon" in text(as_root, name, *keys)
    assert "cannot be read" in text(as_root, "window", broken.pk)
    text(as_root, "calendar_fit", calendar.pk)


def test_what_does_not_fit_is_said(as_root: Client, acme: Owner) -> None:
    """More runs than start in the first opening are left over for the second one."""
    calendar = calendar_of(acme)
    window(calendar, opens_in=3_600, seconds=2)
    window(calendar, opens_in=86_400, seconds=3_600)
    submitted(acme, 40)
    idle = text(as_root, "calendar_fit", calendar.pk)
    assert "no end is known for all of them" in idle and "No worker takes" in idle
    living_worker()
    shown = text(as_root, "calendar_fit", calendar.pk)
    assert "are left over for the next window" in shown
