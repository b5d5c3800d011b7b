"""Store: rows of runs, in the caller's transaction, by COPY."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection

from jobs import database
from jobs.conf import setting
from jobs.dispatch import publish_on_commit
from jobs.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all runs of one submit have in common."""

    owner_id: int
    task: str
    queue: str
    priority: int
    max_attempts: int
    job_id: int | None = None
    submission_id: int | None = None
    policy: dict[str, Any] = field(default_factory=dict)
    created_at: datetime
    due_at: datetime | None = None
    deadline_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """One run to be stored."""

    id: UUID
    payload: bytes
    target_id: int | None = None
    lock_key: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


_COLUMNS: Final = (
    "id, owner_id, job_id, submission_id, target_id, task, queue, state, priority, payload, "
    "labels, max_attempts, policy, options, lock_key, created_at, due_at, next_at, deadline_at, "
    "queued_at, overdue_at, history"
)


def now() -> datetime:
    """Return PostgreSQL's clock: every time in a run and its id comes from it."""
    return database.query("SELECT clock_timestamp() AS at")[0]["at"]


def store(runs: Sequence[New], shared: Shared) -> State:
    """Insert runs and have them dispatched after the commit; return the state they start in."""
    is_later = shared.due_at is not None and shared.due_at > shared.created_at
    state = State.SCHEDULED if is_later else State.QUEUED
    policy = json.dumps(shared.policy)
    history = json.dumps([[state, shared.created_at.timestamp(), ""]])
    queued_at = None if is_later else shared.created_at
    lease = timedelta(seconds=setting("LEASE_SECONDS"))
    overdue_at = None if is_later else shared.created_at + lease
    with (
        # Or psycopg's own errors would come through, which no caller of Django's expects.
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY jobs_run ({_COLUMNS}) FROM STDIN") as copy,
    ):
        for run in runs:
            copy.write_row(
                (
                    run.id,
                    shared.owner_id,
                    shared.job_id,
                    shared.submission_id,
                    run.target_id,
                    shared.task,
                    shared.queue,
                    state,
                    shared.priority,
                    run.payload,
                    json.dumps(run.labels),
                    shared.max_attempts,
                    policy,
                    json.dumps(run.options),
                    run.lock_key,
                    shared.created_at,
                    shared.due_at,
                    shared.due_at,
                    shared.deadline_at,
                    queued_at,
                    overdue_at,
                    history,
                )
            )
    if state is State.QUEUED:
        publish_on_commit([run.id for run in runs])
    return state
