-- The given jobs that do not fail now: their newest ended run did not fail, or they have
-- no ended run.
-- Parameters: jobs bigint[].
-- Result: job_id.
-- Keeps true: reads one entry of the index run_of_job for each job.
SELECT asked.job_id
FROM unnest(%(jobs)s::bigint[]) AS asked(job_id)
LEFT JOIN LATERAL (
    SELECT run.state FROM jobs_run AS run
    WHERE run.job_id = asked.job_id
        AND run.state IN ('succeeded', 'failed', 'cancelled', 'expired')
    ORDER BY run.id DESC
    LIMIT 1
) AS newest ON true
WHERE newest.state IS DISTINCT FROM 'failed'
