"""Submit: a call becomes rows, inside the caller's transaction.

One run is a bulk of one. A submit is checked, claims its idempotency key, and is planned and
stored; its hints are published after the commit. A rollback leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from celery import Task
from celery.canvas import Signature
from django.db import transaction

from fleet import crash_point
from jobs.catalog import placeholders
from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.celery_callbacks import begin_chord, embed_of
from jobs.catalog.registry import resolve
from jobs.catalog.typed import AnyTask
from jobs.core.crypto import open_payload
from jobs.core.errors import OptionError
from jobs.core.ids import new_ids
from jobs.models import AuditEntry, Job, Owner, Run, Submission
from jobs.models.verbs import Actor
from jobs.rollouts import making
from jobs.rollouts.waves import Waves
from jobs.runs import idempotency, preparation
from jobs.runs.options import JOB_POLICIES, Options, own_policy
from jobs.runs.single import submit_one
from jobs.runs.storage import NewRun, store


def submit(
    task: AnyTask,
    /,
    *args: Any,
    owner: Owner | str,
    arguments: Mapping[str, Any] | None = None,
    **options_and_arguments: Any,
) -> Run:
    """Submit one run and return it, with its id.

    Keywords that `jobs.runs.options.Options` has are options; all others are the task's arguments.
    A task with an argument of the same name takes its arguments as one mapping, `arguments={...}`.

    Raises UnknownTask, UnknownOwner, ArgumentError, OptionError, PayloadTooLarge, or
    IdempotencyConflict; nothing is stored then. If the `idempotency_key` was used for the same
    submit before, returns the run that it made.
    """
    task = resolve(task)
    options, keywords = preparation.split_options(task, options_and_arguments, arguments)
    _refuse_templates(task, options)
    payload = preparation.encode_payload(
        task, args, keywords, embed=embed_of(options.link, options.link_error)
    )
    if (made := submit_one(task, options, payload, owner=owner)) is not None:
        return made
    checked = _Checked(task, options, [payload], [options.target], [options.lock])
    with transaction.atomic():
        owner = preparation.load_owner(owner)
        claim = idempotency.claim(owner, options.idempotency_key, task.name, [payload])
        run_id = claim.run_id
        if run_id is None:
            [run_id] = _make(checked, owner)
            claim.store(run_id=run_id)
        run = Run.objects.select_related("owner").get(id=run_id)
        crash_point("submit.before_commit")
    return run


def _refuse_templates(task: Task, options: Options) -> None:
    """Raise OptionError for a target or lock such as "{host}", which only `submit_many` fills."""
    for option, text in (("target", options.target), ("lock", options.lock)):
        for name in ArgumentSchema.of(task).names:
            if f"{{{name}}}" in text:
                raise OptionError(
                    option, f"holds '{{{name}}}', which only submit_many fills in; write it in full"
                )


def submit_many(
    task: AnyTask,
    arguments: Iterable[Mapping[str, Any]],
    /,
    *,
    owner: Owner | str,
    label: str = "",
    chord: Signature | None = None,
    waves: Waves | None = None,
    actor: Actor = None,
    **options: Any,
) -> Submission:
    """Submit a run for each mapping of arguments; return the submission that holds them.

    All or nothing: BatchError lists every bad element. `target` and `lock` may name arguments, as
    `"{host}"`. `chord` is a Celery signature that is called with the list of results when every run
    has succeeded. With `waves` the runs go out in stages; `actor` is who submits, and may not
    approve a wave. Other errors are those of `submit`.
    """
    return submit_on(
        None,
        task,
        arguments,
        owner=owner,
        label=label,
        chord=chord,
        waves=waves,
        actor=actor,
        **options,
    )


def submit_on(
    targets: Sequence[str] | None,
    task: AnyTask,
    arguments: Iterable[Mapping[str, Any]],
    /,
    *,
    owner: Owner | str,
    label: str = "",
    chord: Signature | None = None,
    waves: Waves | None = None,
    actor: Actor = None,
    **options: Any,
) -> Submission:
    """Submit as `submit_many` does; `targets`, if given, has the name of each run's target."""
    task = resolve(task)
    settings = preparation.checked_options(options)
    calls = preparation.as_list("arguments", arguments, elements="mappings, one for each run")
    preparation.refuse_size(calls, label)
    payloads = preparation.encode_payloads(
        task, calls, embed=embed_of(settings.link, settings.link_error, chord=chord)
    )
    targets = targets or placeholders.filled("target", settings.target, calls)
    locks = placeholders.filled("lock", settings.lock, calls)
    sizes = making.sizes_of(waves, len(calls))
    checked = _Checked(task, settings, payloads, targets, locks, chord=chord, sizes=sizes)
    with transaction.atomic():
        owner = preparation.load_owner(owner)
        claim = idempotency.claim(
            owner, settings.idempotency_key, task.name, payloads, is_bulk=True
        )
        if claim.submission_id is not None:
            return Submission.objects.get(id=claim.submission_id)
        queue = preparation.queue_name(settings)
        submission = Submission.objects.create(
            owner=owner, label=label, task=task.name, queue=queue, run_count=len(calls)
        )
        ids = _make(
            checked, owner, submission_id=submission.id, spread=waves.spread if waves else ""
        )
        if waves is not None:
            deadline = preparation.deadline_seconds_of(task, settings)
            making.begin(submission, waves, sorted(ids), sizes, actor=actor, deadline=deadline)
        claim.store(submission_id=submission.id)
        crash_point("submit.before_commit")
    return submission


