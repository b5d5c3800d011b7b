"""Retry by an operator: an ended run is queued again with a fresh set of attempts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.redaction import restored
from jobs.catalog.registry import resolve
from jobs.core.crypto import PAYLOAD, read_message, seal
from jobs.core.errors import StateConflict
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.states import REOPENABLE, State
from jobs.models import AuditEntry, Run, Submission
from jobs.models.verbs import Actor
from jobs.runs import gate, preparation
from jobs.runs.recording import move
from jobs.runs.result_backend import forget

CHUNK: Final = 1_000
BUDGET_SECONDS: Final = 20.0
"""Seconds after which no further chunk is begun: a request must end."""


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
            _edit_arguments(run, arguments, actor=actor)
            if actor is not None:
                AuditEntry.write("edit arguments", on=run, actor=actor, reason=reason)
        reopen_runs([run.id], actor=actor, reason=reason)
    run.refresh_from_db()


def _edit_arguments(run: Run, arguments: Mapping[str, Any], *, actor: Actor) -> None:
    args, kwargs, embed = read_message(run.payload, key=run.payload_key, place=run.place)
    # A form sends a value back as it was shown.
    stored = _by_name(run.task, args, kwargs)
    given = restored(dict(arguments), stored, task=run.task, may_keep=actor is None)
    payload = preparation.encode_payload(resolve(run.task), (), given, embed=embed)
    # Only of a run that no worker has: one that has it was given the earlier arguments.
    editable = Run.objects.filter(id=run.id, state__in=REOPENABLE)
    sealed = seal(payload, field=PAYLOAD, place=run.place)
    # A checkpoint is of the earlier arguments.
    editable.update(payload=sealed.data, payload_key=sealed.key, checkpoint=None)


def _by_name(task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    positional = ArgumentSchema.of(resolve(task)).positional if args else ()
    return {**dict(zip(positional, args, strict=False)), **kwargs}


def reopen_failed(
    submission: Submission, *, actor: Actor = None, reason: str = ""
) -> tuple[int, int]:
    """Queue a submission's failed runs again; return how many, and how many are left."""
    until = time.monotonic() + BUDGET_SECONDS
    failed = Run.objects.filter(submission=submission, state=State.FAILED).order_by("pk")
    ids = list(failed.values_list("pk", flat=True))
    AuditEntry.write(
        "retry failed runs", on=submission, actor=actor, reason=reason, matched=len(ids)
    )
    moved = 0
    for start in range(0, len(ids), CHUNK):
        if time.monotonic() > until:
            return moved, len(ids) - start
        # The only run of a chunk may have been retried by another operator meanwhile.
        with suppress(StateConflict), transaction.atomic():
            moved += len(reopen_runs(ids[start : start + CHUNK], reason=reason))
    return moved, 0
