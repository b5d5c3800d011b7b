"""Overriding: an operator lets runs start outside their windows, with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from jobs.core import sql
from jobs.core.errors import OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.states import WAITING
from jobs.models import AuditEntry, Run, Submission
from jobs.runs import gate

CHUNK: Final = 1_000

_OVERRIDDEN: Final = """
WITH locked AS MATERIALIZED (
    SELECT id FROM jobs_run
    WHERE id = ANY(%(ids)s) AND state = ANY(%(states)s) AND window_policy <> 'overridden'
    ORDER BY id FOR UPDATE
)
UPDATE jobs_run r SET window_policy = 'overridden'
FROM locked l WHERE r.id = l.id AND r.id = ANY(%(ids)s)
RETURNING r.id, r.state IN ('held', 'queued') AS is_due
"""


def override_windows(run_ids: Sequence[UUID], *, actor: Any, reason: str) -> int:
    """Let these runs start regardless of calendars; return how many were not overridden before.

    Only waiting runs change. A run that is due is queued now, any other when it becomes due. Raises
    OptionError without a reason. Repeating it is harmless.
    """
    _refuse_reason(reason)
    ids = list(run_ids)
    return sum(
        _override(ids[start : start + CHUNK], actor=actor, reason=reason)
        for start in range(0, len(ids), CHUNK)
    )


def override_submission(submission: Submission, *, actor: Any, reason: str) -> int:
    """Let all waiting runs of a submission start regardless of calendars; return how many."""
    _refuse_reason(reason)
    waiting = Run.objects.filter(submission=submission, state__in=WAITING)
    ids = list(waiting.order_by("id").values_list("id", flat=True))
    total = override_windows(ids, actor=actor, reason=reason)
    AuditEntry.write("override windows", on=submission, actor=actor, reason=reason, runs=total)
    return total


def _override(run_ids: Sequence[UUID], *, actor: Any, reason: str) -> int:
    with transaction.atomic():
        rows = sql.query(
            _OVERRIDDEN, {"ids": run_ids, "states": [state.value for state in WAITING]}
        )
        due = [row["id"] for row in rows if row["is_due"]]
        gate.gate_runs(due, cause=f"windows overridden by {actor.get_username()}: {reason}")
        runs = Run.objects.filter(id__in=[row["id"] for row in rows]).select_related("owner")
        AuditEntry.write_all("override windows", on=list(runs), actor=actor, reason=reason)
    return len(rows)


def _refuse_reason(reason: str) -> None:
    refuse_text("reason", reason, most=REASON_LIMIT)
    if not reason.strip():
        raise OptionError("reason", "is needed to override windows")
