"""Pages of calendars, windows and groups of targets: each opens, and tells what is there."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobs.calendars import changes, windows
from jobs.models import Calendar, Job, Owner, Target, TargetGroup, Window, WindowDecision
from tests.jobs.admin.conftest import confirm_bulk
from tests.jobs.windows_world import calendar_of

MARKUP = "<script>alert(1)</script>"
LISTS = ("calendar", "window", "targetgroup")

Person = Callable[..., Client]


def nightly(calendar: Calendar, *, actor: Any = None, **changes: Any) -> Window:
    """Ask for a window of every night, 22:00 to 04:00 in Berlin."""
    given: dict[str, Any] = {
        "starts": datetime.fromisoformat("2026-01-05T22:00"),
        "duration": timedelta(hours=6),
        "zone": "Europe/Berlin",
        "rule": "FREQ=DAILY",
    }
    return windows.request_window(calendar, actor=actor, **(given | changes))


def page(client: Client, name: str, *args: Any, **query: Any) -> str:
    answer = client.get(reverse(f"admin:jobs_{name}", args=args), query)
    assert answer.status_code == 200, (name, answer.status_code)
    return str(answer.content.decode())


def test_each_page_of_a_row_opens(as_root: Client, acme: Owner) -> None:
    """With what applies where, in words."""
    calendar = calendar_of(acme, needs_approval=True)
    window = nightly(calendar)
    target = Target.objects.create(owner=acme, name="sw-1")
    group = TargetGroup.objects.create(owner=acme, name="switches")
    group.targets.add(target)
    changes.attach(calendar, group)
    assert "every day at 22:00" in page(as_root, "calendar_change", calendar.pk)
    listed = page(as_root, "calendar_changelist")
    assert "no window is approved" in listed and "switches" in listed
    assert "asked for" in page(as_root, "window_change", window.pk)
    assert "every day at 22:00" in page(as_root, "window_changelist")
    assert "nights" in page(as_root, "targetgroup_change", group.pk)
    shown = page(as_root, "target_change", target.pk)
    assert "switches" in shown and "nights" in shown
    for name in LISTS:
        assert "unreadable" not in page(as_root, f"{name}_changelist")
    assert "not approved" in page(as_root, "calendar_month", calendar.pk)
    for kind, row in (("owner", acme), ("target", target)):
        assert "not approved" in page(as_root, "calendar_month_of", kind, row.pk)


OPTIONS = {
    "cut_off_seconds": "60",
    "end": "soft",
    "spread_seconds": "30",
    "needs_approval": "on",
    "four_eyes": "on",
}


def test_a_calendar_is_made_with_all_of_its_options(as_root: Client, acme: Owner) -> None:
    """And applies at once: a new one without windows is open."""
    target = Target.objects.create(owner=acme, name="sw-1")
    sent = {**OPTIONS, "owner": acme.pk, "name": "nights", "targets": [target.pk]}
    answer = as_root.post(reverse("admin:jobs_calendar_add"), sent)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    made = Calendar.objects.get()
    assert (made.cut_off_seconds, made.end, made.spread_seconds) == (60, "soft", 30)
    assert made.needs_approval and made.four_eyes and made.openings.count() == 1
    assert [one.to for one in made.attachments.all()] == [target]
    assert Owner.objects.get(pk=acme.pk).calendar_version > 0


def test_what_it_applies_to_is_changed_and_waiting_runs_are_gated_again(
    as_root: Client, acme: Owner
) -> None:
    """What is taken out of the form is detached; a form that has grown old takes out nothing."""
    calendar = calendar_of(acme, needs_approval=True)
    job = Job.objects.create(owner=acme, key="sum", task="tests.add", payload=b"[[], {}, {}]")
    url = reverse("admin:jobs_calendar_change", args=[calendar.pk])
    seen = as_root.get(url).context["adminform"].form["seen"].value()
    version = Owner.objects.get(pk=acme.pk).calendar_version
    sent = {**OPTIONS, "name": "days", "jobs": [job.pk], "seen": seen}
    answer = as_root.post(url, sent)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    calendar.refresh_from_db()
    assert calendar.name == "days" and [one.to for one in calendar.attachments.all()] == [job]
    assert Owner.objects.get(pk=acme.pk).calendar_version > version
    answer = as_root.post(url, {**sent, "jobs": []})
    assert "changed this since" in str(answer.context["adminform"].form.errors)
    assert calendar.attachments.count() == 1


def test_two_calendars_of_one_name_are_told_apart(as_root: Client, acme: Owner) -> None:
    """One owner has a name once, and so have all shared ones together."""
    calendar_of(acme)
    other = calendar_of(acme, "days")
    url = reverse("admin:jobs_calendar_change", args=[other.pk])
    seen = as_root.get(url).context["adminform"].form["seen"].value()
    answers = [
        as_root.post(url, {**OPTIONS, "name": "nights", "seen": seen}),
        as_root.post(
            reverse("admin:jobs_calendar_add"), {**OPTIONS, "owner": acme.pk, "name": "nights"}
        ),
    ]
    for answer in answers:
        assert answer.status_code == 200 and answer.context["adminform"].form.errors


def test_a_calendar_is_deleted_with_what_hangs_on_it(as_root: Client, acme: Owner) -> None:
    """What it applied to is gated again."""
    nightly(calendar_of(acme))
    keys = [Calendar.objects.get().pk, calendar_of(acme, "a").pk]
    version = Owner.objects.get(pk=acme.pk).calendar_version
    confirm_bulk(as_root, reverse("admin:jobs_calendar_changelist"), "delete", keys)
    assert not Window.objects.exists() and not Calendar.objects.exists()
    assert Owner.objects.get(pk=acme.pk).calendar_version > version


@pytest.mark.proof
def test_lists_ask_the_same_questions_however_many_rows(as_root: Client, acme: Owner) -> None:
    """For ten calendars and windows as for two."""
    counts: dict[str, list[int]] = {name: [] for name in LISTS}
    for many in (2, 10):
        for number in range(many):
            calendar = calendar_of(acme, f"c-{many}-{number}", needs_approval=True)
            nightly(calendar)
            group = TargetGroup.objects.create(owner=acme, name=f"g-{many}-{number}")
            changes.attach(calendar, group)
        for name, asked in counts.items():
            # Calendars are read once and kept while they stay as they are.
            page(as_root, f"{name}_changelist")
            with CaptureQueriesContext(connection) as queries:
                page(as_root, f"{name}_changelist")
            asked.append(len(queries))
    assert all(few == many for few, many in counts.values()), counts


@pytest.mark.proof
def test_a_month_asks_the_same_questions_however_many_windows(as_root: Client, acme: Owner) -> None:
    """So does a calendar's own page."""
    calendar = calendar_of(acme, needs_approval=True)
    counts = []
    for many in (2, 4):
        for _number in range(many):
            nightly(calendar)
        # What is kept between requests is read before the first count.
        page(as_root, "calendar_change", calendar.pk)
        with CaptureQueriesContext(connection) as queries:
            page(as_root, "calendar_month", calendar.pk)
            page(as_root, "calendar_change", calendar.pk)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_markup_in_every_field_is_escaped_and_broken_rows_hide_no_others(
    as_root: Client, acme: Owner
) -> None:
    """Rows may be written past every check; each page opens all the same."""
    calendar = calendar_of(acme, MARKUP, needs_approval=True)
    sound = nightly(calendar, reason=MARKUP)
    Window.objects.filter(pk=sound.pk).update(source=MARKUP, source_uid=MARKUP)
    WindowDecision.objects.create(
        window=sound, revision=1, decision="approved", actor_name=MARKUP, reason=MARKUP
    )
    target = Target.objects.create(owner=acme, name=MARKUP)
    group = TargetGroup.objects.create(owner=acme, name=MARKUP)
    group.targets.add(target)
    changes.attach(calendar, group)
    broken = Window.objects.create(
        calendar=calendar, starts=MARKUP[:26], duration_seconds=1, zone=MARKUP, rule=MARKUP
    )
    for row in (sound, broken):
        text = page(as_root, "window_change", row.pk)
        assert MARKUP not in text and MARKUP[:26] not in text
        verb = "reject" if row == broken else "revoke"
        asked = as_root.get(reverse("jobs:window_action", args=[row.pk, verb]))
        assert asked.status_code == 200 and MARKUP not in asked.content.decode()
    for name, args in (
        *((f"{name}_changelist", ()) for name in LISTS),
        ("calendar_change", (calendar.pk,)),
        ("calendar_month", (calendar.pk,)),
        ("calendar_month_of", ("owner", acme.pk)),
        ("targetgroup_change", (group.pk,)),
        ("target_change", (target.pk,)),
    ):
        text = page(as_root, name, *args)
        assert MARKUP not in text and MARKUP[:26] not in text, name
    assert "broken" in page(as_root, "window_changelist")
