"""One job read, made, changed or deleted, each in one statement, which is its own commit.

A job that has a new target takes a transaction. A change names the version of the job that it
replaces, as `changed_at`; losing a race is a normal return value.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from django.db import IntegrityError, connection, transaction

from jobs.core import prepared
from jobs.core.crypto import CLEAR
from jobs.definitions.periodic_tasks import sync_after_commit
from jobs.definitions.spec import JobSpec
from jobs.definitions.upsert import checked, remove, row_of
from jobs.models import ApiToken, AuditEntry, Job, Owner, ScheduleKind, Target
from jobs.models.verbs import Actor
from jobs.runs import preparation
from jobs.runs.targets import targets_of

_COLUMNS: Final = tuple(field.attname for field in Job._meta.concrete_fields)
_READ: Final = ("id", "phase", "shard", "effective_from", "changed_at")


def read_job(job_id: int, *, owner_ids: Collection[int] | None) -> Job | None:
    """Return a job of these owners (None: of any), with its owner's slug and its target's name."""
    owners = None if owner_ids is None else sorted(owner_ids)
    rows = prepared.run_over_all("definitions/select_one", {"id": job_id, "owner_ids": owners})
    if not rows:
        return None
    [row] = rows
    # psycopg returns jsonb as Django's column wants it: as text or as a value.
    if isinstance(row["labels"], str):
        row["labels"] = json.loads(row["labels"])
    job = Job.from_db(connection.alias, _COLUMNS, [row[name] for name in _COLUMNS])
    job.owner = Owner(pk=job.owner_id, slug=row["owner_slug"])
    if job.target_id is not None:
        job.target = Target(pk=job.target_id, name=row["target_name"])
    return job


def create_job(owner: Owner, given: Mapping[str, Any], *, actor: Actor = None) -> Job | None:
    """Make a job and return it; None if the owner has a job of this key.

    Raises BatchError with every wrong field, and UnknownOwner.
    """
    [spec] = checked([given])
    with _transaction(spec):
        target_id = _target_id(owner.pk, spec)
        rows = prepared.run_over_all(
            "definitions/insert_one", {"row": _json(owner.pk, spec, target_id), **_who(actor)}
        )
        if not rows:
            preparation.load_owner(owner)
            return None
        [row] = rows
        if spec.columns["schedule"] == ScheduleKind.SECONDS:
            sync_after_commit([row["id"]])
    values = {
        **spec.columns,
        **row,
        "key": spec.key,
        "owner_id": owner.pk,
        "target_id": target_id,
        "payload": spec.payload,
        "payload_key": CLEAR,
    }
    job = Job.from_db(connection.alias, _COLUMNS, [values.get(name) for name in _COLUMNS])
    owner.slug = row["slug"]
    job.owner = owner
    job.target = Target(pk=target_id, name=spec.target) if target_id is not None else None
    return job


def change_job(job: Job, given: Mapping[str, Any], *, actor: Actor = None) -> Job | None:
    """Give a job these fields and return it; None if it has changed since it was read.

    `job` was loaded with its owner and target. A job that is so already is not written. Raises
    BatchError with every wrong field.
    """
    [spec] = checked([{**given, "key": job.key}])
    changes = _changes(job, spec)
    if not changes:
        return job
    with _transaction(spec):
        target_id = _target_id(job.owner_id, spec)
        rows = prepared.run_over_all(
            "definitions/update_one",
            {
                "id": job.pk,
                "seen": job.changed_at,
                "row": _json(job.owner_id, spec, target_id),
                "changes": json.dumps(changes),
                **_who(actor),
            },
        )
        if not rows:
            return None
        [row] = rows
        if ScheduleKind.SECONDS in (spec.columns["schedule"], row["old_schedule"]):
            sync_after_commit([job.pk])
    return _with(job, spec, target_id, row)


def delete_job(job: Job, *, actor: Actor = None) -> bool:
    """Delete a job; False if it has changed since it was read. Its runs stay, with history."""
    seen = {"id": job.pk, "seen": job.changed_at}
    if not connection.in_atomic_block:
        try:
            gone = prepared.run_over_all("definitions/delete_one", {**seen, **_who(actor)})
        except IntegrityError:
            pass  # Another transaction has added a record of the job: below it is waited for.
        else:
            if gone and gone[0]["schedule"] == ScheduleKind.SECONDS:
                sync_after_commit([job.pk])
            return bool(gone)
    with transaction.atomic():
        rows = Job.objects.select_for_update().filter(pk=job.pk, changed_at=job.changed_at)
        if not rows.values_list("pk").first():
            return False
        remove([(job.owner_id, job.key)])
        if actor is not None:
            AuditEntry.write("delete", on=job, actor=actor, name=str(job))
    return True


def _transaction(spec: JobSpec) -> AbstractContextManager[Any]:
    """Return a transaction if a target may have to be made together with the job."""
    return transaction.atomic() if spec.target else nullcontext()


def _target_id(owner_id: int, spec: JobSpec) -> int | None:
    if not spec.target:
        return None
    return targets_of([(owner_id, spec.target)])[owner_id, spec.target]


def _json(owner_id: int, spec: JobSpec, target_id: int | None) -> str:
    return json.dumps(row_of((owner_id, spec.key), spec, target_id), default=str)


def _changes(job: Job, spec: JobSpec) -> list[str]:
    """Return the names of the fields that differ."""
    changes = [name for name, value in spec.columns.items() if getattr(job, name) != value]
    if bytes(job.payload) != spec.payload or job.payload_key != CLEAR:
        changes.append("arguments")
    if (job.target.name if job.target else "") != spec.target:
        changes.append("target")
    if job.schedule == ScheduleKind.INTERVAL and None in (job.phase, job.shard):
        changes.append("phase")
    return changes


def _with(job: Job, spec: JobSpec, target_id: int | None, row: Mapping[str, Any]) -> Job:
    """Return a job as it would be read after its change."""
    for name, value in spec.columns.items():
        setattr(job, name, value)
    for name in _READ:
        if name in row:
            setattr(job, name, row[name])
    job.payload, job.payload_key = spec.payload, CLEAR
    job.target = Target(pk=target_id, name=spec.target) if target_id is not None else None
    return job


def _who(actor: Actor) -> dict[str, Any]:
    """Return the columns of an audit entry that say who acts."""
    if actor is None:
        return {"actor_id": None, "token_id": None, "actor_name": None}
    is_token = isinstance(actor, ApiToken)
    return {
        "actor_id": None if is_token else actor.pk,
        "token_id": actor.pk if is_token else None,
        "actor_name": actor.get_username(),
    }
