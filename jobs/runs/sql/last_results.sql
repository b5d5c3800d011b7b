-- Return the newest runs of each of some jobs.
-- Parameters: jobs bigint[], most int.
-- Result: job_id, id, state, seconds (of its last attempt; null: not started, not ended); newest first
-- within a job.
SELECT j.id AS job_id, r.id, r.state,
    extract(epoch FROM r.ended_at - r.started_at)::float8 AS seconds
FROM unnest(%(jobs)s::bigint[]) AS j(id)
CROSS JOIN LATERAL (
    SELECT id, state, started_at, ended_at FROM jobs_run WHERE job_id = j.id ORDER BY id DESC LIMIT %(most)s
) AS r
