-- The jobs by interval that are due in some slots.
-- Parameters: minutes bigint[], lows and highs int[], side by side: in that minute (since 1970) the
--   shards from low to high.
-- Result: the fields of `Due` (due.py).
-- Keeps true: only due jobs are read, by the index job_due_interval. OFFSET 0 makes the planner ask
--   the index for each interval and minute.
SELECT due.id, due.slot, due.history_policy, due.overlap, o.slug,
    due.task, due.queue, due.priority, due.lock_key
FROM jobs_intervals AS intervals
CROSS JOIN unnest(%(minutes)s::bigint[], %(lows)s::int[], %(highs)s::int[])
    AS part (minute, low, high)
CROSS JOIN LATERAL (
    SELECT j.*, part.minute * 120 + j.shard AS slot FROM jobs_job AS j
    WHERE j.schedule || '' = 'interval' AND j.enabled AND j.interval_minutes = intervals.n
        AND j.phase = (part.minute %% intervals.n)::int
        AND j.shard BETWEEN part.low AND part.high
    OFFSET 0
) AS due
JOIN jobs_owner AS o ON o.id = due.owner_id
CROSS JOIN LATERAL (SELECT to_timestamp(due.slot / 2.0) AS at) AS moment
WHERE {recurring/is_due}
