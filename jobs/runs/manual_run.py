"""Run by an operator: one run of a job now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from jobs.core.crypto import open_bytes
from jobs.models import AuditEntry, Job, Run
from jobs.runs import idempotency
from jobs.runs.submission import run_job

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser


@transaction.atomic
def run_job_once(
    job: Job, *, idempotency_key: str, actor: AbstractBaseUser | None = None, reason: str = ""
) -> Run | None:
    """Submit one run of a job now, and audit it; None when the key has made a run before."""
    payload = open_bytes(job.payload, key=job.payload_key)
    claim = idempotency.claim(job.owner, idempotency_key, job.task, [payload])
    if claim is None or claim.run_id is not None:
        return None
    run = run_job(job)
    claim.keep(run_id=run.id)
    AuditEntry.write("run now", on=job, actor=actor, reason=reason, run=str(run.id))
    return run
