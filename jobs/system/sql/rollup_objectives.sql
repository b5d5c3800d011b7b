-- Count the starts and the late starts of owners with an objective, in spans that end together.
-- Parameters: owners bigint[]; start and end timestamptz (end not included; start is that of the longest
-- span); spans int[]: lengths in minutes; growth float8: see jobs/system/rollups/histogram.py.
-- Result: a row for each owner and span with starts: owner_id, span, starts, late. A bucket that has the
-- objective between its limits counts in part, as if its waits were spread evenly.
WITH objective AS (
    SELECT id, wait_objective_seconds::float8 AS seconds FROM jobs_owner
    WHERE id = ANY(%(owners)s::bigint[]) AND wait_objective_seconds IS NOT NULL
), counted AS MATERIALIZED (
    SELECT r.owner_id, r.minute, each.count, each.count * (1 - least(1, greatest(0,
        (o.seconds - power(%(growth)s::float8, each.bucket - 1))
            / (power(%(growth)s::float8, each.bucket) - power(%(growth)s::float8, each.bucket - 1))
        ))) AS late
    FROM jobs_rollup AS r
    JOIN objective AS o ON o.id = r.owner_id
    CROSS JOIN LATERAL unnest(r.wait_buckets, r.wait_counts) AS each(bucket, count)
    WHERE r.minute >= %(start)s AND r.minute < %(end)s
)
SELECT c.owner_id, s.span, sum(c.count)::bigint AS starts, sum(c.late)::float8 AS late
FROM unnest(%(spans)s::int[]) AS s(span)
JOIN counted AS c ON c.minute >= %(end)s::timestamptz - make_interval(mins => s.span)
GROUP BY c.owner_id, s.span
