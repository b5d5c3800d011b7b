"""jobs/api/jobs: made, changed, listed, read, paused and run, by callers of one owner."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from jobs import upsert_jobs
from jobs.core import sql
from jobs.definitions import single
from jobs.models import (
    ApiToken,
    AuditEntry,
    Backfill,
    IdempotencyKey,
    Job,
    Missed,
    Owner,
    Run,
    Target,
)
from jobs.schedules import place
from tests.jobs.api.conftest import ROOT, Caller, post, problem

ADD = {"x": 1, "y": 2}
JOB = {"key": "nightly", "task": "tests.add", "arguments": ADD}
UNREAD = '"00000000000000000000000000000000"'


def made(client: Client, **fields: Any) -> Any:
    """Create a job; return the answer, which has its ETag."""
    answer = post(client, "/jobs", {**JOB, **fields})
    assert answer.status_code == 201, answer.content
    return answer


def change(client: Client, method: str, path: str, body: Any = None, etag: str = "*") -> Any:
    """Send a change with If-Match."""
    headers = {"If-Match": etag} if etag else {}
    send = getattr(client, method)
    return send(f"{ROOT}{path}", body, content_type="application/json", headers=headers)


# --- create ---------------------------------------------------------------------------------


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
    assert (entry.action, entry.owner, entry.token) == ("add", acme, ApiToken.objects.get())


def test_a_key_that_is_there_is_a_conflict(caller: Caller, acme: Owner, stranger: Owner) -> None:
    """The job that has it stays as it is; another owner's key is unrelated."""
    client = caller(acme)
    made(client)
    again = post(client, "/jobs", {**JOB, "priority": 1})
    assert problem(again, 409, "job_exists")["field"] == "key"
    assert Job.objects.get().priority is None
    made(caller(stranger))


@pytest.mark.parametrize(
    ("fields", "field", "told"),
    [
        ({"zone": "Europe/Berlinn", "cron": "@daily"}, "zone", "Europe/Berlin"),
        ({"cron": "0 0 30 2 *"}, "cron", "no date"),
        ({"cron": "0 0 1 * * *"}, "cron", "five"),
        ({"cron": "61 * * * *"}, "cron", "0-59"),
        ({"cron": "*/90 * * * *"}, "cron", "60"),
        ({"cron": "* * * * *" * 50}, "cron", "200"),
        ({"cron": "@never"}, "cron", "@daily"),
        ({"interval_seconds": 0}, "interval_seconds", "1"),
        ({"interval_seconds": 86_401}, "interval_seconds", "86400"),
        ({"interval_seconds": 120}, "interval_seconds", "interval_minutes=2"),
        ({"interval_minutes": 0}, "interval_minutes", "1"),
        ({"interval_minutes": 525_601}, "interval_minutes", "525600"),
        ({"interval_minutes": 5, "cron": "@daily"}, "interval_minutes", "does not go"),
        ({"schedule": "cron"}, "cron", "required"),
        ({"schedule": "often"}, "schedule", "interval"),
        ({"once_at": "2027-02-30T00:00:00Z"}, "once_at", "day"),
        ({"once_at": "2027-01-01T25:00:00Z"}, "once_at", ""),
        ({"once_at": "2027-01-01T00:00:00"}, "once_at", "timezone"),
        ({"once_at": "9999-01-01T00:00:00Z"}, "once_at", "2199"),
        ({"once_at": "0001-01-01T00:00:00+14:00"}, "once_at", "1970"),
        (
            {"cron": "@daily", "start_at": "2027-01-01T00:00Z", "end_at": "2027-01-01T00:00Z"},
            "end_at",
            "later than start_at",
        ),
        ({"priority": -1}, "priority", "0"),
        ({"priority": 10}, "priority", "9"),
        ({"max_attempts": 0}, "max_attempts", "1"),
        ({"max_attempts": 1e9}, "max_attempts", "100"),
        ({"backoff_seconds": -1}, "backoff_seconds", "0"),
        ({"deadline_seconds": 1e18}, "deadline_seconds", "2592000"),
        ({"misfire_cap": 0}, "misfire_cap", "1"),
        ({"misfire": "maybe"}, "misfire", "skip"),
        ({"overlap": "skip", "history_policy": "none"}, "overlap", "full"),
        ({"soft_time_limit_seconds": 9, "time_limit_seconds": 9}, "soft_time_limit_seconds", "9"),
        ({"retry_on": ["NoSuchError"]}, "retry_on", "NoSuchError"),
        ({"queue": "nowhere"}, "queue", "jobs"),
        ({"labels": {"a": "b" * 201}}, "labels.a", "200"),
        ({"lock_key": "a\tb"}, "lock_key", "control"),
        ({"key": ""}, "key", "1"),
        ({"key": "k" * 201}, "key", "200"),
        ({"arguments": {"x": "one", "y": 2}}, "arguments.x", "integer"),
        ({"arguments": [1]}, "arguments", "dict"),
        ({"id": 1}, "id", "not permitted"),
        ({"state": "running"}, "state", "not permitted"),
        ({"token": 3}, "token", "not permitted"),
        ({"phase": 3}, "phase", "not permitted"),
        ({"paused_until": None}, "paused_until", "not permitted"),
    ],
)
def test_bad_input_is_refused_with_field_and_limit(
    caller: Caller, acme: Owner, *, fields: dict[str, Any], field: str, told: str
) -> None:
    """In a single job and in a bulk; nothing is stored."""
    client = caller(acme)
    refused = problem(post(client, "/jobs", {**JOB, **fields}), 422, "invalid")
    assert refused["field"] == field and told in refused["detail"].replace(",", ""), refused
    bulk = problem(
        post(client, "/jobs/upsert", {"jobs": [JOB, {**JOB, "key": "b", **fields}]}), 422, "invalid"
    )
    [fault] = [each for each in bulk["errors"] if each["field"] == f"jobs.1.{field}"]
    assert fault["index"] == 1 and told in fault["detail"].replace(",", "")
    assert not Job.objects.exists() and not Target.objects.exists()


