"""Pages of calendars, windows and groups of targets: each opens, and tells what is there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs import calendars, window_edits
from jobs.models import Calendar, Owner, Target, TargetGroup, Window
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
    return window_edits.request_window(calendar, actor=actor, **(given | changes))


def page(client: Client, name: str, *args: Any, **query: Any) -> str:
    answer = client.get(reverse(f"admin:jobs_{name}", args=args), query)
    assert answer.status_code == 200, (name, answer.status_code)
    return str(answer.content.decode())


@pytest.mark.parametrize("name", LISTS)
def test_each_list_and_form_opens_empty(as_root: Client, name: str) -> None:
    """Also where there is nothing yet."""
    page(as_root, f"{name}_changelist")
    page(as_root, f"{name}_add")


def test_each_page_of_a_row_opens(as_root: Client, acme: Owner) -> None:
    """With what applies where, in words."""
    calendar = calendar_of(acme, needs_approval=True)
    window = nightly(calendar)
    target = Target.objects.create(owner=acme, name="sw-1")
    group = TargetGroup.objects.create(owner=acme, name="switches")
    group.targets.add(target)
    calendars.attach(calendar, group)
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
