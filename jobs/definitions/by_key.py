"""Write or delete one job by its key in one statement.

Outside a transaction the statement is its own commit. Verbs for one job use it:
`jobs.definitions.single` returns the job, `jobs.definitions.upsert` a count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.db import IntegrityError, connection, transaction

from jobs.calendars.targets import targets_of
from jobs.core import crypto, prepared
from jobs.definitions.periodic_tasks import sync_after_commit
from jobs.definitions.spec import JobSpec
from jobs.models import ApiToken, Job, ScheduleKind
from jobs.models.verbs import Actor


def write(
    named: Mapping[str, Any],
    spec: JobSpec,
    *,
    creates: bool = True,
    updates: bool = True,
    seen: Job | None = None,
    changes: Sequence[str] = (),
    actor: Actor = None,
) -> dict[str, Any] | None:
    """Make or change a job; return the row of write_one.sql, or None if there is no such owner.

    `named` is the result of `preparation.named_by`; for a job with a target it has the owner's id.
    With `seen`, the job is changed only if it is still as it was read. `changes` are the names of
    the changed fields, for the audit entry.
    """
    with _transaction(spec):
        owner_id = named["owner_id"]
        target_id = None
        if spec.target:
            target_id = targets_of([(owner_id, spec.target)])[owner_id, spec.target]
        given = spec.row(target_id=target_id)
        facts = {
            **named,
            "creates": creates,
            "updates": updates,
            "changes": json.dumps(changes),
            **_version(seen),
            **who(actor),
        }
        while True:
            given |= _sealed(named, spec)
            rows = prepared.run_over_all(
                "definitions/write_one", {**facts, "row": json.dumps(given, default=str)}
            )
            if not rows:
                return None
            [row] = rows
            # Else another transaction has made the job anew, and its arguments need another id.
            if given["id"] is None or row["found_id"] in {None, given["id"]}:
                break
        kinds = (spec.columns["schedule"], row["old_schedule"])
        if row["id"] is not None and ScheduleKind.SECONDS in kinds:
            sync_after_commit([row["id"]])
    return row


def delete(
    named: Mapping[str, Any],
    key: str,
    *,
    seen: Job | None = None,
    actor: Actor = None,
    reason: str = "",
) -> dict[str, Any] | None:
    """Delete a job; return the row of delete_one.sql, or None if a bulk's statements have to do it.

    They have to in a transaction, for an unknown owner, and if another transaction has just added a
    record of the job. With `seen`, the job is deleted only if it is still as it was read.
    """
    if not is_alone():
        return None
    try:
        rows = prepared.run_over_all(
            "definitions/delete_one",
            {**named, "key": key, "reason": reason, **_version(seen), **who(actor)},
        )
    except IntegrityError:
        return None
    if not rows:
        return None
    [row] = rows
    if row["schedule"] == ScheduleKind.SECONDS:
        sync_after_commit([row["id"]])
    return row


def is_alone() -> bool:
    """Say whether a statement now commits by itself."""
    return not connection.in_atomic_block and connection.get_autocommit()


def _sealed(named: Mapping[str, Any], spec: JobSpec) -> dict[str, Any]:
    """Return the columns of encrypted arguments; empty without a key ring, or without the owner."""
    if crypto.ring() is None:
        return {}
    rows = prepared.run_over_all("definitions/job_id", {**named, "key": spec.key})
    return spec.sealed(owner=rows[0]["owner"], job_id=rows[0]["id"]) if rows else {}


def _transaction(spec: JobSpec) -> AbstractContextManager[Any]:
    """Return a transaction if a target may have to be made together with the job."""
    return transaction.atomic() if spec.target else nullcontext()


def _version(seen: Job | None) -> dict[str, Any]:
    return {"id": seen and seen.pk, "seen": seen and seen.changed_at}


def who(actor: Actor) -> dict[str, Any]:
    """Return the parameters of an audit entry that say who acts."""
    if actor is None:
        return {"actor_id": None, "token_id": None, "actor_name": None}
    is_token = isinstance(actor, ApiToken)
    return {
        "actor_id": None if is_token else actor.pk,
        "token_id": actor.pk if is_token else None,
        "actor_name": actor.get_username(),
    }