@pytest.mark.parametrize("task", ["tests.nothing", "os.system", "fairshift.system.settle", ""])
def test_only_tasks_on_offer_are_taken(caller: Caller, acme: Owner, *, task: str) -> None:
    """A dotted path is not imported."""
    refused = problem(post(caller(acme), "/jobs", {**JOB, "task": task}), 422, "unknown_task")
    assert refused["field"] == "task"
    assert not Job.objects.exists()


def test_all_wrong_fields_are_told_at_once(caller: Caller, acme: Owner) -> None:
    """The caller corrects them in one step."""
    wrong = {"zone": "Mars", "cron": "* * * *", "arguments": {"x": 1}}
    refused = problem(post(caller(acme), "/jobs", {**JOB, **wrong}), 422, "invalid")
    assert {each["field"] for each in refused["errors"]} >= {"zone", "cron", "arguments.y"}


def test_arguments_over_the_limit_are_refused(
    caller: Caller, acme: Owner, settings: Settings
) -> None:
    """With the limit, which is a setting."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "PAYLOAD_MAX_BYTES": 1024}
    arguments = {"method": "POST", "url": "https://edge-7.example.com/", "body": "x" * 2_000}
    body = {**JOB, "task": "fairshift.http_request", "arguments": arguments}
    refused = problem(post(caller(acme), "/jobs", body), 413, "payload_too_large")
    assert refused["limit"] == 1024


def test_an_owner_has_so_many_jobs_at_most(caller: Caller, acme: Owner, settings: Settings) -> None:
    """429; changes of jobs that are there still work."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "API_OWNER_JOBS": 2}
    client = caller(acme)
    for key in ("a", "b"):
        made(client, key=key)
    refused = post(client, "/jobs", {**JOB, "key": "c"})
    assert problem(refused, 429, "jobs")["limit"] == 2 and refused["Retry-After"]
    jobs = [{**JOB, "key": key, "priority": 1} for key in ("a", "b")]
    assert post(client, "/jobs/upsert", {"jobs": jobs}).json()["updated"] == 2
    more = post(client, "/jobs/upsert", {"jobs": [*jobs, JOB]})
    problem(more, 429, "jobs")
    assert Job.objects.count() == 2


# --- change ---------------------------------------------------------------------------------


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
    monkeypatch.setattr("jobs.api.jobs.writing.delete", overtaken_delete)
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


# --- bulk -----------------------------------------------------------------------------------


