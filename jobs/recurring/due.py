"""Due jobs: which jobs are due in a span of slots, found by index.

A cron expression is matched once for all its jobs: there are few distinct ones.
"""

from __future__ import annotations

import logging
from functools import cache
from itertools import starmap
from operator import itemgetter
from typing import Any, Final, NamedTuple

from django.db import connection

from jobs.core import log_events, sql
from jobs.schedules import cron_minutes, moment_of
from jobs.schedules.phases import MINUTE, SLOTS

logger = logging.getLogger(__name__)

PAIRS: Final = 1_000_000


class Due(NamedTuple):
    """A due time of a job, with what its hint needs; the columns of statements about due times.

    The slot is that of the nominal time, also for a smooth job, which is triggered later. The owner
    is a slug; queue and priority are the job's own.
    """

    job_id: int
    slot: int
    history: str
    overlap: str
    owner: str
    task: str
    queue: str
    priority: int | None
    lock: str


def due_jobs(first_slot: int, end_slot: int) -> list[Due]:
    """Return all due times of enabled jobs that are to be triggered in the slots, by job."""
    # Each minute, with its first and its last shard.
    parts = [
        (minute, max(first_slot - minute * SLOTS, 0), min(end_slot - minute * SLOTS, SLOTS) - 1)
        for minute in range(first_slot // SLOTS, (end_slot - 1) // SLOTS + 1)
    ]
    given = sql.columns(parts, "minutes", "lows", "highs")
    found = due_rows("recurring/due_intervals", given) + due_rows("recurring/due_once", given)
    crons = [
        (row["cron"], row["zone"], minute, low, high)
        for row in sql.run("recurring/distinct_crons", {"most": PAIRS})
        for minute, low, high in parts
        if is_due(row["cron"], row["zone"], minute)
    ]
    if crons:
        given = sql.columns(crons, "crons", "zones", "minutes", "lows", "highs")
        found += due_rows("recurring/due_crons", given)
    return sorted(found, key=itemgetter(0, 1))


def is_due(cron: str, zone: str, minute: int) -> bool:
    """Say whether an expression is due in a minute since 1970; a broken one never is."""
    start = moment_of(minute * SLOTS)
    try:
        return bool(cron_minutes(cron, zone, start=start, end=start + MINUTE))
    except Exception as error:
        # Raw SQL may have written anything, and must not keep other jobs from their due times.
        _log_broken(cron, zone, f"{type(error).__name__}: {error}")
        return False


def due_rows(name: str, parameters: dict[str, Any]) -> list[Due]:
    """Run a statement whose rows are due times."""
    with connection.cursor() as cursor:
        cursor.execute(sql.statement(name), parameters)
        return list(starmap(Due, cursor.fetchall()))


@cache
def _log_broken(cron: str, zone: str, problem: str) -> None:
    log_events.CRON_BROKEN.log(logger, cron=cron, zone=zone, error=problem)
