"""Triggering: from due times of jobs to queued runs and their hints, thousands in one statement.

With history `full` the database itself makes the rows, as a submit would store them, and hints
follow the commit as always. With history `none` there is the hint alone, and nothing is written.
Doing it twice is harmless: a run's id is made of its job and due time, so that the row is there
already, or the broker knows the message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from fleet import Hint, crash_point
from jobs import database
from jobs.catalog import offered
from jobs.conf import setting
from jobs.dispatch import SLICE, broker, publish_on_commit
from jobs.options import POLICY_OPTIONS
from jobs.schedules import slot_of

_COLUMNS: Final = ("tasks", "policies", "attempts", "priorities", "deadlines")


def trigger(
    due: Iterable[tuple[int, datetime]], *, salt: str = "", submission: int | None = None
) -> int:
    """Queue a run for each (job's id, nominal due time), and nothing else; return how many.

    Runs that are there already are not counted, those without history always. `salt` tells the runs
    of a backfill, of which `submission` is the id, from those that were due. Raises
    BrokerUnavailable when hints of runs without history may not be out: repeat it then. Rows are
    those of the caller's transaction.
    """
    pairs = [(job_id, slot_of(due_at)) for job_id, due_at in due]
    made = make_runs(pairs, salt=salt, submission=submission)
    return made + send_hints(pairs, salt=salt, submission=submission)


def make_runs(
    due: Sequence[tuple[int, int]], *, salt: str = "", submission: int | None = None
) -> int:
    """Make the runs of (job, slot of the due time) where a job keeps them; return how many.

    Hints are published after the commit, and stay in the outbox where they cannot be.
    """
    if not due:
        return 0
    given = {
        **_asked(due, salt=salt, submission=submission),
        **_declared(),
        "max_attempts": setting("MAX_ATTEMPTS"),
        "lease": setting("LEASE_SECONDS"),
    }
    with transaction.atomic():
        rows = _rows("trigger_full", given)
        hints = {
            run_id: Hint(str(run_id), task, queue, owner, submission, 1, priority)
            for run_id, task, queue, owner, priority in rows
        }
        crash_point("tick.after_insert")

        def known(run_ids: Sequence[UUID]) -> list[Hint]:
            return [hints[run_id] for run_id in run_ids]

        publish_on_commit(list(hints), known)
    return len(hints)


def send_hints(
    due: Sequence[tuple[int, int]], *, salt: str = "", submission: int | None = None
) -> int:
    """Publish a hint for (job, slot of the due time) where a job keeps no runs; return how many.

    Raises BrokerUnavailable when it is not known which are out.
    """
    if not due:
        return 0
    declared = _declared()
    names = {"tasks": declared["tasks"], "priorities": declared["priorities"]}
    given = {**_asked(due, salt=salt, submission=submission), **names}
    hints = [Hint(*row) for row in _rows("trigger_none", given)]
    for start in range(0, len(hints), SLICE):
        broker().publish(hints[start : start + SLICE], timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    return len(hints)


def _asked(due: Sequence[tuple[int, int]], *, salt: str, submission: int | None) -> dict[str, Any]:
    ids, slots = zip(*due, strict=True)
    return {
        "ids": list(ids),
        "slots": list(slots),
        "salt": salt,
        "submission": submission,
        "queue": setting("JOBS_QUEUE"),
    }


def _declared() -> Mapping[str, list[Any]]:
    """Return what tasks declare for their runs, as columns side by side."""
    rows = []
    for name, policy in ((item.name, item.offer.policy) for item in offered()):
        if policy:
            own = {key: policy[key] for key in POLICY_OPTIONS & policy.keys()}
            attempts = own.pop("max_attempts", None)
            others = (policy.get("priority"), policy.get("deadline_seconds"))
            rows.append((name, json.dumps(own), attempts, *others))
    return {column: [row[index] for row in rows] for index, column in enumerate(_COLUMNS)}


def _rows(name: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(database.statement(name), parameters)
        return cursor.fetchall()
