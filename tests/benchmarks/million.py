"""A million recurring jobs, put in by SQL: a fixed mix of intervals and cron expressions."""

from typing import Final

OWNERS: Final = 1_000
# Minutes between two runs → share of the jobs, in per cent.
INTERVALS: Final = {1: 15, 2: 10, 5: 25, 15: 20, 60: 15, 1_440: 5}
CRON_SHARE: Final = 10
CRONS: Final = 600
ZONES: Final = (
    *("UTC", "Europe/Berlin", "Europe/London", "Europe/Moscow", "Europe/Istanbul"),
    *("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles"),
    *("America/Sao_Paulo", "America/St_Johns", "Africa/Cairo", "Africa/Lagos", "Asia/Kolkata"),
    *("Asia/Tokyo", "Asia/Shanghai", "Asia/Kathmandu", "Australia/Sydney", "Pacific/Auckland"),
    "Asia/Dubai",
)
MIX: Final = (
    f"intervals {', '.join(f'{n} min {share} %' for n, share in INTERVALS.items())}; "
    f"{CRONS} cron expressions in {len(ZONES)} zones {CRON_SHARE} %"
)

_INSERT: Final = """
INSERT INTO jobs_job (owner_id, key, name, task, queue, payload, payload_key, labels, schedule,
    interval_minutes, phase, shard, cron, zone, smooth, misfire, misfire_cap, overlap, retry_on,
    give_up_on, lock_key, history_policy, effective_from, enabled, changed_at)
SELECT (%(owners)s::bigint[])[n %% cardinality(%(owners)s::bigint[]) + 1],
    'job-' || n, '', 'bench.count', '', '[[], {}, {}]', 0, '{}',
    CASE WHEN step.minutes > 0 THEN 'interval' ELSE 'cron' END, nullif(step.minutes, 0),
    CASE WHEN step.minutes > 0 THEN place.slot / 120 END,
    CASE WHEN step.minutes > 0 THEN place.slot %% 120 END,
    CASE WHEN step.minutes > 0 THEN '' ELSE (%(crons)s::text[])[cron.number + 1] END,
    CASE WHEN step.minutes > 0 THEN ''
        ELSE (%(zones)s::text[])[cron.number %% cardinality(%(zones)s::text[]) + 1] END,
    false, 'once', 100, 'allow', '{}', '{}', '', %(history)s, now() - interval '1 day', true, now()
FROM generate_series(0, %(count)s - 1) AS n
CROSS JOIN LATERAL (SELECT (%(steps)s::int[])[(n + n / 1000) %% 100 + 1] AS minutes) AS step
CROSS JOIN LATERAL (SELECT n / 7 %% %(cron_count)s AS number) AS cron
CROSS JOIN LATERAL (
    SELECT floor((n * 0.6180339887498949 - floor(n * 0.6180339887498949))
        * step.minutes * 120)::int AS slot
) AS place
"""


def put_in(count: int, *, history: str) -> None:
    """Have exactly this many jobs, all with this history policy, shared by OWNERS owners."""
    from django.db import connection

    from jobs.models import Owner

    slugs = [f"o{number}" for number in range(OWNERS)]
    Owner.objects.bulk_create([Owner(slug=slug) for slug in slugs], ignore_conflicts=True)
    # Other benchmarks may have created owners before. So the ids are not consecutive.
    owners = Owner.objects.filter(slug__in=slugs).order_by("id").values_list("id", flat=True)
    steps = [minutes for minutes, share in INTERVALS.items() for _ in range(share)]
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobs_job CASCADE")
        cursor.execute(
            _INSERT,
            {
                "owners": list(owners),
                "count": count,
                "steps": [*steps, *([0] * CRON_SHARE)],
                "crons": crons(),
                "cron_count": CRONS,
                "zones": list(ZONES),
                "history": history,
            },
        )
        cursor.execute("VACUUM ANALYZE jobs_job")


def crons() -> list[str]:
    """Return CRONS different expressions: hourly, daily, and some that are due more often."""
    hourly = [f"{minute} * * * *" for minute in range(60)]
    often = [f"{minute}-59/{step} * * * *" for step in (5, 10, 15, 20) for minute in range(5)]
    daily = [f"{number % 60} {number // 60} * * *" for number in range(60 * 24)]
    weekly = [f"{number % 60} {number % 24} * * {number % 7}" for number in range(60)]
    return list(dict.fromkeys([*hourly, *often, *weekly, *daily]))[:CRONS]
