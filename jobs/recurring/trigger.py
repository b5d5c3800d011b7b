"""Triggering: from due times of jobs to queued runs and their hints, thousands in one statement.

With history `full` the database itself makes the rows, as a submit would store them, and hints
follow the commit as always. With history `none` there is the hint alone, and nothing is written.
Doing it twice is harmless: a run's id is made of its job and due time, so that the row is there
already, or the broker knows the message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from fleet import Hint, crash_point
from jobs.catalog.registry import offered
from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.ids import scheduled_text
from jobs.recurring.due import Due, due_rows
from jobs.runs import gate
from jobs.runs.dispatch import SLICE, broker, publish_on_commit
from jobs.runs.options import POLICY_OPTIONS
from jobs.runs.preparation import DEFAULT_PRIORITY
from jobs.schedules.phases import SLOT

SLOT_MS: Final = SLOT // timedelta(milliseconds=1)
_COLUMNS: Final = ("tasks", "policies", "attempts", "priorities", "deadlines")


def make_runs(
    due: Sequence[tuple[int, int]], *, salt: str = "", submission: int | None = None
) -> int:
    """Make the runs of (job, slot of the due time) where a job keeps them; return how many.

    `salt` tells the runs of a backfill, of which `submission` is the id, from those that were due;
    what is there already is not counted. Hints are published after the commit, and stay in the
    outbox where they cannot be.
    """
    if not due:
        return 0
    given = {
        **_arrays(due),
        **_task_policies(),
        "salt": salt,
        "submission": submission,
        "queue": setting("JOBS_QUEUE"),
        "max_attempts": setting("MAX_ATTEMPTS"),
        "lease": setting("LEASE_SECONDS"),
    }
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(sql.statement("recurring/insert_due_runs"), given)
            hints, held = {}, []
            for run_id, task, queue, owner, priority, is_held in cursor:
                if is_held:
                    held.append(run_id)
                else:
                    hints[run_id] = Hint(str(run_id), task, queue, owner, submission, 1, priority)
        crash_point("tick.after_insert")
        if held:
            gate.gate_runs(held, cause="due")

        def hints_of(run_ids: Sequence[UUID]) -> list[Hint]:
            return [hints[run_id] for run_id in run_ids]

        publish_on_commit(list(hints), hints_of)
    return len(hints) + len(held)


def send_hints(due: Sequence[tuple[int, int]]) -> int:
    """Publish a hint for (job, slot of the due time) where a job keeps no runs; return how many.

    Raises BrokerUnavailable when it is not hints_of which are out.
    """
    rows = due_rows("recurring/select_due_ephemeral", _arrays(due)) if due else []
    return publish_due_hints(rows)


def publish_due_hints(due: Iterable[Due]) -> int:
    """Do so for due times of jobs that keep no runs and need not be read any more.

    Owner by owner, as the fair queue takes them in fastest.
    """
    hints = _hints(sorted(due, key=attrgetter("owner")))
    for start in range(0, len(hints), SLICE):
        broker().publish(hints[start : start + SLICE], timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    return len(hints)


def _hints(due: Sequence[Due]) -> list[Hint]:
    queue, offered = setting("JOBS_QUEUE"), _priorities()
    return [
        Hint(
            scheduled_text(it.job_id, it.slot * SLOT_MS),
            it.task,
            it.queue or queue,
            it.owner,
            None,
            1,
            offered.get(it.task, DEFAULT_PRIORITY) if it.priority is None else it.priority,
            1,
            it.job_id,
            it.lock,
        )
        for it in due
    ]


def _priorities() -> dict[str, int]:
    """Return the priorities that tasks declare."""
    policies = ((item.name, item.offer.policy) for item in offered())
    return {name: policy["priority"] for name, policy in policies if "priority" in policy}


def _arrays(due: Sequence[tuple[int, int]]) -> dict[str, str]:
    """Return jobs and slots as texts of arrays: psycopg looks at each number of a list."""
    jobs, slots = zip(*due, strict=True)
    return {"ids": f"{{{','.join(map(str, jobs))}}}", "slots": f"{{{','.join(map(str, slots))}}}"}


def _task_policies() -> Mapping[str, list[Any]]:
    """Return what tasks declare for their runs, as columns side by side."""
    rows = []
    for name, policy in ((item.name, item.offer.policy) for item in offered()):
        if policy:
            own = {key: policy[key] for key in POLICY_OPTIONS & policy.keys()}
            attempts = own.pop("max_attempts", None)
            others = (policy.get("priority"), policy.get("deadline_seconds"))
            rows.append((name, json.dumps(own), attempts, *others))
    return {column: [row[index] for row in rows] for index, column in enumerate(_COLUMNS)}
