"""Reads runs and attempts by plain SQL: the one place that knows the tables."""

import json
from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row

from tests.judge.rows import (
    AdmittedRow,
    AttemptRow,
    HistoryEntry,
    MissedRow,
    Rule,
    RunRow,
    TriggeredRow,
)

RUNS = """
    SELECT id::text AS id, state, token, attempt_count, history, labels ->> 'judge_key' AS key,
           -- The scenario tasks return small objects that name their token; key 0 is JSON.
           CASE WHEN result_key = 0 AND length(result) < 1000 THEN result END AS result
    FROM jobs_run ORDER BY id
"""
ATTEMPTS = """
    SELECT run_id::text AS run_id, token, number, outcome, started_at, ended_at
    FROM jobs_attempt ORDER BY run_id, token
"""
TRIGGERED = """
    SELECT coalesce(j.key, 'of no job') AS key, r.id::text AS run_id, r.due_at
    FROM jobs_run r LEFT JOIN jobs_job j ON j.id = r.job_id WHERE r.submission_id IS NULL
"""
MISSED = """
    SELECT j.key, m.first_at, m.last_at, m.count, m.reason
    FROM jobs_missed m JOIN jobs_job j ON j.id = m.job_id
"""
# Each admission is a move, and gives the next token.
ADMITTED = """
    SELECT r.id::text AS run_id, row_number() OVER (PARTITION BY r.id ORDER BY m.place) AS token,
        to_timestamp((m.move ->> 1)::float8) AS at
    FROM jobs_run r, jsonb_array_elements(r.history) WITH ORDINALITY AS m (move, place)
    WHERE m.move ->> 0 = 'admitted'
"""
RULES = """
    SELECT key, schedule, interval_minutes, phase, shard, cron, zone, once_at, start_at, end_at
    FROM jobs_job
"""


def read_rows(database_url: str) -> tuple[list[RunRow], list[AttemptRow]]:
    """Return all runs and attempts as of one moment."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with connection.cursor(row_factory=dict_row) as cursor:
            runs = [_run(row) for row in cursor.execute(RUNS)]
        with connection.cursor(row_factory=class_row(AttemptRow)) as cursor:
            attempts = cursor.execute(ATTEMPTS).fetchall()
    return runs, attempts


def read_triggered(database_url: str) -> tuple[list[TriggeredRow], list[MissedRow]]:
    """Return all runs that jobs were due for, and all records of due times that were missed."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with connection.cursor(row_factory=class_row(TriggeredRow)) as cursor:
            triggered = cursor.execute(TRIGGERED).fetchall()
        with connection.cursor(row_factory=class_row(MissedRow)) as cursor:
            missed = cursor.execute(MISSED).fetchall()
    return triggered, missed


def read_admissions(database_url: str) -> list[AdmittedRow]:
    """Return all admissions of all runs."""
    with (
        psycopg.connect(database_url) as connection,
        connection.cursor(row_factory=class_row(AdmittedRow)) as cursor,
    ):
        return cursor.execute(ADMITTED).fetchall()


def read_rules(database_url: str) -> dict[str, Rule]:
    """Return the schedules of all jobs, by their keys."""
    with (
        psycopg.connect(database_url) as connection,
        connection.cursor(row_factory=dict_row) as cursor,
    ):
        return {row.pop("key"): Rule(**row) for row in cursor.execute(RULES)}


def _run(row: dict[str, Any]) -> RunRow:
    history = tuple(HistoryEntry(*entry) for entry in row.pop("history"))
    outcome_token = _token_in(row.pop("result"))
    return RunRow(**row, history=history, outcome_token=outcome_token)


def _token_in(result: bytes | None) -> int | None:
    returned = None if result is None else json.loads(result)
    return returned.get("token") if isinstance(returned, dict) else None
