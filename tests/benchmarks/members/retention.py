"""retention: how fast a day of old runs is removed, and how long others wait meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, timedelta
from typing import Final

from tests.benchmarks.rows import Row
from tests.benchmarks.world import BenchmarkError, World

DAY_WITH_FAILED: Final = 100
DAY_WITHOUT: Final = 300
FAILED: Final = 100
"""One run in so many has failed."""
BEFORE_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.002

_TABLE: Final = "CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
_RUNS: Final = """
INSERT INTO {name} (id, owner_id, task, queue, state, payload, token, attempt_count, max_attempts,
    created_at, queued_at, admitted_at, started_at, ended_at, error_type, history)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
        || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
    %(owner)s, 'bench.work', 'jobs',
    CASE WHEN n %% %(failed)s = 0 THEN 'failed' ELSE 'succeeded' END,
    convert_to('[["acme"], {{"number": ' || n || '}}, {{}}]', 'UTF8'), 1, 1, 3, at, at, at, at, at,
    CASE WHEN n %% %(failed)s = 0 THEN 'builtins.ValueError' ELSE '' END,
    jsonb_build_array(jsonb_build_array('queued', extract(epoch FROM at), ''),
        jsonb_build_array('admitted', extract(epoch FROM at), ''),
        jsonb_build_array('running', extract(epoch FROM at), ''),
        jsonb_build_array('succeeded', extract(epoch FROM at), ''))
FROM generate_series(0, %(count)s - 1) AS n
CROSS JOIN LATERAL (SELECT %(day)s + interval '1 day' * (n / %(count)s::float8) AS at) AS place
"""
_ATTEMPTS: Final = """
INSERT INTO {name} (run_id, token, number, outcome, admitted_at, started_at, ended_at, queued_at,
    run_state, recorded_at)
SELECT id, 1, 1, state, admitted_at, started_at, ended_at, queued_at, state, ended_at FROM {runs}
"""


def measure(world: World) -> list[Row]:
    """Remove a day of which nothing stays, and one of which the failed runs stay; submit always."""
    from jobs.core import sql
    from jobs.models import Owner, Run
    from jobs.system.retention.rounds import remove_old_history

    world.commits_are_durable()
    count = world.pick(1_000_000, 50_000)
    Owner.objects.get_or_create(slug="submitter")
    owner = Owner.objects.get(slug="submitter")
    rows = []
    for days_ago, stay in ((DAY_WITHOUT, 0), (DAY_WITH_FAILED, count // FAILED)):
        size = _put_in(count, days_ago=days_ago, owner=owner.pk)
        sql.query("CHECKPOINT")
        with _submitting() as usual:
            time.sleep(BEFORE_SECONDS)
        with _submitting() as meanwhile:
            began = time.monotonic()
            found = remove_old_history()
            took = time.monotonic() - began
        if found is None or found["runs"] != count - stay:
            raise BenchmarkError(f"{found} of {count} were removed, and {stay} should stay")
        if Run.objects.filter(created_at__lt=owner.created_at).count() != stay:
            raise BenchmarkError(f"{stay} should have stayed")
        what = f"a day of {count:,} runs with attempts, of which {stay:,} stay"
        rows += [
            Row(
                what=f"{what}: until it is gone", unit="s", figure=took, at_most=1.0, of_figure=True
            ),
            Row(
                what="longest submit meanwhile",
                unit="ms",
                figure=1000 * max(meanwhile),
                baseline=1000 * max(usual),
                against=f"without it, for {BEFORE_SECONDS:g} s",
                at_most=100.0,
                of_figure=True,
                samples={"meanwhile": meanwhile, "usual": usual},
            ),
            Row(what="disk of a run with its attempt", unit="bytes", figure=size / count),
        ]
    return rows


@contextmanager
def _submitting() -> Iterator[list[float]]:
    """Submit run after run in another thread; yield the seconds of each."""
    from django.db import connection

    from jobs import submit

    seconds: list[float] = []
    is_over = threading.Event()

    def loop() -> None:
        submit("bench.work", "submitter", owner="submitter")  # connects, and plans
        while not is_over.wait(PAUSE_SECONDS):
            began = time.monotonic()
            submit("bench.work", "submitter", owner="submitter")
            seconds.append(time.monotonic() - began)
        connection.close()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        time.sleep(0.5)
        yield seconds
    finally:
        is_over.set()
        thread.join()


def _put_in(count: int, *, days_ago: int, owner: int) -> int:
    """Have a day of runs that ended at once, each with an attempt, as vacuum would leave it.

    Return how many bytes they have on disk.
    """
    from jobs.core import sql
    from jobs.system.retention.spans import limits_of

    midnight = sql.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    day = midnight - timedelta(days=days_ago)
    low, high = limits_of(day)
    runs, attempts = (f"{table}_{day:%Y%m%d}" for table in ("jobs_run", "jobs_attempt"))
    for table, name in (("jobs_run", runs), ("jobs_attempt", attempts)):
        sql.query(_TABLE.format(name=name, table=table))
    facts = {"owner": owner, "count": count, "failed": FAILED, "day": day}
    sql.query(_RUNS.format(name=runs), facts)
    sql.query(_ATTEMPTS.format(name=attempts, runs=runs))
    # Indexes are built faster than kept; that of owners comes first, as `partitions` makes it.
    sql.query(f"CREATE INDEX ON {runs} (owner_id, id)")
    for table, name in (("jobs_run", runs), ("jobs_attempt", attempts)):
        bounds = f"FOR VALUES FROM ('{low}') TO ('{high}')"
        sql.query(f"ALTER TABLE {table} ATTACH PARTITION {name} {bounds}")
        sql.query(f"VACUUM ANALYZE {name}")
    [row] = sql.query(
        "SELECT pg_total_relation_size(%s) + pg_total_relation_size(%s) AS bytes", [runs, attempts]
    )
    return int(row["bytes"])
