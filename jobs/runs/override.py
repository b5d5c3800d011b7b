"""Overriding: an operator lets runs start outside their windows, with a reason.

An override counts for the calendars on which its actor may decide. Shared calendars stay in force
unless the actor may operate the whole installation, as superusers may.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from jobs.core import sql
from jobs.core.errors import OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.states import WAITING, State
from jobs.models import AuditEntry, Run, Scope, Submission, WindowPolicy
from jobs.models.access import access_of
from jobs.runs import gate

CHUNK: Final = 1_000

_OVERRIDDEN: Final = """
WITH locked AS MATERIALIZED (
    SELECT id FROM jobs_run
    WHERE id = ANY(%(ids)s) AND state = ANY(%(states)s) AND window_policy <> ALL(%(wider)s)
    ORDER BY id FOR UPDATE
)
UPDATE jobs_run r SET window_policy = %(policy)s
FROM locked l WHERE r.id = l.id AND r.id = ANY(%(ids)s)
RETURNING r.id, r.state IN ('held', 'queued') AS is_due
"""


def override_windows(run_ids: Sequence[UUID], *, actor: Any, reason: str) -> int:
    """Let these runs start outside their windows; return how many were not overridden before.

    Only waiting runs change. A run that is due is queued now unless a shared calendar holds it
    (`held_by`), any other when it becomes due. Raises OptionError without a reason. Repeating it is
    harmless.
    """
    _refuse_reason(reason)
    ids = list(run_ids)
    return sum(
        _override(ids[start : start + CHUNK], actor=actor, reason=reason)
        for start in range(0, len(ids), CHUNK)
    )


def override_submission(submission: Submission, *, actor: Any, reason: str) -> int:
    """Let all waiting runs of a submission start outside their windows; return how many."""
    _refuse_reason(reason)
    waiting = Run.objects.filter(submission=submission, state__in=WAITING)
    ids = list(waiting.order_by("id").values_list("id", flat=True))
    total = override_windows(ids, actor=actor, reason=reason)
    AuditEntry.write("override windows", on=submission, actor=actor, reason=reason, runs=total)
    return total


def held_by(run_ids: Sequence[UUID]) -> list[str]:
    """Return the names of the shared calendars that hold some of these runs despite an override."""
    return [row["name"] for row in sql.run("runs/held_by", {"ids": list(run_ids)})]


def held_by_of(submission: Submission) -> list[str]:
    """Return the names of the shared calendars that hold a submission's runs after an override."""
    held = Run.objects.filter(submission=submission, state=State.HELD)
    return held_by(list(held.values_list("id", flat=True)))


def _override(run_ids: Sequence[UUID], *, actor: Any, reason: str) -> int:
    wider = [WindowPolicy.OVERRIDDEN.value]
    policy = WindowPolicy.OVERRIDDEN
    if not access_of(actor).has(Scope.OPERATE):
        policy = WindowPolicy.SHARED
        wider.append(policy.value)
    given = {"policy": policy.value, "wider": wider, "states": [state.value for state in WAITING]}
    with transaction.atomic():
        rows = sql.query(_OVERRIDDEN, {"ids": run_ids, **given})
        due = [row["id"] for row in rows if row["is_due"]]
        gate.gate_runs(due, cause=f"windows overridden by {actor.get_username()}: {reason}")
        runs = Run.objects.filter(id__in=[row["id"] for row in rows]).select_related("owner")
        AuditEntry.write_all("override windows", on=list(runs), actor=actor, reason=reason)
    return len(rows)


def _refuse_reason(reason: str) -> None:
    refuse_text("reason", reason, most=REASON_LIMIT)
    if not reason.strip():
        raise OptionError("reason", "is needed to override windows")
