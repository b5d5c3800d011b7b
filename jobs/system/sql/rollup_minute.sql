-- Count what ended in one minute, and insert it.
-- Parameters: minute and end timestamptz (end not included); growth and shortest float8: see
-- jobs/system/rollups/histogram.py; and those of metric_minute.sql.
-- Result: none.
-- Keeps true: the same rows give the same rollups (seconds are added as numeric, which is exact).
-- Cost: that of rollup_ended.sql and of metric_minute.sql.
WITH ended AS MATERIALIZED (
    {system/rollup_ended}
), counted AS (
    SELECT owner_id, task, outcome, error_type, count(*) AS count,
        coalesce(sum(wait), 0) AS wait_seconds, coalesce(sum(run), 0) AS worker_seconds
    FROM ended GROUP BY owner_id, task, outcome, error_type
), bucketed AS (
    SELECT e.owner_id, e.task, e.outcome, e.error_type, timed.is_wait,
        ceil(ln(greatest(timed.seconds::float8, %(shortest)s)) / ln(%(growth)s::float8))::smallint
            AS bucket,
        count(*)::integer AS count
    FROM ended AS e
    CROSS JOIN LATERAL (VALUES (true, e.wait), (false, e.run)) AS timed(is_wait, seconds)
    WHERE timed.seconds IS NOT NULL
    GROUP BY e.owner_id, e.task, e.outcome, e.error_type, timed.is_wait, bucket
), listed AS (
    SELECT owner_id, task, outcome, error_type,
        array_agg(bucket ORDER BY bucket) FILTER (WHERE is_wait) AS wait_buckets,
        array_agg(count ORDER BY bucket) FILTER (WHERE is_wait) AS wait_counts,
        array_agg(bucket ORDER BY bucket) FILTER (WHERE NOT is_wait) AS run_buckets,
        array_agg(count ORDER BY bucket) FILTER (WHERE NOT is_wait) AS run_counts
    FROM bucketed GROUP BY owner_id, task, outcome, error_type
)
{system/metric_minute}
INSERT INTO jobs_rollup (minute, owner_id, task, outcome, error_type, count,
    wait_seconds, wait_buckets, wait_counts, worker_seconds, run_buckets, run_counts)
SELECT %(minute)s, c.owner_id, c.task, c.outcome, c.error_type, c.count,
    c.wait_seconds, coalesce(l.wait_buckets, '{}'), coalesce(l.wait_counts, '{}'),
    c.worker_seconds, coalesce(l.run_buckets, '{}'), coalesce(l.run_counts, '{}')
FROM counted AS c
LEFT JOIN listed AS l USING (owner_id, task, outcome, error_type)
