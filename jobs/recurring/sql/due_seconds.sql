-- The due times of a job in seconds that have just passed.
-- Parameters: id bigint.
-- Result: slot of each, in order: the newest. For a job with history also the one before it, which
--   celery-beat may have skipped when its sends drift.
-- Keeps true: a due time is a whole multiple of the interval since 1970, by PostgreSQL's clock.
SELECT (2 * back.second)::bigint AS slot
FROM jobs_job AS due
CROSS JOIN LATERAL (
    SELECT due.interval_seconds
        * floor(extract(epoch FROM clock_timestamp()) / due.interval_seconds) AS second
) AS newest
CROSS JOIN LATERAL (
    SELECT newest.second - steps * due.interval_seconds AS second
    FROM generate_series(CASE due.history_policy WHEN 'full' THEN 1 ELSE 0 END, 0, -1) AS steps
) AS back
CROSS JOIN LATERAL (SELECT to_timestamp(back.second) AS at) AS moment
WHERE due.id = %(id)s AND due.schedule = 'seconds' AND due.enabled AND due.interval_seconds > 0
    AND {recurring/is_due}
ORDER BY slot
