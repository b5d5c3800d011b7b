"""jobs/api/jobs/reading.py: lists, next due times, last results, missed spans."""

from datetime import UTC, datetime, timedelta

from jobs import upsert_jobs
from jobs.core import sql
from jobs.models import (
    Job,
    Missed,
    Owner,
)
from tests.jobs.api.conftest import ROOT, Caller
from tests.jobs.api.job_scenes import JOB, made


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
