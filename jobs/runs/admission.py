"""Admission: the first of the two modules that move a run's state.

It answers each hint of a batch: with a token and the payload, or with a refusal. The row decides,
on PostgreSQL's clock: a hint that is lost, doubled, reordered or forged changes only latency.

Most runs have no limits, and are admitted by one short statement. What it leaves is decided by a
second one, under the locks of what limits it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, transaction

from fleet import Admission, AdmissionRequest, Kind, Refusal, Report
from jobs.catalog.policies import read_policy
from jobs.catalog.retry_policy import is_last
from jobs.core import log_events, prepared, sql
from jobs.core.apart import apart
from jobs.core.conf import setting
from jobs.core.crypto import Place, key_ids, open_payload
from jobs.runs.celery_outcomes import notify_celery
from jobs.runs.recording import end_unreadable, write

logger = logging.getLogger(__name__)

_REFUSALS: Final = {
    "busy": Refusal.BUSY,
    "stale": Refusal.BUSY,
    "gone": Refusal.GONE,
    "expired": Refusal.GONE,
    "paused": Refusal.WAITS,
    "window": Refusal.WAITS,
    "wave": Refusal.WAITS,
    "lock": Refusal.WAITS,
    "cap": Refusal.WAITS,
    "task": Refusal.WAITS,
    "key": Refusal.WAITS,
}


def admit(worker_id: UUID, requests: Sequence[AdmissionRequest]) -> dict[str, Admission | Refusal]:
    """Admit runs that may start now to one worker; return the answer to each request, by run id.

    A run whose row cannot be read ends; the others of the batch are admitted.
    """
    # The answer to a request whose run is ended so.
    answers: dict[str, Admission | Refusal] = {each.run_id: Refusal.GONE for each in requests}
    if not _Limits.are_expected:
        # One statement that commits by itself: BEGIN and COMMIT would double the waits.
        parts = apart(requests, partial(_admit_plain, worker_id), spoilt=_end_requested)
        requests = [request for _, others in parts for request in others]
        for part, _ in parts:
            answers |= part
    for part in apart(requests, partial(_admit_limited, worker_id), spoilt=_end_requested):
        answers |= part
    return answers


def _end_requested(request: AdmissionRequest, error: Exception) -> None:
    end_unreadable(UUID(request.run_id), error)


@transaction.atomic
def _admit_limited(
    worker_id: UUID, requests: Sequence[AdmissionRequest]
) -> dict[str, Admission | Refusal]:
    limits = _Limits.lock([UUID(request.run_id) for request in requests])
    return _admit("runs/admit", worker_id, requests, **_room(limits))


def _admit_plain(
    worker_id: UUID, requests: Sequence[AdmissionRequest]
) -> tuple[dict[str, Admission | Refusal], list[AdmissionRequest]]:
    """Return the answers to requests of runs without limits, and all other requests."""
    answers = _admit("runs/admit_plain", worker_id, requests)
    return answers, [request for request in requests if request.run_id not in answers]


def refuse_unknown(requests: Sequence[AdmissionRequest]) -> dict[str, Admission | Refusal]:
    """Refuse hints whose task the worker does not know; return the refusals by run id.

    Without a live worker that knows it, the run waits for one: unblocking publishes a new hint.
    """
    rows = prepared.run(
        "runs/block_unknown",
        [UUID(request.run_id) for request in requests],
        {
            "ids": sql.array(request.run_id for request in requests),
            "tasks": [request.task for request in requests],
            "lease": setting("LEASE_SECONDS"),
        },
    )
    return {str(row["id"]): _REFUSALS[row["verdict"]] for row in rows}


class _Limits:
    """Advisory locks of the caps, lock keys and calendars of requested runs."""

    are_expected = False
    """Whether the last batch had limits: the next one probably has, too."""

    @classmethod
    def lock(cls, ids: Sequence[UUID]) -> list[dict[str, Any]]:
        """Take the locks until the transaction ends; return the limits."""
        limits = prepared.run("runs/lock_limits", ids, {"ids": sql.array(ids)}, waits=True)
        cls.are_expected = bool(limits)
        return limits


def _admit(
    statement: str, worker_id: UUID, requests: Sequence[AdmissionRequest], **room: list[Any]
) -> dict[str, Admission | Refusal]:
    """Run one of the statements that admit; return the answers that it gives, by run id."""
    rows = prepared.run(
        statement,
        [UUID(request.run_id) for request in requests],
        {
            "ids": sql.array(request.run_id for request in requests),
            "tasks": [request.task for request in requests],
            "tokens": sql.array(request.token for request in requests),
            "worker": worker_id,
            "lease": setting("LEASE_SECONDS"),
            "keys": key_ids(),
            **room,
        },
    )
    answers = {str(row["id"]): _answer(row) for row in rows}
    # An unreadable payload fails its own run; the others of the batch are admitted.
    failed = _fail([answer for answer in answers.values() if isinstance(answer, Report)])
    ended = [row["id"] for row in rows if row["verdict"] == "expired"]
    ended += [row["id"] for row in failed]
    transaction.on_commit(lambda: notify_celery(ended), robust=True)
    return {
        run_id: Refusal.GONE if isinstance(answer, Report) else answer
        for run_id, answer in answers.items()
    }


def _fail(unreadable: Sequence[Report]) -> list[dict[str, Any]]:
    """Write these failures; return the rows. When that fails, a rescue ends the runs."""
    if not unreadable:
        return []
    try:
        with transaction.atomic():
            return write(unreadable)
    except DatabaseError:
        log_events.PAYLOADS_UNREADABLE.log(logger, count=len(unreadable), exc_info=True)
        return []


def _room(limits: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return how many more runs these limits, which are locked, allow."""
    owners = [row["owner_id"] for row in limits if row["owner_id"]]
    locks = [row["lock_key"] for row in limits if row["lock_key"]]
    if not owners and not locks:
        # Calendars and rollouts have nothing to count.
        return {"owners": [], "rooms": [], "held_locks": []}
    rows = prepared.run_over_all("runs/count_room", {"owners": owners, "locks": locks})
    capped = [row for row in rows if row["owner_id"]]
    return {
        "owners": [row["owner_id"] for row in capped],
        "rooms": [row["room"] for row in capped],
        "held_locks": [row["lock_key"] for row in rows if row["lock_key"]],
    }


