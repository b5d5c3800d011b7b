"""The reader, on the real tables in a schema of their own."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import connection as django_connection
from psycopg.conninfo import make_conninfo

from tests.commands import PROJECT
from tests.judge.rows import HistoryEntry
from tests.judge.sqlreader import read_rows

TABLES = PROJECT / "jobs/migrations/sql/0003_runs.sql"
LIBPQ = ("host", "port", "user", "password", "dbname")
HISTORY: list[list[Any]] = [
    *(["queued", 1, ""], ["admitted", 1.2, ""], ["retrying", 1.4, ""]),
    *(["queued", 1.5, ""], ["admitted", 2, ""], ["running", 3, ""], ["succeeded", 4, "x"]),
]


@pytest.fixture
def database_url() -> Iterator[str]:
    """A connection string to empty tables of runs and attempts."""
    given = django_connection.get_connection_params()
    server = {name: given[name] for name in LIBPQ if given.get(name)}
    schema = f"judge_{uuid4().hex}"
    with psycopg.connect(**server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            url = make_conninfo(**server, options=f"-c search_path={schema}")
            with psycopg.connect(url) as own:
                own.execute(TABLES.read_bytes())
            yield url
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


def test_rows_are_read_as_they_are(database_url: str) -> None:
    """State, token, history, attempts, the submitter's key and the token in the result."""
    run_id = uuid4()
    with psycopg.connect(database_url) as connection:
        connection.execute(
            """INSERT INTO jobs_run (id, owner_id, task, queue, state, payload, result, result_key,
                   labels, token, attempt_count, max_attempts, history)
               VALUES (%s, 1, 'tests.record', 'jobs', 'succeeded', '', '{"n":7,"token":2}', 0,
                   '{"judge_key": "acme-1"}', 2, 2, 3, %s)""",
            (run_id, json.dumps(HISTORY)),
        )
        connection.execute(
            """INSERT INTO jobs_attempt (run_id, token, number, outcome, admitted_at, started_at,
                   ended_at)
               VALUES (%(id)s, 1, 1, 'worker lost', now(), NULL, now()),
                      (%(id)s, 2, 2, 'succeeded', now(), now(), now())""",
            {"id": run_id},
        )
    (run,), (lost, succeeded) = read_rows(database_url)
    assert (run.id, run.state, run.token, run.attempt_count) == (str(run_id), "succeeded", 2, 2)
    assert (run.outcome_token, run.key) == (2, "acme-1")
    assert run.history == tuple(HistoryEntry(*entry) for entry in HISTORY)
    assert (lost.run_id, lost.token, lost.outcome) == (run.id, 1, "worker lost")
    assert lost.started_at is None
    assert (succeeded.number, succeeded.outcome) == (2, "succeeded")
    assert succeeded.started_at is not None
