"""Rescue: runs whose worker is lost are tried again, or fail.

A worker is lost when it has stopped, or its heartbeat is older than the lease. A run that its live
worker does not have is given back: the answer to its admission was lost. If Celery has stored a
result, that is the run's end. A late report of the lost worker has an old token.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from fleet import Kind, Report, crash_point, one_line
from jobs.catalog.policies import read_policy
from jobs.catalog.retry_policy import LOST, delay_after, is_last
from jobs.core import log_events, prepared
from jobs.core.apart import apart, in_savepoint
from jobs.core.conf import setting
from jobs.core.states import ENDED, State
from jobs.runs import unblocking
from jobs.runs.celery_outcomes import notify_celery
from jobs.runs.dispatch import publish_on_commit
from jobs.runs.recording import end_unreadable, write
from jobs.runs.result_backend import as_stored

logger = logging.getLogger(__name__)

CHUNK: Final = 1_000
CAUSE: Final = "worker lost"
UNHEARD: Final = "answer lost"
UNSTARTED: Final = "worker lost before the start"
UNSTARTED_MOST: Final = 10
UNREADABLE: Final = "unreadable"


def rescue_runs(*, worker_id: UUID | None = None, held: Sequence[UUID] = ()) -> int:
    """Take back all runs of lost workers; return how many.

    With a live worker, also runs that were admitted to it over a lease ago and are not `held`.
    """
    total = 0
    while rescued := _rescue_chunk(worker_id, held):
        crash_point("rescue.after_move")
        total += rescued
    return total


def _rescue_chunk(worker_id: UUID | None, held: Sequence[UUID]) -> int:
    with transaction.atomic():
        lost = prepared.run_over_all(
            "system/lost_runs",
            {
                "lease": setting("LEASE_SECONDS"),
                "most": CHUNK,
                "unstarted": UNSTARTED,
                "worker": worker_id,
                "held": list(held),
            },
        )
        reports = as_stored([_report(run) for run in lost])
        ended_so: list[UUID] = []

        def end(report: Report, error: Exception) -> None:
            ended_so.append(UUID(report.run_id))
            end_unreadable(ended_so[-1], error)

        parts = apart(reports, in_savepoint(write), spoilt=end)
        rows = [row for part in parts for row in part]
        publish_on_commit([row["id"] for row in rows if row["state"] == State.QUEUED])
        ended = [row["id"] for row in rows if row["state"] in ENDED]
        transaction.on_commit(lambda: notify_celery(ended), robust=True)
    if rows:
        log_events.RUNS_RESCUED.log(logger, count=len(rows))
        unblocking.publish_after_end(rows)
    return len(rows) + len(ended_so)


def _report(run: dict[str, Any]) -> Report:
    try:
        return _decide(run)
    except ValueError as error:
        # Raw SQL has changed the policy: this run fails, and the others are rescued.
        return Report(
            str(run["id"]),
            run["token"],
            Kind.FAILED,
            time.monotonic(),
            error_type=type(error).__name__,
            error_message=f"worker {run['hostname']} was lost, and the run's policy cannot be read:"
            f" {one_line(error)}",
            cause=UNREADABLE,
        )


def _decide(run: dict[str, Any]) -> Report:
    policy = {**read_policy(run["policy"]), "max_attempts": run["max_attempts"]}
    unstarted = _why_unstarted(run, policy)
    if unstarted:
        return Report(
            str(run["id"]), run["token"], Kind.GIVEN_BACK, time.monotonic(), cause=unstarted
        )
    # The run seldom causes the loss: only later attempts wait, in case it kills its workers.
    wanted = 0.0 if run["attempt_count"] == 1 else None
    delay = delay_after(policy, run["attempt_count"], (LOST,), wanted)
    return Report(
        str(run["id"]),
        run["token"],
        Kind.FAILED if delay is None else Kind.RETRYING,
        time.monotonic(),
        error_type=LOST,
        error_message=f"worker {run['hostname']} was lost",
        delay=delay,
        cause=CAUSE,
    )


def _why_unstarted(run: Mapping[str, Any], policy: Mapping[str, Any]) -> str:
    """Say why an attempt cannot have started, and so is not spent; empty if it may have."""
    if run["state"] != State.ADMITTED:
        return ""
    if run["is_unheard"]:
        return UNHEARD
    # The worker would have recorded the start of a last attempt first: see `Admission`. After
    # UNSTARTED_MOST such losses, the run may be the cause.
    is_sure = is_last(policy, run["attempt_count"]) and not run["has_started"]
    return UNSTARTED if is_sure and run["unstarted_count"] < UNSTARTED_MOST else ""
