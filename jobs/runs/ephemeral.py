"""Runs without history: no row is written for them, from the hint to the end.

A hint names the job, and the job's current row admits it. The run's id contains the due time; only
the message has the number of the attempt. What the broker loses is lost. A hint outside the job's
windows is dropped and recorded as missed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from celery import Task

from fleet import Admission, AdmissionRequest, Hint, Refusal
from jobs.catalog.registry import offer_of, resolve
from jobs.core import log_events, sql
from jobs.core.conf import setting
from jobs.core.crypto import Place, UnknownKey, open_payload
from jobs.core.errors import FairshiftError, UnknownTask
from jobs.core.ids import time_of
from jobs.runs import preparation
from jobs.runs.admission import minimum
from jobs.runs.dispatch import broker
from jobs.runs.options import own_policy

logger = logging.getLogger(__name__)

_REFUSALS: Final = {"busy": Refusal.BUSY, "gone": Refusal.GONE, "window": Refusal.GONE}


def publish(hints: Sequence[Hint]) -> None:
    """Publish hints of runs without rows; raise BrokerUnavailable if some may be missing."""
    broker().publish(hints, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))


def admit(worker_id: UUID, requests: Sequence[AdmissionRequest]) -> dict[str, Admission | Refusal]:
    """Return the answer to every request for a run without a row, by its key."""
    answers: dict[str, Admission | Refusal] = {request.key: Refusal.GONE for request in requests}
    known = [it for request in requests if (it := _due_run(request)) is not None]
    rows = sql.run(
        "runs/admit_ephemeral",
        {
            "keys": [it.request.key for it in known],
            "jobs": [it.request.job for it in known],
            "tasks": [it.request.task for it in known],
            "dues": [it.due_at for it in known],
            # The deadline does not apply after the first start, nor to backfills. The token tells:
            # a snooze spends no attempt.
            "are_timed": [it.request.token == 1 and it.request.submission is None for it in known],
            "deadlines": _declared(known, "deadline_seconds"),
            "limits": _declared(known, "time_limit_seconds"),
            "soft_limits": _declared(known, "soft_time_limit_seconds"),
            "worker": worker_id,
            "lease": setting("LEASE_SECONDS"),
        },
    )
    by_key = {row["key"]: row for row in rows}
    _record_missed_windows([it for it in known if by_key[it.request.key]["verdict"] == "window"])
    return answers | {it.request.key: _answer(it, by_key[it.request.key]) for it in known}


@dataclass(frozen=True, slots=True)
class _DueRun:
    """A request for a run of a job, with its due time and its task."""

    request: AdmissionRequest
    due_at: datetime
    task: Task


def _due_run(request: AdmissionRequest) -> _DueRun | None:
    """Return the run; None for an id without a valid time, and for an unknown task."""
    try:
        return _DueRun(request, time_of(UUID(request.run_id)), resolve(request.task))
    except (OverflowError, UnknownTask):
        return None


def _declared(known: Sequence[_DueRun], name: str) -> list[Any]:
    """Return one policy of each task, None where it declares none."""
    return [offer_of(it.task).policy.get(name) for it in known]


def _record_missed_windows(missed: Sequence[_DueRun]) -> None:
    """Record runs outside their windows: there is no row that could wait for the next one."""
    if missed:
        jobs = [it.request.job for it in missed]
        given = {"job_ids": jobs, "due_ats": [it.due_at for it in missed]}
        sql.run("runs/record_missed_window", given)


def _answer(known: _DueRun, row: Mapping[str, Any]) -> Admission | Refusal:
    request = known.request
    if row["verdict"]:
        return _REFUSALS[row["verdict"]]
    if row["owner"] != request.owner:
        # Otherwise the hint's owner would be charged, and its limits would apply.
        facts = {"run_id": request.run_id, "job": request.job, "owner": request.owner}
        log_events.FOREIGN_HINT.log(logger, **facts)
        return Refusal.GONE
    try:
        return _admission(known, row)
    except UnknownKey as error:
        # The hint waits in its queue for a worker that has the key: no row can.
        facts = {"run_id": request.run_id, "job": request.job}
        log_events.EPHEMERAL_RUN_WAITS.log(logger, key=error.key, **facts)
        return Refusal.BUSY
    except (FairshiftError, LookupError, ValueError, TypeError):
        # Only this run ends; the others of the batch are admitted.
        facts = {"run_id": request.run_id, "job": request.job}
        log_events.EPHEMERAL_RUN_UNREADABLE.log(logger, exc_info=True, **facts)
        return Refusal.GONE


def _admission(known: _DueRun, row: Mapping[str, Any]) -> Admission:
    request = known.request
    policy = preparation.with_task_policy(known.task, own_policy(row))
    return Admission(
        run_id=request.run_id,
        token=request.token,
        attempt=request.attempt,
        body=open_payload(
            row["payload"], key=row["payload_key"], place=Place(row["owner"], job=request.job)
        ),
        context={
            "owner": row["owner"],
            "job": request.job,
            "submission": request.submission,
            "due_at": known.due_at.isoformat(),
            "labels": json.loads(row["labels"]),
            "policy": policy,
        },
        soft_time_limit=minimum(policy.get("soft_time_limit_seconds"), row["soft_close"]),
        time_limit=minimum(policy.get("time_limit_seconds"), row["hard_close"]),
        start_within=minimum(setting("LEASE_SECONDS"), row["start_within"]) or 0.0,
        headers={"ignore_result": True},
        next_hint=_next_hint(known, row),
    )


def _next_hint(known: _DueRun, row: Mapping[str, Any]) -> Hint:
    """Return the hint of the next attempt, by the job's current row."""
    request = known.request
    return Hint(
        run_id=request.run_id,
        task=request.task,
        queue=row["queue"] or setting("JOBS_QUEUE"),
        owner=request.owner,
        submission=request.submission,
        attempt=request.attempt + 1,
        priority=preparation.priority_of(known.task, row["priority"]),
        token=request.token + 1,
        job=request.job,
        lock=row["lock_key"],
    )
