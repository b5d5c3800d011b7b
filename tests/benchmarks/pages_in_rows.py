"""All that pages show, put in by SQL: runs, jobs, owners, submissions, audit, workers, rollups."""

from typing import Any, Final

from tests.benchmarks import million, runs_in_rows

OWNER: Final = "pages"
"""Half of the runs are of this owner."""
WAITING: Final = 10
"""Runs of each other owner that wait in the fair queues."""
WORKERS: Final = 20
RUNS_OF_A_SUBMISSION: Final = 3_000
"""As `runs_in_rows` numbers them."""

_SUBMISSIONS: Final = """
INSERT INTO jobs_submission (id, owner_id, label, task, queue, run_count, created_at)
SELECT n, %(owner)s, 'label-' || n %% 100, 'bench.work', 'jobs', 3000,
    now() - interval '10 days' * (1 - n / %(count)s::float8)
FROM generate_series(1, %(count)s) AS n
"""
_SEQUENCE: Final = "SELECT setval(pg_get_serial_sequence('jobs_submission', 'id'), %(count)s)"
_AUDIT: Final = """
INSERT INTO jobs_auditentry
    (owner_id, actor_name, action, object_type, object_id, reason, details)
SELECT CASE WHEN n %% 2 = 0 THEN %(owner)s ELSE (%(owners)s::bigint[])[n %% %(others)s + 1] END,
    'person-' || n %% 50, (ARRAY['cancel', 'retry', 'pause', 'change'])[n %% 4 + 1],
    (ARRAY['run', 'job', 'owner'])[n %% 3 + 1], (n / 10)::text, 'as asked', '{}'
FROM generate_series(1, %(count)s) AS n
"""
_WORKERS: Final = """
INSERT INTO jobs_worker (id, hostname, pid, pool, slots, queues, version, started_at, heartbeat_at)
SELECT gen_random_uuid(), 'worker-' || n || '@here', n, 'prefork', 8,
    CASE WHEN n = 1 THEN '["system"]' ELSE '["jobs"]' END::jsonb, '0.1', now(),
    now() + interval '1 day'
FROM generate_series(1, %(count)s) AS n
"""
_LEADER: Final = """
INSERT INTO jobs_leader (name, holder, until) VALUES ('beat', 'b1', now() + interval '1 day')
ON CONFLICT (name) DO UPDATE SET until = excluded.until
"""
_PULSE: Final = "UPDATE jobs_cursor SET beat_at = now() + interval '1 day', slot = slot + 172800"
"""A day ahead, too, so that no job is late."""
_ROLLUPS: Final = """
INSERT INTO jobs_rollup (minute, owner_id, task, outcome, error_type, count, wait_seconds,
    wait_buckets, wait_counts, worker_seconds, run_buckets, run_counts)
SELECT minute, owner.id, 'bench.work', kind.outcome, kind.error, kind.count, 10.0,
    ARRAY[20, 40, 60], ARRAY[3, 5, 2], 30.0, ARRAY[30, 50, 70], ARRAY[4, 4, 2]
FROM generate_series(date_trunc('minute', now()) - interval '90 minutes',
    date_trunc('minute', now()) - interval '1 minute', interval '1 minute') AS minute
CROSS JOIN jobs_owner AS owner
CROSS JOIN (VALUES ('succeeded', '', 10), ('failed', 'builtins.ValueError', 1))
    AS kind (outcome, error, count)
"""
_POSITION: Final = """
INSERT INTO jobs_rollupposition (id, final_until, counted_until)
VALUES (1, date_trunc('minute', now()), date_trunc('minute', now()))
ON CONFLICT (id) DO UPDATE SET final_until = excluded.final_until,
    counted_until = excluded.counted_until, boundary_at = NULL
"""
_ANALYZE: Final = (
    "VACUUM ANALYZE jobs_submission, jobs_auditentry, jobs_rollup, jobs_rolluptotal, jobs_run,"
    " jobs_owner"
)


def put_in(*, runs: int, jobs: int, audited: int) -> None:
    """Have this many rows of 1,000 owners, and of OWNER. No hint is in Redis before."""
    from django.db import connection

    from jobs import submit_many
    from jobs.models import Owner

    mine, _ = Owner.objects.get_or_create(slug=OWNER)
    million.put_in(jobs, history="full")
    runs_in_rows.put_in(runs, owner=OWNER)
    others = list(Owner.objects.exclude(pk=mine.pk).order_by("pk"))
    facts: dict[str, Any] = {
        "owner": mine.pk,
        "owners": [one.pk for one in others],
        "others": len(others),
    }
    submissions = runs // RUNS_OF_A_SUBMISSION
    with connection.cursor() as cursor:
        cursor.execute(_SUBMISSIONS, {**facts, "count": submissions})
        cursor.execute(_SEQUENCE, {"count": submissions})
        cursor.execute(_AUDIT, {**facts, "count": audited})
        cursor.execute(_WORKERS, {"count": WORKERS})
        for statement in (_LEADER, _PULSE, _ROLLUPS):
            cursor.execute(statement)
    put_in_totals()
    for owner in (mine, *others):
        submit_many("bench.count", [{}] * WAITING, owner=owner)
    with connection.cursor() as cursor:
        cursor.execute(_ANALYZE)


def put_in_totals() -> None:
    """Add up the rollups of each minute, and have all minutes counted until now."""
    from jobs.core import sql

    sql.query("TRUNCATE jobs_rolluptotal")
    for row in sql.query("SELECT DISTINCT minute FROM jobs_rollup"):
        sql.run("system/rollup_total", row)
    sql.query(_POSITION)
