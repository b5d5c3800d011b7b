"""Pages of calendars, windows and groups of targets: each opens, and tells what is there."""

from datetime import datetime, timedelta
from typing import Any

from django.test import Client
from django.urls import reverse

from jobs.calendars import changes, windows
from jobs.models import Calendar, Job, Owner, Target, TargetGroup, Window, WindowDecision
from tests.jobs.windows_world import calendar_of

MARKUP = "<script>alert(1)</script>"
LISTS = ("calendar", "window", "targetgroup")


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
        ("targetgroup_change", (group.pk,)),
        ("target_change", (target.pk,)),
    ):
        text = page(as_root, name, *args)
        assert MARKUP not in text and MARKUP[:26] not in text, name
    for name, args in (("calendar", (calendar.pk,)), ("month_of", ("owner", acme.pk))):
        text = as_root.get(reverse(f"jobs:{name}", args=args)).content.decode()
        assert MARKUP not in text and MARKUP[:26] not in text, name
    assert "broken" in page(as_root, "window_changelist")
