"""Calendars in a real browser: a month, and a window described while it is typed."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from jobs.calendars import approvals, changes, windows
from jobs.models import Calendar, Owner, Run, Target, TargetGroup, Window
from tests.browser.conftest import NARROW, fit_a_phone, shot
from tests.jobs.scenes import submitted

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
BOX = "[data-window-preview]"


@pytest.fixture
def nights(acme: Owner, site: str) -> Calendar:
    """Nights of acme in Berlin, approved; Sunday noons that wait for approval; a freeze."""
    root = User.objects.get(username="root")
    Owner.objects.filter(pk=acme.pk).update(zone="Europe/Berlin")
    made = Calendar.objects.create(owner=acme, name="Nights and Sundays", four_eyes=False)
    changes.attach(made, acme)
    month = timezone.now().replace(day=1)
    night = asked(made, f"{month:%Y-%m-%d}T22:00", "FREQ=DAILY", hours=6, reason="Least traffic")
    approvals.approve(night, actor=root)
    asked(made, "2026-01-04T12:00", "FREQ=WEEKLY;BYDAY=SU", hours=2, reason="")
    frozen = timezone.now() + timedelta(days=2)
    asked(
        made, f"{frozen:%Y-%m-%d}T00:00", "", hours=36, effect="freeze", reason="Year-end closing"
    )
    return made


def asked(
    calendar: Calendar, starts: str, rule: str, *, hours: int, reason: str, effect: str = "window"
) -> Window:
    return windows.request_window(
        calendar,
        effect=effect,
        starts=datetime.fromisoformat(starts),
        duration=timedelta(hours=hours),
        zone="Europe/Berlin",
        rule=rule,
        reason=reason,
        actor=User.objects.get(username="root"),
    )


def test_a_month_shows_windows_freezes_and_planned_work(
    browse: Browse, nights: Calendar, acme: Owner
) -> None:
    """Reached by keyboard: each day leads to its windows, and months follow each other."""
    Run.objects.filter(pk__in=[run.pk for run in submitted(acme, count=3)]).update(
        state="scheduled", next_at=timezone.now() + timedelta(days=1)
    )
    page = browse(f"/calendars/{nights.pk}/")
    shot(page, "month-wide")
    text = page.locator(".month").inner_text()
    for word in ("freeze", "Year-end closing", "not approved", "22:00–24:00", "3 runs planned"):
        assert word in text
    page.locator("a.date").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/day/**")
    page.goto(f"/calendars/{nights.pk}/?month=2026-12")
    page.get_by_role("link", name="January 2027").click()
    assert "January 2027" in page.locator("h2", has_text="2027").inner_text()


def test_a_window_is_told_while_it_is_typed(browse: Browse, nights: Calendar) -> None:
    """A description and ten times, or the mistake; only the fields of its recurrence are shown."""
    page = browse(f"/admin/jobs/window/add/?calendar={nights.pk}")
    assert page.input_value("#id_zone") == "Europe/Berlin"
    assert not page.locator(".form-row.field-rule").is_visible()
    page.fill("#id_starts_0", "2027-03-06")
    page.fill("#id_starts_1", "23:00")
    page.locator("#id_duration").press_sequentially("6 hou")
    page.locator(BOX, has_text="Give a length").wait_for()
    page.fill("#id_duration", "6 h")
    page.select_option("#id_repeat", "weekly")
    page.locator("#id_weekdays input[value=SA]").check()
    page.locator(BOX, has_text="every week on Saturday at 23:00, for 6 h").wait_for()
    assert page.locator(BOX).locator("tbody tr").count() == 10
    assert "clocks are changed" in page.locator(BOX).inner_text()
    shot(page, "form-wide")
    page.get_by_role("button", name="Save and continue editing").click()
    page.locator(".messagelist .success").wait_for()
    assert "asked for" in page.locator(".fs-headline").inner_text()


def test_a_window_is_previewed_without_script(browse: Browse, nights: Calendar) -> None:
    """By a button; nothing is saved by it."""
    count = Window.objects.count()
    page = browse(f"/admin/jobs/window/add/?calendar={nights.pk}", java_script_enabled=False)
    page.fill("#id_starts_0", "2027-03-06")
    page.fill("#id_starts_1", "23:00")
    page.fill("#id_duration", "90 min")
    page.get_by_role("button", name="Preview").click()
    assert "once, on 2027-03-06 at 23:00, for 1 h 30 min" in page.locator(BOX).inner_text()
    assert not page.locator(".errornote").count() and Window.objects.count() == count
    page.get_by_role("button", name="Save and continue editing").click()
    assert Window.objects.count() == count + 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_calendars_fit_a_phone(
    browse: Browse, nights: Calendar, acme: Owner, scheme: str
) -> None:
    """No page is wider than 360 px, and what has a colour can be read."""
    target = Target.objects.create(owner=acme, name="sw-" + "x" * 60)
    group = TargetGroup.objects.create(owner=acme, name="All switches of the Berlin site")
    group.targets.add(target)
    changes.attach(nights, group)
    [run] = submitted(acme, target="sw-2")
    page = browse("/admin/", viewport=NARROW, color_scheme=scheme)
    paths = [
        "/admin/jobs/calendar/",
        "/admin/jobs/calendar/add/",
        f"/admin/jobs/calendar/{nights.pk}/change/",
        f"/calendars/{nights.pk}/",
        f"/admin/jobs/calendar/{nights.pk}/import/",
        "/submissions/submit/",
        f"/months/target/{target.pk}/",
        "/admin/jobs/window/",
        "/admin/jobs/window/?state=requested",
        f"/admin/jobs/window/add/?calendar={nights.pk}",
        *(f"/admin/jobs/window/{one.pk}/change/" for one in nights.windows.all()),
        f"/admin/jobs/window/{nights.windows.earliest('pk').pk}/actions/approve/",
        "/admin/jobs/targetgroup/",
        f"/admin/jobs/targetgroup/{group.pk}/change/",
        f"/admin/jobs/target/{target.pk}/change/",
        f"/admin/jobs/run/{run.pk}/change/",
        f"/admin/jobs/run/{run.pk}/actions/override/",
    ]
    fit_a_phone(page, paths)
