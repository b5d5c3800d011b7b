"""jobs/api/owners, workers, dead letters and audit: by callers of one owner and of all."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from jobs.core.sql import now
from jobs.models import AuditEntry, Membership, Owner, Role, Run
from tests.jobs.api.conftest import ROOT, Caller, post, problem
from tests.jobs.api.run_scenes import failed
from tests.jobs.scenes import admitted, living_worker, submitted


def patch(client: Client, path: str, body: Any, **headers: str) -> Any:
    return client.patch(f"{ROOT}{path}", body, content_type="application/json", headers=headers)


def remove(client: Client, path: str) -> Any:
    return client.delete(f"{ROOT}{path}", headers={"If-Match": "*"})


def member(owner: Owner, name: str, role: str = Role.ADMIN) -> Membership:
    user = get_user_model().objects.create(username=name)
    return Membership.objects.create(owner=owner, user=user, role=role)


# --- owners ---------------------------------------------------------------------------------


def test_an_owner_is_added_by_the_installation_only(caller: Caller, acme: Owner) -> None:
    """An owner's own admin may not; a taken slug and a wrong one are named."""
    body = {"slug": "initech", "weight": 3, "max_running": 10, "zone": "Europe/Berlin"}
    problem(post(caller(acme), "/owners", body), 403, "forbidden")
    made = post(client := caller(), "/owners", body)
    assert made.status_code == 201, made.content
    assert made["Location"] == f"{ROOT}/owners/initech"
    shown = client.get(made["Location"])
    assert (shown.json(), shown["ETag"]) == (made.json(), made["ETag"])
    assert (shown.json()["weight"], shown.json()["max_running"]) == (3, 10)
    assert problem(post(client, "/owners", body), 422, "invalid")["field"] == "slug"
    wrong = problem(post(client, "/owners", {**body, "slug": "a b"}), 422, "invalid")
    assert wrong["field"] == "slug"
    wrong = problem(post(client, "/owners", {"slug": "x", "zone": "Berlin"}), 422, "invalid")
    assert wrong["field"] == "zone"


def test_the_admin_of_an_owner_sets_its_objective(caller: Caller, acme: Owner) -> None:
    """It is no limit, and changes no other owner's share; wrong numbers are named."""
    client, path = caller(acme), "/owners/acme"
    assert client.get(f"{ROOT}{path}").json()["wait_objective_seconds"] is None
    body = {"wait_objective_seconds": 30, "wait_objective_percent": 99.5}
    made = patch(client, path, body, **{"If-Match": "*"})
    assert made.status_code == 200, made.content
    assert {name: made.json()[name] for name in body} == body
    for wrong in (
        {"wait_objective_seconds": 0},
        {"wait_objective_seconds": 86_401},
        {"wait_objective_seconds": 1.5},
        {"wait_objective_percent": 49},
        {"wait_objective_percent": 100},
        {"wait_objective_percent": None},
    ):
        [name] = wrong
        found = problem(patch(client, path, wrong, **{"If-Match": "*"}), 422, "invalid")
        assert found["field"] == name
    cleared = patch(client, path, {"wait_objective_seconds": None}, **{"If-Match": "*"})
    assert cleared.json()["wait_objective_seconds"] is None
    entry = AuditEntry.objects.filter(action="change").latest("at")
    assert entry.details["before"] == {"wait_objective_seconds": 30}


def test_usage_counts_the_runs_of_a_span(caller: Caller, acme: Owner, stranger: Owner) -> None:
    """By their state, with the worker time of their attempts, and the part of all owners'."""
    failed(acme)
    failed(stranger)
    submitted(acme, 2)
    used = caller(acme).get(f"{ROOT}/owners/acme/usage").json()
    assert used["runs"] == {"failed": 1, "queued": 2}
    assert used["worker_seconds"] > 0 and 0 < used["received"] < 1
    before = (now() - timedelta(days=2)).isoformat()
    old = caller(acme).get(f"{ROOT}/owners/acme/usage", {"before": before}).json()
    assert (old["runs"], old["worker_seconds"], old["received"]) == ({}, 0.0, None)
    year = {"after": "2025-01-01T00:00:00Z", "before": "2026-01-01T00:00:00Z"}
    problem(caller(acme).get(f"{ROOT}/owners/acme/usage", year), 422, "invalid")


# --- members --------------------------------------------------------------------------------


