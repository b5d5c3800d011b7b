-- Add up the rollups of one minute, and insert the sum if there are any.
-- Parameters: minute timestamptz.
-- Result: none.
-- Keeps true: the same rollups give the same total (seconds are added as numeric, which is exact).
WITH chosen AS MATERIALIZED (
    SELECT * FROM jobs_rollup WHERE minute = %(minute)s
), bucketed AS (
    SELECT true AS is_wait, each.bucket, sum(each.count)::integer AS count
    FROM chosen AS c CROSS JOIN LATERAL unnest(c.wait_buckets, c.wait_counts) AS each(bucket, count)
    GROUP BY each.bucket
    UNION ALL
    SELECT false, each.bucket, sum(each.count)::integer
    FROM chosen AS c CROSS JOIN LATERAL unnest(c.run_buckets, c.run_counts) AS each(bucket, count)
    GROUP BY each.bucket
), listed AS (
    SELECT
        array_agg(bucket ORDER BY bucket) FILTER (WHERE is_wait) AS wait_buckets,
        array_agg(count ORDER BY bucket) FILTER (WHERE is_wait) AS wait_counts,
        array_agg(bucket ORDER BY bucket) FILTER (WHERE NOT is_wait) AS run_buckets,
        array_agg(count ORDER BY bucket) FILTER (WHERE NOT is_wait) AS run_counts
    FROM bucketed
), added AS (
    SELECT coalesce(sum(count) FILTER (WHERE outcome = 'succeeded'), 0) AS succeeded,
        coalesce(sum(count) FILTER (WHERE outcome = 'failed'), 0) AS failed,
        coalesce(sum(count) FILTER (WHERE outcome = 'retrying'), 0) AS retrying,
        coalesce(sum(count) FILTER (WHERE outcome = 'cancelled'), 0) AS cancelled,
        coalesce(sum(count) FILTER (WHERE outcome = 'expired'), 0) AS expired,
        sum(worker_seconds::numeric) AS worker_seconds
    FROM chosen
    HAVING count(*) > 0
)
INSERT INTO jobs_rolluptotal (minute, succeeded, failed, retrying, cancelled, expired, worker_seconds,
    wait_buckets, wait_counts, run_buckets, run_counts)
SELECT %(minute)s, a.succeeded, a.failed, a.retrying, a.cancelled, a.expired, a.worker_seconds,
    coalesce(l.wait_buckets, '{}'), coalesce(l.wait_counts, '{}'),
    coalesce(l.run_buckets, '{}'), coalesce(l.run_counts, '{}')
FROM added AS a CROSS JOIN listed AS l
