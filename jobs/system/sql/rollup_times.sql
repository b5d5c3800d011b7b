-- Add the histograms of some owners in each minute of a span.
-- Parameters: start and end timestamptz (end not included); owners bigint[].
-- Result: a row for each bucket with a value: minute, is_wait (else a run time), bucket, count.
WITH chosen AS MATERIALIZED (
    SELECT minute, wait_buckets, wait_counts, run_buckets, run_counts
    FROM jobs_rollup
    WHERE minute >= %(start)s AND minute < %(end)s
        AND owner_id = ANY(%(owners)s::bigint[])
)
SELECT c.minute, true AS is_wait, each.bucket, sum(each.count)::bigint AS count
FROM chosen AS c CROSS JOIN LATERAL unnest(c.wait_buckets, c.wait_counts) AS each(bucket, count)
GROUP BY c.minute, each.bucket
UNION ALL
SELECT c.minute, false, each.bucket, sum(each.count)::bigint
FROM chosen AS c CROSS JOIN LATERAL unnest(c.run_buckets, c.run_counts) AS each(bucket, count)
GROUP BY c.minute, each.bucket
