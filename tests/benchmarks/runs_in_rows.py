"""Millions of ended runs, put in by SQL, and one query for each filter of their list."""

from typing import Any, Final

OWNERS: Final = 20
"""Half of the runs are of the first one, whose list is read."""

FILTERS: Final = {
    "none": "",
    "500 rows": "limit=500",
    "state": "state=failed",
    "two states": "state=failed&state=cancelled",
    "a state of nearly all": "state=succeeded",
    "owner": "owner=api",
    "job": "job=bench-7",
    "target": "target=bench-7",
    "submission": "submission=7",
    "label": "label=site:site-7",
    "label of one run": "label=serial:7",
    "label of no run": "label=site:nowhere",
    "task": "task=bench.work",
    "task of no run": "task=bench.nothing",
    "error": "error=builtins.ValueError",
    "error of no run": "error=builtins.KeyError",
    "after": "after=2026-01-01T00:00:00Z",
    "before": "before=2099-01-01T00:00:00Z&state=failed",
    "label and state": "label=site:site-7&state=failed",
    "job and state": "job=bench-7&state=failed",
}

_INSERT: Final = """
INSERT INTO jobs_run (id, owner_id, job_id, submission_id, target_id, task, queue, state, payload,
    labels, max_attempts, created_at, queued_at, ended_at, error_type, history)
SELECT
    -- As new ids: the time in milliseconds, then what makes it unique.
    (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
        || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
    CASE WHEN n %% 2 = 0 THEN %(owner)s ELSE (%(others)s::bigint[])[n %% %(count_others)s + 1] END,
    CASE WHEN n %% 2 = 0 THEN (%(jobs)s::bigint[])[n / 2 %% 1000 + 1] END,
    n / 3000,
    CASE WHEN n %% 2 = 0 THEN (%(targets)s::bigint[])[n / 2 %% 1000 + 1] END,
    CASE WHEN n %% 3 = 0 THEN 'bench.work' ELSE 'bench.count' END, 'jobs',
    CASE n / 2 %% 100 WHEN 0 THEN 'failed' WHEN 1 THEN 'cancelled' ELSE 'succeeded' END,
    '[[], {}, {}]',
    CASE WHEN n %% 4 = 0
        THEN jsonb_build_object('site', 'site-' || n / 4 %% 1000, 'serial', (n / 4)::text)
        ELSE '{}' END,
    3, at, at, at, CASE WHEN n / 2 %% 100 = 0 THEN 'builtins.ValueError' ELSE '' END,
    jsonb_build_array(jsonb_build_array('queued', extract(epoch FROM at), ''))
FROM generate_series(%(first)s, %(last)s - 1) AS n
CROSS JOIN LATERAL (
    SELECT now() - interval '10 days' * (1 - n / %(count)s::float8) AS at) AS place
"""
_PIECE: Final = 500_000


def put_in(count: int, *, owner: str) -> None:
    """Have this many runs of the last ten days, half of them of one owner."""
    from django.db import connection

    from jobs import upsert_jobs
    from jobs.models import Job, Owner, Target

    mine = Owner.objects.get(slug=owner)
    Owner.objects.bulk_create(
        [Owner(slug=f"other-{number}") for number in range(OWNERS)], ignore_conflicts=True
    )
    others = list(Owner.objects.filter(slug__startswith="other-").values_list("pk", flat=True))
    keys = [f"bench-{number}" for number in range(1_000)]
    upsert_jobs(
        mine,
        [
            {"key": key, "task": "bench.work", "arguments": {"owner": owner}, "target": key}
            for key in keys
        ],
    )
    rows = Job.objects.filter(owner=mine, key__in=keys).order_by("pk")
    targets = Target.objects.filter(owner=mine, name__in=keys).order_by("pk")
    facts: dict[str, Any] = {
        "owner": mine.pk,
        "others": others,
        "count_others": len(others),
        "jobs": list(rows.values_list("pk", flat=True)),
        "targets": list(targets.values_list("pk", flat=True)),
        "count": count,
    }
    with connection.cursor() as cursor:
        for first in range(0, count, _PIECE):
            last = min(first + _PIECE, count)
            cursor.execute(_INSERT, {**facts, "first": first, "last": last})
        cursor.execute("VACUUM ANALYZE jobs_run")
