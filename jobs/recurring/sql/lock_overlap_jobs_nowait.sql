-- Lock the jobs, among those given, whose runs must not overlap, without waiting for a lock.
-- Parameters: job_ids bigint[].
-- Result: id, overlap, is_locked: locked by another transaction.
-- Keeps true: as lock_overlap_jobs.sql; a locked job is not judged.
WITH mine AS MATERIALIZED (
    SELECT id, overlap FROM jobs_job
    WHERE id = ANY(%(job_ids)s) AND overlap <> 'allow' AND history_policy = 'full'
    ORDER BY id
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT j.id, coalesce(mine.overlap, j.overlap) AS overlap, mine.id IS NULL AS is_locked
FROM jobs_job AS j LEFT JOIN mine ON mine.id = j.id
WHERE j.id = ANY(%(job_ids)s) AND j.overlap <> 'allow' AND j.history_policy = 'full'
