-- The due times of a job in seconds that have just passed.
-- Parameters: id bigint.
-- Result: slot of each, in order: the newest; of a job with history the one before it, too, which a
-- beat whose sends drift may have passed over.
-- Keeps true: a due time is a whole multiple of the interval since 1970, of PostgreSQL's clock; none
-- is from before the schedule holds, in a pause, or out of the job's own bounds.
SELECT (2 * back.due)::bigint AS slot
FROM jobs_job AS j
CROSS JOIN LATERAL (
    SELECT floor(extract(epoch FROM clock_timestamp()) / j.interval_seconds) * j.interval_seconds AS due
) AS newest
CROSS JOIN LATERAL (
    SELECT newest.due - steps * j.interval_seconds AS due
    FROM generate_series(CASE j.history_policy WHEN 'full' THEN 1 ELSE 0 END, 0, -1) AS steps
) AS back
CROSS JOIN LATERAL (SELECT to_timestamp(back.due) AS at) AS moment
WHERE j.id = %(id)s AND j.schedule = 'seconds' AND j.enabled AND j.interval_seconds > 0
  AND j.effective_from <= moment.at
  AND (j.start_at IS NULL OR j.start_at <= moment.at)
  AND (j.end_at IS NULL OR j.end_at >= moment.at)
  AND (j.paused_until IS NULL OR j.paused_until <= moment.at OR j.paused_from > moment.at)
ORDER BY slot
