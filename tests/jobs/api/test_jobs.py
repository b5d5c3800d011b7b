"""jobs/api/jobs/writing.py: jobs made, changed and deleted, by callers of one owner."""

from jobs.models import (
    ApiToken,
    AuditEntry,
    Job,
    Owner,
    Target,
)
from tests.jobs.api.conftest import ROOT, Caller, problem
from tests.jobs.api.job_scenes import ADD, change, made


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
