"""Runs whose task a deploy has renamed or removed: they are moved to another task, or failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from celery import Task
from django.db import transaction
from django.db.models.functions import Now

from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.registry import is_known, resolve
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.crypto import PAYLOAD, Place, Sealed, UnknownKey, read_message, seal, seal_of_job
from jobs.core.errors import FairshiftError, OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.states import WAITING, State
from jobs.models import AuditEntry, Job, Owner, Run
from jobs.models.owner import slug_of
from jobs.models.verbs import Actor
from jobs.runs.celery_outcomes import notify_celery
from jobs.runs.dispatch import publish_on_commit, withdraw_on_commit
from jobs.runs.recording import move

CHUNK: Final = 1_000
NOT_REGISTERED: Final = "celery.exceptions.NotRegistered"
BY_OPERATOR: Final = "failed by an operator"
OWN: Final = "fairshift."
"""Prefix of Fairshift's own tasks; no run may be moved to them."""
_LOCKED: Final = """
SELECT id, owner_id, job_id, task, state, token, queue, blocked_by, payload, payload_key
FROM jobs_run WHERE id = ANY(%s) AND state = ANY(%s) ORDER BY id FOR UPDATE
"""

# The hint of a queued run names the old task; with a new token the next hint is another message.
_MOVE: Final = """
UPDATE jobs_run r SET
    task = %(to)s,
    payload = m.payload,
    payload_key = %(key)s,
    token = token + (state = 'queued')::int,
    blocked_by = CASE blocked_by WHEN 'task' THEN '' ELSE blocked_by END,
    hint_check_at = CASE state WHEN 'queued'
        THEN clock_timestamp() + make_interval(secs => %(lease)s) ELSE hint_check_at END
FROM unnest(%(ids)s::uuid[], %(payloads)s::bytea[]) AS m (id, payload)
WHERE r.id = m.id AND r.id = ANY(%(ids)s)
RETURNING r.id, r.state, r.blocked_by
"""

# The error of an attempt, if there is one, says more.
_FAILED: Final = """
UPDATE jobs_run SET error_type = %s, error_message = %s
WHERE id = ANY(%s) AND error_type = '' AND error_message = '' AND error_data IS NULL
"""

_KNOWN: Final = "SELECT queue, task FROM jobs_known_tasks(%s)"


@dataclass(slots=True)
class Moved:
    """How many runs and recurring jobs were moved, failed or refused."""

    runs: int = 0
    jobs: int = 0
    refused: int = 0
    """Runs and jobs that were not moved: their arguments do not fit the other task."""
    problems: Counter[str] = field(default_factory=Counter)
    """The reasons of refusals, with counts."""


def move_task(
    task: str,
    *,
    to: str,
    queue: str = "",
    actor: Actor = None,
    reason: str = "",
    is_dry_run: bool = False,
) -> Moved:
    """Move every waiting run and every recurring job of a task to another task.

    With `queue`, only runs of that queue, and no jobs. Those whose arguments do not fit stay.
    Raises UnknownTask; OptionError for one of Fairshift's tasks. Repeating it is harmless.
    """
    _target(to)
    total = Moved()
    given: dict[str, Any] = {"to": to, "actor": actor, "reason": reason, "is_dry_run": is_dry_run}
    for run_ids in _chunks(task, queue):
        move_runs(run_ids, only_task=task, total=total, **given)
    if not queue:
        _move_jobs(task, total=total, **given)
    return total


def fail_task(
    task: str, *, queue: str = "", actor: Actor = None, reason: str = "", is_dry_run: bool = False
) -> Moved:
    """End a task's waiting runs, or those of a queue, as failed; `jobs` counts its enabled jobs.

    Raises OptionError for a name that no waiting run, no job and no task has.
    """
    total = Moved(jobs=Job.objects.filter(task=task, enabled=True).count())
    for run_ids in _chunks(task, queue):
        if is_dry_run:
            total.runs += len(run_ids)
        else:
            total.runs += len(fail_runs(run_ids, only_task=task, actor=actor, reason=reason))
    if not (total.runs or is_known(task) or Job.objects.filter(task=task).exists()):
        raise OptionError("task", f"no waiting run, no job and no task has the name {task!r:.160}")
    return total


def move_runs(
    run_ids: Sequence[UUID],
    *,
    to: str,
    only_task: str = "",
    actor: Actor = None,
    reason: str = "",
    is_dry_run: bool = False,
    total: Moved | None = None,
) -> Moved:
    """Move waiting runs to another task, those of `only_task` if given; publish new hints.

    Runs whose arguments do not fit are refused. The audit has an entry for each owner; for a single
    run without `only_task`, an entry for the run.
    """
    refuse_text("reason", reason, most=REASON_LIMIT)
    total, task = total or Moved(), _target(to)
    with transaction.atomic():
        rows, payloads = _fitting(task, _locked(run_ids, only_task), total)
        total.runs += len(rows)
        if rows and not is_dry_run:
            given = {
                "ids": [row["id"] for row in rows],
                "payloads": [payload.data for payload in payloads],
                "key": payloads[0].key,
                "to": to,
                "lease": setting("LEASE_SECONDS"),
            }
            after = sql.query(_MOVE, given)
            _withdraw(rows)
            publish_on_commit(
                [row["id"] for row in after if row["state"] == "queued" and not row["blocked_by"]]
            )
            if len(run_ids) == 1 and not only_task:
                facts = {"before": {"task": rows[0]["task"]}, "after": {"task": to}}
                _audit_run("move to task", rows[0], actor=actor, reason=reason, **facts)
            else:
                _audit("move to task", rows, actor=actor, reason=reason, to=to)
    return total


