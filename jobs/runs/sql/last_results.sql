-- Return the newest runs of each of some jobs.
-- Parameters: jobs bigint[], most int.
-- Result: job_id, id, state; newest first within a job.
SELECT j.id AS job_id, r.id, r.state
FROM unnest(%(jobs)s::bigint[]) AS j(id)
CROSS JOIN LATERAL (
    SELECT id, state FROM jobs_run WHERE job_id = j.id ORDER BY id DESC LIMIT %(most)s
) AS r
