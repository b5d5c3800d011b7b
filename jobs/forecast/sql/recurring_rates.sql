-- How many runs a second jobs with an interval make in a queue.
-- Parameters: queues text[] (with '' for the default queue), now timestamptz.
-- Result: owner_id, per_second.
SELECT owner_id, sum(CASE WHEN schedule = 'seconds' THEN 1.0 / interval_seconds
    ELSE 1.0 / (60 * interval_minutes) END)::float8 AS per_second
FROM jobs_job
WHERE enabled AND schedule IN ('interval', 'seconds') AND queue = ANY(%(queues)s::text[])
    AND (paused_until IS NULL OR paused_until <= %(now)s)
GROUP BY owner_id
