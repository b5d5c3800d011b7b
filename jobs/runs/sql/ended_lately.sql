-- Count how many runs of a submission have ended within the last 10 seconds.
-- Parameters: submission bigint.
-- Result: one row: count; since (the first of these ends), now; queued: how many are queued, up to 100.
-- Keeps true: read by the index of a submission's runs.
SELECT count(*) AS count, min(ended_at) AS since, clock_timestamp() AS now,
    (SELECT count(*) FROM (
        SELECT FROM jobs_run WHERE submission_id = %(submission)s AND state = 'queued' LIMIT 100
    ) AS few) AS queued
FROM jobs_run
WHERE submission_id = %(submission)s AND state IN ('succeeded', 'failed')
    AND ended_at > clock_timestamp() - interval '10 seconds'
