"""The form of a window: refused by field, previewed, decided on by who may."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.calendars import approvals
from jobs.models import AuditEntry, Calendar, Owner, Window
from tests.jobs.admin.calendars.test_page import nightly
from tests.jobs.windows_world import calendar_of

ADD = "admin:jobs_window_add"


@pytest.fixture
def calendar(acme: Owner) -> Calendar:
    """Nights of acme, to be approved by another person than who asks."""
    return calendar_of(acme, needs_approval=True)


def fields(calendar: Calendar, **changes: Any) -> dict[str, Any]:
    """Return what a browser sends of a new window, Saturdays 22:00 to 04:00."""
    given = {
        "calendar": calendar.pk,
        "effect": "window",
        "starts_0": "2026-01-03",
        "starts_1": "22:00",
        "duration": "6 h",
        "zone": "Europe/Berlin",
        "repeat": "weekly",
        "weekdays": ["SA"],
        "rule": "",
        "reason": "patch night",
        "seen": "",
    }
    return {name: value for name, value in (given | changes).items() if value is not None}


def errors(answer: Any) -> Any:
    return answer.context["adminform"].form.errors


def change(window: Window) -> str:
    return reverse("admin:jobs_window_change", args=[window.pk])


def form_of(client: Client, window: Window, **changes: Any) -> dict[str, Any]:
    """Return what a browser sends of a form that it has opened."""
    form = client.get(change(window)).context["adminform"].form
    given = fields(window.calendar, seen=form["seen"].value()) | changes
    return {name: value for name, value in given.items() if name != "calendar"}


def test_a_window_is_asked_for_and_audited(as_root: Client, root: User, calendar: Calendar) -> None:
    """By who saves the form; dates without a time have that of the first one."""
    sent = fields(
        calendar, excluded="2026-12-26", valid_until_0="2027-06-01", valid_until_1="00:00"
    )
    answer = as_root.post(reverse(ADD), sent)
    assert answer.status_code == 302, errors(answer)
    window = Window.objects.get()
    assert window.rule == "FREQ=WEEKLY;BYDAY=SA" and window.duration_seconds == 6 * 3_600
    assert window.excluded == ["2026-12-26T22:00:00"]
    assert window.valid_until == datetime(2027, 5, 31, 22, tzinfo=UTC)
    assert window.requested_by == root
    assert [entry.action for entry in AuditEntry.objects.all()] == ["request window"]


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"duration": "long"}, "duration", "Give a length"),
        ({"zone": "Europe/Berlni"}, "zone", "Europe/Berlin"),
        ({"starts_0": ""}, "starts", "required"),
        ({"weekdays": ["SU"]}, "starts", "2026-01-04"),
        ({"repeat": "rule", "rule": ""}, "rule", "Give the rule"),
        ({"repeat": "rule", "rule": "FREQ=SECONDLY"}, "rule", "FREQ is one of"),
        ({"repeat": "once", "excluded": "2026-01-03"}, "excluded", "leaves no occurrence"),
        ({"added": "soon"}, "added", "soon"),
        ({"reason": "a\x00b"}, "reason", "Null characters"),
        (
            {
                "valid_from_0": "2027-01-01",
                "valid_from_1": "00:00",
                "valid_until_0": "2026-01-01",
                "valid_until_1": "00:00",
            },
            "valid_until",
            "later than",
        ),
        ({"effect": "door"}, "effect", "door"),
    ],
)
def test_a_mistake_stands_beside_its_field(
    as_root: Client, calendar: Calendar, changes: dict[str, Any], field: str, problem: str
) -> None:
    """With what is allowed; nothing is kept, and the preview says the same."""
    answer = as_root.post(reverse(ADD), fields(calendar, **changes))
    assert problem in str(errors(answer)[field])
    assert not Window.objects.exists()
    seen = as_root.get(reverse("admin:jobs_window_preview"), fields(calendar, **changes))
    assert seen.status_code == 200 and 'class="fs-error"' in seen.content.decode()


def test_a_preview_tells_ten_times_by_two_clocks_with_notes(
    as_root: Client, calendar: Calendar
) -> None:
    """By the piece of the script and by the button, which saves nothing."""
    sent = fields(calendar, starts_0="2027-03-27", starts_1="23:00")
    piece = as_root.get(reverse("admin:jobs_window_preview"), sent).content.decode()
    whole = as_root.post(reverse(ADD), sent | {"_preview": "Preview"})
    for text in (piece, whole.content.decode()):
        assert text.count("<time datetime") == 10
        assert "every week on Saturday at 23:00, for 6 h" in text
        assert "clocks are changed: shorter than usual" in text and "yours, UTC" in text
    assert not errors(whole) and not Window.objects.exists()


def test_a_stored_window_stands_in_its_form_and_saving_it_changes_nothing(
    as_root: Client, calendar: Calendar
) -> None:
    """The revision stays, so approvals do."""
    window = nightly(calendar, excluded=[datetime.fromisoformat("2026-12-24T22:00")])
    sent = form_of(as_root, window, repeat="daily", weekdays=[], excluded="2026-12-24 22:00:00")
    sent |= {"starts_0": "2026-01-05", "reason": "quiet hours"}
    answer = as_root.post(change(window), sent)
    assert answer.status_code == 302, errors(answer)
    window.refresh_from_db()
    assert (window.revision, window.reason) == (1, "quiet hours")


def test_a_change_of_its_times_asks_again(as_root: Client, root: User, calendar: Calendar) -> None:
    """What was agreed to stands in the history, as of an earlier revision."""
    Calendar.objects.update(four_eyes=False)
    window = nightly(calendar, actor=root)
    approvals.approve(window, actor=root)
    assert as_root.post(change(window), form_of(as_root, window)).status_code == 302
    window.refresh_from_db()
    text = as_root.get(change(window)).content.decode()
    assert window.revision == 2
    page = as_root.get(reverse("jobs:window", args=[window.pk])).content.decode()
    assert "asked for again" in text and "on an earlier version" in page


def test_a_form_that_has_grown_old_is_refused(as_root: Client, calendar: Calendar) -> None:
    """What somebody else has saved meanwhile stays."""
    window = nightly(calendar)
    sent = form_of(as_root, window)
    Window.objects.update(reason="of somebody else")
    answer = as_root.post(change(window), sent)
    assert answer.status_code == 200 and "changed this since" in str(errors(answer))
    window.refresh_from_db()
    assert (window.revision, window.reason) == (1, "of somebody else")
