"""jobs/api/jobs/writing.py: jobs made, changed and deleted, by callers of one owner."""

from typing import Any

import pytest

from jobs.core import sql
from jobs.definitions import single
from jobs.models import (
    ApiToken,
    AuditEntry,
    Job,
    Missed,
    Owner,
    Run,
    Target,
)
from jobs.schedules import place
from tests.jobs.api.conftest import ROOT, Caller, post, problem, statements
from tests.jobs.api.job_scenes import ADD, JOB, UNREAD, change, made


def test_a_created_job_is_answered_as_it_is_read(caller: Caller, acme: Owner) -> None:
    """With all fields, its address, and the ETag of its first version."""
    client = caller(acme)
    answer = made(
        client,
        name="Sum ⚙",
        labels={"site": "berlin"},
        target="sw-1",
        cron="0 4 * * mon",
        zone="Europe/Berlin",
        start_at="2027-01-01T00:00:00+01:00",
        priority=7,
        retry_on=["ConnectionError"],
    )
    shown = answer.json()
    job = Job.objects.get()
    assert answer["Location"] == f"{ROOT}/jobs/{job.pk}"
    read = client.get(answer["Location"])
    assert read.json() == shown and read["ETag"] == answer["ETag"]
    assert (shown["owner"], shown["schedule"], shown["cron"]) == ("acme", "cron", "0 4 * * MON")
    assert (shown["target"], shown["arguments"], shown["enabled"]) == ("sw-1", ADD, True)
    assert (job.owner, job.priority, job.target) == (acme, 7, Target.objects.get())
    [entry] = AuditEntry.objects.filter(object_type="job")
    assert (entry.action, entry.owner, entry.token) == ("create", acme, ApiToken.objects.get())


def test_a_key_that_is_there_is_a_conflict(caller: Caller, acme: Owner, stranger: Owner) -> None:
    """The job that has it stays as it is; another owner's key is unrelated."""
    client = caller(acme)
    made(client)
    again = post(client, "/jobs", {**JOB, "priority": 1})
    assert problem(again, 409, "job_exists")["field"] == "key"
    assert Job.objects.get().priority is None
    made(caller(stranger))


def test_a_replaced_job_has_defaults_where_nothing_is_sent(caller: Caller, acme: Owner) -> None:
    """Its key, its owner and its pause stay."""
    client = caller(acme)
    before = made(client, interval_minutes=15, priority=7, labels={"a": "b"}, target="sw-1")
    job = Job.objects.get()
    body = {"task": "tests.add", "arguments": {"x": 5, "y": 6}, "interval_minutes": 15}
    after = change(client, "put", f"/jobs/{job.pk}", body, before["ETag"])
    assert after.status_code == 200, after.content
    assert after["ETag"] != before["ETag"]
    read = client.get(f"{ROOT}/jobs/{job.pk}")
    assert read.json() == after.json() and read["ETag"] == after["ETag"]
    changed = Job.objects.get()
    assert (changed.priority, changed.labels, changed.target) == (None, {}, None)
    assert (changed.key, changed.phase, changed.shard) == (job.key, job.phase, job.shard)
    assert AuditEntry.objects.get(action="change").details["changes"]


def test_a_patch_changes_what_it_names(caller: Caller, acme: Owner) -> None:
    """Another kind of schedule takes the place of the one before; null is the default."""
    client = caller(acme)
    made(client, interval_minutes=15, priority=7, target="sw-1")
    job_id = Job.objects.get().pk
    patched = change(client, "patch", f"/jobs/{job_id}", {"cron": "@daily"}).json()
    assert (patched["schedule"], patched["cron"]) == ("cron", "@daily")
    assert (patched["interval_minutes"], patched["priority"]) == (None, 7)
    assert (patched["target"], patched["arguments"]) == ("sw-1", ADD)
    patched = change(client, "patch", f"/jobs/{job_id}", {"priority": None, "smooth": True}).json()
    assert (patched["priority"], patched["smooth"], patched["cron"]) == (None, True, "@daily")
    assert Job.objects.get().shard is not None
    patched = change(client, "patch", f"/jobs/{job_id}", {"schedule": "manual", "smooth": False})
    assert (patched.json()["schedule"], Job.objects.get().shard) == ("manual", None)
    wrong = change(client, "patch", f"/jobs/{job_id}", {"arguments": {"x": 1}})
    assert problem(wrong, 422, "invalid")["field"] == "arguments.y"
    wrong = change(client, "patch", f"/jobs/{job_id}", {"key": "other"})
    assert problem(wrong, 422, "invalid")["field"] == "key"


