-- Find the most slots that some workers had at one time in a span.
-- Parameters: start and end timestamptz; workers uuid[].
-- Result: a row with slots, null without a worker.
WITH present AS (
    SELECT slots, greatest(started_at, %(start)s) AS starts,
        least(coalesce(stopped_at, heartbeat_at), %(end)s) AS ends
    FROM jobs_worker
    WHERE id = ANY(%(workers)s::uuid[])
        AND started_at < %(end)s AND coalesce(stopped_at, heartbeat_at) > %(start)s
)
SELECT max(total) AS slots FROM (
    SELECT sum(change) OVER (ORDER BY at, change) AS total FROM (
        SELECT starts AS at, slots AS change FROM present
        UNION ALL SELECT ends, -slots FROM present
    ) AS changes
) AS totals
