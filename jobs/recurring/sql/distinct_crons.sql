-- The distinct expressions of enabled cron jobs with their zones: few, however many jobs there are.
-- Parameters: most int.
-- Result: cron, zone.
-- Keeps true: each is one step in the index job_due_cron, from the one before.
WITH RECURSIVE pairs AS (
    (SELECT cron, zone FROM jobs_job WHERE schedule || '' = 'cron' AND enabled
     ORDER BY cron, zone LIMIT 1)
    UNION ALL
    SELECT next.cron, next.zone
    FROM pairs, LATERAL (
        SELECT j.cron, j.zone FROM jobs_job AS j
        WHERE j.schedule || '' = 'cron' AND j.enabled AND (j.cron, j.zone) > (pairs.cron, pairs.zone)
        ORDER BY j.cron, j.zone LIMIT 1
    ) AS next
)
SELECT cron, zone FROM pairs LIMIT %(most)s