def test_a_bulk_makes_and_changes_jobs_by_their_keys(caller: Caller, acme: Owner) -> None:
    """Repeating it changes nothing; it is one entry in the audit."""
    client = caller(acme)
    jobs = [{**JOB, "key": f"job-{number}"} for number in range(100)]
    assert post(client, "/jobs/upsert", {"jobs": jobs}).json() == {
        "created": 100,
        "updated": 0,
        "unchanged": 0,
    }
    jobs[7] = {**jobs[7], "interval_seconds": 45}
    done = post(client, "/jobs/upsert", {"jobs": jobs}).json()
    assert done == {"created": 0, "updated": 1, "unchanged": 99}
    entry = AuditEntry.objects.filter(action="upsert jobs").latest("id")
    assert entry.owner == acme and entry.details["updated"] == 1


def test_one_bad_job_of_many_stores_none(caller: Caller, acme: Owner) -> None:
    """Every bad one is listed with its index, whatever is wrong with it."""
    jobs: list[Any] = [{**JOB, "key": f"job-{number}"} for number in range(1_000)]
    jobs[3] = {**jobs[3], "zone": "Mars"}
    jobs[500] = "nonsense"
    jobs[700] = {**jobs[700], "task": "tests.nothing"}
    jobs[998] = {**jobs[998], "key": "job-997"}
    jobs[999] = {**jobs[999], "priority": 10, "max_attempts": 0}
    refused = problem(post(caller(acme), "/jobs/upsert", {"jobs": jobs}), 422, "invalid")
    assert [(each["index"], each["field"]) for each in refused["errors"]] == [
        (3, "jobs.3.zone"),
        (500, "jobs.500"),
        (700, "jobs.700.task"),
        (998, "jobs.998.key"),
        (999, "jobs.999.priority"),
        (999, "jobs.999.max_attempts"),
    ]
    assert not Job.objects.exists()


def test_a_bulk_has_a_limit(caller: Caller, acme: Owner, settings: Settings) -> None:
    """413 with the limit, and an empty bulk is none."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "API_MAX_BATCH": 2}
    client = caller(acme)
    assert (
        problem(post(client, "/jobs/upsert", {"jobs": [JOB] * 3}), 413, "batch_too_large")["limit"]
        == 2
    )
    assert problem(post(client, "/jobs/upsert", {"jobs": []}), 422, "invalid")["field"] == "jobs"


# --- read -----------------------------------------------------------------------------------


def test_pages_have_every_job_once(caller: Caller, acme: Owner, stranger: Owner) -> None:
    """By owner and key; a job that is made meanwhile moves no later page."""
    upsert_jobs(acme, [{**JOB, "key": f"job-{number}"} for number in range(5)])
    upsert_jobs(stranger, [JOB])
    client, found, cursor = caller(acme), [], ""
    while cursor is not None:
        page = client.get(f"{ROOT}/jobs?limit=2&cursor={cursor}").json()
        found += [job["key"] for job in page["items"]]
        cursor = page["next"]
        upsert_jobs(acme, [{**JOB, "key": "a-new-one"}])
    assert found == [f"job-{number}" for number in range(5)]
    everyone = caller().get(f"{ROOT}/jobs?limit=500").json()["items"]
    assert {job["owner"] for job in everyone} == {"acme", "stranger"}
    page = client.get(f"{ROOT}/jobs?limit=1").json()["next"]
    problem(caller(stranger).get(f"{ROOT}/jobs?cursor={page}"), 422, "invalid_cursor")


def test_filters_narrow_the_list(caller: Caller, acme: Owner, stranger: Owner) -> None:
    """Each one alone finds its job; names of another owner find nothing."""
    upsert_jobs(
        acme,
        [
            {**JOB, "key": "a", "target": "sw-1", "cron": "@daily"},
            {**JOB, "key": "b", "name": "Backup", "enabled": False},
            {"key": "c", "task": "tests.fail", "arguments": {"times": 1}},
        ],
    )
    upsert_jobs(stranger, [{**JOB, "target": "sw-2"}])
    Job.objects.filter(key="c").update(paused_until=sql.now() + timedelta(hours=1))
    client = caller(acme)

    def keys(query: str) -> str:
        answer = client.get(f"{ROOT}/jobs?{query}")
        assert answer.status_code == 200, answer.content
        return "".join(job["key"] for job in answer.json()["items"])

    assert keys("") == keys("owner=acme") == "abc"
    assert keys("key=a") == keys("target=sw-1") == keys("schedule=cron") == "a"
    assert keys("search=back") == keys("search=b") == keys("enabled=false") == "b"
    assert keys("task=tests.fail") == keys("paused=true") == "c"
    assert keys("paused=false") == "ab"
    assert keys("owner=stranger") == keys("target=sw-2") == keys("key=nightly") == ""
    assert client.get(f"{ROOT}/jobs?schedule=often").json()["field"] == "schedule"


def test_next_times_have_notes_on_the_clock(caller: Caller, acme: Owner) -> None:
    """In the job's zone, as its page in the admin shows them."""
    client = caller(acme)
    made(client, cron="30 2 * * *", zone="Europe/Berlin")
    job = Job.objects.get()
    pause = {"until": "2027-03-26T12:00:00Z"}
    assert post(client, f"/jobs/{job.pk}/pause", pause).status_code == 200
    found = client.get(f"{ROOT}/jobs/{job.pk}/next?count=3").json()
    assert found["zone"] == "Europe/Berlin" and "02:30" in found["words"]
    assert [each["at"][:16] for each in found["items"]] == [
        "2027-03-27T01:30",
        "2027-03-28T01:00",
        "2027-03-29T00:30",
    ]
    assert found["items"][0]["local"].endswith("+01:00")
    assert "clocks go from" in found["items"][1]["note"]
    assert client.get(f"{ROOT}/jobs/{job.pk}/next?count=101").json()["field"] == "count"
    change(client, "patch", f"/jobs/{job.pk}", {"enabled": False})
    off = client.get(f"{ROOT}/jobs/{job.pk}/next").json()
    assert off["items"] == [] and "not enabled" in off["problem"]


