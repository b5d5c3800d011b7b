"""Runs of long ago, in partitions of their days, and what is left of them."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from jobs.core import sql
from jobs.core.ids import new_ids
from jobs.models import Owner, Run
from jobs.system.partitions import make_day

HOUR = timedelta(hours=1)
NOON = 12 * HOUR
DROP_OLD = """
SELECT c.oid::regclass::text AS name FROM pg_class c
WHERE c.relkind = 'r' AND pg_table_is_visible(c.oid) AND (
    c.relname ~ '^jobs_(run|attempt|log)_aside$' OR c.relname ~ '^jobs_(run|attempt|log)_[0-9]{8}'
    AND to_date(substring(c.relname FROM '[0-9]{8}'), 'YYYYMMDD')
        < (clock_timestamp() AT TIME ZONE 'UTC')::date - 1)
"""
INSERT = """
INSERT INTO jobs_run (id, owner_id, submission_id, task, queue, state, payload, labels, token,
    attempt_count, max_attempts, created_at, due_at, queued_at, ended_at, error_type, history)
VALUES (%(id)s, %(owner)s, %(submission)s, 'tests.add', 'jobs', %(state)s, %(payload)s,
    '{"site": "north"}', 1, 1, 3, %(created)s, %(created)s, %(created)s, %(ended)s,
    CASE WHEN %(state)s = 'failed' THEN 'builtins.ValueError' ELSE '' END, %(history)s)
"""
INSERT_ATTEMPT = """
INSERT INTO jobs_attempt (run_id, token, number, outcome, admitted_at, started_at, ended_at,
    error_message, traceback, recorded_at)
VALUES (%s, 1, 1, %s, %s, %s, %s, 'naïve "quotes"', E'line 1\\nline 2', %s)
"""
INSERT_LOG = """
INSERT INTO jobs_log (run_id, token, first_line, line_count, first_at, data)
VALUES (%s, 1, 1, 1, %s, '[[1000,20,"shop","said"]]')
"""
ENDED = ("succeeded", "failed", "cancelled", "expired")


def midnight(days_ago: int) -> datetime:
    """Return the midnight with which the day that many days ago began, in UTC."""
    today = sql.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days_ago)


def old_run(
    owner: Owner,
    days_ago: int,
    *,
    state: str = "succeeded",
    ended_days_ago: int | None = None,
    submission: int | None = None,
    has_partition: bool = True,
) -> UUID:
    """Store a run of noon that many days ago, which ended an hour later, or on another day."""
    created = midnight(days_ago) + NOON
    if has_partition:
        make_day(midnight(days_ago))
    is_ended = state in ENDED
    ended = midnight(days_ago if ended_days_ago is None else ended_days_ago) + NOON + HOUR
    [run_id] = new_ids(created, 1)
    sql.query(
        INSERT,
        {
            "id": run_id,
            "owner": owner.pk,
            "submission": submission,
            "state": state,
            "payload": b'[[1], {"y": 2}, {}]',
            "created": created,
            "ended": ended if is_ended else None,
            "history": json.dumps([["queued", created.timestamp(), ""]]),
        },
    )
    if is_ended:
        given = [run_id, "succeeded" if state == "succeeded" else "failed"]
        sql.query(INSERT_ATTEMPT, [*given, created, created, ended, ended])
        sql.query(INSERT_LOG, [run_id, created])
    return run_id


def left(run_ids: Iterable[UUID]) -> set[UUID]:
    """Return which of these runs are still there."""
    return set(Run.objects.filter(id__in=list(run_ids)).values_list("id", flat=True))


def attempts_left(run_ids: Iterable[UUID]) -> set[UUID]:
    """Return which of these runs still have attempts."""
    rows = sql.query(
        "SELECT DISTINCT run_id FROM jobs_attempt WHERE run_id = ANY(%s)", [list(run_ids)]
    )
    return {row["run_id"] for row in rows}


def logs_left(run_ids: Iterable[UUID]) -> set[UUID]:
    """Return which of these runs still have lines of a log."""
    rows = sql.query("SELECT run_id FROM jobs_log WHERE run_id = ANY(%s)", [list(run_ids)])
    return {row["run_id"] for row in rows}


def old_tables() -> list[str]:
    """Return the tables of runs and attempts of past days, and what a round left behind."""
    return sorted(row["name"] for row in sql.query(DROP_OLD))


def drop_old_tables() -> None:
    for name in old_tables():
        sql.query(f"DROP TABLE {name}")
