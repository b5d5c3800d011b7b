"""Cancel: a waiting run ends at once; the worker of an active run is asked to stop it.

The worker gets the request in the reply to its next heartbeat (`jobs/system/heartbeat.py`), and
`Outcomes.stop` in `fleet/worker/outcomes.py` signals the process that executes the task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from jobs.core import sql
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.states import ENDED, WAITING, State
from jobs.models import AuditEntry, Backfill, Run, Submission
from jobs.models.verbs import Actor, Cancelled
from jobs.rollouts import rounds
from jobs.runs.celery_outcomes import notify_celery
from jobs.runs.dispatch import withdraw_on_commit
from jobs.runs.recording import move

CHUNK: Final = 1_000

_LOCKED = """
SELECT id, state, token, queue FROM jobs_run WHERE id = ANY(%s) ORDER BY id FOR UPDATE
"""


def cancel_runs(run_ids: Sequence[UUID], *, actor: Actor = None, reason: str = "") -> list[UUID]:
    """Cancel these runs; return the ids of those that moved. Repeating it is harmless.

    Waiting runs become `cancelled`, active ones `cancelling`: the worker learns it with its next
    heartbeat, or rescue ends the run. Raises OptionError if the reason is too long.
    """
    ended, stopping = _cancel(run_ids, actor=actor, reason=reason)
    return ended + stopping


def _cancel(run_ids: Sequence[UUID], *, actor: Actor, reason: str) -> tuple[list[UUID], list[UUID]]:
    """Cancel runs; return the ids of those that ended, and of those that were asked to stop."""
    refuse_text("reason", reason, most=REASON_LIMIT)
    with transaction.atomic():
        # Locked for both moves: else neither would see a run that is given back between them.
        before = sql.query(_LOCKED, [list(run_ids)])
        ended = move(run_ids, to=State.CANCELLED, from_states=WAITING, cause=reason or "cancelled")
        stopping = move(run_ids, to=State.CANCELLING, cause=reason or "cancelled")
        if actor is not None:
            for run in Run.objects.filter(id__in=ended + stopping).select_related("owner"):
                AuditEntry.write("cancel", on=run, actor=actor, reason=reason)
        transaction.on_commit(lambda: notify_celery(ended), robust=True)
        gone = set(ended)
        withdraw_on_commit(
            row for row in before if row["state"] == State.QUEUED and row["id"] in gone
        )
    return ended, stopping


def cancel_submission(
    submission: Submission, *, actor: Actor = None, reason: str = ""
) -> Cancelled:
    """Cancel a submission's runs that have not ended, and its backfill; return how many moved."""
    # First: this waits for a chunk that the backfill is making, whose runs are then seen below.
    Backfill.objects.filter(submission=submission, done_at=None).update(done_at=Now())
    # guard: no wave is released while the ones before it are cancelled
    rounds.halt(submission.pk, actor=actor, reason=reason)
    open_runs = Run.objects.filter(submission=submission).exclude(state__in=ENDED)
    ids = list(open_runs.order_by("id").values_list("id", flat=True))
    cancelled = stopping = 0
    for start in range(0, len(ids), CHUNK):
        ended, asked = _cancel(ids[start : start + CHUNK], actor=None, reason=reason)
        cancelled += len(ended)
        stopping += len(asked)
    moved = Cancelled(cancelled, stopping)
    if actor is not None:
        AuditEntry.write("cancel", on=submission, actor=actor, reason=reason, **moved._asdict())
    return moved
