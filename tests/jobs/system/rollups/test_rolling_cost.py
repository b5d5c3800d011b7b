"""jobs/system/rollups/rolling.py: a count of a minute reads little more than the minute's rows."""

from datetime import datetime
from typing import Any

import pytest
from django.db import connection

from jobs.core import sql
from jobs.models import Owner
from jobs.system.rollups.rolling import count_minute
from tests.jobs.system.rollups.minutes import minutes_ago, rolled_count

pytestmark = pytest.mark.usefixtures("committed", "broker")

MANY = """
WITH each AS (
    SELECT (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
            || '70008000' || lpad(to_hex(number), 12, '0'))::uuid AS id,
        %(from)s + make_interval(secs => %(seconds)s::float8 * number / %(count)s) AS at
    FROM generate_series(1, %(count)s) AS number
), runs AS (
    INSERT INTO jobs_run
        (id, owner_id, task, queue, state, payload, max_attempts, ended_at, history)
    SELECT id, %(owner)s, 'tests.add', 'jobs', 'succeeded', '', 1, at, '[]' FROM each
)
INSERT INTO jobs_attempt (run_id, token, number, outcome, admitted_at, started_at, ended_at,
    queued_at, run_state, recorded_at)
SELECT id, 1, 1, 'succeeded', at, at, at, at, 'succeeded', at FROM each ORDER BY id
"""


@pytest.mark.parametrize("setup", ["", "ANALYZE jobs_attempt; ANALYZE jobs_run"])
def test_only_the_rows_of_the_minute_are_read(acme: Owner, setup: str) -> None:
    """Of a long table a few ranges of pages, with statistics or without them."""
    # Otherwise rows would fill the gaps that an earlier scene has left.
    sql.query("TRUNCATE jobs_attempt")
    # In three hours, as workers write them.
    sql.query(
        MANY, {"owner": acme.pk, "count": 72_000, "from": minutes_ago(180), "seconds": 3 * 3600}
    )
    [size] = sql.query(
        "SELECT pg_relation_size(tableoid) / 8192 AS pages FROM jobs_attempt LIMIT 1"
    )
    # As autovacuum does while rows are added.
    sql.query(
        "SELECT brin_summarize_new_values(indexrelid) FROM pg_stat_user_indexes "
        "WHERE relname LIKE 'jobs_attempt%%' AND indexrelname LIKE '%%recorded_at%%'"
    )
    if setup:
        sql.query(setup)
    plan = _plan_of_count(minutes_ago(60))
    assert not [scan for scan in plan if scan["Node Type"] == "Seq Scan" and scan["Actual Rows"]]
    assert 0 < _pages_of(plan, "jobs_attempt") <= 3 * 64 < size["pages"] / 3
    assert _pages_of(plan, "jobs_run") <= 400, "a page for each run of the minute"
    assert rolled_count().total() == 400


def _plan_of_count(minute: datetime) -> list[dict[str, Any]]:
    """Count a minute; return the nodes of the plan by which its rows were read."""
    plans: list[Any] = []

    def explained(execute: Any, statement: str, *rest: Any) -> Any:
        if "INSERT INTO jobs_rollup (" not in statement:
            return execute(statement, *rest)
        cursor = rest[-1]["cursor"]
        answer = execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *rest)
        plans.extend(cursor.fetchone()[0])
        return answer

    with connection.execute_wrapper(explained):
        count_minute(minute, is_final=True)
    nodes = [plan["Plan"] for plan in plans]
    for node in nodes:
        nodes.extend(node.get("Plans", []))
    return nodes


def _pages_of(plan: list[dict[str, Any]], table: str) -> int:
    """Return how many pages of a table the bitmap scans have read."""
    scans = [scan for scan in plan if scan["Node Type"] == "Bitmap Heap Scan"]
    return sum(
        scan["Exact Heap Blocks"] + scan["Lossy Heap Blocks"]
        for scan in scans
        if scan["Relation Name"].startswith(table)
    )
