-- Close pauses of jobs that are over and not recorded yet.
-- Parameters: job_ids bigint[] (null: of all jobs), most int.
-- Result: id, the schedule's columns, paused_from, and over_at: when the pause ended.
-- Keeps true: a pause is closed once; that of a locked job, by a later call. It ends at its time, or
--   when the job was resumed or switched off (effective_from).
WITH over AS MATERIALIZED (
    SELECT id, paused_from, CASE
        WHEN NOT enabled THEN least(paused_until, effective_from)
        ELSE greatest(paused_until, effective_from)
    END AS over_at
    FROM jobs_job
    WHERE paused_from IS NOT NULL
      AND (NOT enabled OR paused_until IS NULL OR paused_until <= clock_timestamp())
      AND (%(job_ids)s::bigint[] IS NULL OR id = ANY(%(job_ids)s::bigint[]))
    ORDER BY id LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs_job AS j SET paused_from = NULL
FROM over
WHERE j.id = over.id
RETURNING j.id, j.schedule, j.interval_minutes, j.interval_seconds, j.cron, j.zone, j.once_at,
    j.start_at, j.end_at, j.smooth, j.phase, j.shard, over.paused_from, over.over_at
