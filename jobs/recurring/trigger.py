"""Triggering: from due times of jobs to queued runs and their hints, thousands in one statement.

With history `full` one statement inserts the rows that a submit would store, and hints are
published after the commit. With history `none` only the hint is published. Both can be repeated: a
run's id is made of its job and due time, so PostgreSQL refuses a second row, and the fair queue
drops a second message.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Any, Final

from django.db import connection, transaction

from fleet import Hint, crash_point
from jobs.catalog.registry import offered
from jobs.core import sql
from jobs.core.apart import apart, in_savepoint, name_spoilt
from jobs.core.conf import setting
from jobs.core.ids import scheduled_text
from jobs.recurring.due import Due, due_rows
from jobs.recurring.overlap import Pair
from jobs.runs import gate
from jobs.runs.dispatch import SLICE, broker, publish_on_commit
from jobs.runs.options import POLICY_OPTIONS
from jobs.runs.preparation import DEFAULT_PRIORITY
from jobs.schedules.phases import SLOT

logger = logging.getLogger(__name__)

ROWS: Final = 5_000
"""Runs made in one statement. Their hints are published within PUBLISH_TIMEOUT_SECONDS."""
SLOT_MS: Final = SLOT // timedelta(milliseconds=1)


def make_runs(
    due: Sequence[tuple[int, int]], *, salt: str = "", submission: int | None = None
) -> int:
    """Make the runs of these (job, slot of the due time), for jobs with history; return how many.

    `salt` is for the backfill with the id `submission`: its runs get other ids than due runs. Runs
    that exist already are not counted. Hints are published after the commit; those that cannot be
    published stay in the outbox.
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
        publish_on_commit(list(hints), lambda run_ids: [hints[run_id] for run_id in run_ids])
    return len(hints) + len(held)


def make_runs_apart(due: Sequence[Pair], **options: Any) -> int:
    """Make these runs as `make_runs` does; a job whose row cannot be read is named and left out.

    Call it in a transaction.
    """
    make = in_savepoint(partial(make_runs, **options))
    parts = (due[at : at + ROWS] for at in range(0, len(due), ROWS))
    return sum(sum(apart(part, make, spoilt=_leave_out)) for part in parts)


def _leave_out(pair: Pair, error: Exception) -> None:
    name_spoilt(logger, f"a due time of job {pair[0]}", error)


def send_hints(due: Sequence[tuple[int, int]]) -> int:
    """Publish hints of these (job, slot), for jobs without history; return how many.

    Raises BrokerUnavailable when it is unknown which hints were published.
    """
    rows = due_rows("recurring/select_due_ephemeral", _arrays(due)) if due else []
    return publish_due_hints(rows)


def publish_due_hints(due: Iterable[Due]) -> int:
    """Publish the hints of these due times, owner by owner; return how many."""
    queue = setting("JOBS_QUEUE")
    policies = {item.name: item.offer.policy for item in offered()}
    hints = [
        Hint(
            scheduled_text(it.job_id, it.slot * SLOT_MS),
            it.task,
            it.queue or queue,
            it.owner,
            None,
            1,
            policies.get(it.task, {}).get("priority", DEFAULT_PRIORITY)
            if it.priority is None
            else it.priority,
            1,
            it.job_id,
            it.lock,
        )
        for it in sorted(due, key=attrgetter("owner"))
    ]
    for start in range(0, len(hints), SLICE):
        broker().publish(hints[start : start + SLICE], timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    return len(hints)


def _arrays(due: Sequence[tuple[int, int]]) -> dict[str, str]:
    """Return jobs and slots as texts of arrays: psycopg would convert them number by number."""
    return {name: sql.array(some) for name, some in sql.columns(due, "ids", "slots").items()}


def _task_policies() -> Mapping[str, list[Any]]:
    rows = []
    for name, policy in ((item.name, item.offer.policy) for item in offered()):
        if policy:
            own = {key: policy[key] for key in POLICY_OPTIONS & policy.keys()}
            attempts = own.pop("max_attempts", None)
            others = (policy.get("priority"), policy.get("deadline_seconds"))
            rows.append((name, json.dumps(own), attempts, *others))
    return sql.columns(rows, "tasks", "policies", "attempts", "priorities", "deadlines")
