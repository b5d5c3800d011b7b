"""Upsert: make, change and delete jobs by their keys, any number in a few statements.

Within the caller's transaction, and all or nothing. A job that is equal is not touched: its
schedule goes on holding from when it was written.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from jobs import database, preparing, schedules
from jobs.errors import BatchError, FairshiftError, OptionError
from jobs.job_spec import JobSpec, JobSpecs
from jobs.models import Job, Owner, ScheduleKind, Target
from jobs.options import KEY_LIMIT, refuse_text
from jobs.payloads import CLEAR

BATCH_LIMIT: Final = 100_000
# One statement's parameter: PostgreSQL takes less than 1 GB.
BYTES_LIMIT: Final = 256 * 2**20
SEQUENCES: Final = 64


@dataclass(frozen=True, slots=True)
class Upserted:
    """How many jobs a bulk has made, changed, and found as they were to be."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0


Place = tuple[int, str]
"""Where a job is found: its owner's number and its key."""


def upsert_jobs(owner: Owner | str, jobs: Iterable[Mapping[str, Any]]) -> Upserted:
    """Make the owner's jobs what these say, by their keys; return how many that took.

    Each element has the names of the model's fields: `key`, `task`, `arguments` (a mapping),
    one of `cron`, `interval_minutes`, `interval_seconds` and `once_at`, or none; see
    `jobs.job_spec`. What is left out takes its default, also where the job had something else;
    only a pause stays. Repeating a call changes nothing.

    Raises BatchError, which lists every wrong field of every element, and stores none then;
    UnknownOwner, and OptionError for more than 100,000 elements.
    """
    elements = list(jobs)
    _refuse_size("jobs", elements)
    specs = checked(elements)
    with transaction.atomic():
        of = preparing.owner(owner)
        return store({(of.pk, spec.key): spec for spec in specs})


def delete_jobs(owner: Owner | str, keys: Iterable[str]) -> int:
    """Delete the owner's jobs with these keys; return how many there were.

    Their runs and the history of these stay. Keys without a job are no error, so a call may
    be repeated. Raises UnknownOwner, and OptionError for what can be no key.
    """
    given = checked_keys(keys)
    with transaction.atomic():
        of = preparing.owner(owner)
        return remove([(of.pk, key) for key in given])


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
    if isinstance(keys, str):
        raise OptionError("keys", "is a list of keys, not one of them")
    given = list(keys)
    _refuse_size("keys", given)
    for key in given:
        refuse_text("keys", key, most=KEY_LIMIT)
    return given


def place_of(job: Job) -> tuple[int | None, int | None]:
    """Return the phase and the shard that a job is to have when it is saved as it is."""
    row = {"schedule": job.schedule, "interval_minutes": job.interval_minutes}
    rows: dict[Place, dict[str, Any]] = {(job.owner_id, job.key): {**row, "smooth": job.smooth}}
    _give_places(rows, _found(rows))
    [placed] = rows.values()
    return placed.get("phase"), placed.get("shard")


def store(jobs: Mapping[Place, JobSpec]) -> Upserted:
    """Write checked jobs of any owners, inside the caller's transaction."""
    targets = _targets(jobs)
    waiting = {
        place: _row(place, spec, targets.get((place[0], spec.target)))
        # In the order of the insert's own ORDER BY: text in "C" sorts as its UTF-8 does.
        for place, spec in sorted(jobs.items())
    }
    _refuse_bytes(waiting)
    created = updated = 0
    # Again for jobs that somebody made between our look and our insert; the next look finds them.
    while waiting:
        found = _found(waiting)
        _give_places(waiting, found)
        new = {place: row for place, row in waiting.items() if place not in found}
        updated += len(_written("update_jobs", [waiting[place] for place in sorted(found)]))
        made = _written("insert_jobs", list(new.values()))
        created += len(made)
        waiting = {place: row for place, row in new.items() if place not in made}
    return Upserted(created, updated, len(jobs) - created - updated)


def remove(places: Iterable[Place]) -> int:
    """Delete jobs of any owners, inside the caller's transaction; return how many there were."""
    doomed = sorted(set(places))
    if not doomed:
        return 0
    owners, keys = [owner for owner, _ in doomed], [key for _, key in doomed]
    return len(database.run("delete_jobs", {"owners": owners, "keys": keys}))


def _refuse_size(option: str, elements: Sequence[Any]) -> None:
    if len(elements) > BATCH_LIMIT:
        raise OptionError(
            option, f"holds at most {BATCH_LIMIT:,} elements; these are {len(elements):,}"
        )


