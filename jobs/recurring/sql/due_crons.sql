-- The jobs by cron expression that are due in some slots, by the expressions that match a minute.
-- Parameters: crons, zones text[], minutes bigint[], lows and highs int[], side by side: in that
--   minute (since 1970), for which the expression is due, the shards from low to high.
-- Result: the fields of `Due` (due.py); the slot is the minute's first.
-- Keeps true: only due jobs are read, by the index job_due_cron; a job that is not smooth has the
--   shard 0 there.
SELECT due.id, part.minute * 120 AS slot, due.history_policy, due.overlap, o.slug,
    due.task, due.queue, due.priority, due.lock_key
FROM unnest(%(crons)s::text[], %(zones)s::text[], %(minutes)s::bigint[], %(lows)s::int[],
    %(highs)s::int[]) AS part (cron, zone, minute, low, high)
CROSS JOIN LATERAL (
    SELECT j.* FROM jobs_job AS j
    WHERE j.schedule || '' = 'cron' AND j.enabled AND j.cron = part.cron AND j.zone = part.zone
        AND (CASE WHEN j.smooth THEN j.shard ELSE 0 END) BETWEEN part.low AND part.high
    OFFSET 0
) AS due
JOIN jobs_owner AS o ON o.id = due.owner_id
CROSS JOIN LATERAL (SELECT to_timestamp(part.minute * 60) AS at) AS moment
WHERE {recurring/is_due}