def run_job(job: Job) -> Run:
    """Submit one run of a job now, with the job's arguments and policies."""
    options = Options(
        queue=job.queue,
        priority=job.priority,
        deadline_seconds=job.deadline_seconds,
        labels=job.labels,
        **own_policy({name: getattr(job, name) for name in JOB_POLICIES}),
    )
    payload = open_payload(job.payload, key=job.payload_key, place=job.place)
    checked = _Checked(resolve(job.task), options, [payload], (), [job.lock_of_runs], job=job)
    with transaction.atomic():
        [run_id] = _make(checked, job.owner)
        return Run.objects.select_related("owner").get(id=run_id)


@dataclass(frozen=True, slots=True)
class _Checked:
    """A checked submit. Each sequence has one element for each run."""

    task: Task
    options: Options
    payloads: Sequence[bytes]
    targets: Sequence[str]
    """Names; empty for a run of a job, which has the job's target."""
    locks: Sequence[str]
    chord: Signature | None = None
    job: Job | None = None
    sizes: Sequence[int] = ()
    """Of waves, in which the runs go out by their ids."""


def _make(
    checked: _Checked, owner: Owner, *, submission_id: int | None = None, spread: str = ""
) -> list[UUID]:
    """Plan and store the runs of a submit; return their ids."""
    task, options, job = checked.task, checked.options, checked.job
    defaults = preparation.run_defaults(
        task, owner, options, submission_id=submission_id, job_id=job.id if job else None
    )
    ids = list(new_ids(defaults.created_at, len(checked.payloads)))
    known = preparation.make_targets(owner, checked.targets)
    target_ids = [job.target_id] if job else [known.get(name) for name in checked.targets]
    if spread:
        ids = making.spread_ids(ids, target_ids, by=spread)
    waves = making.waves_of(ids, checked.sizes)
    headers = begin_chord(ids, checked.chord)
    gates = preparation.run_gates(owner, defaults, target_ids, ids)
    common, labels = preparation.message_options(options), dict(options.labels)
    plan = (
        NewRun(
            id=run_id,
            payload=payload,
            target_id=target_id,
            lock_key=preparation.lock_key(owner, lock),
            labels=labels,
            options={**common, **own},
            gate=gate,
            wave=wave,
        )
        for run_id, payload, target_id, lock, own, gate, wave in zip(
            ids, checked.payloads, target_ids, checked.locks, headers, gates, waves, strict=True
        )
    )
    store(plan, defaults)
    crash_point("submit.after_insert")
    return ids


async def asubmit(
    task: AnyTask,
    /,
    *args: Any,
    owner: Owner | str,
    arguments: Mapping[str, Any] | None = None,
    **options_and_arguments: Any,
) -> Run:
    """Do what `submit` does, from async code."""
    return await sync_to_async(submit)(
        task, *args, owner=owner, arguments=arguments, **options_and_arguments
    )


async def asubmit_many(
    task: AnyTask,
    arguments: Iterable[Mapping[str, Any]],
    /,
    *,
    owner: Owner | str,
    label: str = "",
    chord: Signature | None = None,
    waves: Waves | None = None,
    actor: Actor = None,
    **options: Any,
) -> Submission:
    """Do what `submit_many` does, from async code."""
    return await sync_to_async(submit_many)(
        task,
        arguments,
        owner=owner,
        label=label,
        chord=chord,
        waves=waves,
        actor=actor,
        **options,
    )


@transaction.atomic
def run_job_by_key(
    job: Job, *, idempotency_key: str | None, actor: Actor = None, reason: str = ""
) -> tuple[Run, bool]:
    """Submit one run of a job now, and audit it; return it, and whether it is new.

    A key that was used for this job before returns the run that it made, also if the job has
    changed since. Raises IdempotencyConflict for a key that was used for something else.
    """
    claim = idempotency.claim(job.owner, idempotency_key, f"job {job.pk}", [])
    if claim.run_id is not None:
        return Run.objects.select_related("owner").get(id=claim.run_id), False
    run = run_job(job)
    claim.store(run_id=run.id)
    AuditEntry.write("run now", on=job, actor=actor, reason=reason, run=str(run.id))
    return run, True