def test_a_job_that_raw_sql_broke_is_still_shown(caller: Caller, acme: Owner) -> None:
    """Its next times say what is wrong."""
    client = caller(acme)
    made(client, cron="@daily")
    job = Job.objects.get()
    Job.objects.filter(pk=job.pk).update(cron="broken", zone="Mars", payload=b"{")
    assert client.get(f"{ROOT}/jobs/{job.pk}").json()["arguments"] is None
    assert client.get(f"{ROOT}/jobs/{job.pk}/next").json()["problem"]


def test_arguments_are_only_for_those_who_may_see_them(caller: Caller, acme: Owner) -> None:
    """They often hold secrets; lists never show them."""
    made(caller(acme))
    path = f"{ROOT}/jobs/{Job.objects.get().pk}"
    assert caller(acme, "read").get(path).json()["arguments"] is None
    assert caller(acme, "read", "operate").get(path).json()["arguments"] == ADD
    assert "arguments" not in caller(acme).get(f"{ROOT}/jobs").json()["items"][0]


def test_last_results_and_missed_spans(caller: Caller, acme: Owner) -> None:
    """Newest first, in pages where there may be many."""
    client = caller(acme)
    made(client)
    job = Job.objects.get()
    runs = [job.run_now() for _ in range(3)]
    found = client.get(f"{ROOT}/jobs/{job.pk}/results").json()["items"]
    assert [each["id"] for each in found] == [str(run.id) for run in reversed(runs)]
    first = datetime(2026, 1, 1, tzinfo=UTC)
    for day in range(3):
        at = first + timedelta(days=day)
        Missed.objects.create(job=job, owner=acme, first_at=at, last_at=at, count=1, reason="cap")
    page = client.get(f"{ROOT}/jobs/{job.pk}/missed?limit=2").json()
    assert [each["first_at"][:10] for each in page["items"]] == ["2026-01-03", "2026-01-02"]
    page = client.get(f"{ROOT}/jobs/{job.pk}/missed?cursor={page['next']}").json()
    assert [each["first_at"][:10] for each in page["items"]] == ["2026-01-01"]
    assert page["next"] is None


# --- act ------------------------------------------------------------------------------------


def test_a_pause_ends_by_itself_or_by_a_resume(caller: Caller, acme: Owner) -> None:
    """Both are audited with their reason, and a second resume changes nothing."""
    client = caller(acme)
    made(client, interval_minutes=5)
    path = f"/jobs/{Job.objects.get().pk}"
    for until in ("2020-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2027-01-01T00:00:00"):
        assert (
            problem(post(client, f"{path}/pause", {"until": until}), 422, "invalid")["field"]
            == "until"
        )
    body = {"until": "2199-01-01T00:00:00Z", "reason": "upgrade"}
    paused = post(client, f"{path}/pause", body)
    assert paused.json()["paused_until"].startswith("2199-01-01")
    stale = post(client, f"{path}/resume", {}, **{"If-Match": UNREAD})
    problem(stale, 412, "precondition_failed")
    for _ in range(2):
        assert post(client, f"{path}/resume", {}).json()["paused_until"] is None
    entries = AuditEntry.objects.filter(object_type="job").order_by("id")
    assert [entry.action for entry in entries] == ["add", "pause", "resume"]
    assert entries[1].reason == "upgrade"


