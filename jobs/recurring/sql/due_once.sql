-- The jobs with one time that are due in some slots.
-- Parameters: minutes bigint[], lows and highs int[], side by side: in that minute (since 1970) the
--   shards from low to high.
-- Result: the fields of `Due` (due.py); the slot is the minute's first.
-- Keeps true: only due jobs are read, by the index job_due_once; a job that is not smooth has the
--   shard 0 there, and `once_at` is a whole minute.
SELECT due.id, part.minute * 120 AS slot, due.history_policy, due.overlap, o.slug,
    due.task, due.queue, due.priority, due.lock_key
FROM unnest(%(minutes)s::bigint[], %(lows)s::int[], %(highs)s::int[]) AS part (minute, low, high)
CROSS JOIN LATERAL (
    SELECT j.* FROM jobs_job AS j
    WHERE j.schedule || '' = 'once' AND j.enabled AND j.once_at = to_timestamp(part.minute * 60)
        AND (CASE WHEN j.smooth THEN j.shard ELSE 0 END) BETWEEN part.low AND part.high
    OFFSET 0
) AS due
JOIN jobs_owner AS o ON o.id = due.owner_id
CROSS JOIN LATERAL (SELECT to_timestamp(part.minute * 60) AS at) AS moment
WHERE {recurring/is_due}
