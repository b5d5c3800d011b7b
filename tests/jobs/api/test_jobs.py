"""jobs/api/jobs: made, changed, deleted, listed; last results and missed spans."""

from datetime import UTC, datetime, timedelta

import pytest

from jobs import upsert_jobs
from jobs.core import sql
from jobs.models import ApiToken, AuditEntry, Job, Missed, Owner, Target
from tests.jobs.api.conftest import ROOT, Caller, problem
from tests.jobs.api.job_scenes import ADD, JOB, change, made
from tests.jobs.noticed_jobs import naming_counts, notice


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


@pytest.mark.usefixtures("committed")
def test_a_job_that_notices_name_is_deleted(caller: Caller, acme: Owner) -> None:
    """The role of requests may not read all of these tables; the deletion is not its own."""
    client = caller(acme)
    answer = made(client)
    job = Job.objects.get()
    notice(job)
    gone = change(client, "delete", f"/jobs/{job.pk}", etag=answer["ETag"])
    assert gone.status_code == 204, gone.content
    assert not Job.objects.exists() and naming_counts() == [0] * 5


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
