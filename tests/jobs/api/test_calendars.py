"""jobs/api/calendars and jobs/api/windows: changed and decided on by programs."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from jobs.calendars.approvals import approve
from jobs.core.errors import ApprovalRefused
from jobs.models import ApiToken, AuditEntry, Owner, Window, WindowDecision
from jobs.owners.tokens import make_token
from tests.jobs.api.conftest import ROOT, Caller, client_of, post, problem
from tests.jobs.api.job_scenes import change
from tests.jobs.api.matrix.operations import FILE
from tests.jobs.windows_world import approver, calendar_of

NIGHT = {
    "starts": "2030-01-05T22:00:00",
    "duration_seconds": 7_200,
    "zone": "Europe/Berlin",
    "rule": "FREQ=WEEKLY;BYDAY=SA",
}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"duration_seconds": 0}, "duration_seconds"),
        ({"starts": "2030-01-05T22:00:00Z"}, "starts"),
        ({"starts": "2030-02-30T22:00:00"}, "starts"),
        ({"starts": 7}, "starts"),
        ({"starts": "2030-01-06T22:00:00"}, "starts"),
        ({"zone": "Europe/Berlinn"}, "zone"),
        ({"rule": "FREQ=SOMETIMES"}, "rule"),
        ({"valid_from": "2030-01-05T22:00:00"}, "valid_from"),
        ({"effect": "party"}, "effect"),
        ({"reason": "x" * 501}, "reason"),
    ],
)
def test_a_wrong_window_is_named_and_not_stored(
    caller: Caller, acme: Owner, changed: dict[str, Any], field: str
) -> None:
    """Also impossible times."""
    calendar = calendar_of(acme)
    refused = post(caller(acme), f"/calendars/{calendar.pk}/windows", {**NIGHT, **changed})
    assert refused.status_code == 422 and refused.json()["field"] == field, refused.content
    assert not Window.objects.exists()


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
