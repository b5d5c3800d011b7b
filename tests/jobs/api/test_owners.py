"""jobs/api/owners, members, workers, dead letters: by callers of one owner and of all."""

from datetime import timedelta

from django.contrib.auth import get_user_model

from jobs.core.sql import now
from jobs.models import AuditEntry, Membership, Owner, Role
from tests.jobs.api.conftest import ROOT, Caller, post, problem
from tests.jobs.api.job_scenes import change
from tests.jobs.scenes import admitted, failed, living_worker, submitted


def member(owner: Owner, name: str, role: str = Role.ADMIN) -> Membership:
    user = get_user_model().objects.create(username=name)
    return Membership.objects.create(owner=owner, user=user, role=role)


def test_an_owner_is_added_by_the_installation_only(caller: Caller, acme: Owner) -> None:
    """An owner's own admin may not; a taken slug and a wrong one are named."""
    body = {"slug": "initech", "weight": 3, "max_running": 10, "zone": "Europe/Berlin"}
    problem(post(caller(acme), "/owners", body), 403, "forbidden")
    made = post(client := caller(), "/owners", body)
    shown = client.get(made["Location"])
    assert (shown.json(), shown["ETag"]) == (made.json(), made["ETag"])
    assert (shown.json()["weight"], shown.json()["max_running"]) == (3, 10)
    for wrong, field in (
        ({}, "slug"),
        ({"slug": "a b"}, "slug"),
        ({"slug": "x", "zone": "Berlin"}, "zone"),
    ):
        refused = post(client, "/owners", {**body, **wrong})
        assert problem(refused, 422, "invalid")["field"] == field


def test_the_admin_of_an_owner_sets_its_objective(caller: Caller, acme: Owner) -> None:
    """It is no limit, and changes no other owner's share; wrong numbers are named."""
    client, path = caller(acme), "/owners/acme"
    assert client.get(f"{ROOT}{path}").json()["wait_objective_seconds"] is None
    body = {"wait_objective_seconds": 30, "wait_objective_percent": 99.5}
    made = change(client, "patch", path, body)
    assert made.status_code == 200, made.content
    assert {name: made.json()[name] for name in body} == body
    wrong = {"wait_objective_seconds": (0, 86_401, 1.5), "wait_objective_percent": (49, 100, None)}
    for name, value in [(name, value) for name, values in wrong.items() for value in values]:
        refused = change(client, "patch", path, {name: value})
        assert problem(refused, 422, "invalid")["field"] == name
    cleared = change(client, "patch", path, {"wait_objective_seconds": None})
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


def test_a_worker_shows_the_callers_runs(caller: Caller, acme: Owner) -> None:
    """With its slots and the age of its heartbeat, by PostgreSQL's clock."""
    worker = living_worker()
    [run] = submitted(acme)
    admitted(worker, run)
    shown = caller(acme).get(f"{ROOT}/workers/{worker}").json()
    assert (shown["runs"], shown["active_runs"]) == ([str(run.id)], 1)
    assert (shown["state"], shown["slots"]) == ("alive", 4)
    assert 0 <= shown["heartbeat_age_seconds"] < 30


def test_failed_runs_are_grouped_by_task_and_error(caller: Caller, acme: Owner) -> None:
    """The largest group first, with its newest message."""
    for error in ("builtins.ValueError", "builtins.KeyError", "builtins.ValueError"):
        failed(acme, error)
    shown = caller(acme).get(f"{ROOT}/dead-letters").json()
    assert shown["is_complete"] and shown["items"][0]["newest_message"] == "no"
    assert [(one["owner"], one["error"], one["count"]) for one in shown["items"]] == [
        ("acme", "builtins.ValueError", 2),
        ("acme", "builtins.KeyError", 1),
    ]


def test_the_last_admin_of_an_owner_stays(caller: Caller, acme: Owner) -> None:
    """But for the installation's admin."""
    member(acme, "ada")
    member(acme, "eve", Role.OPERATOR)
    path = "/owners/acme/members/ada"
    client = caller(acme)
    problem(change(client, "delete", path), 409, "last_admin")
    problem(change(client, "patch", path, {"role": "viewer"}), 409, "last_admin")
    member(acme, "bob")
    assert change(client, "delete", path).status_code == 204
    assert change(caller(), "delete", "/owners/acme/members/bob").status_code == 204


def test_a_user_becomes_a_member_once(caller: Caller, acme: Owner) -> None:
    """By the installation, which sees all users; the owner's token may not list them."""
    get_user_model().objects.create(username="ada")
    body = {"user": "ada", "role": "viewer"}
    problem(post(caller(acme), "/owners/acme/members", body), 422, "invalid")
    assert post(caller(), "/owners/acme/members", body).status_code == 201
    for again in (body, {**body, "user": "bob"}):
        refused = post(caller(acme), "/owners/acme/members", again)
        assert problem(refused, 422, "invalid")["field"] == "user"
