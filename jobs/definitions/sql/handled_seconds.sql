-- Of each job with an interval in seconds: its newest due time, and whether that has its run.
-- Parameters: none.
-- Result: id, newest timestamptz, is_made.
-- Keeps true: a job without history counts as made: its runs leave no row. So does a due time from
--   before the schedule took effect.
SELECT j.id, moment.newest,
    j.history_policy = 'none' OR j.effective_from > moment.newest
    OR EXISTS (SELECT FROM jobs_run WHERE id = jobs_scheduled_id(j.id, moment.newest)) AS is_made
FROM jobs_job AS j
CROSS JOIN LATERAL (
    SELECT to_timestamp(j.interval_seconds
        * floor(extract(epoch FROM clock_timestamp()) / j.interval_seconds)) AS newest
) AS moment
WHERE j.schedule = 'seconds' AND j.enabled AND j.interval_seconds > 0
