"""Submit: from a call in the user's code to rows, inside the caller's transaction.

Nothing runs before the commit, and a rollback leaves no trace: ids are in hand at once, rows
become visible with the caller's own, and hints are published after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from celery import Task
from celery.canvas import Signature
from django.db import transaction

from fleet import crash_point
from jobs.catalog import placeholders
from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.registry import resolve
from jobs.core.crypto import open_bytes
from jobs.core.errors import OptionError
from jobs.core.ids import new_ids
from jobs.models import AuditEntry, Job, Owner, Run, Submission
from jobs.runs import idempotency, preparation
from jobs.runs.celery_callbacks import begin_chord, embed_of
from jobs.runs.options import Options
from jobs.runs.storage import New, store

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser


def submit(
    task: Task | str,
    /,
    *args: Any,
    owner: Owner | str,
    arguments: Mapping[str, Any] | None = None,
    **options_and_arguments: Any,
) -> Run:
    """Submit one run and return it, with its id.

    Keywords that are options (see `jobs.runs.options.Options`) are options; all others are the
    task's arguments. A task whose own argument has the name of an option takes its
    arguments as one mapping, `arguments={...}`.

    Raises UnknownTask, UnknownOwner, ArgumentError, OptionError, PayloadTooLarge, or
    IdempotencyConflict; nothing is stored then. With an `idempotency_key` that was used for
    the same submit before, returns the run that it made.
    """
    task = resolve(task)
    options, keywords = preparation.split(task, options_and_arguments, arguments)
    _refuse_templates(task, options)
    payload = preparation.payload(task, args, keywords, embed=embed_of(options))
    with transaction.atomic():
        owner = preparation.owner(owner)
        claim = idempotency.claim(owner, options.idempotency_key, task.name, [payload])
        if claim and claim.run_id:
            return Run.objects.select_related("owner").get(id=claim.run_id)
        shared = preparation.shared(task, owner, options)
        [run_id] = new_ids(shared.created_at, 1)
        target_id = preparation.targets(owner, [options.target]).get(options.target)
        [gate] = preparation.gates(owner, shared, [target_id], [run_id])
        store(
            [
                New(
                    id=run_id,
                    payload=payload,
                    target_id=target_id,
                    lock_key=preparation.lock_key(owner, options.lock),
                    labels=dict(options.labels),
                    options=preparation.message_options(options),
                    gate=gate,
                )
            ],
            shared,
        )
        if claim:
            claim.keep(run_id=run_id)
        crash_point("submit.after_insert")
        run = Run.objects.select_related("owner").get(id=run_id)
        crash_point("submit.before_commit")
    return run


def _refuse_templates(task: Task, options: Options) -> None:
    """Raise OptionError for a target or lock such as "{host}": only `submit_many` fills it in."""
    for option, text in (("target", options.target), ("lock", options.lock)):
        for name in ArgumentSchema.of(task).names:
            if f"{{{name}}}" in text:
                raise OptionError(
                    option, f"holds '{{{name}}}', which only submit_many fills in; write it in full"
                )


def submit_many(
    task: Task | str,
    arguments: Iterable[Mapping[str, Any]],
    /,
    *,
    owner: Owner | str,
    label: str = "",
    chord: Signature | None = None,
    **options: Any,
) -> Submission:
    """Submit a run for each mapping of arguments; return the submission that holds them.

    All or nothing: raises BatchError, which lists every bad element, and stores none.
    `target` and `lock` may name arguments, as `"{host}"`. `chord` is a Celery signature that
    is called with the list of results once every run has succeeded. Other errors are those
    of `submit`.
    """
    return _submit_many(
        task, arguments, None, owner=owner, label=label, chord=chord, options=options
    )


def submit_on(
    targets: Sequence[str],
    task: Task | str,
    arguments: Iterable[Mapping[str, Any]],
    /,
    *,
    owner: Owner | str,
    label: str = "",
    **options: Any,
) -> Submission:
    """Submit as `submit_many` does, with the name of each run's target beside its arguments."""
    return _submit_many(
        task, arguments, targets, owner=owner, label=label, chord=None, options=options
    )


