"""jobs/recurring/pause.py: what an operator pauses makes no runs until a time, or until resumed."""

from datetime import timedelta

from django.contrib.auth.models import User

from jobs.core.sql import now
from jobs.models import AuditEntry, Job, Owner
from jobs.recurring.pause import pause_jobs
from tests.jobs.recurring.scenes import recurring


def test_jobs_are_paused_and_resumed(acme: Owner) -> None:
    """All of them at once; each has its entry in the audit."""
    ann = User.objects.create_user("ann")
    jobs = [recurring(acme), recurring(acme, schedule="seconds", interval_seconds=7)]
    ids = [job.pk for job in jobs]
    until = now() + timedelta(hours=1)
    assert pause_jobs(ids, until=until, actor=ann, reason="rollout") == 2
    assert list(Job.objects.values_list("paused_until", flat=True)) == [until, until]
    assert not Job.objects.filter(paused_from=None).exists()
    assert pause_jobs([*ids, ids[-1] + 1], until=None) == 2
    assert not Job.objects.exclude(paused_until=None).exists()
    entries = AuditEntry.objects.filter(object_id=str(ids[0])).order_by("pk")
    written = [(it.action, it.actor_name, it.reason, it.details["until"]) for it in entries]
    assert written == [("pause", "ann", "rollout", until.isoformat()), ("resume", "", "", None)]
