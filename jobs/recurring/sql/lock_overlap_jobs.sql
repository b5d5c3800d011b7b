-- Lock the jobs, among those given, whose runs must not overlap.
-- Parameters: job_ids bigint[].
-- Result: id, overlap, is_locked (false).
-- Keeps true: two due times of one job are judged one after the other. Run overlap_state.sql after
--   it: only a later statement sees what the transactions that held the locks have made.
SELECT id, overlap, false AS is_locked FROM jobs_job
WHERE id = ANY(%(job_ids)s) AND overlap <> 'allow' AND history_policy = 'full'
ORDER BY id
-- guard: due times: the jobs of two ticks are judged one after the other
FOR NO KEY UPDATE