def _answer(row: Mapping[str, Any]) -> Admission | Refusal | Report:
    if row["verdict"]:
        return _REFUSALS[row["verdict"]]
    try:
        return _admission(row)
    except Exception as error:  # whatever it is: the others of the batch are admitted
        return Report(
            str(row["id"]),
            row["token"],
            Kind.FAILED,
            time.monotonic(),
            error_type=type(error).__name__,
            error_message=f"the run cannot be started: {error}",
            cause="unreadable",
        )


def _admission(row: Mapping[str, Any]) -> Admission:
    policy = {**read_policy(row["policy"]), "max_attempts": row["max_attempts"]}
    return Admission(
        run_id=str(row["id"]),
        token=row["token"],
        attempt=row["attempt_count"],
        body=open_payload(
            row["payload"],
            key=row["payload_key"],
            place=Place(row["owner"], row["id"], row["job_id"]),
        ),
        context={
            "owner": row["owner"],
            "job": row["job_id"],
            "submission": row["submission_id"],
            "due_at": row["due_at"].isoformat() if row["due_at"] else None,
            "labels": dict(_read(row["labels"])),
            "policy": policy,
        },
        # The close of a window is enforced as a time limit, to the second.
        soft_time_limit=minimum(policy.get("soft_time_limit_seconds"), row["soft_close"]),
        time_limit=minimum(policy.get("time_limit_seconds"), row["hard_close"]),
        start_within=minimum(setting("LEASE_SECONDS"), row["start_within"]) or 0.0,
        closes_within=row["start_within"],
        is_limited=row["is_limited"],
        # Commit the start of the last attempt before it runs if no earlier start is recorded: a
        # run that never started must not end as failed.
        records_start_first=not row["has_started"] and is_last(policy, row["attempt_count"]),
        headers={"ignore_result": True, **_read(row["options"])},
    )


@lru_cache(maxsize=1_000)
def _read(text: str) -> Mapping[str, Any]:
    """Return a row's JSON, read-only. Cached: most rows of a batch have the same."""
    found: dict[str, Any] = json.loads(text)
    return found


def minimum(*seconds: float | None) -> float | None:
    """Return the smallest value that is not None; None if there is none."""
    return min((some for some in seconds if some is not None), default=None)
