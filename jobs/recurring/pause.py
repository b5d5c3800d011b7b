"""Pauses of jobs: during a pause the schedule of the job makes no runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models.functions import Now

from jobs.models import AuditEntry, Job
from jobs.models.verbs import Actor
from jobs.recurring.misfire import record_pauses


@transaction.atomic
def pause_jobs(
    job_ids: Sequence[int],
    *,
    until: datetime | None,
    actor: Actor = None,
    reason: str = "",
) -> int:
    """Pause jobs until a time, or resume them (None); return how many there are.

    A paused job can still be run by hand.
    """
    rows = Job.objects.select_related("owner").select_for_update(of=("self",))
    jobs = list(rows.filter(pk__in=job_ids).order_by("pk"))
    locked = [job.pk for job in jobs]
    # Before the update for a pause that is over already, after it for a pause that ends now.
    record_pauses(locked)
    Job.objects.filter(pk__in=locked).update(paused_until=until, changed_at=Now())
    record_pauses(locked)
    AuditEntry.write_all(
        "pause" if until else "resume",
        on=jobs,
        actor=actor,
        reason=reason,
        until=until and until.isoformat(),
    )
    return len(jobs)
