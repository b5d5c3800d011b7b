-- Count what ended in one minute, and insert it.
-- Parameters: minute and end timestamptz (end not included); growth and shortest float8: see
-- jobs/system/rollups/histogram.py.
-- Result: none.
-- Keeps true: the same rows give the same rollups (seconds are added as numeric, which is exact).
-- Cost: attempts of the minute by attempt_recorded, and the run of each by its id; the few runs that did
-- not succeed by run_ended.
WITH ended AS MATERIALIZED (
    SELECT r.owner_id, r.task, a.run_state AS outcome,
        CASE WHEN a.run_state IN ('failed', 'retrying') THEN a.error_type ELSE '' END AS error_type,
        greatest(extract(epoch FROM a.started_at - a.queued_at), 0) AS wait,
        greatest(extract(epoch FROM a.ended_at - a.started_at), 0) AS run
    FROM jobs_attempt AS a
    JOIN jobs_run AS r ON r.id = a.run_id
    WHERE a.recorded_at >= %(minute)s AND a.recorded_at < %(end)s
        -- guard: an attempt that was given back has no outcome
        AND a.run_state NOT IN ('', 'queued')
    UNION ALL
    SELECT r.owner_id, r.task, r.state, '', NULL, NULL
    FROM jobs_run AS r
    WHERE r.state IN ('failed', 'cancelled', 'expired')
        AND r.ended_at >= %(minute)s AND r.ended_at < %(end)s
        -- guard: an end that an attempt made is counted with that attempt
        AND NOT EXISTS (SELECT FROM jobs_attempt AS a
            WHERE a.run_id = r.id AND a.token = r.token AND a.ended_at = r.ended_at)
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
INSERT INTO jobs_rollup (minute, owner_id, task, outcome, error_type, count,
    wait_seconds, wait_buckets, wait_counts, worker_seconds, run_buckets, run_counts)
SELECT %(minute)s, c.owner_id, c.task, c.outcome, c.error_type, c.count,
    c.wait_seconds, coalesce(l.wait_buckets, '{}'), coalesce(l.wait_counts, '{}'),
    c.worker_seconds, coalesce(l.run_buckets, '{}'), coalesce(l.run_counts, '{}')
FROM counted AS c
LEFT JOIN listed AS l USING (owner_id, task, outcome, error_type)
