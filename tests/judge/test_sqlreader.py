"""The reader and the command, on the real tables in a schema of their own."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import connection as django_connection
from psycopg.conninfo import make_conninfo

from tests.commands import PROJECT, Done, python
from tests.judge.log import SubmitLog, TaskLog
from tests.judge.rows import HistoryEntry
from tests.judge.sqlreader import read_rows

TABLES = PROJECT / "jobs/migrations/sql/0003_runs.sql"
LIBPQ = ("host", "port", "user", "password", "dbname")
SUCCEEDED = [["queued", 1.5, ""], ["admitted", 2, ""], ["running", 3, ""], ["succeeded", 4, "x"]]


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


def insert_success(url: str, *, run_id: UUID, result: bytes, result_key: int = 0) -> None:
    """Insert a run that succeeded at its second token, and its attempts."""
    history = json.dumps([["queued", 1, ""], ["admitted", 1.2, ""], ["retrying", 1.4, ""]])
    with psycopg.connect(url) as connection:
        connection.execute(
            """INSERT INTO jobs_run (id, owner_id, task, queue, state, payload, result, result_key,
                   labels, token, attempt_count, max_attempts, history)
               VALUES (%s, 1, 'tests.record', 'jobs', 'succeeded', '', %s, %s,
                   '{"judge_key": "acme-1"}', 2, 2, 3, %s::jsonb || %s::jsonb)""",
            (run_id, result, result_key, history, json.dumps(SUCCEEDED)),
        )
        connection.execute(
            """INSERT INTO jobs_attempt (run_id, token, number, outcome, admitted_at, started_at,
                   ended_at)
               VALUES (%(id)s, 1, 1, 'worker lost', now(), NULL, now()),
                      (%(id)s, 2, 2, 'succeeded', now(), now(), now())""",
            {"id": run_id},
        )


def test_rows_are_read_as_they_are(database_url: str) -> None:
    """State, token, history, attempts, the submitter's key and the token in the result."""
    run_id = uuid4()
    insert_success(database_url, run_id=run_id, result=b'{"n":7,"token":2}')
    (run,), (lost, succeeded) = read_rows(database_url)
    assert (run.id, run.state, run.token, run.attempt_count) == (str(run_id), "succeeded", 2, 2)
    assert (run.outcome_token, run.key) == (2, "acme-1")
    assert run.history[3] == HistoryEntry("queued", 1.5, "")
    assert run.history[-1] == HistoryEntry("succeeded", 4, "x")
    assert (lost.run_id, lost.token, lost.outcome) == (run.id, 1, "worker lost")
    assert lost.started_at is None
    assert (succeeded.number, succeeded.outcome) == (2, "succeeded")
    assert succeeded.started_at is not None


@pytest.mark.parametrize(
    ("result", "key"),
    [(b"7", 0), (b"[1]", 0), (b'{"n":7}', 0), (b"\x00sealed", 1), (b'"' + b"x" * 2000 + b'"', 0)],
)
def test_a_result_that_names_no_token_says_nothing(
    database_url: str, result: bytes, key: int
) -> None:
    """Other tasks return any value, and some results are encrypted."""
    insert_success(database_url, run_id=uuid4(), result=result, result_key=key)
    (run,), _ = read_rows(database_url)
    assert run.outcome_token is None


def judged(url: str, tmp_path: Path) -> Done:
    logs = ["--log", str(tmp_path / "tasks"), "--submits", str(tmp_path / "submits")]
    return python("-m", "tests.judge", *logs, "--database-url", url)


def test_the_command_prints_the_verdict(database_url: str, tmp_path: Path) -> None:
    """Exit 0 on a clean scene; 1, with kind and id, on a bad one."""
    run_id = uuid4()
    tasks, submits = TaskLog(tmp_path / "tasks"), SubmitLog(tmp_path / "submits")
    submits.intend("acme-1")
    submits.ok("acme-1", [run_id])
    facts = {"run": str(run_id), "attempt": 2, "token": 2, "task": "tests.record"}
    tasks.start(**facts)
    tasks.end(**facts, outcome="returned")
    ended = judged(database_url, tmp_path)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert f"lost: 1\n  {run_id}  committed by submit acme-1, has no row" in ended.stdout
    insert_success(database_url, run_id=run_id, result=b'{"token":2}')
    ended = judged(database_url, tmp_path)
    clean = "verdict: clean (1 submits, 1 runs, 1 starts, 1 lost leases, 0 retries)"
    assert (ended.returncode, ended.stdout.strip()) == (0, clean), ended.stdout
