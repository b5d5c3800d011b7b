-- Which of these jobs have failed for a while.
-- Parameters: jobs bigint[]; since uuid: the first id of the time from which on none succeeded.
-- Result: job_id of those whose last run from before that time failed, and that had no success since.
-- Keeps true: each job is looked up by its index (run_of_job); only its runs since then are read.
SELECT asked.job_id FROM unnest(%(jobs)s::bigint[]) AS asked(job_id)
CROSS JOIN LATERAL (
    SELECT state FROM jobs_run
    WHERE job_id = asked.job_id AND id < %(since)s AND state IN ('succeeded', 'failed')
    ORDER BY id DESC LIMIT 1
) AS before
WHERE before.state = 'failed'
    AND NOT EXISTS (
        SELECT FROM jobs_run AS later
        WHERE later.job_id = asked.job_id AND later.id >= %(since)s AND later.state = 'succeeded'
    )