def test_the_same_key_runs_a_job_once(caller: Caller, acme: Owner) -> None:
    """Also after the job has changed; another job with the key is a conflict."""
    client = caller(acme)
    made(client, labels={"site": "berlin"})
    made(client, key="other")
    first, other = Job.objects.order_by("pk")
    key = {"Idempotency-Key": "by-hand-1"}
    answer = post(client, f"/jobs/{first.pk}/run", {}, **key)
    assert answer.status_code == 202 and answer.json()["job"] == "nightly"
    assert client.get(answer["Location"]).json()["labels"] == {"site": "berlin"}
    change(client, "patch", f"/jobs/{first.pk}", {"arguments": {"x": 7, "y": 7}})
    again = post(client, f"/jobs/{first.pk}/run", {}, **key)
    assert again.json()["id"] == answer.json()["id"] and Run.objects.count() == 1
    problem(post(client, f"/jobs/{other.pk}/run", {}, **key), 409, "idempotency_conflict")
    assert Run.objects.count() == IdempotencyKey.objects.count() == 1


def test_a_job_that_is_off_makes_no_runs(caller: Caller, acme: Owner) -> None:
    """Neither by hand nor by a backfill."""
    client = caller(acme)
    made(client, enabled=False, cron="@daily")
    path = f"/jobs/{Job.objects.get().pk}"
    problem(post(client, f"{path}/run", {}), 409, "job_disabled")
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-08T00:00:00Z"}
    problem(post(client, f"{path}/backfill", span), 409, "job_disabled")
    assert not Run.objects.exists() and not Backfill.objects.exists()


def test_a_backfill_counts_first(caller: Caller, acme: Owner) -> None:
    """A dry run makes nothing; the same key makes one."""
    client = caller(acme)
    made(client, cron="@daily")
    path = f"/jobs/{Job.objects.get().pk}/backfill"
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-08T00:00:00Z"}
    counted = post(client, path, {**span, "dry_run": True}).json()
    assert (counted["count"], counted["id"]) == (7, None) and not Backfill.objects.exists()
    key = {"Idempotency-Key": "week-1"}
    first, again = (post(client, path, {**span, "reason": "lost"}, **key) for _ in range(2))
    assert first.status_code == 202 and first.json() == again.json()
    assert Backfill.objects.get().submission_id == first.json()["submission"]


@pytest.mark.parametrize(
    ("span", "field"),
    [
        ({"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "end"),
        ({"start": "2026-01-01T00:00:00Z", "end": "2190-01-01T00:00:00Z"}, "end"),
        ({"start": "1969-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "start"),
        ({"start": "2026-01-01T00:00:00", "end": "2026-01-02T00:00:00Z"}, "start"),
        ({"start": "2026-01-01T01:00:00Z", "end": "2026-01-01T02:00:00Z"}, "end"),
    ],
)
def test_a_bad_range_is_refused(
    caller: Caller, acme: Owner, *, span: dict[str, str], field: str
) -> None:
    client = caller(acme)
    made(client, cron="@daily")
    answer = post(client, f"/jobs/{Job.objects.get().pk}/backfill", span)
    assert problem(answer, 422, "invalid")["field"] == field
    assert not Backfill.objects.exists()


# --- other owners, statements ---------------------------------------------------------------


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


def test_a_create_takes_few_statements(caller: Caller, acme: Owner) -> None:
    """One for the caller, one ends the barrier; a change reads the job, too.

    Prepared statements are not captured: one writes the job and its audit entry.
    """
    client = caller(acme)
    made(client, key="first")
    with CaptureQueriesContext(connection) as captured:
        etag = made(client, interval_minutes=5)["ETag"]
    assert len(captured) == 2, [query["sql"][:80] for query in captured]
    path = f"/jobs/{Job.objects.get(key='nightly').pk}"
    with CaptureQueriesContext(connection) as captured:
        assert change(client, "patch", path, {"priority": 3}, etag).status_code == 200
    assert len(captured) == 3, [query["sql"][:80] for query in captured]
