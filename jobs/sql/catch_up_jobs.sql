-- Lock the next enabled jobs that may have due times in a span that was missed.
-- Parameters: after_id bigint, end timestamptz (not included), most int.
-- Result: id, owner_id, the schedule's columns, effective_from, the pause, the misfire policy;
-- in the order of ids.
-- Keeps true: nobody edits or pauses a job between the look at it and the commit of what was
-- decided; a time before `effective_from` is never judged by today's schedule.
SELECT id, owner_id, schedule, interval_minutes, interval_seconds, cron, zone, once_at, start_at,
    end_at, smooth, phase, shard, effective_from, paused_until, paused_from,
    misfire, misfire_cap, misfire_deadline_seconds
FROM jobs_job
WHERE id > %(after_id)s AND enabled AND schedule IN ('interval', 'cron', 'once')
  AND effective_from < %(end)s
ORDER BY id
LIMIT %(most)s
FOR NO KEY UPDATE