def _refuse_bytes(rows: Mapping[Place, Mapping[str, Any]]) -> None:
    size = sum(len(row["payload"]) for row in rows.values())
    if size > BYTES_LIMIT:
        raise OptionError(
            "jobs", f"have {size:,} bytes of arguments, the limit is {BYTES_LIMIT:,}; split them"
        )


def _targets(jobs: Mapping[Place, JobSpec]) -> dict[tuple[int, str], int]:
    """Return the ids of targets by owner and name, making those that are new."""
    wanted: dict[int, set[str]] = defaultdict(set)
    for (owner_id, _), spec in jobs.items():
        if spec.target:
            wanted[owner_id].add(spec.target)
    if not wanted:
        return {}
    pairs = sorted((owner_id, name) for owner_id, names in wanted.items() for name in names)
    found = _known_targets(pairs)
    if missing := [pair for pair in pairs if pair not in found]:
        # Somebody may make one at the same moment: ours then stands aside, and is read again.
        Target.objects.bulk_create(
            [Target(owner_id=owner_id, name=name) for owner_id, name in missing],
            ignore_conflicts=True,
            batch_size=5_000,
        )
        found |= _known_targets(missing)
    return found


def _known_targets(pairs: Sequence[tuple[int, str]]) -> dict[tuple[int, str], int]:
    rows = database.query(
        "SELECT t.id, t.owner_id, t.name FROM jobs_target t "
        "JOIN unnest(%s::bigint[], %s::text[]) AS p(owner_id, name) "
        "ON t.owner_id = p.owner_id AND t.name = p.name",
        [[owner_id for owner_id, _ in pairs], [name for _, name in pairs]],
    )
    return {(row["owner_id"], row["name"]): row["id"] for row in rows}


def _row(place: Place, spec: JobSpec, target_id: int | None) -> dict[str, Any]:
    owner_id, key = place
    return {
        **spec.columns,
        "owner_id": owner_id,
        "key": key,
        "payload": b64encode(spec.payload).decode(),
        "payload_key": CLEAR,
        "target_id": target_id,
        "phase": None,
        "shard": None,
    }


def _found(rows: Mapping[Place, Any]) -> dict[Place, dict[str, Any]]:
    """Return what is there already, and where in time it stands."""
    owners, keys = [owner for owner, _ in rows], [key for _, key in rows]
    found = database.query(
        "SELECT j.owner_id, j.key, j.interval_minutes, j.phase, j.shard FROM jobs_job j "
        "JOIN unnest(%s::bigint[], %s::text[]) AS p(owner_id, key) "
        "ON j.owner_id = p.owner_id AND j.key = p.key",
        [owners, keys],
    )
    return {(row["owner_id"], row["key"]): row for row in found}


def _give_places(rows: Mapping[Place, dict[str, Any]], found: Mapping[Place, Any]) -> None:
    """Give a phase and a shard to each job that has one by its schedule: its own, or the next."""
    new: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for place, row in rows.items():
        if (minutes := _place_minutes(row)) is None:
            continue
        old = found.get(place)
        if (
            old is not None
            and old["interval_minutes"] == row["interval_minutes"]
            and None not in (old["phase"], old["shard"])
        ):
            row["phase"], row["shard"] = old["phase"], old["shard"]
        else:
            new[minutes].append(row)
    for minutes, unplaced in new.items():
        numbers = _numbers(minutes % SEQUENCES, len(unplaced))
        for row, number in zip(unplaced, numbers, strict=True):
            row["phase"], row["shard"] = schedules.place(number, interval_minutes=minutes)


def _place_minutes(row: Mapping[str, Any]) -> int | None:
    """Return the span in minutes within which a job has its place; None: it has none."""
    if row["schedule"] == ScheduleKind.INTERVAL:
        return int(row["interval_minutes"])
    return 1 if row["smooth"] else None


def _numbers(sequence: int, count: int) -> list[int]:
    rows = database.query(
        "SELECT nextval(%s::regclass) AS n FROM generate_series(1, %s)",
        [f"jobs_phase_{sequence}", count],
    )
    return [row["n"] for row in rows]


def _written(statement: str, rows: Sequence[Mapping[str, Any]]) -> set[Place]:
    """Return the places of the rows that a statement has written."""
    if not rows:
        return set()
    written = database.run(statement, {"rows": json.dumps(rows, default=str)})
    return {(row["owner_id"], row["key"]) for row in written}
