"""jobs/api/owners/month.py: a month of all calendars of an owner."""

from typing import Any

import pytest

from jobs.calendars import changes
from jobs.models import Calendar, Owner
from tests.jobs.api import test_calendars
from tests.jobs.api.conftest import ROOT, Caller, post, problem
from tests.jobs.windows_world import calendar_of

NIGHT = {**test_calendars.NIGHT, "zone": "UTC", "rule": ""}
MONTH = {"month": "2030-01", "zone": "UTC"}


def asked(client: Any, calendar: Calendar, **changed: Any) -> int:
    """Request a window of a calendar; return its id."""
    answer = post(client, f"/calendars/{calendar.pk}/windows", {**NIGHT, **changed})
    assert answer.status_code == 201, answer.content
    key: int = answer.json()["id"]
    return key


def test_a_month_has_the_windows_of_all_calendars_with_their_approvals(
    caller: Caller, acme: Owner, stranger: Owner
) -> None:
    """Also of a calendar that applies to nothing yet, and of a shared one that applies."""
    everything = caller()
    nights, shared = calendar_of(acme, needs_approval=True), Calendar(name="all")
    idle = Calendar.objects.create(owner=acme, name="idle")
    shared.save()
    changes.attach(shared, acme)
    Calendar.objects.create(name="shared, applies to none")
    keys = {
        "requested": asked(everything, nights),
        "approved": asked(everything, nights, starts="2030-01-07T22:00:00"),
        "not needed": asked(everything, idle, starts="2030-01-09T22:00:00"),
        "freeze": asked(everything, shared, starts="2030-01-10T22:00:00", effect="freeze"),
    }
    approved = post(caller(acme, "read", "approve"), f"/windows/{keys['approved']}/approve", {})
    assert approved.status_code == 201
    theirs = calendar_of(stranger, "theirs")
    hidden = asked(everything, theirs)
    client = caller(acme, "read")
    found = client.get(f"{ROOT}/owners/acme/month", MONTH).json()
    assert [(one["name"], one["is_shared"]) for one in found["calendars"]] == [
        ("all", True),
        ("idle", False),
        ("nights", False),
    ]
    occurrences = {one["window"]: one for one in found["occurrences"]}
    assert list(occurrences) == list(keys.values()) and hidden not in occurrences
    assert occurrences[keys["requested"]]["counts"] is False
    assert occurrences[keys["requested"]]["approval"] == "requested"
    assert occurrences[keys["approved"]]["counts"] is True
    assert occurrences[keys["approved"]]["approval"] == "approved"
    assert occurrences[keys["freeze"]]["effect"] == "freeze"
    assert occurrences[keys["not needed"]]["calendar"] == idle.pk
    assert (found["month"], found["zone"], found["problems"]) == ("2030-01", "UTC", [])
    [opening] = [one for one in found["openings"] if one["opens_at"] == "2030-01-07T22:00:00Z"]
    assert opening["closes_at"] == "2030-01-08T00:00:00Z"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"month": "2030-13"}, "month"),
        ({"month": "0001-01"}, "month"),
        ({"month": "2099-12"}, "month"),
        ({"zone": "Mars/Base"}, "zone"),
        ({"zone": "x" * 65}, "zone"),
    ],
)
@pytest.mark.parametrize("of", ["owners/acme", "calendars/{}"])
def test_a_wrong_month_or_zone_is_named(
    caller: Caller, acme: Owner, *, of: str, query: dict[str, str], field: str
) -> None:
    path = of.format(calendar_of(acme).pk)
    answer = caller(acme).get(f"{ROOT}/{path}/month", query)
    assert problem(answer, 422, "invalid")["field"] == field
