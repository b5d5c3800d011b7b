"""One job read, made, changed or deleted, each in one statement, which is its own commit.

A job that has a new target takes a transaction. A change names the version of the job that it
replaces, as `changed_at`; losing a race is a normal return value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from django.db import connection, transaction

from jobs.catalog.redaction import restored
from jobs.core import prepared
from jobs.core.crypto import CLEAR, Damaged, UnknownKey, open_payload
from jobs.core.errors import ArgumentError, BatchError, FairshiftError
from jobs.definitions import by_key
from jobs.definitions.present import arguments_of
from jobs.definitions.spec import JobSpec
from jobs.definitions.upsert import checked, remove
from jobs.models import AuditEntry, Job, Owner, ScheduleKind, Target
from jobs.models.access import Access
from jobs.models.verbs import Actor
from jobs.runs import preparation

_COLUMNS: Final = tuple(field.attname for field in Job._meta.concrete_fields)
_ID_LIMIT: Final = 2**63
_READ: Final = ("phase", "shard", "effective_from", "changed_at")


def read_job(job_id: int, *, by: Access) -> Job | None:
    """Return a job that the caller sees, with its owner's slug and its target's name.

    Their other columns are read when they are used.
    """
    if job_id >= _ID_LIMIT:
        return None
    owners = None if by.sees_all else sorted(by.owner_ids())
    rows = prepared.run_over_all("definitions/select_one", {"id": job_id, "owner_ids": owners})
    if not rows:
        return None
    [row] = rows
    # psycopg returns jsonb as Django's column wants it: as text or as a value.
    if isinstance(row["labels"], str):
        row["labels"] = json.loads(row["labels"])
    job = Job.from_db(connection.alias, _COLUMNS, [row[name] for name in _COLUMNS])
    using = connection.alias
    job.owner = Owner.from_db(using, ("id", "slug"), (job.owner_id, row["owner_slug"]))
    if job.target_id is not None:
        job.target = Target.from_db(using, ("id", "name"), (job.target_id, row["target_name"]))
    return job


def create_job(owner: Owner, given: Mapping[str, Any], *, actor: Actor = None) -> Job | None:
    """Make a job and return it; None if the owner has a job of this key.

    Raises BatchError with every wrong field, and UnknownOwner.
    """
    [spec] = checked([given])
    row = by_key.write(_named(owner.pk), spec, updates=False, actor=actor)
    if row is None:
        preparation.load_owner(owner)
    if row is None or row["id"] is None:
        return None
    values = {
        **spec.columns,
        **row,
        "key": spec.key,
        "payload": spec.payload,
        "payload_key": CLEAR,
    }
    job = Job.from_db(connection.alias, _COLUMNS, [values.get(name) for name in _COLUMNS])
    owner.slug = row["slug"]
    job.owner = owner
    job.target = _target(spec, row)
    return job


def change_job(job: Job, given: Mapping[str, Any], *, actor: Actor = None) -> Job | None:
    """Give a job these fields and return it; None if it has changed since it was read.

    `job` was loaded with its owner and target. A job that is so already is not written. Raises
    BatchError with every wrong field.
    """
    [spec] = checked([{**given, "key": job.key, "arguments": _restored(job, given, actor)}])
    changes = _changes(job, spec)
    if not changes:
        return job
    named = _named(job.owner_id)
    row = by_key.write(named, spec, creates=False, seen=job, changes=changes, actor=actor)
    if row is None or row["id"] is None:
        return None
    for name, value in spec.columns.items():
        setattr(job, name, value)
    for name in _READ:
        setattr(job, name, row[name])
    job.payload, job.payload_key = spec.payload, CLEAR
    job.target = _target(spec, row)
    return job


def delete_job(job: Job, *, actor: Actor = None, reason: str = "") -> bool:
    """Delete a job; False if it has changed since it was read. Its runs stay, with history."""
    gone = by_key.delete(_named(job.owner_id), job.key, seen=job, actor=actor, reason=reason)
    if gone is not None:
        return gone["id"] is not None
    with transaction.atomic():
        rows = Job.objects.select_for_update().filter(pk=job.pk, changed_at=job.changed_at)
        if not rows.values_list("pk").first():
            return False
        remove([(job.owner_id, job.key)], actor=actor)
        if actor is not None:
            AuditEntry.write("delete", on=job, actor=actor, reason=reason, name=str(job))
    return True


def _named(owner_id: int) -> dict[str, Any]:
    return {"owner_id": owner_id, "slug": None}


def _target(spec: JobSpec, row: Mapping[str, Any]) -> Target | None:
    return Target(pk=row["target_id"], name=spec.target) if spec.target else None


def _restored(job: Job, given: Mapping[str, Any], actor: Actor) -> Any:
    """Return given arguments, with the job's own where a value comes back as it was shown."""
    arguments = given.get("arguments")
    try:
        stored = arguments_of(job)
    except (FairshiftError, LookupError, ValueError, TypeError):
        stored = {}
    try:
        return restored(
            arguments,
            stored,
            task=job.task,
            may_keep=actor is None,
            is_same_task=given.get("task") == job.task,
        )
    except ArgumentError as error:
        raise BatchError([(0, error)], 1) from None


def _payload(job: Job) -> bytes | None:
    """Return a job's arguments in clear; None if they cannot be read."""
    try:
        return open_payload(job.payload, key=job.payload_key, place=job.place)
    except (Damaged, UnknownKey):
        return None


def _changes(job: Job, spec: JobSpec) -> list[str]:
    """Return the names of the fields that differ."""
    changes = [name for name, value in spec.columns.items() if getattr(job, name) != value]
    if _payload(job) != spec.payload:
        changes.append("arguments")
    if (job.target.name if job.target else "") != spec.target:
        changes.append("target")
    if job.schedule == ScheduleKind.INTERVAL and None in (job.phase, job.shard):
        changes.append("phase")
    return changes