def fail_runs(
    run_ids: Sequence[UUID], *, only_task: str = "", actor: Actor = None, reason: str = ""
) -> list[UUID]:
    """End waiting runs as failed, those of `only_task` if given; return the ids of what moved.

    The error of a run's last attempt stays. A run without one gets `NotRegistered` if no live
    worker of its queue knows the task. The audit is as in `move_runs`.
    """
    refuse_text("reason", reason, most=REASON_LIMIT)
    ended: list[UUID] = []
    with transaction.atomic():
        rows = _locked(run_ids, only_task)
        for (task, is_known), ids in _by_task(rows).items():
            cause = BY_OPERATOR if is_known else "unknown task"
            failed = move(ids, to=State.FAILED, from_states=WAITING, cause=reason or cause)
            error = ("", BY_OPERATOR) if is_known else (NOT_REGISTERED, f"no worker knows {task}")
            sql.query(_FAILED, [*error, failed])
            ended += failed
        _withdraw(rows)
        if rows and len(run_ids) == 1 and not only_task:
            _audit_run("fail unstarted", rows[0], actor=actor, reason=reason, task=rows[0]["task"])
        else:
            _audit("fail unstarted", rows, actor=actor, reason=reason)
        transaction.on_commit(lambda: notify_celery(ended), robust=True)
    return ended


def _by_task(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, bool], list[UUID]]:
    """Return the ids of runs by task, and by whether a live worker of their queue knows it."""
    known = sql.query(_KNOWN, [setting("LEASE_SECONDS")])
    pairs = {(row["queue"], row["task"]) for row in known}
    found: dict[tuple[str, bool], list[UUID]] = {}
    for row in rows:
        is_known = not pairs.isdisjoint({(row["queue"], row["task"]), (row["queue"], "*")})
        found.setdefault((row["task"], is_known), []).append(row["id"])
    return found


def _target(name: str) -> Task:
    """Return the task to move runs to; raise UnknownTask, or OptionError for Fairshift's own."""
    task = resolve(name)
    if task.name.startswith(OWN):
        raise OptionError(
            "to", f"is {task.name}, a task of Fairshift; runs are moved to yours only"
        )
    return task


def _chunks(task: str, queue: str) -> Iterator[list[UUID]]:
    """Yield the ids of waiting runs of a task, state by state, in order."""
    narrowed = {"queue": queue} if queue else {}
    for state in sorted(WAITING):
        last = UUID(int=0)
        runs = Run.objects.filter(state=state, task=task, **narrowed).order_by("id")
        while ids := list(runs.filter(id__gt=last).values_list("id", flat=True)[:CHUNK]):
            yield ids
            last = ids[-1]


def _locked(run_ids: Collection[UUID], only_task: str) -> list[dict[str, Any]]:
    """Lock the waiting ones of these runs, in id order, as admission does."""
    rows = sql.query(_LOCKED, [list(run_ids), sorted(WAITING)])
    return [row for row in rows if not only_task or row["task"] == only_task]


def _fitting(
    task: Task, rows: Sequence[Mapping[str, Any]], total: Moved
) -> tuple[list[Mapping[str, Any]], list[Sealed]]:
    """Return the rows whose arguments a task takes, and their new payloads; count the others."""
    schema, most = ArgumentSchema.of(task), setting("PAYLOAD_MAX_BYTES")
    found, payloads = [], []
    for row in rows:
        try:
            place = _place(row)
            args, kwargs, embed = read_message(row["payload"], key=row["payload_key"], place=place)
            payload = schema.body(args, kwargs, embed, max_bytes=most)
        except (FairshiftError, UnknownKey, ValueError, TypeError) as error:
            total.refused += 1
            total.problems[str(error)] += 1
        else:
            found.append(row)
            is_run = place.run is not None
            payloads.append(
                seal(payload, field=PAYLOAD, place=place)
                if is_run
                else seal_of_job(payload, place=place)
            )
    return found, payloads


def _place(row: Mapping[str, Any]) -> Place:
    """Return what the payload of a row of runs or jobs is bound to."""
    slug = slug_of(row["owner_id"])
    return Place(slug, row["id"], row["job_id"]) if "job_id" in row else Place(slug, job=row["id"])


def _withdraw(rows: Sequence[Mapping[str, Any]]) -> None:
    withdraw_on_commit(row for row in rows if row["state"] == State.QUEUED)


def _move_jobs(
    task: str,
    *,
    to: str,
    actor: Actor,
    reason: str,
    is_dry_run: bool,
    total: Moved,
) -> None:
    with transaction.atomic():
        jobs = Job.objects.select_for_update(of=("self",)).filter(task=task).order_by("id")
        facts = jobs.values("id", "owner_id", "task", "payload", "payload_key")
        rows, payloads = _fitting(_target(to), list(facts), total)
        total.jobs += len(rows)
        if rows and not is_dry_run:
            for row, payload in zip(rows, payloads, strict=True):
                sealed = {"payload": payload.data, "payload_key": payload.key}
                Job.objects.filter(id=row["id"]).update(task=to, **sealed, changed_at=Now())
            _audit("move jobs to task", rows, actor=actor, reason=reason, to=to)


def _audit(action: str, rows: Sequence[Mapping[str, Any]], **facts: Any) -> None:
    """Write an entry for each owner and task, with the number of its runs or jobs."""
    counts = Counter((row["owner_id"], row["task"]) for row in rows)
    owners = Owner.objects.in_bulk({owner_id for owner_id, _ in counts})
    for (owner_id, task), count in sorted(counts.items()):
        if owner_id in owners:
            AuditEntry.write(action, on=owners[owner_id], task=task, count=count, **facts)


def _audit_run(action: str, row: Mapping[str, Any], **facts: Any) -> None:
    run = Run.objects.select_related("owner").get(id=row["id"])
    AuditEntry.write(action, on=run, **facts)
