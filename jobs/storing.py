"""Store: rows of runs, in the caller's transaction, by COPY."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import connection

from fleet import Hint
from jobs import database
from jobs.conf import setting
from jobs.dispatch import publish_on_commit
from jobs.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What all runs of one submit have in common."""

    owner_id: int
    owner: str
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


def store(runs: Iterable[New], shared: Shared) -> State:
    """Insert runs and have them dispatched after the commit; return the state they start in."""
    is_later = shared.due_at is not None and shared.due_at > shared.created_at
    state = State.SCHEDULED if is_later else State.QUEUED
    queued_at = None if is_later else shared.created_at
    lease = timedelta(seconds=setting("LEASE_SECONDS"))
    overdue_at = None if is_later else shared.created_at + lease
    # As text, once: psycopg looks for the way to write each value of each row.
    before = _texts(shared.owner_id, shared.job_id, shared.submission_id)
    task = _texts(shared.task, shared.queue, state, shared.priority)
    times = (shared.created_at, shared.due_at, shared.due_at, shared.deadline_at)
    history = json.dumps([[state, shared.created_at.timestamp(), ""]])
    after = _texts(*times, queued_at, overdue_at, history)
    limits = (str(shared.max_attempts), json.dumps(shared.policy))
    ids = []
    with (
        # Or psycopg's own errors would come through, which no caller of Django's expects.
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY jobs_run ({_COLUMNS}) FROM STDIN") as copy,
    ):
        for run in runs:
            ids.append(run.id)
            labels, options = (json.dumps(run.labels) if run.labels else "{}"), run.options
            own = (run.payload, labels, *limits, json.dumps(options) if options else "{}")
            copy.write_row((run.id.hex, *before, run.target_id, *task, *own, run.lock_key, *after))
    if state is State.QUEUED:
        publish_on_commit(ids, partial(_first_hints, shared))
    return state


def _texts(*values: Any) -> list[str | None]:
    return [None if value is None else str(value) for value in values]


def _first_hints(shared: Shared, run_ids: Sequence[UUID]) -> list[Hint]:
    """Return the hints of runs that nobody has moved yet; of one that was, it starts nothing."""
    facts = (shared.task, shared.queue, shared.owner, shared.submission_id, 1, shared.priority, 1)
    return [Hint(str(run_id), *facts) for run_id in run_ids]
