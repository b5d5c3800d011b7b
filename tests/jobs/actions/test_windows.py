"""jobs/actions/windows.py: a window is decided on as it was seen, and by other eyes than asked."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.calendars.windows import change_window
from jobs.models import Calendar, Owner, Window, WindowDecision
from tests.jobs.admin.calendars.test_page import nightly
from tests.jobs.admin.conftest import confirm, confirm_bulk, hidden, said
from tests.jobs.windows_world import calendar_of

LIST = "admin:jobs_window_changelist"
APPROVES = ("view_window", "view_calendar", "approve_window")
Person = Callable[..., Client]


@pytest.fixture
def calendar(acme: Owner) -> Calendar:
    """Nights of acme, to be approved by another person than who asks."""
    return calendar_of(acme, needs_approval=True)


@pytest.fixture
def ann(person: Person, calendar: Calendar) -> Client:
    """An approver of acme."""
    return person("ann", *APPROVES, acme="approver")


def page(window: Window, action: str) -> str:
    return reverse("jobs:window_action", args=[window.pk, action])


def test_an_approval_is_of_one_occurrence_or_of_all_until(ann: Client, calendar: Calendar) -> None:
    """Chosen from the next ones; a time in the past stands beside its field."""
    window = nightly(calendar, reason="quiet hours")
    asked = ann.get(page(window, "approve"))
    assert "every day at 22:00" in asked.content.decode() and b"quiet hours" in asked.content
    choices = [key for key, _ in asked.context["form"].fields["occurrence_at"].choices]
    confirm(ann, page(window, "approve"), occurrence_at=choices[1])
    assert WindowDecision.objects.get().occurrence_at == datetime.fromisoformat(choices[1])
    wrong = confirm(ann, page(window, "approve"), occurrence_at="2020-01-01T00:00:00+00:00")
    assert "Select a valid choice" in wrong.content.decode()
    past = confirm(ann, page(window, "approve"), expires_at_0="2020-01-01", expires_at_1="00:00")
    assert past.context["form"].errors.keys() == {"expires_at"}
    until = {"expires_at_0": "2098-01-01", "expires_at_1": "00:00", "reason": "agreed"}
    assert said(confirm(ann, page(window, "approve"), **until)) == ["The decision is stored."]
    made = WindowDecision.objects.latest("pk")
    assert (made.expires_at, made.reason) == (datetime(2098, 1, 1, tzinfo=UTC), "agreed")
    refused = ann.get(page(window, "reject"), follow=True)
    assert said(refused) == ["This is decided already, or needs no approval."]


def test_the_requester_does_not_approve(ann: Client, calendar: Calendar) -> None:
    """Four eyes: neither on the page of the window, nor with a selection."""
    user = User.objects.get(username="ann")
    own, other = nightly(calendar, actor=user), nightly(calendar)
    assert "four eyes" in said(confirm(ann, page(own, "approve")))[0]
    url = reverse(LIST, query={"state": "requested"})
    answer = confirm_bulk(ann, url, "approve", [own.pk, other.pk], reason="all seen")
    [text] = said(answer)
    assert "done for 1 of 2" in text and "four eyes" in text
    assert [one.window_id for one in WindowDecision.objects.all()] == [other.pk]
    left = ann.get(url).context["cl"].result_list
    assert [window.pk for window in left] == [own.pk]


def test_a_window_that_has_changed_is_looked_at_again(ann: Client, calendar: Calendar) -> None:
    """A form that was shown before the change approves nothing; a selection leaves it out."""
    window, other = nightly(calendar), nightly(calendar)
    seen = hidden(ann.get(page(window, "approve")))
    menu = {"action": "approve", "_selected_action": [window.pk, other.pk], "index": "0"}
    selected: Any = ann.post(reverse(LIST), menu)
    assert "every day at 22:00" in selected.content.decode()
    assert "occurrence_at" not in selected.context["form"].fields
    change_window(window, duration=timedelta(hours=9))
    for fields in (seen, {}):
        answer = ann.post(page(window, "approve"), {"reason": "as seen", **fields}, follow=True)
        assert "has changed since you read it" in said(answer)[0]
    assert not WindowDecision.objects.exists()
    ann.post(reverse(LIST), hidden(selected))
    assert [one.window_id for one in WindowDecision.objects.all()] == [other.pk]
