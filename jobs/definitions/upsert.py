"""Upsert: make, change and delete jobs by their keys, any number in a few statements.

All or nothing, within the caller's transaction. A job that would not change is not written, so its
schedule keeps its `effective_from`. A call for one job is one statement (`by_key.py`), or takes the
statements of a bulk where that one has no answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.db import transaction

from jobs.calendars.targets import targets_of
from jobs.core import crypto, sql
from jobs.core.errors import BatchError, FairshiftError, OptionError
from jobs.core.inputs import KEY_LIMIT, refuse_text
from jobs.definitions import by_key
from jobs.definitions.periodic_tasks import sync_after_commit
from jobs.definitions.placement import JobKey, assign_placement, found_jobs, new_job_ids
from jobs.definitions.spec import JobSpec, JobSpecs
from jobs.models import AuditEntry, Owner, ScheduleKind
from jobs.models.owner import slug_of
from jobs.models.verbs import Actor
from jobs.runs import preparation

BATCH_LIMIT: Final = 100_000
BYTES_LIMIT: Final = 256 * 2**20
"""Arguments of a bulk: in hex they are one parameter, and PostgreSQL takes less than 1 GB."""


@dataclass(frozen=True, slots=True)
class Upserted:
    created: int = 0
    updated: int = 0
    unchanged: int = 0


def upsert_jobs(owner: Owner | str, jobs: Iterable[Mapping[str, Any]]) -> Upserted:
    """Make or change the owner's jobs by their keys; return how many of each.

    Each element has the names of the model's fields: `key`, `task`, `arguments` (a mapping), and at
    most one of `cron`, `interval_minutes`, `interval_seconds` and `once_at`; see
    `jobs.definitions.spec`. A missing field takes its default, also in a job that exists; a pause
    stays. Repeating a call changes nothing.

    Raises BatchError, which lists every wrong field of every element, and then stores none;
    UnknownOwner; OptionError if `jobs` is no list or has more than 100,000 elements.
    """
    elements = preparation.as_list("jobs", jobs, elements="mappings, one for each job")
    _refuse_size("jobs", elements)
    specs = checked(elements)
    done = _upsert_one(owner, specs[0]) if len(specs) == 1 else None
    return done or upsert_checked(owner, specs)


def upsert_checked(
    owner: Owner | str, specs: Iterable[JobSpec], *, actor: Actor = None
) -> Upserted:
    """Make or change jobs that `checked` has returned; audited if there is an actor."""
    with transaction.atomic():
        owner_row = preparation.load_owner(owner)
        done = store({(owner_row.pk, spec.key): spec for spec in specs})
        if actor is not None:
            AuditEntry.write("upsert jobs", on=owner_row, actor=actor, **asdict(done))
    return done


def delete_jobs(owner: Owner | str, keys: Iterable[str]) -> int:
    """Delete the owner's jobs with these keys; return how many there were.

    Their runs stay, with history. Keys without a job are ignored. Raises UnknownOwner, and
    OptionError for an invalid key.
    """
    given = checked_keys(keys)
    named = preparation.named_by(owner)
    gone = by_key.delete(named, given[0]) if named and len(given) == 1 else None
    if gone is not None:
        return int(gone["id"] is not None)
    with transaction.atomic():
        owner_row = preparation.load_owner(owner)
        return remove([(owner_row.pk, key) for key in given])


def checked(elements: Sequence[Any], *, specs: JobSpecs | None = None) -> list[JobSpec]:
    """Return the jobs of a bulk; raise BatchError with every fault, also for a key given twice.

    `specs` caches checks of common values; several bulks may share it.
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
    """Return the keys of a bulk; raise OptionError for an invalid one."""
    given = preparation.as_list("keys", keys, elements="keys")
    _refuse_size("keys", given)
    for key in given:
        refuse_text("keys", key, most=KEY_LIMIT)
    return given


def store(jobs: Mapping[JobKey, JobSpec]) -> Upserted:
    """Write checked jobs of any owners, inside the caller's transaction."""
    size = sum(len(spec.payload) for spec in jobs.values())
    if size > BYTES_LIMIT:
        problem = f"have {size:,} bytes of arguments, the limit is {BYTES_LIMIT:,}; split them"
        raise OptionError("jobs", problem)
    named = [(owner_id, spec.target) for (owner_id, _), spec in jobs.items() if spec.target]
    targets = targets_of(named)
    waiting = {
        (owner_id, key): spec.row(owner_id=owner_id, target_id=targets.get((owner_id, spec.target)))
        # In the order of insert.sql: the collation "C" compares UTF-8.
        for (owner_id, key), spec in sorted(jobs.items())
    }
    created = updated = 0
    # Repeated for jobs that another transaction made between our read and our insert.
    while waiting:
        found = found_jobs(waiting)
        assign_placement(waiting, found)
        _seal(waiting, found, jobs)
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


def remove(job_keys: Iterable[JobKey], *, actor: Actor = None) -> int:
    """Delete jobs of any owners, inside the caller's transaction; return how many there were.

    Webhooks and mail subscriptions that name them are deleted, too, and audited.
    """
    doomed = sorted(set(job_keys))
    if not doomed:
        return 0
    locked = sql.run("definitions/lock_for_delete", sql.columns(doomed, "owners", "keys"))
    ids = [row["id"] for row in locked]
    sql.run("definitions/lock_mails", {"ids": ids})
    gone = sql.run("definitions/delete", {"ids": ids, **by_key.who(actor)})
    sync_after_commit(row["id"] for row in gone if row["schedule"] == ScheduleKind.SECONDS)
    return len(gone)


def _upsert_one(owner: Owner | str, spec: JobSpec) -> Upserted | None:
    """Write one job in one statement; store nothing and return None if it needs more than one."""
    named = preparation.named_by(owner)
    if named is None or spec.target or len(spec.payload) > BYTES_LIMIT:
        return None
    # Inside a transaction a savepoint, as a bulk has: after an error the caller may continue.
    with nullcontext() if by_key.is_alone() else transaction.atomic():
        row = by_key.write(named, spec)
    if row is None:
        return None
    if row["id"] is not None:
        return Upserted(created=1) if row["is_new"] else Upserted(updated=1)
    # Another transaction has made the job since the statement began: a bulk's statements change it.
    return Upserted(unchanged=1) if row["is_found"] else None


def _seal(
    rows: Mapping[JobKey, dict[str, Any]],
    found: Mapping[JobKey, Any],
    jobs: Mapping[JobKey, JobSpec],
) -> None:
    """Encrypt the arguments of these rows, for the ids that the jobs have or will have."""
    if crypto.ring() is None:
        return
    new = [job_key for job_key in rows if job_key not in found]
    ids = {job_key: row["id"] for job_key, row in found.items()}
    ids |= zip(new, new_job_ids(len(new)), strict=True)
    for job_key, row in rows.items():
        row.update(jobs[job_key].sealed(owner=slug_of(job_key[0]), job_id=ids[job_key]))


def _refuse_size(option: str, elements: Sequence[Any]) -> None:
    if len(elements) > BATCH_LIMIT:
        problem = f"holds at most {BATCH_LIMIT:,} elements; these are {len(elements):,}"
        raise OptionError(option, problem)


def _written(statement: str, rows: Sequence[Mapping[str, Any]]) -> dict[JobKey, int]:
    """Run a statement; return the ids of the jobs that it has written."""
    if not rows:
        return {}
    written = sql.run(statement, {"rows": json.dumps(rows, default=str)})
    return {(row["owner_id"], row["key"]): row["id"] for row in written}
