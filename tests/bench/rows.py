"""A great many runs, by COPY: what pages of a long history are measured on.

`python -m tests.bench.rows 100000` fills the database of the settings; tests call `fill`.
"""

import json
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

COLUMNS = (
    "id, owner_id, job_id, submission_id, target_id, task, queue, state, priority, payload, "
    "labels, token, attempt_count, max_attempts, created_at, queued_at, admitted_at, started_at, "
    "ended_at, error_type, error_message, history"
)
ATTEMPT_COLUMNS = (
    "run_id, token, number, outcome, admitted_at, started_at, ended_at, error_type, "
    "error_message, traceback"
)
# As in a fleet that mostly works.
STATES = ["succeeded"] * 940 + ["failed"] * 25 + ["cancelled"] * 5 + ["queued"] * 30
DAYS = 1.5
BATCH = 3_000
TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/app/fleet/rules.py", line 118, in activate\n'
    "    answer = device.put(ruleset, timeout=5)\n"
    '  File "/app/fleet/devices.py", line 41, in put\n'
    "    raise DeviceTimeout(self.name, timeout)\n"
    "fleet.devices.DeviceTimeout: {name} did not answer within 5 s\n"
)


def fill(count: int, *, seed: int = 1) -> None:
    """Add `count` runs of three owners, newest now, in submissions of 3,000 and by jobs."""
    from django.db import connection

    chance = random.Random(seed)
    owners, jobs, targets = _world(chance)
    runs = list(_runs(count, chance, owners, jobs, targets))
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY jobs_run ({COLUMNS}) FROM STDIN") as copy:
            for run, _attempts in runs:
                copy.write_row(run)
        with cursor.copy(f"COPY jobs_attempt ({ATTEMPT_COLUMNS}) FROM STDIN") as copy:
            for _run, attempts in runs:
                for attempt in attempts:
                    copy.write_row(attempt)
        cursor.execute("ANALYZE jobs_run")
        cursor.execute("ANALYZE jobs_attempt")


def _world(chance: random.Random) -> tuple[list[int], dict[int, list[int]], dict[int, list[int]]]:
    from jobs.models import Job, Owner, Target

    weights = {"northwind": 1, "acme": 3, "contoso": 2}
    owners, jobs, targets = [], {}, {}
    for slug, weight in weights.items():
        owner, _ = Owner.objects.get_or_create(
            slug=slug, defaults={"weight": weight, "name": slug.capitalize()}
        )
        owners.append(owner.pk)
        made = [
            Job.objects.get_or_create(
                owner=owner,
                key=f"{slug}-{number}",
                defaults={
                    "name": f"Nightly backup {number}",
                    "task": "fairshift.http_request",
                    "payload": b'[[], {"method": "GET", "url": "https://example.org/"}, {}]',
                },
            )[0].pk
            for number in range(10)
        ]
        jobs[owner.pk] = made
        Target.objects.bulk_create(
            [Target(owner=owner, name=f"{slug}-sw-{number:04d}") for number in range(300)],
            ignore_conflicts=True,
        )
        targets[owner.pk] = list(Target.objects.filter(owner=owner).values_list("pk", flat=True))
    chance.shuffle(owners)
    return owners, jobs, targets


def _runs(
    count: int,
    chance: random.Random,
    owners: list[int],
    jobs: dict[int, list[int]],
    targets: dict[int, list[int]],
) -> Iterator[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    from jobs.core.ids import new_ids
    from jobs.models import Submission

    began = datetime.now(UTC) - timedelta(days=DAYS)
    submission: Any = None
    for number in range(count):
        if number % BATCH == 0:
            owner = owners[number // BATCH % len(owners)]
            submission = Submission.objects.create(
                owner_id=owner,
                label=f"activate ruleset {41 + number // BATCH}",
                task="demo.activate_ruleset",
                queue="jobs",
                run_count=min(BATCH, count - number),
            )
        at = began + timedelta(days=DAYS) * (number / count)
        [run_id] = new_ids(at, 1)
        is_of_job = number % 5 == 0
        yield _run(
            run_id,
            at,
            chance=chance,
            owner=owner,
            job=chance.choice(jobs[owner]) if is_of_job else None,
            submission=None if is_of_job else submission.pk,
            target=chance.choice(targets[owner]),
        )


def _run(
    run_id: UUID,
    at: datetime,
    *,
    chance: random.Random,
    owner: int,
    job: int | None,
    submission: int | None,
    target: int,
) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    state = chance.choice(STATES)
    tries = {"succeeded": 1 + (chance.random() < 0.03), "failed": 3}.get(state, 0)
    admitted = at + timedelta(seconds=chance.uniform(0.1, 30))
    name = f"sw-{target:04d}"
    moves: list[list[Any]] = [["queued", at.timestamp(), ""]]
    attempts = []
    start = ended = admitted
    for token in range(1, tries + 1):
        is_last = token == tries
        start = admitted + timedelta(milliseconds=40)
        ended = start + timedelta(seconds=chance.uniform(0.2, 5))
        is_good = is_last and state == "succeeded"
        after = state if is_last else "retrying"
        moves += [["admitted", admitted.timestamp(), ""], ["running", start.timestamp(), ""]]
        # As record.sql does: the class of the error, if the worker names no other cause.
        cause = "" if is_good else "fleet.devices.DeviceTimeout"
        moves.append([after, ended.timestamp(), cause])
        error = () if is_good else ("fleet.devices.DeviceTimeout", f"{name} did not answer")
        attempts.append(
            (
                run_id,
                token,
                token,
                "succeeded" if is_good else "failed" if is_last else "retrying",
                admitted,
                start,
                ended,
                *(error or ("", "")),
                "" if is_good else TRACEBACK.format(name=name),
            )
        )
        if not is_last:
            moves.append(["queued", ended.timestamp() + 4, ""])
            admitted = ended + timedelta(seconds=4.2)
    if state == "cancelled":
        ended = at + timedelta(seconds=60)
        moves.append(["cancelled", ended.timestamp(), "no longer needed"])
    is_failed = state == "failed"
    return (
        run_id,
        owner,
        job,
        submission,
        target,
        "demo.activate_ruleset",
        "jobs",
        state,
        5,
        json.dumps([[], {"host": name, "version": 41}, {}]).encode(),
        json.dumps({"site": chance.choice(["berlin", "oslo", "turin"]), "rack": str(target)}),
        tries,
        tries,
        3,
        at,
        at,
        admitted if tries else None,
        start if tries else None,
        None if state == "queued" else ended,
        "fleet.devices.DeviceTimeout" if is_failed else "",
        f"{name} did not answer within 5 s" if is_failed else "",
        json.dumps(moves),
    ), attempts


if __name__ == "__main__":
    import django

    django.setup()
    fill(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
