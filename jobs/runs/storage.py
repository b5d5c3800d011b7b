"""Store runs as rows, by COPY, in the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import connection

from fleet import Hint
from jobs.calendars.gate import opening_times, why_held
from jobs.core.conf import setting
from jobs.core.crypto import PAYLOAD, Place, seal
from jobs.core.states import State
from jobs.runs.dispatch import publish_on_commit
from jobs.windows import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What task and options say of each run of a submit, of any owner and at any time."""

    task: str
    queue: str
    priority: int
    max_attempts: int
    policy: dict[str, Any] = field(default_factory=dict)
    window_policy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDefaults(RunPlan):
    """What all runs of one submit share."""

    owner_id: int
    owner: str
    job_id: int | None = None
    submission_id: int | None = None
    created_at: datetime
    due_at: datetime | None = None
    deadline_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """One run to be stored; `gate` is None if no calendar applies. Wave 1 and none are as usual."""

    id: UUID
    payload: bytes
    """In clear; it is stored encrypted if there is a key ring."""
    target_id: int | None = None
    lock_key: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    gate: Gate | None = None
    wave: int = 1


IN_WAVE: Final = "wave"
"""The `blocked_by` of a held run whose wave is not released, or stopped."""
NOT_RELEASED: Final = "wave not released"
_COLUMNS: Final = (
    "id, owner_id, job_id, submission_id, target_id, task, queue, priority, payload, "
    "payload_key, labels, max_attempts, policy, options, lock_key, created_at, due_at, "
    "window_policy, state, next_at, deadline_at, not_after, queued_at, hint_check_at, blocked_by, "
    "history"
)


def store(runs: Iterable[NewRun], defaults: RunDefaults) -> None:
    """Insert runs; the hints of queued ones are published after the commit."""
    # Converted to text once: psycopg is slow to adapt each value of each row.
    before = _texts(defaults.owner_id, defaults.job_id, defaults.submission_id)
    task = _texts(defaults.task, defaults.queue, defaults.priority)
    limits = (str(defaults.max_attempts), json.dumps(defaults.policy))
    after = _texts(defaults.created_at, defaults.due_at, defaults.window_policy)
    initial_states: dict[tuple[int, Gate | None], InitialState] = {}
    queued = []
    with (
        # Callers of Django expect its errors, not psycopg's.
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(f"COPY jobs_run ({_COLUMNS}) FROM STDIN") as copy,
    ):
        for run in runs:
            kind = (run.wave, None if run.wave > 1 else run.gate)
            initial = initial_states.get(kind)
            if initial is None:
                initial = initial_states[kind] = _initial_state(defaults, *kind)
            if initial.state is State.QUEUED:
                queued.append(run.id)
            labels, options = (json.dumps(run.labels) if run.labels else "{}"), run.options
            sealed = seal(run.payload, field=PAYLOAD, place=Place(defaults.owner, run.id))
            payload = (sealed.data, str(sealed.key))
            own = (*payload, labels, *limits, json.dumps(options) if options else "{}")
            then = (run.lock_key, *after, *initial.texts)
            copy.write_row((run.id.hex, *before, run.target_id, *task, *own, *then))
    # Where calendars apply, hints need more than these defaults: the rows are read.
    is_gated = any(gate is not None for _wave, gate in initial_states)
    publish_on_commit(queued, None if is_gated else partial(_first_hints, defaults))


@dataclass(frozen=True, slots=True)
class InitialState:
    """The first state of a run, and the texts of the last columns of `_COLUMNS`."""

    state: State
    texts: list[str | None]


def _initial_state(defaults: RunDefaults, wave: int, gate: Gate | None) -> InitialState:
    """Return the first state of a run, by its wave, its due time and its gate."""
    at, cause = defaults.created_at, ""
    next_at, not_after = defaults.due_at, None
    if wave > 1:
        # Without a time at which promotion would queue it: its wave's release sets one.
        state, next_at, cause = State.HELD, None, NOT_RELEASED
    elif defaults.due_at is not None and defaults.due_at > at:
        state = State.SCHEDULED
    elif gate is None or gate.is_open:
        state, not_after = State.QUEUED, gate and gate.not_after
    else:
        state, cause = State.HELD, why_held(gate)
        next_at, _ = opening_times(gate, now=at, needed=needed_of(defaults.policy))
    is_queued = state is State.QUEUED
    hint_check_at = at + timedelta(seconds=setting("LEASE_SECONDS")) if is_queued else None
    return InitialState(
        state,
        _texts(
            state,
            next_at,
            # It counts from the release of its wave.
            None if wave > 1 else defaults.deadline_at,
            not_after,
            at if is_queued else None,
            hint_check_at,
            IN_WAVE if wave > 1 else "",
            json.dumps([[state, at.timestamp(), cause]]),
        ),
    )


def needed_of(policy: Mapping[str, Any]) -> timedelta:
    """Return how long an attempt needs an opening, as the SQL function `jobs_needed` does."""
    limit = policy.get("time_limit_seconds") or policy.get("soft_time_limit_seconds") or 0
    return timedelta(seconds=limit)


def _texts(*values: Any) -> list[str | None]:
    return [None if value is None else str(value) for value in values]


def _first_hints(defaults: RunDefaults, run_ids: Sequence[UUID]) -> list[Hint]:
    """Build hints without reading the rows; admission refuses outdated ones."""
    facts = (defaults.task, defaults.queue, defaults.owner, defaults.submission_id)
    return [Hint(str(run_id), *facts, priority=defaults.priority) for run_id in run_ids]
