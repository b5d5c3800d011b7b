"""Retry by an operator: an ended run is queued again with a fresh set of attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from jobs.core.errors import StateConflict
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.states import REOPENABLE, State
from jobs.models import AuditEntry, Run
from jobs.models.verbs import Actor
from jobs.rollouts import rounds
from jobs.runs import gate
from jobs.runs.changing import edited
from jobs.runs.recording import move
from jobs.runs.result_backend import forget


def reopen_runs(run_ids: Sequence[UUID], *, actor: Actor = None, reason: str = "") -> list[UUID]:
    """Queue failed, cancelled and expired runs again; return the ids of those that moved.

    `max_attempts` and back-off count from 1 again. Tokens and the numbers of attempts continue, so
    late reports of an earlier attempt stay fenced off. A passed deadline is removed. Raises
    StateConflict if a single run is given that may not move, OptionError if the reason is too long.
    """
    refuse_text("reason", reason, most=REASON_LIMIT)
    with transaction.atomic():
        passed = Run.objects.filter(id__in=run_ids, state__in=REOPENABLE, deadline_at__lte=Now())
        passed.update(deadline_at=None)
        moved = move(
            run_ids, to=State.QUEUED, from_states=REOPENABLE, cause=reason or "retry", is_fresh=True
        )
        if not moved and len(run_ids) == 1:
            run = Run.objects.get(id=run_ids[0])
            raise StateConflict(str(run.id), run.state, "retried")
        # Where calendars apply, they decide whether it is queued.
        gated = Run.objects.filter(id__in=moved, owner__calendar_version__gt=0)
        gate.gate_runs(list(gated.values_list("id", flat=True)), cause=reason or "retry")
        rounds.reopened(moved)
        # Else rescue would take the earlier result for that of a new attempt.
        forget(moved)
        if actor is not None:
            for run in Run.objects.filter(id__in=moved).select_related("owner"):
                AuditEntry.write("retry", on=run, actor=actor, reason=reason)
    return moved


def retry_run(
    run: Run, *, arguments: Mapping[str, Any] | None = None, actor: Actor = None, reason: str = ""
) -> None:
    """Queue an ended run again, with other arguments if they are given; by name, all of them.

    Raises as `reopen_runs` does, and ArgumentError, PayloadTooLarge or UnknownTask for the
    arguments; nothing has changed then. Hidden values are kept as `redaction.restored` says.
    """
    with transaction.atomic():
        if arguments is not None:
            columns = edited(run, arguments, actor=actor).columns
            # Only of a run that no worker has: one that has it was given the earlier arguments.
            Run.objects.filter(id=run.id, state__in=REOPENABLE).update(**columns)
            if actor is not None:
                AuditEntry.write("edit arguments", on=run, actor=actor, reason=reason)
        reopen_runs([run.id], actor=actor, reason=reason)
    run.refresh_from_db()
