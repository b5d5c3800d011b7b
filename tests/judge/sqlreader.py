"""Reads runs and attempts by plain SQL: the one place that knows the tables."""

import json
from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row

from tests.judge.rows import AttemptRow, HistoryEntry, RunRow

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


def read_rows(database_url: str) -> tuple[list[RunRow], list[AttemptRow]]:
    """Return all runs and attempts as of one moment."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        with connection.cursor(row_factory=dict_row) as cursor:
            runs = [_run(row) for row in cursor.execute(RUNS)]
        with connection.cursor(row_factory=class_row(AttemptRow)) as cursor:
            attempts = cursor.execute(ATTEMPTS).fetchall()
    return runs, attempts


def _run(row: dict[str, Any]) -> RunRow:
    history = tuple(HistoryEntry(*entry) for entry in row.pop("history"))
    outcome_token = _token_in(row.pop("result"))
    return RunRow(**row, history=history, outcome_token=outcome_token)


def _token_in(result: bytes | None) -> int | None:
    returned = None if result is None else json.loads(result)
    return returned.get("token") if isinstance(returned, dict) else None
