"""Upsert: make, change and delete jobs by their keys, any number in a few statements.

Within the caller's transaction, and all or nothing. A job that is equal is not touched: its
schedule goes on holding from when it was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from jobs.core import sql
from jobs.core.crypto import CLEAR
from jobs.core.errors import BatchError, FairshiftError, OptionError
from jobs.core.inputs import KEY_LIMIT, refuse_text
from jobs.definitions.periodic_tasks import sync_after_commit
from jobs.definitions.placement import JobKey, assign_placement, found_jobs
from jobs.definitions.spec import JobSpec, JobSpecs
from jobs.models import Owner, ScheduleKind
from jobs.runs import preparation
from jobs.runs.targets import targets_of

BATCH_LIMIT: Final = 100_000
# One statement's parameter: PostgreSQL takes less than 1 GB.
BYTES_LIMIT: Final = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Upserted:
    """How many jobs a bulk has made, changed, and found as they were to be."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0


def upsert_jobs(owner: Owner | str, jobs: Iterable[Mapping[str, Any]]) -> Upserted:
    """Make the owner's jobs what these say, by their keys; return how many that took.

    Each element has the names of the model's fields: `key`, `task`, `arguments` (a mapping),
    one of `cron`, `interval_minutes`, `interval_seconds` and `once_at`, or none; see
    `jobs.definitions.spec`. What is left out takes its default, also where the job had something
    else; only a pause stays. Repeating a call changes nothing.

    Raises BatchError, which lists every wrong field of every element, and stores none then;
    UnknownOwner, and OptionError for what is no list and for more than 100,000 elements.
    """
    elements = preparation.as_list("jobs", jobs, elements="mappings, one for each job")
    _refuse_size("jobs", elements)
    specs = checked(elements)
    with transaction.atomic():
        owner_row = preparation.load_owner(owner)
        return store({(owner_row.pk, spec.key): spec for spec in specs})


def delete_jobs(owner: Owner | str, keys: Iterable[str]) -> int:
    """Delete the owner's jobs with these keys; return how many there were.

    Their runs and the history of these stay. Keys without a job are no error, so a call may
    be repeated. Raises UnknownOwner, and OptionError for what can be no key.
    """
    given = checked_keys(keys)
    with transaction.atomic():
        owner_row = preparation.load_owner(owner)
        return remove([(owner_row.pk, key) for key in given])


def checked(elements: Sequence[Any], *, specs: JobSpecs | None = None) -> list[JobSpec]:
    """Return the jobs of a bulk; raise BatchError with every fault, as of a key given twice.

    `specs` is shared by several bulks that have much in common.
    """
    check = specs or JobSpecs()
    jobs: list[JobSpec] = []
    problems: list[tuple[int, FairshiftError]] = []
    keys: set[str] = set()
    for index, element in enumerate(elements):
        spec, faults = check(element)
        problems.extend((index, fault) for fault in faults)
        if spec is None:
            continue
        if spec.key in keys:
            problem = f"{spec.key!r:.220} is given twice"
            problems.append((index, OptionError("key", problem)))
        keys.add(spec.key)
        jobs.append(spec)
    if problems:
        raise BatchError(problems, len(elements))
    return jobs


def checked_keys(keys: Iterable[str]) -> list[str]:
    """Return the keys of a bulk; raise OptionError for what can be none."""
    given = preparation.as_list("keys", keys, elements="keys")
    _refuse_size("keys", given)
    for key in given:
        refuse_text("keys", key, most=KEY_LIMIT)
    return given


def store(jobs: Mapping[JobKey, JobSpec]) -> Upserted:
    """Write checked jobs of any owners, inside the caller's transaction."""
    named = [(owner_id, spec.target) for (owner_id, _), spec in jobs.items() if spec.target]
    targets = targets_of(named)
    waiting = {
        job_key: _row(job_key, spec, targets.get((job_key[0], spec.target)))
        # In the order of the insert's own ORDER BY: text in "C" sorts as its UTF-8 does.
        for job_key, spec in sorted(jobs.items())
    }
    _refuse_bytes(waiting)
    created = updated = 0
    # Again for jobs that somebody made between our look and our insert; the next look finds them.
    while waiting:
        found = found_jobs(waiting)
        assign_placement(waiting, found)
        new = {job_key: row for job_key, row in waiting.items() if job_key not in found}
        changed = _written("definitions/update", [waiting[job_key] for job_key in sorted(found)])
        made = _written("definitions/insert", list(new.values()))
        updated += len(changed)
        created += len(made)
        sync_after_commit(
            job_id
            for job_key, job_id in (changed | made).items()
            if ScheduleKind.SECONDS
            in (waiting[job_key]["schedule"], found.get(job_key, {}).get("schedule"))
        )
        waiting = {job_key: row for job_key, row in new.items() if job_key not in made}
    return Upserted(created, updated, len(jobs) - created - updated)


def remove(job_keys: Iterable[JobKey]) -> int:
    """Delete jobs of any owners, inside the caller's transaction; return how many there were."""
    doomed = sorted(set(job_keys))
    if not doomed:
        return 0
    owners, keys = [owner for owner, _ in doomed], [key for _, key in doomed]
    locked = sql.run("definitions/lock_for_delete", {"owners": owners, "keys": keys})
    gone = sql.run("definitions/delete", {"ids": [row["id"] for row in locked]})
    sync_after_commit(row["id"] for row in gone if row["schedule"] == ScheduleKind.SECONDS)
    return len(gone)


def _refuse_size(option: str, elements: Sequence[Any]) -> None:
    if len(elements) > BATCH_LIMIT:
        raise OptionError(
            option, f"holds at most {BATCH_LIMIT:,} elements; these are {len(elements):,}"
        )


def _refuse_bytes(rows: Mapping[JobKey, Mapping[str, Any]]) -> None:
    size = sum(len(row["payload"]) for row in rows.values())
    if size > BYTES_LIMIT:
        raise OptionError(
            "jobs", f"have {size:,} bytes of arguments, the limit is {BYTES_LIMIT:,}; split them"
        )


def _row(job_key: JobKey, spec: JobSpec, target_id: int | None) -> dict[str, Any]:
    owner_id, key = job_key
    return {
        **spec.columns,
        "owner_id": owner_id,
        "key": key,
        "payload": f"\\x{spec.payload.hex()}",
        "payload_key": CLEAR,
        "target_id": target_id,
        "phase": None,
        "shard": None,
    }


def _written(statement: str, rows: Sequence[Mapping[str, Any]]) -> dict[JobKey, int]:
    """Return the ids of the rows that a statement has written."""
    if not rows:
        return {}
    written = sql.run(statement, {"rows": json.dumps(rows, default=str)})
    return {(row["owner_id"], row["key"]): row["id"] for row in written}
