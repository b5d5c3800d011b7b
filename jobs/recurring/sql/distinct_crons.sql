-- The distinct pairs of expression and zone of enabled cron jobs. A million jobs have few pairs.
-- Parameters: most int.
-- Result: cron, zone.
-- Keeps true: reads one entry of the index job_due_cron for each pair, not for each job.
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
