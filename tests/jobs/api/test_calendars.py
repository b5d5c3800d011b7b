"""jobs/api/calendars and jobs/api/windows: changed and decided on by programs; months."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.calendars import changes
from jobs.calendars.approvals import approve
from jobs.core.errors import ApprovalRefused
from jobs.models import ApiToken, AuditEntry, Calendar, Owner, Window, WindowDecision
from jobs.owners.tokens import make_token
from tests.jobs.api.conftest import ROOT, Caller, client_of, post, problem
from tests.jobs.api.job_scenes import change
from tests.jobs.api.matrix.operations import FILE
from tests.jobs.api.test_wrong_fields import NIGHT
from tests.jobs.windows_world import approver, calendar_of


def test_four_eyes_are_not_those_of_one_maker(caller: Caller, acme: Owner) -> None:
    """A token may not approve its own request, its maker's, or that of a token of its maker."""
    ada = User.objects.create_superuser("ada")
    first = make_token("one", scopes=["read", "approve", "admin"], owner=acme, actor=ada)
    child = make_token("two", scopes=["read", "approve"], owner=acme, actor=first.token)
    sibling = make_token("three", scopes=["read", "approve"], owner=acme, actor=ada)
    calendar = calendar_of(acme, needs_approval=True)
    window = post(client_of(first.secret), f"/calendars/{calendar.pk}/windows", NIGHT).json()
    assert (window["approval"], window["requested_by"]) == ("requested", f"token {first.token}")
    path = f"/windows/{window['id']}/approve"
    for made in (first, child, sibling):
        problem(post(client_of(made.secret), path, {}), 403, "approval_refused")
    with pytest.raises(ApprovalRefused, match="four eyes"):
        approve(Window.objects.get(), actor=ada)
    assert not WindowDecision.objects.exists()
    decided = post(caller(acme, "read", "approve"), path, {"reason": "agreed"})
    assert decided.status_code == 201, decided.content
    row = WindowDecision.objects.get()
    assert row.actor is None and row.token == ApiToken.objects.get(name="scene")
    entry = AuditEntry.objects.get(action="approve window")
    assert (entry.token, entry.reason) == (row.token, "agreed")
    [opening] = (
        caller(acme)
        .get(f"{ROOT}/calendars/{calendar.pk}/openings?after=2030-01-01T00:00:00Z&count=1")
        .json()["items"]
    )
    assert opening["opens_at"] == "2030-01-05T21:00:00Z"


def test_a_window_that_changed_since_is_not_approved(caller: Caller, acme: Owner) -> None:
    """One occurrence may be named; a time that is no start is refused with the next one."""
    calendar = calendar_of(acme, needs_approval=True)
    approver("ben", acme)
    asking, deciding = caller(acme), caller(acme, "read", "approve")
    made = post(asking, f"/calendars/{calendar.pk}/windows", NIGHT)
    path = f"/windows/{made.json()['id']}"
    moved = change(asking, "patch", path, {"duration_seconds": 9_000}, made["ETag"])
    assert moved.status_code == 200 and moved.json()["revision"] == 2, moved.content
    stale = {"If-Match": made["ETag"]}
    problem(post(deciding, f"{path}/approve", {}, **stale), 412, "precondition_failed")
    wrong = post(deciding, f"{path}/approve", {"occurrence_at": "2030-01-05T20:00:00Z"})
    assert wrong.json()["field"] == "occurrence_at"
    one = post(deciding, f"{path}/approve", {"occurrence_at": "2030-01-05T21:00:00Z"})
    assert one.status_code == 201
    assert asking.get(f"{ROOT}{path}").json()["approval"] == "approved in part"


def test_a_file_is_previewed_and_imported(caller: Caller, acme: Owner) -> None:
    """A wrong file is refused with its lines, and stores nothing."""
    client, calendar = caller(acme), calendar_of(acme)
    path = f"/calendars/{calendar.pk}/import"
    body = {"file": FILE, "source": "board"}
    assert post(client, path, {**body, "dry_run": True}).json()["added"] == 1
    assert not Window.objects.exists()
    wrong = post(client, path, {**body, "file": FILE.replace("20300106T020000Z", "tomorrow")})
    assert wrong.status_code == 422 and "line" in wrong.json()["errors"][0]["detail"]
    assert not Window.objects.exists()
    assert post(client, path, body).json()["added"] == 1
    assert post(client, path, body).json()["unchanged"] == 1


ONE_NIGHT = {**NIGHT, "zone": "UTC", "rule": ""}
MONTH = {"month": "2030-01", "zone": "UTC"}


def asked(client: Any, calendar: Calendar, **changed: Any) -> int:
    """Request a window of a calendar; return its id."""
    answer = post(client, f"/calendars/{calendar.pk}/windows", {**ONE_NIGHT, **changed})
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
