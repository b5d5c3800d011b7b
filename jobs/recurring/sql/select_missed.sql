-- The records of missed due times of some jobs that overlap a span.
-- Parameters: job_ids bigint[], start and end timestamptz.
-- Result: job_id, first_at, last_at.
SELECT job_id, first_at, last_at
FROM jobs_missed
WHERE job_id = ANY(%(job_ids)s) AND first_at < %(end)s AND last_at >= %(start)s
