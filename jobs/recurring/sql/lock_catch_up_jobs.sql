-- Lock the next enabled jobs that may have due times in a span that was missed.
-- Parameters: after_id bigint; only bigint: this job alone (null: all after that id);
--   end timestamptz (not included), most int.
-- Result: by id: id, the schedule's columns, effective_from, the pause and the misfire policy;
--   is_locked: another transaction has locked the job, and all columns but id are null.
-- Keeps true: no transaction edits or pauses a job between this look at it and the commit of what
--   was decided. A time before `effective_from` is never judged by the present schedule. A locked
--   job is not waited for.
WITH next AS MATERIALIZED (
    SELECT id FROM jobs_job
    WHERE id > %(after_id)s AND (%(only)s::bigint IS NULL OR id = %(only)s)
      AND enabled AND schedule IN ('interval', 'cron', 'once') AND effective_from < %(end)s
    ORDER BY id
    LIMIT %(most)s
), mine AS MATERIALIZED (
    SELECT id, schedule, interval_minutes, interval_seconds, cron, zone, once_at, start_at,
        end_at, smooth, phase, shard, effective_from, paused_until, paused_from,
        misfire, misfire_cap, misfire_deadline_seconds
    FROM jobs_job WHERE id IN (SELECT id FROM next)
    ORDER BY id
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT *, mine.id IS NULL AS is_locked FROM next LEFT JOIN mine USING (id)
ORDER BY id