def _submit_many(
    task: Task | str,
    arguments: Iterable[Mapping[str, Any]],
    named: Sequence[str] | None,
    *,
    owner: Owner | str,
    label: str,
    chord: Signature | None,
    options: Mapping[str, Any],
) -> Submission:
    task = resolve(task)
    settings = preparation.options(options)
    calls = preparation.listed("arguments", arguments, of="mappings, one for each run")
    preparation.refuse_size(calls, label)
    payloads = preparation.payloads(task, calls, embed=embed_of(settings, chord=chord))
    target_names = named or placeholders.filled("target", settings.target, calls)
    locks = placeholders.filled("lock", settings.lock, calls)
    with transaction.atomic():
        owner = preparation.owner(owner)
        claim = idempotency.claim(
            owner, settings.idempotency_key, task.name, payloads, is_bulk=True
        )
        if claim and claim.submission_id:
            return Submission.objects.get(id=claim.submission_id)
        queue = preparation.queue(settings)
        submission = Submission.objects.create(
            owner=owner, label=label, task=task.name, queue=queue, run_count=len(calls)
        )
        shared = preparation.shared(task, owner, settings, submission_id=submission.id)
        ids = list(new_ids(shared.created_at, len(calls)))
        places = begin_chord(ids, chord)
        targets = preparation.targets(owner, target_names)
        target_ids = [targets.get(name) for name in target_names]
        gates = preparation.gates(owner, shared, target_ids, ids)
        common = preparation.message_options(settings)
        labels = dict(settings.labels)
        store(
            (
                New(
                    id=run_id,
                    payload=payload,
                    target_id=target_id,
                    lock_key=preparation.lock_key(owner, lock),
                    labels=labels,
                    options={**common, **place},
                    gate=gate,
                )
                for run_id, payload, target_id, lock, place, gate in zip(
                    ids, payloads, target_ids, locks, places, gates, strict=True
                )
            ),
            shared,
        )
        if claim:
            claim.keep(submission_id=submission.id)
        crash_point("submit.after_insert")
        crash_point("submit.before_commit")
    return submission


def run_job(job: Job, *, countdown: float | None = None) -> Run:
    """Submit one run of a job now, with the job's arguments and policies, and return it."""
    task = resolve(job.task)
    options = Options(
        queue=job.queue,
        priority=job.priority,
        countdown=countdown,
        deadline_seconds=job.deadline_seconds,
        labels=job.labels,
        max_attempts=job.max_attempts,
        backoff_seconds=job.backoff_seconds,
        backoff_cap_seconds=job.backoff_cap_seconds,
        retry_on=tuple(job.retry_on) or None,
        give_up_on=tuple(job.give_up_on) or None,
        soft_time_limit_seconds=job.soft_time_limit_seconds,
        time_limit_seconds=job.time_limit_seconds,
    )
    with transaction.atomic():
        shared = preparation.shared(task, job.owner, options, job_id=job.id)
        [run_id] = new_ids(shared.created_at, 1)
        [gate] = preparation.gates(job.owner, shared, [job.target_id], [run_id])
        new = New(
            id=run_id,
            payload=open_bytes(job.payload, key=job.payload_key),
            target_id=job.target_id,
            lock_key=preparation.lock_key(job.owner, job.lock_of_runs),
            labels=job.labels,
            gate=gate,
        )
        store([new], shared)
        return Run.objects.select_related("owner").get(id=run_id)


asubmit = sync_to_async(submit)
asubmit_many = sync_to_async(submit_many)


@transaction.atomic
def run_job_once(
    job: Job, *, idempotency_key: str, actor: AbstractBaseUser | None = None, reason: str = ""
) -> Run | None:
    """Submit one run of a job now, and audit it; None when the key has made a run before."""
    payload = open_bytes(job.payload, key=job.payload_key)
    claim = idempotency.claim(job.owner, idempotency_key, job.task, [payload])
    if claim is None or claim.run_id is not None:
        return None
    run = run_job(job)
    claim.keep(run_id=run.id)
    AuditEntry.write("run now", on=job, actor=actor, reason=reason, run=str(run.id))
    return run