def test_a_member_is_added_changed_and_removed(caller: Caller, acme: Owner) -> None:
    """Each is audited; a user becomes a member once, and an unknown user never."""
    client = caller(acme)
    get_user_model().objects.create(username="ada")
    body = {"user": "ada", "role": "viewer"}
    # The owner's token may not list users.
    problem(post(client, "/owners/acme/members", body), 422, "invalid")
    added = post(caller(), "/owners/acme/members", body)
    assert added.status_code == 201, added.content
    assert added["Location"] == f"{ROOT}/owners/acme/members/ada"
    assert problem(post(client, "/owners/acme/members", body), 422, "invalid")["field"] == "user"
    problem(post(client, "/owners/acme/members", {**body, "user": "bob"}), 422, "invalid")
    path = "/owners/acme/members/ada"
    problem(patch(client, path, {"role": "operator"}), 428, "precondition_required")
    patch(client, path, {"role": "operator"}, **{"If-Match": added["ETag"]})
    assert client.get(f"{ROOT}/owners/acme/members").json()["items"] == [
        {"user": "ada", "role": "operator"}
    ]
    assert remove(client, path).status_code == 204
    assert client.get(f"{ROOT}{path}").status_code == 404
    actions = AuditEntry.objects.filter(object_type="membership").order_by("id")
    assert list(actions.values_list("action", flat=True)) == ["create", "change", "delete"]


def test_the_last_admin_of_an_owner_stays(caller: Caller, acme: Owner) -> None:
    """But for the installation's admin."""
    member(acme, "ada")
    member(acme, "eve", Role.OPERATOR)
    path = "/owners/acme/members/ada"
    client = caller(acme)
    problem(remove(client, path), 409, "last_admin")
    lowered = patch(client, path, {"role": "viewer"}, **{"If-Match": "*"})
    problem(lowered, 409, "last_admin")
    member(acme, "bob")
    assert remove(client, path).status_code == 204
    assert remove(caller(), "/owners/acme/members/bob").status_code == 204


# --- workers --------------------------------------------------------------------------------


def test_workers_show_only_the_callers_runs(caller: Caller, acme: Owner, stranger: Owner) -> None:
    """With their slots and the age of their heartbeat, by PostgreSQL's clock."""
    worker = living_worker()
    [mine], [other] = submitted(acme), submitted(stranger)
    admitted(worker, mine)
    admitted(worker, other)
    shown = caller(acme).get(f"{ROOT}/workers/{worker}").json()
    assert (shown["runs"], shown["active_runs"]) == ([str(mine.id)], 1)
    assert (shown["state"], shown["slots"]) == ("alive", 4)
    assert 0 <= shown["heartbeat_age_seconds"] < 30
    assert caller().get(f"{ROOT}/workers").json()["items"][0]["active_runs"] == 2


# --- dead letters ---------------------------------------------------------------------------


def test_failed_runs_are_grouped_and_a_group_is_retried(
    caller: Caller, acme: Owner, stranger: Owner
) -> None:
    """By task and error; a dry run counts only."""
    runs = [failed(acme), failed(acme), failed(acme, "builtins.KeyError"), failed(stranger)]
    client = caller(acme)
    shown = client.get(f"{ROOT}/dead-letters").json()
    assert shown["is_complete"]
    assert [(one["owner"], one["error"], one["count"]) for one in shown["items"]] == [
        ("acme", "builtins.ValueError", 2),
        ("acme", "builtins.KeyError", 1),
    ]
    assert shown["items"][0]["newest_message"] == "no"
    group = {"state": ["failed"], "task": "tests.add", "error": "builtins.ValueError"}
    body = {"filter": group, "reason": "device is back"}
    dry = post(client, "/runs/retry", {**body, "dry_run": True}).json()
    assert (dry["matched"], dry["moved"]) == (2, 0)
    assert post(client, "/runs/retry", body).json()["moved"] == 2
    states = [Run.objects.get(id=run.id).state for run in runs]
    assert states == ["queued", "queued", "failed", "failed"]


# --- audit ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "count"),
    [({}, 3), ({"action": "pause"}, 2), ({"owner": "stranger"}, 0), ({"actor": "nobody"}, 0)],
)
def test_the_audit_has_the_callers_owners_only(
    caller: Caller, acme: Owner, stranger: Owner, query: dict[str, str], count: int
) -> None:
    """With filters and pages."""
    for owner in (acme, stranger):
        for action in ("pause", "resume", "pause"):
            AuditEntry.write(action, on=owner, reason="why")
    client = caller(acme)
    entries = client.get(f"{ROOT}/audit", {**query, "object_type": "owner", "limit": 2}).json()
    found = entries["items"]
    if entries["next"]:
        more = {**query, "object_type": "owner", "limit": 2, "cursor": entries["next"]}
        found += client.get(f"{ROOT}/audit", more).json()["items"]
    assert [one["owner"] for one in found] == ["acme"] * count