def test_an_equal_change_writes_nothing(caller: Caller, acme: Owner) -> None:
    """Its version stays, so its schedule holds as before."""
    client = caller(acme)
    before = made(client, cron="@daily", labels={"a": "b"}, retry_on=["OSError"])
    job = Job.objects.get()
    body = {**JOB, "cron": "@daily", "labels": {"a": "b"}, "retry_on": ["OSError"]}
    del body["key"]
    for method, sent in (("put", body), ("patch", {"cron": "@daily"}), ("patch", {})):
        answer = change(client, method, f"/jobs/{job.pk}", sent, before["ETag"])
        assert (answer.status_code, answer["ETag"]) == (200, before["ETag"]), answer.content
    assert not AuditEntry.objects.filter(action="change").exists()


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_a_change_needs_the_version_that_was_read(
    caller: Caller, acme: Owner, *, method: str
) -> None:
    """428 without If-Match, 412 with another version; nothing changes."""
    client = caller(acme)
    made(client)
    path, body = f"/jobs/{Job.objects.get().pk}", {"task": "tests.add", "priority": 3}
    problem(change(client, method, path, body, ""), 428, "precondition_required")
    problem(change(client, method, path, body, UNREAD), 412, "precondition_failed")
    assert Job.objects.get().priority is None


@pytest.mark.parametrize("method", ["patch", "delete"])
def test_the_loser_of_a_race_changes_nothing(
    caller: Caller, acme: Owner, monkeypatch: pytest.MonkeyPatch, *, method: str
) -> None:
    """Another change between the read and the write: 412."""
    client = caller(acme)
    etag = made(client)["ETag"]
    job = Job.objects.get()
    checked = single.checked

    def overtaken(given: Any) -> Any:
        Job.objects.filter(pk=job.pk).update(name="the other")
        return checked(given)

    def overtaken_delete(found: Job, **given: Any) -> bool:
        Job.objects.filter(pk=job.pk).update(name="the other")
        return single.delete_job(found, **given)

    monkeypatch.setattr(single, "checked", overtaken)
    monkeypatch.setattr("jobs.actions.jobs.delete_job", overtaken_delete)
    answer = change(client, method, f"/jobs/{job.pk}", {"priority": 3}, etag)
    problem(answer, 412, "precondition_failed")
    job.refresh_from_db()
    assert (job.name, job.priority) == ("the other", None)


def test_a_deleted_job_is_gone_and_its_runs_stay(
    caller: Caller, committed: None, acme: Owner
) -> None:
    """With its missed spans and backfills; a second delete finds nothing."""
    client = caller(acme)
    etag = made(client)["ETag"]
    job = Job.objects.get()
    run = job.run_now()
    at = sql.now()
    Missed.objects.create(job=job, owner=acme, first_at=at, last_at=at, count=1, reason="outage")
    gone = change(client, "delete", f"/jobs/{job.pk}", etag=etag)
    assert gone.status_code == 204 and not gone.content
    assert not Job.objects.exists() and not Missed.objects.exists()
    assert Run.objects.get().id == run.id
    assert AuditEntry.objects.filter(action="delete", object_id=str(job.pk)).count() == 1
    problem(change(client, "delete", f"/jobs/{job.pk}"), 404, "not_found")


def test_places_are_those_of_the_rule(caller: Caller, acme: Owner) -> None:
    """The statement for one job computes what `jobs.schedules.place` does."""
    client = caller(acme)
    for minutes in (1, 7, 525_600):
        made(client, key=f"every-{minutes}", interval_minutes=minutes)
        sequence = f"jobs_phase_{minutes % 64}"
        [row] = sql.query(f"SELECT last_value AS n FROM {sequence}")
        job = Job.objects.get(key=f"every-{minutes}")
        assert (job.phase, job.shard) == place(row["n"], interval_minutes=minutes)


def test_scopes_are_those_of_the_page(caller: Caller, acme: Owner) -> None:
    """Submit runs a job, operate pauses it, admin changes it; none includes another."""
    made(caller(acme))
    path = f"/jobs/{Job.objects.get().pk}"
    wanted = {"submit": "run", "operate": "pause"}
    bodies = {"run": {}, "pause": {"until": "2199-01-01T00:00:00Z"}}
    for scope in ("read", "submit", "operate", "approve", "admin"):
        client = caller(acme, "read", scope)
        for verb, body in bodies.items():
            answer = post(client, f"{path}/{verb}", body)
            assert (answer.status_code < 300) == (wanted.get(scope) == verb), (scope, verb)
        answer = change(client, "patch", path, {"name": scope})
        assert (answer.status_code == 200) == (scope == "admin")


def test_each_takes_few_statements(caller: Caller, acme: Owner) -> None:
    """One for the caller, one for the job with its audit entry; a change reads the job before."""
    client = caller(acme)
    made(client, key="first")
    with statements() as found:
        etag = made(client, interval_minutes=5)["ETag"]
    assert len(found) == 2, found
    path = f"/jobs/{Job.objects.get(key='nightly').pk}"
    with statements() as found:
        assert change(client, "patch", path, {"priority": 3}, etag).status_code == 200
    assert len(found) == 3, found
